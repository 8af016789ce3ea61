from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.clients.conftest import Connect
from tests.clients.scripted import (
    SESSION_ID,
    Peer,
    VirtualClock,
    audio,
    created,
    done,
    words,
)

from omniduplex.clients.duplex import DuplexTrace, SessionConfig
from omniduplex.protocol.duplex import (
    CancelResponse,
    DuplexError,
    ResponseDone,
    SessionPatch,
    UnknownEvent,
    UpdateSession,
    error_event,
)

SECRET = "not for the trace"


def written(trace: DuplexTrace, folder: Path) -> dict[str, Any]:
    trace.write_json(folder / "trace.json")
    found: dict[str, Any] = msgspec.json.decode((folder / "trace.json").read_bytes())
    return found


@pytest.fixture
def trace() -> DuplexTrace:
    """One event in each second, from 5 s on."""
    moments = iter(range(5, 1000))
    return DuplexTrace(now=lambda: float(next(moments)))


def test_a_trace_tells_what_became_of_each_response(trace: DuplexTrace, tmp_path: Path) -> None:
    for event in (created("one"), words("one", "Hello."), audio("one", bytes(4)), done("one")):
        trace.record("receive", event)
    trace.record("receive", created("two"))
    trace.record("send", CancelResponse(response_id="two", event_id="evt_1"))
    trace.record("receive", done("two", "cancelled"))

    found = written(trace, tmp_path)
    assert (found["schema_version"], found["clock"]) == (1, "client_monotonic")
    assert (found["total_events"], found["dropped_events"]) == (7, 0)
    assert found["event_counts"] == {
        "receive:response.created": 2,
        "receive:response.output_audio_transcript.delta": 1,
        "receive:response.output_audio.delta": 1,
        "receive:response.done": 2,
        "send:response.cancel": 1,
    }
    assert found["responses"] == [
        {
            "response_id": "one",
            "created_s": 0,
            "first_audio_s": 2,
            "done_s": 3,
            "status": "completed",
        },
        {
            "response_id": "two",
            "created_s": 4,
            "cancel_sent_s": 5,
            "done_s": 6,
            "status": "cancelled",
        },
    ]
    assert found["events"][5] == {
        "index": 5,
        "elapsed_s": 5,
        "direction": "send",
        "type": "response.cancel",
        "event_id": "evt_1",
        "response_id": "two",
    }


def test_a_cancel_without_a_name_is_one_of_the_response_under_way(trace: DuplexTrace) -> None:
    trace.record("receive", created("one"))
    trace.record("send", CancelResponse())
    trace.record("receive", done("one"))
    trace.record("send", {"type": "response.cancel"})

    assert trace.snapshot()["responses"] == [
        {
            "response_id": "one",
            "created_s": 0,
            "cancel_sent_s": 1,
            "done_s": 2,
            "status": "completed",
        }
    ]


def test_neither_words_nor_sound_nor_secrets_are_kept(trace: DuplexTrace) -> None:
    patch = SessionPatch(instructions=SECRET, ref_audio=SECRET)
    trace.record("send", UpdateSession(session=patch))
    trace.record(
        "send", {"type": "session.resume", "resume_token": SECRET, "event_id": SECRET * 99}
    )
    trace.record("receive", words("one", SECRET))
    trace.record("receive", audio("one", SECRET.encode()))
    raw = {"type": "new.event", "response_id": "one", "delta": SECRET, "played_ms": float("nan")}
    trace.record("receive", UnknownEvent(type="new.event", raw=raw))

    shown = trace.snapshot()
    assert SECRET not in str(shown)
    assert shown["events"][1] == {
        "index": 1,
        "elapsed_s": 1,
        "direction": "send",
        "type": "session.resume",
    }
    assert shown["events"][4]["response_id"] == "one"


def test_an_error_names_its_code_and_the_command(trace: DuplexTrace) -> None:
    trace.record("receive", error_event(DuplexError("bad_event", SECRET, event_id="evt_7")))

    (row,) = trace.snapshot()["events"]
    assert (row["error_code"], row["related_event_id"]) == ("bad_event", "evt_7")


def test_a_full_trace_forgets_the_oldest() -> None:
    trace = DuplexTrace(max_events=2)
    for name in ("one", "two", "three"):
        trace.record("receive", created(name))

    shown = trace.snapshot()
    assert (shown["total_events"], shown["dropped_events"]) == (3, 1)
    assert [row["index"] for row in shown["events"]] == [1, 2]
    assert [response["response_id"] for response in shown["responses"]] == ["two", "three"]


def test_a_trace_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="max_events=0"):
        DuplexTrace(max_events=0)


@pytest.mark.anyio
async def test_a_client_traces_what_it_sends_and_hears(
    connect: Connect, clock: VirtualClock, peer: Peer
) -> None:
    trace = DuplexTrace()
    async with connect(
        config=SessionConfig(instructions=SECRET), trace=trace, clock=clock
    ) as client:
        ended = client.wait_for(ResponseDone, timeout_s=60)
        await client.append_audio(bytes(640))
        peer.emit(created("r"), audio("r", bytes(4)), done("r"))
        await ended

    shown = trace.snapshot()
    kinds = [f"{row['direction']}:{row['type']}" for row in shown["events"]]
    assert kinds[:2] == ["send:session.update", "receive:session.created"]
    assert {"send:input_audio_buffer.append", "receive:session.closed"} <= set(kinds)
    assert shown["events"][1]["session_id"] == SESSION_ID
    (response,) = shown["responses"]
    assert response["status"] == "completed"
    assert response["created_s"] <= response["first_audio_s"] <= response["done_s"]
    assert SECRET not in str(shown)
