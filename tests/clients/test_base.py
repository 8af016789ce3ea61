"""What every client does, whatever carries it."""

from __future__ import annotations

import asyncio
import inspect
import tracemalloc

import pytest
from msgspec import UNSET
from tests.clients.conftest import Connect
from tests.clients.scripted import (
    MODEL,
    SESSION_ID,
    InlinePeer,
    JumpingClock,
    Peer,
    VirtualClock,
    audio,
    created,
    done,
    words,
)

from omniduplex.clients.duplex import (
    DuplexClient,
    DuplexClientBase,
    DuplexConnectionError,
    DuplexProtocolError,
    DuplexSessionClosedError,
    InlineDuplexClient,
    SessionConfig,
)
from omniduplex.protocol.duplex import (
    AckPlayback,
    AppendAudio,
    CancelResponse,
    ClearInput,
    Commit,
    ContentPart,
    CreateItem,
    CreateResponse,
    DuplexError,
    InputCleared,
    ItemInput,
    OutputCleared,
    ResponseDone,
    ResponseOptions,
    SessionClosed,
    SessionCreated,
    SessionExpired,
    SessionPatch,
    TranscriptDelta,
    TruncateItem,
    UpdateSession,
    error_event,
)

pytestmark = pytest.mark.anyio


async def test_entering_opens_a_session_and_leaving_closes_it(
    client: DuplexClientBase, peer: Peer
) -> None:
    async with client:
        assert client.session_id == SESSION_ID
        assert client.session_info.capabilities.supports_barge_in
        assert peer.config is not None
        assert peer.config.model == MODEL
        assert peer.config.auto_response

    assert peer.close_reasons == ["client_close"]


async def test_an_error_in_the_body_still_says_goodbye(
    client: DuplexClientBase, peer: Peer
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with client:
            _ = 1 / 0

    assert peer.close_reasons == ["client_close"]


async def test_a_refused_session_names_its_code(client: DuplexClientBase, peer: Peer) -> None:
    peer.refusal = DuplexError("resource_exhausted", "full")

    with pytest.raises(DuplexProtocolError) as caught:
        await client.open()
    assert caught.value.code == "resource_exhausted"


async def test_a_server_that_does_not_answer_is_given_up(peer: Peer, clock: JumpingClock) -> None:
    peer.silent = True
    client = InlineDuplexClient(InlinePeer(peer), model=MODEL, handshake_timeout_s=0.01)

    with pytest.raises(DuplexConnectionError, match=r"no session within 0\.01 s"):
        await client.open()
    assert peer.open_sessions == 0


async def test_a_peer_that_hangs_up_during_the_handshake(
    client: DuplexClientBase, peer: Peer
) -> None:
    peer.silent = True
    peer.hang_up()

    with pytest.raises(DuplexSessionClosedError):
        await client.open()


async def test_there_is_no_session_before_it_is_open(client: DuplexClientBase) -> None:
    with pytest.raises(DuplexSessionClosedError, match="not open"):
        await client.commit()
    with pytest.raises(DuplexSessionClosedError, match="not open"):
        _ = client.session_id
    await client.close()


async def test_an_append_says_its_format_and_where_it_ends(
    client: DuplexClientBase, peer: Peer
) -> None:
    async with client:
        await client.append_audio(bytes(3200), is_speech=True)
        await client.append_audio(bytes(640), video_frames=["data:image/jpeg;base64,AAAA", "BBBB"])
        first = await peer.received(AppendAudio)
        second = await peer.received(AppendAudio)

    assert first.audio == bytes(3200)
    assert (first.format, first.sample_rate_hz) == ("pcm16", 16000)
    assert (first.duration_ms, first.audio_end_ms, first.is_speech) == (100, 100, True)
    assert (second.duration_ms, second.audio_end_ms, second.is_speech) == (20, 120, None)
    assert second.video_frames == ("AAAA", "BBBB")


async def test_every_verb_is_one_command(client: DuplexClientBase, peer: Peer) -> None:
    async with client:
        ids = [
            await client.commit(create_response=False),
            await client.cancel_response("resp_1"),
            await client.clear_input(),
            await client.ack_playback(120.9, response_id="resp_1"),
            await client.ack_playback(90, item_id="item_resp_1", committed_ms=80, truncate=True),
            await client.update_session(SessionPatch(instructions="Be brief.")),
            await client.create_response(),
            await client.create_response(ResponseOptions(instructions="Sing.")),
            await client.create_item(
                ItemInput(content=(ContentPart(type="input_text", text="hi"),))
            ),
            await client.send(TruncateItem(item_id="item_1", audio_end_ms=10)),
            await client.send(
                {"type": "conversation.item.truncate", "item_id": "i", "audio_end_ms": 1}
            ),
            await client.send(ClearInput(event_id="mine")),
        ]
        await peer.received(UpdateSession)
        await peer.received(ClearInput)
        commands = list(peer.commands)

    assert [command.event_id for command in commands] == ids
    assert len(set(ids)) == len(ids)
    assert ids[-1] == "mine"
    assert [type(command) for command in commands] == [
        Commit,
        CancelResponse,
        ClearInput,
        AckPlayback,
        AckPlayback,
        UpdateSession,
        CreateResponse,
        CreateResponse,
        CreateItem,
        TruncateItem,
        TruncateItem,
        ClearInput,
    ]
    commit, cancel = peer.sent(Commit)[0], peer.sent(CancelResponse)[0]
    assert (commit.final, commit.response_create) == (True, False)
    assert cancel.response_id == "resp_1"
    plain, cut = peer.sent(AckPlayback)
    assert (plain.played_ms, plain.committed_ms, plain.truncate) == (120, 120, False)
    assert (cut.played_ms, cut.committed_ms, cut.item_id) == (90, 80, "item_resp_1")
    assert cut.truncate
    asked, answered = peer.sent(CreateResponse)
    assert asked.response is UNSET
    assert answered.response == ResponseOptions(instructions="Sing.")


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


async def test_b37_appends_leave_nothing_behind(peer: Peer) -> None:
    class Forgetful(Peer):
        def take(self, command: object) -> None:
            """Keep nothing, so that only the client's own memory is measured."""

    client = InlineDuplexClient(InlinePeer(Forgetful()), model=MODEL)
    async with client:
        for _ in range(200):
            await client.append_audio(bytes(640))
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            for _ in range(5000):
                await client.append_audio(bytes(640))
            growth = tracemalloc.get_traced_memory()[0] - before
        finally:
            tracemalloc.stop()

    assert growth < 64 * 1024  # 5,000 appends are 3 MB of audio


async def test_streaming_keeps_the_pace_of_a_microphone(
    peer: Peer, jumping_clock: JumpingClock
) -> None:
    client = InlineDuplexClient(InlinePeer(peer), model=MODEL, clock=jumping_clock)
    async with client:
        started_at = jumping_clock.now()
        await client.stream_pcm(bytes(16000 * 2 + 320), chunk_ms=100)
        took = jumping_clock.now() - started_at

    appends = peer.sent(AppendAudio)
    assert [len(append.audio) for append in appends] == [3200] * 10 + [320]
    assert took == pytest.approx(1.01)
    assert jumping_clock.slept == pytest.approx([0.1] * 10 + [0.01])


async def test_streaming_without_pace_sends_at_once(client: DuplexClientBase, peer: Peer) -> None:
    async with client:  # its clock stands still
        await client.stream_pcm(bytes(32000), chunk_ms=100, realtime=False, is_speech=True)

    assert [append.audio_end_ms for append in peer.sent(AppendAudio)] == list(range(100, 1001, 100))
    assert {append.is_speech for append in peer.sent(AppendAudio)} == {True}


async def test_camera_frames_ride_the_append_that_closes_a_unit(
    client: DuplexClientBase, peer: Peer
) -> None:
    async with client:
        sent = await client.stream_pcm(
            bytes(16000 * 2 * 3),
            chunk_ms=400,
            realtime=False,
            video_frames=["one", "two"],
            stacked_video_frames=["under one"],
        )

    riding = {append.audio_end_ms: append.video_frames for append in peer.sent(AppendAudio)}
    assert {end: frames for end, frames in riding.items() if frames} == {
        1200: ("one", "under one"),
        2000: ("two",),
    }
    assert sent == 3


async def test_a_chunk_shorter_than_a_sample_is_refused(client: DuplexClientBase) -> None:
    async with client:
        with pytest.raises(ValueError, match="less than one sample"):
            await client.stream_pcm(bytes(64), chunk_ms=0.01)


async def test_a_server_that_never_says_goodbye_does_not_hold_the_client(
    client: DuplexClientBase, peer: Peer, caplog: pytest.LogCaptureFixture
) -> None:
    await client.open()
    peer.polite = False

    await client.close(timeout_s=0.01)

    assert "no session.closed within 0.01 s" in caplog.text
    with pytest.raises(DuplexSessionClosedError):
        await client.commit()


async def test_closing_twice_does_no_harm_and_leaves_no_task(
    client: DuplexClientBase, peer: Peer
) -> None:
    await client.open()
    await client.close()
    await client.close()

    assert peer.close_reasons == ["client_close"]
    assert not [t for t in asyncio.all_tasks() if t.get_name().startswith("duplex-client")]


async def test_the_config_reaches_the_session(
    connect: Connect, peer: Peer, clock: VirtualClock
) -> None:
    config = SessionConfig(instructions="Be brief.", playback_commit_policy="ack_only")
    async with connect(config=config, clock=clock) as client:
        assert client.session_info.instructions == "Be brief."
        assert (client.model, client.config) == (MODEL, config)
    assert peer.config is not None
    assert peer.config.playback_commit_policy == "ack_only"


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_both_clients_are_used_in_the_same_way() -> None:
    assert public(InlineDuplexClient) == public(DuplexClientBase)
    assert public(DuplexClient) - public(DuplexClientBase) == {
        "commands_held",
        "commands_in_doubt",
        "events_missed",
        "export_credentials",
        "resume",
        "resume_token",
    }
    inline, remote = (
        inspect.signature(kind).parameters for kind in (InlineDuplexClient, DuplexClient)
    )
    shared = inline.keys() & remote.keys()
    assert shared == {"model", "config", "handshake_timeout_s", "trace", "clock"}
    assert {name: inline[name] for name in shared} == {name: remote[name] for name in shared}


async def test_session_created_is_an_event_like_any_other(
    client: DuplexClientBase, peer: Peer
) -> None:
    events = client.events()
    async with client:
        assert isinstance(await anext(events), SessionCreated)
