"""Audio formats: what a client may call them, and what is in force then."""

from __future__ import annotations

from typing import Any

import pytest
from tests.protocol.duplex.patching import DUPLEX, OPENAI, patched

from omniduplex.audio.wav import wav_bytes
from omniduplex.protocol.duplex import (
    AppendAudio,
    AudioFormat,
    AudioFormatObject,
    DuplexError,
    DuplexSessionConfig,
    format_object,
    parse_append_format,
    read_output_format,
)

SPELLINGS = {
    "pcm16": ["pcm16", "pcm_s16le", "s16le", "pcm", "audio/pcm", "audio/pcm16", "PCM16"],
    "pcm_f32le": ["pcm_f32le", "f32le", "audio/pcm_f32le"],
    "g711_ulaw": [
        "g711_ulaw",
        "g711-ulaw",
        "ulaw",
        "mulaw",
        "audio/g711_ulaw",
        "audio/pcmu",
        "G711_ULAW",
    ],
    "g711_alaw": ["g711_alaw", "g711-alaw", "alaw", "audio/g711_alaw", "audio/pcma"],
}
NAMED_RATE = {"type": "audio/pcm", "rate": 44100}
ALL = [(name, encoding) for encoding, names in SPELLINGS.items() for name in names]


@pytest.mark.parametrize(("name", "encoding"), ALL)
def test_every_spelling_means_its_encoding(name: str, encoding: str) -> None:
    for given in (name, {"type": name}, {"format": name}):
        assert patched(DUPLEX, input_audio_format=given).input_format.encoding == encoding
        command = AppendAudio(audio=b"", format=given)
        assert parse_append_format(command, DUPLEX.input_format).encoding == encoding


@pytest.mark.parametrize("given", ["g711_mulaw", "mp3", "", "opus", 7, [], {"type": "mp3"}])
@pytest.mark.parametrize("field", ["input_audio_format", "output_audio_format"])
def test_an_unknown_format_is_refused_by_name(field: str, given: Any) -> None:
    with pytest.raises(DuplexError) as refusal:
        patched(DUPLEX, **{field: given})
    assert refusal.value.code == "unsupported_audio_format"
    assert (refusal.value.param or "").startswith(f"session.{field}")


@pytest.mark.parametrize("name", ["wav", "audio/wav", "WAV"])
def test_wav_is_an_output_format(name: str) -> None:
    for given in (name, {"type": name}):
        assert patched(DUPLEX, output_audio_format=given).output_format == AudioFormat("wav", 24000)
    rated = patched(OPENAI, audio={"output": {"format": {"type": name, "rate": 16000}}})
    assert rated.output_format == AudioFormat("wav", 16000)
    assert read_output_format(AudioFormat(), ("response.response_format", name)) == AudioFormat(
        "wav", 16000
    )
    with pytest.raises(DuplexError) as refusal:
        patched(DUPLEX, audio={"input": {"format": name}})
    error = refusal.value
    assert (error.code, error.param) == ("unsupported_audio_format", "session.audio.input.format")


def test_back_from_g711_a_wav_has_the_dialects_own_rate() -> None:
    ulaw = patched(DUPLEX, output_audio_format="g711_ulaw")
    assert patched(ulaw, output_audio_format="wav").output_format == AudioFormat("wav", 24000)
    wav = patched(DUPLEX, output_audio_format={"type": "audio/wav", "rate": 48000})
    assert patched(wav, output_audio_format="pcm16").output_format == AudioFormat("pcm16", 48000)


def test_what_a_wav_holds_is_counted_without_its_header() -> None:
    wav = AudioFormat("wav", 24000)
    size = len(wav_bytes(bytes(4800), 24000))
    assert size == 4844
    assert (wav.sample_count(size), wav.duration_ms(size)) == (2400, 100)
    assert wav.byte_count(100) == size
    assert (wav.sample_count(0), wav.duration_ms(0), wav.byte_count(0)) == (0, 0, 0)


def test_float_samples_are_for_input_only() -> None:
    with pytest.raises(DuplexError) as refusal:
        patched(DUPLEX, response_format="pcm_f32le")
    assert refusal.value.param == "session.response_format"


@pytest.mark.parametrize("rate", [7999, 192001, 16000.5, 0, -1])
@pytest.mark.parametrize(
    "session",
    [
        lambda rate: {"sample_rate_hz": rate},
        lambda rate: {"sample_rate": rate},
        lambda rate: {"audio": {"input": {"sample_rate_hz": rate}}},
        lambda rate: {"audio": {"input": {"format": {"type": "audio/pcm", "rate": rate}}}},
        lambda rate: {"audio": {"output": {"sample_rate_hz": rate}}},
        lambda rate: {"output_audio_format": {"type": "audio/pcm", "rate": rate}},
    ],
)
def test_a_rate_is_a_whole_number_within_limits(session: Any, rate: float) -> None:
    with pytest.raises(DuplexError) as refusal:
        patched(DUPLEX, **session(rate))
    assert refusal.value.code == "unsupported_audio_format"
    assert "rate" in (refusal.value.param or "")


@pytest.mark.parametrize("key", ["rate", "sample_rate_hz", "sample_rate"])
def test_a_format_object_may_name_its_rate_in_three_ways(key: str) -> None:
    config = patched(DUPLEX, input_audio_format={"type": "audio/pcm", key: 48000.0})
    assert config.input_format == AudioFormat(sample_rate_hz=48000)


def test_a_rate_alone_keeps_the_encoding_and_an_encoding_alone_keeps_the_rate() -> None:
    ulaw = patched(DUPLEX, input_audio_format="g711_ulaw")
    assert ulaw.input_format == AudioFormat(encoding="g711_ulaw", sample_rate_hz=8000)
    assert patched(ulaw, sample_rate_hz=16000).input_format.encoding == "g711_ulaw"
    wide = patched(DUPLEX, sample_rate_hz=48000)
    assert patched(wide, input_audio_format="pcm_f32le").input_format.sample_rate_hz == 48000


@pytest.mark.parametrize(("config", "rate"), [(OPENAI, 24000), (DUPLEX, 16000)])
def test_back_from_g711_the_rate_is_the_dialects_own(
    config: DuplexSessionConfig, rate: int
) -> None:
    ulaw = patched(config, input_audio_format="g711_ulaw", output_audio_format="g711_alaw")
    assert ulaw.output_format == AudioFormat(encoding="g711_alaw", sample_rate_hz=8000)
    back = patched(ulaw, input_audio_format="pcm16", output_audio_format="pcm16")
    assert (back.input_format.sample_rate_hz, back.output_format.sample_rate_hz) == (rate, 24000)


@pytest.mark.parametrize(
    ("session", "rate_hz"),
    [
        ({"sample_rate_hz": 8000, "sample_rate": 24000}, 8000),
        ({"sample_rate": 24000, "audio": {"input": {"sample_rate_hz": 8000}}}, 24000),
        ({"audio": {"input": {"sample_rate_hz": 8000, "format": NAMED_RATE}}}, 8000),
        ({"sample_rate_hz": 8000, "input_audio_format": NAMED_RATE}, 8000),
        ({"input_audio_format": NAMED_RATE}, 44100),
    ],
)
def test_of_several_rates_the_flattest_counts(session: dict[str, Any], rate_hz: int) -> None:
    assert patched(DUPLEX, **session).input_format.sample_rate_hz == rate_hz


def test_a_rate_beside_a_format_object_counts_before_the_one_inside_on_the_way_out_too() -> None:
    config = patched(DUPLEX, audio={"output": {"sample_rate_hz": 8000, "format": NAMED_RATE}})
    assert config.output_format.sample_rate_hz == 8000


@pytest.mark.parametrize(
    ("audio_format", "shown"),
    [
        (AudioFormat(), AudioFormatObject(type="audio/pcm", rate=16000)),
        (
            AudioFormat(encoding="g711_ulaw", sample_rate_hz=8000),
            AudioFormatObject(type="audio/pcmu"),
        ),
        (
            AudioFormat(encoding="g711_alaw", sample_rate_hz=8000),
            AudioFormatObject(type="audio/pcma"),
        ),
        (
            AudioFormat(encoding="g711_alaw", sample_rate_hz=16000),
            AudioFormatObject(type="audio/pcma", rate=16000),
        ),
        (
            AudioFormat(encoding="pcm_f32le", sample_rate_hz=24000),
            AudioFormatObject(type="audio/pcm_f32le", rate=24000),
        ),
        (AudioFormat("wav", 24000), AudioFormatObject(type="audio/wav", rate=24000)),
    ],
)
def test_a_format_is_shown_by_its_ga_name(
    audio_format: AudioFormat, shown: AudioFormatObject
) -> None:
    assert format_object(audio_format) == shown


def test_an_append_is_in_the_sessions_format_unless_it_says_otherwise() -> None:
    session_format = AudioFormat(sample_rate_hz=24000)
    assert parse_append_format(AppendAudio(audio=b""), session_format) is session_format
    same = AppendAudio(audio=b"", format="pcm16", sample_rate_hz=session_format.sample_rate_hz)
    assert parse_append_format(same, session_format) is session_format
    assert (
        parse_append_format(
            AppendAudio(audio=b"", sample_rate_hz=8000), session_format
        ).sample_rate_hz
        == 8000
    )
    assert parse_append_format(
        AppendAudio(audio=b"", format="ulaw"), session_format
    ) == AudioFormat(encoding="g711_ulaw", sample_rate_hz=8000)
    named = AppendAudio(audio=b"", format={"type": "audio/pcm", "rate": 44100})
    assert parse_append_format(named, session_format).sample_rate_hz == 44100
    both = AppendAudio(audio=b"", format={"type": "audio/pcm", "rate": 44100}, sample_rate_hz=48000)
    assert parse_append_format(both, session_format).sample_rate_hz == 48000


@pytest.mark.parametrize(
    ("fields", "code", "param"),
    [
        ({"format": "mp3"}, "unsupported_audio_format", "format"),
        ({"format": "wav"}, "unsupported_audio_format", "format"),
        ({"format": {"type": "mp3"}}, "unsupported_audio_format", "format.type"),
        ({"format": {"type": 3}}, "unsupported_audio_format", "format"),
        ({"format": {"rate": 1}}, "unsupported_audio_format", "format.rate"),
        ({"sample_rate_hz": 4000}, "bad_event", "sample_rate_hz"),
        ({"sample_rate_hz": 16000.5}, "bad_event", "sample_rate_hz"),
    ],
    ids=str,
)
def test_an_append_in_an_impossible_format(fields: dict[str, Any], code: str, param: str) -> None:
    with pytest.raises(DuplexError) as refusal:
        parse_append_format(AppendAudio(audio=b"", event_id="evt_1", **fields), AudioFormat())
    error = refusal.value
    assert (error.code, error.param, error.event_id) == (code, param, "evt_1")
