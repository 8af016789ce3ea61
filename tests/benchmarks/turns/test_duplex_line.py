from __future__ import annotations

import asyncio

import msgspec
import pytest
from msgspec import structs
from tests.clients.scripted import MODEL, Peer, WebSocketPeer, serve_peer

from omniduplex.benchmarks.turns.duplex_line import RATE_HZ, DuplexLine, line_event
from omniduplex.benchmarks.turns.line import SessionWish
from omniduplex.clients import MonotonicClock
from omniduplex.protocol.duplex import (
    AckPlayback,
    AppendAudio,
    AudioDelta,
    DuplexResponse,
    DurationUsage,
    ErrorDetails,
    ErrorEvent,
    OutputCleared,
    OverlapDecision,
    OverlapMetadata,
    ResponseDone,
    ResponseStatus,
    SpeechStopped,
    TranscriptDelta,
    TranscriptionCompleted,
)

WISH = SessionWish(
    model=MODEL, policy="barge_in_on_speech", vad="server_vad", instructions="Be brief."
)


def finished(status: ResponseStatus) -> ResponseDone:
    return ResponseDone(response_id="r", response=DuplexResponse(id="r", status=status))


def test_audio_words_and_ends_are_read() -> None:
    audio = AudioDelta(response_id="r", item_id="i", output_index=0, content_index=0, delta=b"\1\0")
    words = TranscriptDelta(
        response_id="r", item_id="i", output_index=0, content_index=0, delta="Hm"
    )
    assert line_event(audio).audio == b"\1\0"
    assert line_event(words).text == "Hm"
    assert not line_event(finished("completed")).silences
    assert line_event(finished("cancelled")).silences
    assert line_event(finished("completed")).ended


def test_cleared_output_is_silence() -> None:
    assert line_event(OutputCleared(response_id="r")).silences
    assert line_event(OutputCleared()).response_id is None


def test_decisions_what_was_heard_and_errors_are_told() -> None:
    decision = OverlapDecision(
        session_id="s", epoch=0, policy="listen_only", action="listen", reason="policy"
    )
    assert line_event(decision).note == "listen: policy"
    heard = OverlapMetadata(overlap_speech_ms=320.0)
    assert line_event(structs.replace(decision, metadata=heard)).interrupted_after_ms is None
    barge_in = structs.replace(decision, action="barge_in", metadata=heard)
    assert line_event(barge_in).interrupted_after_ms == 320
    stopped = SpeechStopped(audio_end_ms=2400, item_id="i")
    assert line_event(stopped).audio_ms == 2400
    words = TranscriptionCompleted(
        item_id="i", transcript="Wait, stop.", usage=DurationUsage(seconds=1.5)
    )
    assert line_event(words).note == "Wait, stop."
    error = ErrorEvent(error=ErrorDetails(type="server", code="oops", message="it broke"))
    assert line_event(error).error == "oops: it broke"


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("policy", "interrupts"), [("barge_in_on_speech", True), ("listen_only", False)]
)
async def test_a_session_has_the_policy_and_the_playback_is_acknowledged(
    policy: str, interrupts: bool
) -> None:
    peer = Peer()
    async with serve_peer(WebSocketPeer(peer)) as url:
        wish = msgspec.structs.replace(WISH, policy=policy)
        async with DuplexLine(url, wish, MonotonicClock()) as line:
            assert peer.config is not None
            assert peer.config.turn_detection is not None
            assert peer.config.turn_detection.interrupt_response is interrupts
            assert peer.config.overlap_policy == line.policy_in_force == policy
            assert (
                peer.config.input_format.sample_rate_hz
                == peer.config.output_format.sample_rate_hz
                == RATE_HZ
            )
            assert peer.config.instructions == "Be brief."
            await line.send(bytes(640))
            await line.report_heard("r", 120.6, cut_off=True)
            async with asyncio.timeout(30):
                append = await peer.received(AppendAudio)
                ack = await peer.received(AckPlayback)
    assert len(append.audio) == 640
    assert (ack.response_id, ack.played_ms, ack.truncate) == ("r", 120, True)
