"""What every client hands out: events to each consumer, answers, and the end of both."""

from __future__ import annotations

import pytest
from tests.clients.scripted import (
    SESSION_ID,
    Peer,
    audio,
    created,
    done,
    words,
)

from omniduplex.clients.duplex import (
    DuplexClientBase,
    DuplexProtocolError,
    DuplexSessionClosedError,
)
from omniduplex.protocol.duplex import (
    DuplexError,
    InputCleared,
    OutputCleared,
    ResponseDone,
    SessionClosed,
    SessionCreated,
    SessionExpired,
    TranscriptDelta,
    error_event,
)

pytestmark = pytest.mark.anyio


async def test_events_come_in_order_to_every_consumer(client: DuplexClientBase, peer: Peer) -> None:
    async with client:
        one, two = client.events(), aiter(client)
        peer.emit(created("r"), audio("r", bytes(4)), done("r"))

        for consumer in (one, two):
            kinds = [type(await anext(consumer)).__name__ for _ in range(3)]
            assert kinds == ["ResponseCreated", "AudioDelta", "ResponseDone"]


async def test_wait_for_takes_classes_and_wire_types(client: DuplexClientBase, peer: Peer) -> None:
    async with client:
        by_class = client.wait_for(ResponseDone, timeout_s=60)
        by_name = client.wait_for("output_audio_buffer.cleared", timeout_s=60)
        peer.emit(InputCleared(), OutputCleared(), done("r", "cancelled"))

        assert (await by_class).response.status == "cancelled"
        assert isinstance(await by_name, OutputCleared)


async def test_wait_for_raises_a_refusal_that_nobody_asked_for(
    client: DuplexClientBase, peer: Peer
) -> None:
    error = DuplexError("input_audio_buffer_empty", "nothing to commit", event_id="evt_9")
    async with client:
        waiting = client.wait_for(ResponseDone, timeout_s=60)
        asked_for = client.wait_for("error", timeout_s=60)
        peer.emit(error_event(error))

        with pytest.raises(DuplexProtocolError) as caught:
            await waiting
        assert await asked_for == caught.value.raw
    assert (caught.value.code, caught.value.event_id) == ("input_audio_buffer_empty", "evt_9")


async def test_wait_for_gives_up(client: DuplexClientBase) -> None:
    async with client:
        with pytest.raises(TimeoutError):
            await client.wait_for(ResponseDone, timeout_s=0.01)


async def test_a_goodbye_ends_the_streams_and_is_no_error(
    client: DuplexClientBase, peer: Peer
) -> None:
    async with client:
        events, responses = client.events(), client.responses()
        waiting = client.wait_for(ResponseDone)
        peer.close("idle")

        assert [type(event) async for event in events] == [SessionClosed]
        assert [handle async for handle in responses] == []
        with pytest.raises(DuplexSessionClosedError, match="idle"):
            await waiting
        with pytest.raises(DuplexSessionClosedError, match="idle"):
            await client.commit()
        assert [event async for event in client.events()] == []


async def test_a_drop_is_an_error_for_everyone_who_waits(
    client: DuplexClientBase, peer: Peer
) -> None:
    peer.polite = False
    async with client:
        events, responses = client.events(), client.responses()
        waiting = client.wait_for(ResponseDone)
        peer.emit(created("r"), audio("r", b"ab"))
        handle = await anext(responses)
        peer.hang_up()

        with pytest.raises(DuplexSessionClosedError):
            await waiting
        with pytest.raises(DuplexSessionClosedError):
            _ = [event async for event in events]
        with pytest.raises(DuplexSessionClosedError):
            await anext(responses)
        with pytest.raises(DuplexSessionClosedError):
            await handle.wait()
        heard: list[bytes] = []
        with pytest.raises(DuplexSessionClosedError):
            heard.extend([chunk async for chunk in handle.audio()])
        assert (handle.finished, handle.status) == (True, "incomplete")


async def test_an_expired_session_says_so(client: DuplexClientBase, peer: Peer) -> None:
    async with client:
        events = client.events()
        peer.emit(SessionExpired(session_id=SESSION_ID, reason="idle_ttl_expired"))

        assert isinstance(await anext(events), SessionExpired)
        with pytest.raises(DuplexSessionClosedError, match="expired: idle_ttl_expired"):
            await anext(events)


async def test_an_answer_from_first_word_to_last(client: DuplexClientBase, peer: Peer) -> None:
    async with client:
        responses = client.responses()
        peer.emit(created("r"), audio("r", bytes(4800)), words("r", "It is "))
        peer.emit(audio("r", bytes(2400)), words("r", "sunny."), done("r"))

        response = await anext(responses)
        positions = [response.played_ms async for _ in response.audio()]

        assert await response.wait() == "completed"
    assert positions == [100, 150]
    assert response.decision == "speak"
    assert response.transcript == "It is sunny."
    assert response.created_event is not None
    assert response.done_event is not None


async def test_an_answer_that_began_before_anyone_asked_is_not_lost(
    client: DuplexClientBase, peer: Peer
) -> None:
    async with client:
        finished = client.wait_for(ResponseDone, timeout_s=60)
        peer.emit(created("r"), audio("r", bytes(4800)), done("r"))
        await finished

        response = await anext(client.responses())
        assert [len(chunk) async for chunk in response.audio()] == [4800]


async def test_a_consumer_that_sleeps_loses_the_oldest_and_can_tell(
    client: DuplexClientBase, peer: Peer
) -> None:
    async with client:
        sleeper = client.events()
        finished = client.wait_for("response.done", timeout_s=60)
        peer.emit(*(words("r", str(n)) for n in range(1500)), done("r"))
        await finished

        assert sleeper.lost == 1501 - 1024
        first_left = await anext(sleeper)
        assert isinstance(first_left, TranscriptDelta)
        assert first_left.delta == "477"


async def test_session_created_is_an_event_like_any_other(
    client: DuplexClientBase, peer: Peer
) -> None:
    events = client.events()
    async with client:
        assert isinstance(await anext(events), SessionCreated)
