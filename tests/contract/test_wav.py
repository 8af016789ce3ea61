"""Answers in `wav`: wire contract, section 11. Each delta with audio is a file of its own."""

from __future__ import annotations

import base64
import io

import pytest
from tests.contract.caller import Caller, Event, one

from omniduplex.audio.wav import read_wav_file

pytestmark = pytest.mark.e2e

DELTAS = {"beta": "response.audio.delta"}


def deltas(caller: Caller, events: list[Event]) -> list[Event]:
    kind = DELTAS.get(caller.dialect, "response.output_audio.delta")
    return [event for event in events if event["type"] == kind and event["delta"]]


def pcm(caller: Caller, events: list[Event]) -> bytes:
    """All samples of an answer."""
    return b"".join(base64.b64decode(delta["delta"]) for delta in deltas(caller, events))


def files(caller: Caller, events: list[Event]) -> tuple[bytes, set[int]]:
    """All samples of an answer whose deltas are WAVs, and the rates that these tell, in Hz."""
    pieces = [base64.b64decode(delta["delta"]) for delta in deltas(caller, events)]
    read = [read_wav_file(io.BytesIO(piece)) for piece in pieces]
    return b"".join(samples for samples, _ in read), {rate for _, rate in read}


def ask(caller: Caller, **response: object) -> list[Event]:
    caller.writes("a story of seven words or eight")
    return caller.asks(**response)


def test_a_session_in_wav_has_a_file_in_every_delta(any_dialect: Caller) -> None:
    plain = pcm(any_dialect, ask(any_dialect))
    any_dialect.configure(audio={"output": {"format": {"type": "audio/wav", "rate": 24000}}})
    answer = ask(any_dialect)

    assert len(deltas(any_dialect, answer)) > 1
    assert files(any_dialect, answer) == (plain, {24000})


def test_a_response_may_be_in_wav_by_itself(any_dialect: Caller) -> None:
    plain = pcm(any_dialect, ask(any_dialect))
    answer = ask(any_dialect, output_audio_format="wav")

    assert files(any_dialect, answer) == (plain, {24000})
    assert pcm(any_dialect, ask(any_dialect)) == plain


def test_the_session_shows_it(duplex: Caller, openai: Caller, beta: Caller) -> None:
    wav = {"audio": {"output": {"format": "audio/wav"}}}
    shown = {"type": "audio/wav", "rate": 24000}
    assert openai.configure(**wav)["audio"]["output"]["format"] == shown
    session = duplex.configure(**wav)
    assert session["audio"]["output"]["format"] == shown
    assert (session["output_audio_format"], session["response_format"]) == ("wav", "wav")
    assert beta.configure(output_audio_format="wav")["output_audio_format"] == "wav"


def test_a_delta_tells_its_format_and_how_long_all_audio_is(duplex: Caller) -> None:
    duplex.configure(output_audio_format={"type": "wav", "rate": 16000})
    answer = ask(duplex)
    *_, last = deltas(duplex, answer)
    samples, rates = files(duplex, answer)

    assert (last["format"], last["sample_rate_hz"], rates) == ("wav", 16000, {16000})
    assert last["metadata"]["audio_duration_ms"] == len(samples) / 2 / 16
    assert one(answer, "response.done")["response"]["status"] == "completed"


def test_no_input_is_in_wav(any_dialect: Caller) -> None:
    session = {"audio": {"input": {"format": "audio/wav"}}}
    error = any_dialect.refusal("session.update", session=session)
    assert error["code"] == "unsupported_audio_format"
    assert error["param"].removeprefix("session.") == "audio.input.format"
    sound = any_dialect.sound()
    error = any_dialect.refusal("input_audio_buffer.append", audio=sound, format="wav")
    assert (error["code"], error["param"]) == ("unsupported_audio_format", "format")
