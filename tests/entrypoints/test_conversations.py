"""Every recording of tests/conversations, held again with the echo model, goes as it went."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

import pytest
from msgspec import structs
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.running import running
from tests.entrypoints.talk import Talk

from omniduplex.clients import MonotonicClock
from omniduplex.clients.recording import Conversation, Entry, read_conversation, redact
from omniduplex.clients.replay import Replayed, replay
from omniduplex.config.loader import load_pipeline
from omniduplex.entrypoints.cli.replay_comparison import EXACT, Tolerance, compare
from omniduplex.entrypoints.duplex.recorder import ConversationRecorder
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app

pytestmark = pytest.mark.e2e

FILES = sorted((Path(__file__).parents[1] / "conversations").glob("*.jsonl"))
MODEL = "omniduplex/echo"
WAIT_S = 60.0
# Which deployment of echo a recording was made with, by its model's name, and how exactly it can
# go again: where an answer is cut depends on how quick the machine is.
DEPLOYMENTS = {MODEL: None, "paced_echo": "paced_echo.yaml"}
TOLERANCES = {MODEL: EXACT, "paced_echo": Tolerance()}


@pytest.fixture(scope="module")
def omnis() -> Iterator[dict[str, DuplexOmni]]:
    started: dict[str, DuplexOmni] = {}
    try:
        for name, deploy in DEPLOYMENTS.items():
            file = None
            if deploy is not None:
                file = Path(str(resources.files("omniduplex.benchmarks") / deploy))
            started[name] = DuplexOmni(pipeline=load_pipeline(MODEL, file))
        yield started
    finally:
        for omni in started.values():
            omni.shutdown()


def play(recorded: Conversation, base: str, speed: float = 20.0) -> Replayed:
    url = base.replace("http", "ws", 1)
    return asyncio.run(replay(recorded, url, MonotonicClock(), speed=speed, wait_s=WAIT_S))


def clients_side(conversation: Conversation) -> list[Entry]:
    return [structs.replace(one, t=0.0) for one in conversation.entries if one.dir == "c2s"]


def test_there_are_recordings_of_a_turn_an_interruption_and_errors() -> None:
    assert {"turn", "interruption", "errors"} <= {file.stem for file in FILES}


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_recording_goes_as_it_went(
    file: Path, omnis: dict[str, DuplexOmni], serve_app: ServeApp
) -> None:
    recorded = read_conversation(file)
    model = recorded.header.model
    replayed = play(recorded, serve_app(create_app(omnis[model])))

    assert compare(recorded, replayed.conversation, TOLERANCES[model]) == []
    assert replayed.vain_waits == ()


def test_what_the_server_records_of_a_replay_is_the_conversation_again(
    omnis: dict[str, DuplexOmni], tmp_path: Path
) -> None:
    recorded = read_conversation(next(file for file in FILES if file.stem == "errors"))
    with (
        ConversationRecorder(tmp_path) as recorder,
        running(create_app(omnis[MODEL], recorder=recorder)) as server,
    ):
        live = play(recorded, server.base).conversation
        with Talk(server.base, recorded.header.url) as talk:
            talk.send("session.close")
            talk.ends()
    again = [read_conversation(file) for file in sorted(tmp_path.iterdir())]

    assert len(again) == 2
    assert compare(recorded, again[0], EXACT) == []
    assert [entry.event for entry in again[0].entries if entry.dir == "s2c" and entry.event] == [
        redact(entry.event) for entry in live.entries if entry.event
    ]
    assert clients_side(again[0]) == clients_side(recorded)
    assert "secret" not in "".join(file.read_text() for file in tmp_path.iterdir())
