"""One scripted conversation, cut everywhere: what the client has at the end is always the same."""

from __future__ import annotations

import base64
import dataclasses
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import pytest
from tests.entrypoints.conftest import ServeApp
from tests.faults.counts import IS_SOAK, PATIENCE_S, times
from tests.faults.resumable_echo import resumable_echo
from tests.faults.surviving_client import Event, SurvivingClient, audio_of
from tests.faults.tcp_proxy import Lane, Plan, TcpProxy

from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(PATIENCE_S)]

RATE_HZ = 16_000
RANDOM_CUTS = times(200)
MAX_SESSIONS = 4096 if IS_SOAK else 64
# A soak's networks are as slow as the worst real ones; here their times are a tenth.
HASTE = 1 if IS_SOAK else 10
NETWORKS = {
    "200 ms late, give or take 100": Lane(delay_s=0.2 / HASTE, jitter_s=0.1 / HASTE),
    "64 kbit/s": Lane(bytes_per_s=8000 * HASTE, slice_bytes=1000),
    "one byte at a time": Lane(slice_bytes=1),
    "closed long after the cut": Lane(lingers_s=1.0 / HASTE),
}


class Outcome(NamedTuple):
    """What a conversation was, without the names that differ from run to run."""

    transcripts: list[str]
    audio: bytes
    history: list[tuple[str, str, str]]
    answers: list[str]


@pytest.fixture(scope="module")
def omni() -> Iterator[DuplexOmni]:
    # However long a busy machine takes from cut to cut, nothing is forgotten meanwhile.
    limits = {"disconnect_grace_s": 600, "resume_replay_ttl_s": 600}
    # Sessions whose beginning was cut off wait for nobody.
    with DuplexOmni(pipeline=resumable_echo(max_sessions=MAX_SESSIONS, **limits)) as omni:
        yield omni


@pytest.fixture
def proxy(omni: DuplexOmni, serve_app: ServeApp) -> Iterator[TcpProxy]:
    base = serve_app(create_app(omni))
    with TcpProxy(int(base.rpartition(":")[2])) as proxy:
        yield proxy


def tone(seconds: float, hz: int) -> str:
    phase = np.arange(int(seconds * RATE_HZ)) * 2 * np.pi * hz / RATE_HZ
    return base64.b64encode((8000 * np.sin(phase)).astype("<i2").tobytes()).decode()


def converse(base: str, *, late: bool = False) -> tuple[SurvivingClient, Outcome]:
    """Ask once by voice and once in writing, look at the history, and leave."""
    client = SurvivingClient(base, late=late)
    client.open()
    say = [
        {"type": "input_audio_buffer.append", "audio": tone(0.32, 300)},
        {"type": "input_audio_buffer.commit"},
    ]
    clear = {"type": "input_audio_buffer.clear"}
    client.step(say, "input_audio_buffer.committed", repeat=[clear, *say])
    answer(client)
    text = {"type": "input_text", "text": "hello"}
    item = {"id": "item_written", "type": "message", "role": "user", "content": [text]}
    write = [{"type": "conversation.item.create", "item": item}]
    client.step(write, "conversation.item.done")
    answer(client)
    history = [retrieve(client, item_id) for item_id in item_ids(client.events)]
    client.close()
    return client, outcome(client.events, history)


def answer(client: SurvivingClient) -> None:
    client.step([{"type": "response.create"}], "response.created")
    client.step([], "response.done")
    client.step([], "rate_limits.updated")


def retrieve(client: SurvivingClient, item_id: str) -> dict[str, Any]:
    ask = {"type": "conversation.item.retrieve", "item_id": item_id}
    item: dict[str, Any] = client.step([ask], "conversation.item.retrieved")["item"]
    return item


def item_ids(events: list[Event]) -> list[str]:
    return [event["item"]["id"] for event in events if event["type"] == "conversation.item.added"]


def outcome(events: list[Event], history: list[dict[str, Any]]) -> Outcome:
    return Outcome(
        transcripts=[
            event["transcript"]
            for event in events
            if event["type"].endswith(("transcription.completed", "audio_transcript.done"))
        ],
        audio=audio_of(events),
        history=[
            (item["role"], item["status"], part.get("transcript") or part.get("text", ""))
            for item in history
            for part in item["content"]
        ],
        answers=[
            event["response"]["status"] for event in events if event["type"] == "response.done"
        ],
    )


def survive(proxy: TcpProxy, plan: Plan | None, expected: Outcome, *, late: bool = False) -> int:
    """Have the conversation over a connection that this happens to; how often it was resumed.

    Without a plan of its own, it goes by those that are there.
    """
    if plan is not None:
        proxy.plan(plan)
    client, seen = converse(proxy.base, late=late)
    numbers = [event["server_event_seq"] for event in client.events]

    assert numbers == list(range(1, len(numbers) + 1)), plan
    assert len({event["event_id"] for event in client.events}) == len(numbers), plan
    assert seen == expected, plan
    return client.resumes


@pytest.fixture
def uncut(proxy: TcpProxy) -> Outcome:
    client, expected = converse(proxy.base)

    assert client.resumes == 0
    assert expected.answers == ["completed", "completed"]
    assert len(expected.history) == 4
    assert len(expected.audio) > 20_000
    return expected


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_cut_at_every_frame_boundary(proxy: TcpProxy, uncut: Outcome, direction: str) -> None:
    ends = (proxy.down if direction == "down" else proxy.up)[0].ends
    resumes = 0
    for nth in range(len(ends)):
        lane = Lane(cut_after_frames=nth)
        plan = Plan(down=lane) if direction == "down" else Plan(up=lane)
        resumes += survive(proxy, plan, uncut)

    # No resume is needed before `session.created` was read (a reset may take along what had
    # arrived, so a cut after the frame behind it is early too), nor after `session.closed`.
    assert resumes >= len(ends) - 5


def test_a_session_that_takes_up_the_dialect_late_survives_cuts_too(proxy: TcpProxy) -> None:
    _, uncut = converse(proxy.base, late=True)
    ends = proxy.down[0].ends
    resumes = 0
    for nth in range(len(ends)):
        resumes += survive(proxy, Plan(down=Lane(cut_after_frames=nth)), uncut, late=True)

    assert uncut.answers == ["completed", "completed"]
    # As above; what comes first here is `session.created`, and the update that grants the resume.
    assert resumes >= len(ends) - 6


@pytest.mark.parametrize("direction", ["up", "down"])
def test_a_cut_at_any_byte(proxy: TcpProxy, uncut: Outcome, direction: str) -> None:
    """A soak with as many cuts as there are bytes leaves none out."""
    chance = random.Random(f"cuts {direction}")
    places = range(1, (proxy.down if direction == "down" else proxy.up)[0].ends[-1])
    for place in chance.sample(places, min(RANDOM_CUTS // 2, len(places))):
        lane = Lane(cut_at=place)
        survive(proxy, Plan(down=lane) if direction == "down" else Plan(up=lane), uncut)


def test_cut_after_cut_while_it_comes_back(proxy: TcpProxy, uncut: Outcome) -> None:
    chance = random.Random("cut after cut")
    cuts = [Plan(down=Lane(cut_at=chance.randrange(100, 9000))) for _ in range(RANDOM_CUTS)]
    proxy.plan(*cuts)
    resumes = 0
    while proxy.has_plans:
        resumes += survive(proxy, None, uncut)

    # Some cuts come before `session.created` has arrived: those sessions are begun again.
    assert resumes > RANDOM_CUTS // 2


@pytest.mark.parametrize("name", NETWORKS)
def test_a_bad_network_that_cuts_too(proxy: TcpProxy, uncut: Outcome, name: str) -> None:
    chance = random.Random(name)
    # The third event answers a command: by then the client has read what a resume needs.
    ends = proxy.down[0].ends
    resumes = 0
    for _ in range(RANDOM_CUTS // 100):
        lane = NETWORKS[name]
        cut = dataclasses.replace(lane, cut_at=chance.randrange(ends[3], ends[-2]))
        resumes += survive(proxy, Plan(up=lane, down=cut), uncut)

    assert resumes == RANDOM_CUTS // 100


def test_a_slow_network_in_small_slices(proxy: TcpProxy, uncut: Outcome) -> None:
    lane = Lane(slice_bytes=1000, delay_s=0.001, cut_at=30_000)

    assert survive(proxy, Plan(up=Lane(slice_bytes=1), down=lane), uncut) == 1
