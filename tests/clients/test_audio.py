from __future__ import annotations

import base64
import io
import wave
from pathlib import Path

import pytest
from tests.clients.scripted import audio

from omniduplex.audio.wav import wav_bytes
from omniduplex.clients.audio import Samples, delta_format, samples_of, strip_data_url
from omniduplex.clients.duplex import (
    audio_data_url,
    image_data_url,
    read_pcm16_wav,
    write_pcm16_wav,
)
from omniduplex.protocol.duplex import AudioDelta, AudioFormat, Encoding


@pytest.mark.parametrize(
    ("audio_format", "size", "ms"),
    [
        (AudioFormat(), 3200, 100),
        (AudioFormat(encoding="pcm_f32le", sample_rate_hz=24000), 9600, 100),
        (AudioFormat(encoding="g711_ulaw", sample_rate_hz=8000), 160, 20),
    ],
)
def test_bytes_and_ms_are_two_ways_to_say_it(
    audio_format: AudioFormat, size: int, ms: float
) -> None:
    assert audio_format.duration_ms(size) == ms
    assert audio_format.byte_count(ms) == size


def test_a_duration_comes_out_as_whole_samples() -> None:
    assert AudioFormat(sample_rate_hz=22050).byte_count(0.1) == 4


def test_a_wav_comes_back_as_it_was_written(tmp_path: Path) -> None:
    write_pcm16_wav(tmp_path / "a.wav", b"\1\2\3\4", 16000)

    assert read_pcm16_wav(tmp_path / "a.wav") == b"\1\2\3\4"


def test_another_rate_is_refused_by_name(tmp_path: Path) -> None:
    write_pcm16_wav(tmp_path / "a.wav", bytes(8), 44100)

    with pytest.raises(ValueError, match=r"has 44100 Hz, 1 channel.*16000 Hz, 1 channel, 16 bit"):
        read_pcm16_wav(tmp_path / "a.wav")
    assert read_pcm16_wav(tmp_path / "a.wav", 44100) == bytes(8)


@pytest.mark.parametrize(("channels", "width"), [(2, 2), (1, 3)])
def test_another_layout_is_refused(tmp_path: Path, channels: int, width: int) -> None:
    with wave.open(str(tmp_path / "a.wav"), "wb") as writer:
        writer.setnchannels(channels)
        writer.setsampwidth(width)
        writer.setframerate(16000)
        writer.writeframes(bytes(12))

    with pytest.raises(ValueError, match=rf"{channels} channel\(s\), {8 * width} bit samples"):
        read_pcm16_wav(tmp_path / "a.wav")


@pytest.mark.parametrize("content", [b"", b"no wave at all, but long enough to look at"])
def test_a_file_that_is_no_wav_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.wav").write_bytes(content)

    with pytest.raises(ValueError, match="is not a PCM WAV file"):
        read_pcm16_wav(tmp_path / "a.wav")


def test_a_data_url_holds_the_bytes_of_a_file(tmp_path: Path) -> None:
    (tmp_path / "a.wav").write_bytes(b"\0\xff")
    url = audio_data_url(tmp_path / "a.wav")

    assert url == audio_data_url(b"\0\xff") == "data:audio/wav;base64,AP8="
    assert base64.b64decode(strip_data_url(url)) == b"\0\xff"
    assert image_data_url(b"\0\xff") == "data:image/jpeg;base64,AP8="
    assert strip_data_url("AP8=") == "AP8="


def test_a_delta_tells_its_format_or_has_the_expected_one() -> None:
    expected = AudioFormat(encoding="g711_alaw", sample_rate_hz=8000)

    assert delta_format(audio("r", b"", rate_hz=16000), expected) == AudioFormat()
    assert delta_format(AudioDelta(response_id="r", item_id="i", delta=b""), expected) is expected


def test_the_samples_of_a_wav_come_without_its_header() -> None:
    assert samples_of(wav_bytes(b"abcd", 22050), AudioFormat("wav", 24000)) == Samples(
        b"abcd", AudioFormat("pcm16", 22050)
    )
    assert samples_of(b"", AudioFormat("wav", 24000)) == Samples(b"", AudioFormat("pcm16", 24000))


@pytest.mark.parametrize("encoding", ["pcm16", "pcm_f32le", "g711_ulaw", "g711_alaw"])
def test_samples_without_a_header_stay_as_they_are(encoding: Encoding) -> None:
    piece = wav_bytes(b"abcd", 24000)
    assert samples_of(piece, AudioFormat(encoding, 24000)) == (piece, AudioFormat(encoding, 24000))


def in_stereo() -> bytes:
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setparams((2, 2, 24000, 0, "NONE", ""))
        writer.writeframes(b"abcd")
    return file.getvalue()


@pytest.mark.parametrize("piece", [b"RIFF", b"abcdefgh" * 8, in_stereo()], ids=len)
def test_a_file_that_is_no_wav_of_mono_pcm16_stays_as_it_is(piece: bytes) -> None:
    expected = AudioFormat("wav", 24000)
    assert samples_of(piece, expected) == Samples(piece, expected)
