"""What counts as the same conversation, and what the command says of another one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.fake_omni import FakeOmni
from tests.entrypoints.running import running
from typer.testing import CliRunner

from omniduplex.clients.recording import CloseFrame, Conversation, Entry, Header
from omniduplex.entrypoints.cli.main import app
from omniduplex.entrypoints.cli.replay_comparison import EXACT, Tolerance, compare
from omniduplex.entrypoints.duplex.recorder import ConversationRecorder
from omniduplex.entrypoints.openai.app import create_app

HEADER = Header(created="now", url="/v1/duplex", model="m", dialect="duplex", server="0")


def conversation(*events: dict[str, Any], end: CloseFrame | None = None) -> Conversation:
    entries = [Entry(t=0.0, dir="s2c", event=event) for event in events]
    if end is not None:
        entries.append(Entry(t=1.0, dir="s2c", close=end))
    return Conversation(HEADER, tuple(entries))


def answer(name: str, words: str, *, deltas: int = 3, status: str = "completed") -> list[Any]:
    return [
        {"type": "response.created", "response": {"id": name}},
        *({"type": "response.output_audio.delta", "response_id": name} for _ in range(deltas)),
        {"type": "response.output_audio_transcript.done", "response_id": name, "transcript": words},
        {"type": "response.done", "response": {"id": name, "status": status}},
    ]


def differ(before: Conversation, after: Conversation, tolerance: Tolerance = EXACT) -> list[str]:
    return [f"{one.where}: {one.what}" for one in compare(before, after, tolerance)]


def test_ids_are_names_and_audio_is_not_compared() -> None:
    assert differ(conversation(*answer("r1", "hi")), conversation(*answer("R9", "hi"))) == []


def test_answers_are_compared_one_by_one_whatever_comes_between() -> None:
    first, second = answer("a", "one"), answer("b", "two")
    mixed = [*first[:2], {"type": "session.heartbeat_ack"}, *second[:3], *first[2:], *second[3:]]
    apart = [{"type": "session.heartbeat_ack"}, *first, *second]

    assert differ(conversation(*apart), conversation(*mixed)) == []


def test_another_status_another_step_and_another_error_are_told() -> None:
    before = conversation(*answer("a", "hi"), {"type": "error", "error": {"code": "bad_event"}})
    cancelled = answer("a", "hi", status="cancelled")
    after = conversation(*cancelled, {"type": "error", "error": {"code": "bad_audio"}})
    missing = conversation(*answer("a", "hi")[:-1], {"type": "error", "code": "bad_event"})

    assert differ(before, after) == ["response 1: events", "session: events"]
    assert differ(before, missing) == ["response 1: events"]


def test_an_answer_that_was_not_there_before_is_told() -> None:
    before, after = conversation(), conversation(*answer("a", "hi"))

    assert differ(before, after, Tolerance()) == ["response 1: events"]
    assert differ(after, before, Tolerance()) == ["response 1: events"]


def test_words_and_counts_may_differ_within_the_tolerance() -> None:
    before = conversation(*answer("a", "one two three four", deltas=20))
    near = conversation(*answer("a", "One, two, three, for!", deltas=24))
    far = conversation(*answer("a", "one two", deltas=40))

    assert differ(before, near, Tolerance()) == []
    assert differ(before, near) == [
        "response 1: number of response.output_audio.delta",
        "response 1: words",
    ]
    assert differ(before, far, Tolerance()) == differ(before, near)


def test_silence_is_no_word() -> None:
    assert differ(conversation(*answer("a", "")), conversation(*answer("a", "..."))) == []
    assert differ(conversation(*answer("a", "")), conversation(*answer("a", "hm"))) != []


def test_how_the_server_closed_is_compared() -> None:
    before = conversation(end=CloseFrame(code=1000, reason="client_close"))
    after = conversation(end=CloseFrame(code=1011, reason="internal_error"))
    (difference,) = compare(before, after, EXACT)

    assert difference.recorded == ("close 1000 client_close",)
    assert difference.live == ("close 1011 internal_error",)


def run(*arguments: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["replay", *arguments])
    return result.exit_code, result.output


@pytest.mark.e2e
def test_the_command_tells_what_went_otherwise(
    serve_app: ServeApp, omni: FakeOmni, tmp_path: Path
) -> None:
    with (
        ConversationRecorder(tmp_path / "made") as recorder,
        running(create_app(omni, recorder=recorder)) as server,
    ):
        file, report = tmp_path / "mine.jsonl", tmp_path / "out" / "report.json"
        lines = [
            json.loads(header_line()),
            {"t": 0.0, "dir": "s2c", "event": {"type": "session.created"}},
            {"t": 0.0, "dir": "s2c", "event": {"type": "session.updated"}},
            {"t": 0.1, "dir": "c2s", "event": {"type": "no.such.event"}},
            {"t": 0.1, "dir": "s2c", "event": {"type": "error", "error": {"code": "bad_event"}}},
            {"t": 0.2, "dir": "c2s", "close": {"code": 1000}},
        ]
        file.write_text("\n".join(json.dumps(line) for line in lines))
        url = server.base.replace("http", "ws", 1)
        code, output = run(str(file), "--url", url, "--json", str(report))

    assert code == 1
    assert "- error (bad_event)" in output
    assert "+ error (unknown_event)" in output
    assert json.loads(report.read_text())["same"] is False

    (made,) = (tmp_path / "made").iterdir()
    url = serve_app(create_app(omni)).replace("http", "ws", 1)
    code, output = run(str(made), "--url", url, "--speed", "10")
    assert (code, output.split()[-3:]) == (0, ["went", "as", "recorded"])


@pytest.mark.e2e
def test_a_server_that_wants_its_key_says_so(
    serve_app: ServeApp, omni: FakeOmni, tmp_path: Path
) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(header_line())
    url = serve_app(create_app(omni, api_key="sk-key")).replace("http", "ws", 1)

    code, output = run(str(file), "--url", url, "--api-key", "sk-another")

    assert code == 2
    assert "HTTP 401: it wants its API key" in output


def header_line() -> str:
    return json.dumps(
        {
            "format": "omniduplex-conversation",
            "version": 1,
            "created": "now",
            "url": "/v1/duplex?model=m",
            "model": "m",
            "dialect": "duplex",
            "server": "0",
        }
    )


def test_a_file_that_is_no_recording_and_a_server_that_is_not_there(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text("{}")
    code, output = run(str(file))
    assert code == 2
    assert "line 1" in output.replace("\n", " ")

    file.write_text(header_line())
    code, output = run(str(file), "--url", "ws://127.0.0.1:1")
    assert code == 2
    assert "cannot connect" in output
