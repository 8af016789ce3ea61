"""What the tests of the output buffer put into it, and a reader that never waits."""

from collections.abc import Coroutine
from typing import Any

import msgspec

from omniduplex.engine.duplex.output_buffer import (
    DuplexOutputBuffer,
)
from omniduplex.protocol.duplex import (
    AudioDelta,
    DuplexEvent,
    DuplexResponse,
    ErrorDetails,
    ErrorEvent,
    HeartbeatAck,
    ResponseDone,
    SessionClosed,
    TranscriptDelta,
)

ROOMY = 1 << 20
CLOSED = SessionClosed(session_id="s", epoch=0, reason="client_close")


def audio(response_id: str = "r", *, delta: bytes = b"\0\1") -> AudioDelta:
    return AudioDelta(response_id=response_id, item_id="i", delta=delta)


def words(response_id: str = "r", text: str = "hi") -> TranscriptDelta:
    return TranscriptDelta(response_id=response_id, item_id="i", delta=text)


def heartbeat(session_id: str = "s") -> HeartbeatAck:
    return HeartbeatAck(session_id=session_id)


def failure(message: str = "overflow") -> ErrorEvent:
    return ErrorEvent(
        error=ErrorDetails(type="rate_limit_error", code="output_backpressure", message=message)
    )


def ending(response_id: str = "r") -> ResponseDone:
    response = DuplexResponse(id=response_id, status="failed")
    return ResponseDone(response_id=response_id, response=response)


def roomy() -> DuplexOutputBuffer:
    return DuplexOutputBuffer(max_bytes=ROOMY, max_events=512)


def json_size(event: DuplexEvent) -> int:
    return len(msgspec.json.encode(event))


def step(coroutine: Coroutine[Any, Any, DuplexEvent]) -> DuplexEvent:
    """Return the result of a coroutine that has no reason to wait."""
    try:
        coroutine.send(None)
    except StopIteration as result:
        value: DuplexEvent = result.value
        return value
    coroutine.close()
    raise AssertionError("it waits")


def take(buffer: DuplexOutputBuffer) -> DuplexEvent:
    return step(buffer.get())


def take_all(buffer: DuplexOutputBuffer) -> list[DuplexEvent]:
    return [take(buffer) for _ in range(buffer.pending_events)]
