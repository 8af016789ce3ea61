"""What every client sends: appends, streams at a pace, and one command for each verb."""

from __future__ import annotations

import tracemalloc

import pytest
from msgspec import UNSET
from tests.clients.scripted import (
    MODEL,
    InlinePeer,
    JumpingClock,
    Peer,
)

from omniduplex.clients.duplex import (
    DuplexClientBase,
    InlineDuplexClient,
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
    ItemInput,
    ResponseOptions,
    SessionPatch,
    TruncateItem,
    UpdateSession,
)

pytestmark = pytest.mark.anyio


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
