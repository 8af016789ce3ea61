"""The client, the real server and the echo model, with a network between them that breaks."""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator

import pytest
from tests.clients.resumable import WAIT_S, client_of, ended
from tests.clients.scripted import JumpingClock
from tests.entrypoints.conftest import ServeApp
from tests.faults.conftest import serve_app
from tests.faults.resumable_echo import resumable_echo
from tests.faults.tcp_proxy import Lane, Plan, TcpProxy

from omniduplex.clients.duplex import (
    ConnectionResumed,
    DuplexClient,
    DuplexSessionClosedError,
    wire_type,
)
from omniduplex.clients.echo import create_duplex_session_config
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app

__all__ = ["serve_app"]

pytestmark = [pytest.mark.anyio, pytest.mark.e2e, pytest.mark.timeout(240)]

CONFIG = create_duplex_session_config()
# What the model notices of the tone before the commit ends the turn, if it is quick.
OF_TIME = frozenset(
    {"response.listen", "input_audio_buffer.speech_started", "input_audio_buffer.speech_stopped"}
)
TONE = struct.pack("<8000h", *(int(8000 * math.sin(n / 4)) for n in range(8000)))


@pytest.fixture(scope="module")
def omni() -> Iterator[DuplexOmni]:
    with DuplexOmni(pipeline=resumable_echo(max_sessions=64, disconnect_grace_s=60)) as omni:
        yield omni


@pytest.fixture
def proxy(omni: DuplexOmni, serve_app: ServeApp) -> Iterator[TcpProxy]:
    base = serve_app(create_app(omni))
    with TcpProxy(int(base.rpartition(":")[2])) as proxy:
        yield proxy


def client_through(proxy: TcpProxy) -> DuplexClient:
    return client_of(proxy.base.replace("http", "ws", 1), config=CONFIG, clock=JumpingClock())


async def ask(client: DuplexClient) -> tuple[str, bytes]:
    """The words and the sound of one answer."""
    answers = client.responses()
    await client.append_audio(TONE)
    await client.commit(create_response=True)
    async for answer in answers:
        if answer.decision == "speak":
            break
    sound = b"".join([chunk async for chunk in answer.audio()])
    assert await answer.wait(WAIT_S) == "completed"
    return answer.transcript, sound


async def converse(proxy: TcpProxy) -> tuple[tuple[str, bytes], list[str], DuplexClient]:
    """An answer, the wire types of the whole conversation, and the client that had it."""
    client = client_through(proxy)
    events = client.events()
    async with client:
        answer = await ask(client)
    return answer, [wire_type(event) async for event in events], client


def of_the_answer(kinds: list[str]) -> list[str]:
    return [kind for kind in kinds if kind.startswith("response.") and kind != "response.listen"]


async def test_an_answer_cut_at_any_frame_is_the_answer(proxy: TcpProxy) -> None:
    whole, kinds, _ = await converse(proxy)
    # Before the commit was answered, a command could be lost with its connection. Frames count
    # from 1; time decides how many of three more come before that.
    certain = [kind for kind in kinds if kind not in OF_TIME]
    answered = certain.index("input_audio_buffer.committed") + 1 + len(OF_TIME)
    end = certain.index("response.done") + 1

    for frame in range(answered, end):
        proxy.plan(Plan(down=Lane(cut_after_frames=frame)))
        answer, cut_kinds, client = await converse(proxy)

        assert answer == whole
        assert cut_kinds.count("connection.resumed") == 1
        assert of_the_answer(cut_kinds) == of_the_answer(kinds)
        assert client.events_missed == 0
    assert end - answered > 5


async def test_an_answer_cut_twice_within_frames_is_the_answer(proxy: TcpProxy) -> None:
    whole, kinds, _ = await converse(proxy)
    ends = proxy.down[0].ends
    first = ends[kinds.index("response.output_audio.delta") + 1] - 7
    proxy.plan(Plan(down=Lane(cut_at=first)), Plan(down=Lane(cut_at=1500)), Plan())

    answer, cut_kinds, client = await converse(proxy)

    assert answer == whole
    assert 1 <= cut_kinds.count("connection.resumed") <= 2
    assert client.events_missed == 0


async def test_another_client_takes_a_session_over(proxy: TcpProxy) -> None:
    async with client_through(proxy) as first:
        left = first.events()
        second = DuplexClient.resume(
            first.export_credentials(), config=CONFIG, clock=JumpingClock()
        )
        events = second.events()
        async with second:
            assert second.session_id == first.session_id
            assert events.drain()[0] == ConnectionResumed(attempt=1)
            assert await ended(left) == "another connection took the session"
            words, sound = await ask(second)
            assert words.startswith("You said")
            assert sound


async def test_a_session_that_has_ended_meanwhile_cannot_be_taken_over(proxy: TcpProxy) -> None:
    async with client_through(proxy) as first:
        credentials = first.export_credentials()

    with pytest.raises(DuplexSessionClosedError, match="session_resume_expired"):
        await DuplexClient.resume(credentials).open()
