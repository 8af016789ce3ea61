"""The recorder writes whole conversations, never on the event loop, and gives up alone."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from starlette.websockets import WebSocket
from tests.entrypoints.fake_omni import FakeOmni
from tests.entrypoints.running import running
from tests.entrypoints.talk import Talk

from omniduplex.clients.recording import CloseFrame, Entry, Header, read_conversation
from omniduplex.entrypoints.duplex.recorder import ConversationRecorder, connection_header
from omniduplex.entrypoints.openai.app import create_app


def header(created: str) -> Header:
    return Header(created=created, url="/v1/duplex", model="m", dialect="duplex", server="0")


def ticks() -> Iterator[float]:
    now = 100.0
    while True:
        yield now
        now += 0.5


def recorder_in(directory: Path, room: int = 1 << 20) -> ConversationRecorder:
    clock = ticks()
    return ConversationRecorder(
        directory,
        clock=lambda: next(clock),
        now=lambda: datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC),
        max_waiting_bytes=room,
    )


def test_a_connection_has_a_file_of_its_own(tmp_path: Path) -> None:
    with recorder_in(tmp_path / "deep" / "er") as recorder:
        for text in ("{}", "[]"):
            recording = recorder.open(header)
            recording.message("c2s", text)
            recording.close("s2c", CloseFrame(code=1000))
            recording.finish()
    first, second = map(read_conversation, sorted((tmp_path / "deep" / "er").iterdir()))

    end = Entry(t=1.0, dir="s2c", close=CloseFrame(code=1000))
    assert first.header.created == "2026-01-02T03:04:05.000+00:00"
    assert first.entries == (Entry(t=0.5, dir="c2s", event={}), end)
    assert second.entries == (Entry(t=0.5, dir="c2s", text="[]"), end)


def test_files_are_written_by_the_recorders_thread(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    writers: set[str] = set()
    opened = Path.open

    def noted(path: Path, mode: str) -> object:
        writers.add(threading.current_thread().name)
        return opened(path, mode)

    monkeypatch.setattr(Path, "open", noted)
    with recorder_in(tmp_path) as recorder:
        recording = recorder.open(header)
        recording.message("c2s", "{}")
        recording.finish()

    assert writers == {"recorder"}


def test_a_recording_that_does_not_keep_up_is_dropped_and_no_other(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    recorder = recorder_in(tmp_path, room=1000)
    big, small = recorder.open(header), recorder.open(header)
    big.message("c2s", "{}")
    big.message("c2s", "x" * 1000)  # the thread does not run yet
    big.message("c2s", "{}")
    small.message("c2s", "{}")
    with recorder:
        big.finish()
        small.finish()
    (kept,) = map(read_conversation, tmp_path.iterdir())

    assert [entry.event for entry in kept.entries] == [{}]
    assert [record.message.split(": ")[1] for record in caplog.records] == [
        "the disk does not keep up"
    ]


def test_a_connection_that_outlives_the_recorder_leaves_what_there_was(tmp_path: Path) -> None:
    with recorder_in(tmp_path) as recorder:
        recording = recorder.open(header)
        recording.message("c2s", "{}")
    recording.message("c2s", "{}")
    recording.finish()
    (file,) = tmp_path.iterdir()

    assert len(read_conversation(file).entries) == 1


def test_a_disk_that_fails_ends_the_recording_only(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with recorder_in(tmp_path / "gone") as recorder:
        (tmp_path / "gone").rmdir()
        recording = recorder.open(header)
        for _ in range(3):
            recording.message("c2s", "{}")
        recording.finish()

    assert len(caplog.records) == 1
    assert "is dropped: " in caplog.records[0].message


def test_a_header_tells_what_was_asked_for_and_no_key() -> None:
    async def nothing(*_: object) -> None: ...

    scope = {
        "type": "websocket",
        "path": "/v1/realtime",
        "query_string": b"model=a&api_key=SECRET",
        "headers": [(b"host", b"h"), (b"openai-beta", b"realtime=v1")],
    }
    socket = WebSocket(scope, nothing, nothing)  # type: ignore[arg-type]
    told = connection_header(socket, "default", "now")

    assert (told.model, told.dialect, told.beta) == ("a", "openai", True)
    assert told.url == "/v1/realtime?model=a&api_key=redacted"


@pytest.mark.e2e
def test_strangers_leave_no_file(omni: FakeOmni, tmp_path: Path) -> None:
    with (
        ConversationRecorder(tmp_path) as recorder,
        running(create_app(omni, api_key="sk-SECRET", recorder=recorder)) as server,
    ):
        with (
            pytest.raises(Exception, match="401"),
            Talk(server.base, "/v1/realtime"),
        ):
            pass
        key = {"Authorization": "Bearer sk-SECRET"}
        with Talk(server.base, "/v1/realtime", additional_headers=key) as talk:
            talk.until("session.created")
    (file,) = tmp_path.iterdir()

    conversation = read_conversation(file)
    assert conversation.entries[0].event != {}
    assert conversation.end is not None
    assert "SECRET" not in file.read_text()
