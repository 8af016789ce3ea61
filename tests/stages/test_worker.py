import logging
import os
import select
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.stages.support import TIMEOUT_S, process_is_gone, stage
from tests.stages.worker_models import (
    BrokenModel,
    EchoModel,
    HangingModel,
    PatientModel,
    SlowModel,
    ThreadedModel,
)

from omniduplex.config.errors import ConfigError
from omniduplex.config.pipeline import StageConfig
from omniduplex.stages.messages import (
    FromWorker,
    StageAbort,
    StageDrained,
    StageFatal,
    StageInput,
    StageOutput,
    StagePing,
    StagePong,
    StageReady,
    StageStop,
)
from omniduplex.stages.worker import AbortedRequests, Inbox, create_model, end_orphan, run_worker
from omniduplex.telemetry import log_queue
from omniduplex.telemetry.log_queue import QueuedHandler


class Worked:
    """A worker run to its end over an inbox filled beforehand."""

    def __init__(self, config: StageConfig, *messages: Any) -> None:
        self.sent: list[FromWorker] = []
        inbox = Inbox()
        for message in messages:
            inbox.put(message)
        self.succeeded = run_worker(config, inbox, self.sent.append)

    def of(self, kind: type[FromWorker]) -> list[Any]:
        return [message for message in self.sent if isinstance(message, kind)]


def test_a_worker_is_ready_then_takes_its_inputs_then_answers_them_in_order() -> None:
    worked = Worked(
        stage(EchoModel, options={"prefix": "> "}),
        StageInput("a", epoch=2, pcm=b"12", text="one"),
        StageInput("b", text="two", final=True),
        StageStop(),
    )

    assert worked.succeeded
    assert isinstance(worked.sent[0], StageReady)
    assert worked.sent[1:] == [
        StageDrained(2),
        StageOutput("a", epoch=2, pcm=b"12", text="> one"),
        StageOutput("b", text="> two", finished=True),
    ]


def test_a_ping_is_answered_after_the_step_over_what_came_before_it() -> None:
    worked = Worked(stage(EchoModel), StageInput("a"), StagePing(), StageStop())

    assert worked.sent[1:] == [StageDrained(1), StageOutput("a"), StagePong()]


def test_a_ping_alone_is_answered_without_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EchoModel, "step", lambda self, batch: 1 / 0)

    worked = Worked(stage(EchoModel), StagePing(), StageStop())

    assert worked.sent[1:] == [StagePong()]


def test_a_model_with_more_to_do_is_stepped_again_and_what_arrived_comes_first() -> None:
    inbox = Inbox()
    sent: list[FromWorker] = []

    def send(message: FromWorker) -> None:
        sent.append(message)
        steps = sum(isinstance(message, StageOutput) for message in sent)
        if isinstance(message, StageOutput) and steps == 2:
            inbox.put(StagePing())
            inbox.put(StageInput("b", text="bb"))
        elif isinstance(message, StageOutput) and steps == 4:
            inbox.put(StageStop())

    inbox.put(StageInput("a", text="aaa"))
    assert run_worker(stage(PatientModel), inbox, send)

    assert sent[1:] == [
        StageDrained(1),
        StageOutput("steps", text="aaa"),
        StageOutput("steps"),
        StageDrained(1),
        StageOutput("steps", text="bb"),
        StagePong(),
        StageOutput("steps"),
    ]


def test_a_model_with_more_to_do_stops_when_told_to() -> None:
    worked = Worked(stage(PatientModel), StageInput("a", text="a" * 100), StageStop())

    assert worked.succeeded
    assert len(worked.of(StageOutput)) == 1


def test_what_comes_after_stop_is_not_worked_on() -> None:
    worked = Worked(stage(EchoModel), StageInput("a"), StageStop(), StageInput("b"))

    assert worked.of(StageOutput) == [StageOutput("a")]


def test_an_abort_overtakes_the_inputs_before_it_and_hides_the_outputs_after_it() -> None:
    worked = Worked(
        stage(EchoModel),
        StageInput("dead", text="never seen"),
        StageAbort(("dead",)),
        StageInput("alive", text="speak_for dead"),
        StageStop(),
    )

    assert worked.of(StageOutput) == [StageOutput("alive", text="speak_for dead")]
    assert worked.of(StageDrained) == [StageDrained(2)]


def test_an_error_in_a_step_is_fatal() -> None:
    worked = Worked(stage(EchoModel), StageInput("a", text="raise no memory"), StageStop())

    assert not worked.succeeded
    assert worked.of(StageFatal) == [StageFatal("RuntimeError: no memory")]


def test_an_error_in_load_is_fatal_and_the_worker_never_ready() -> None:
    worked = Worked(stage(BrokenModel), StageStop())

    assert worked.sent == [StageFatal("OSError: the weights are not there")]


def test_an_option_that_is_not_there_is_told_in_a_line(caplog: pytest.LogCaptureFixture) -> None:
    worked = Worked(stage(EchoModel, options={"prefix": 3}), StageStop())

    (fatal,) = worked.of(StageFatal)
    assert "prefix" in fatal.error
    (record,) = caplog.records
    assert record.exc_info is None
    assert record.name == "omniduplex.stages.worker"


def test_an_error_in_close_is_told_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EchoModel, "close", lambda self: 1 / 0)

    worked = Worked(stage(EchoModel), StageStop())

    assert worked.of(StageFatal) == [StageFatal("ZeroDivisionError: division by zero")]


def test_the_threads_of_a_model_keep_their_own_order() -> None:
    sent: list[FromWorker] = []
    inbox = Inbox()
    enough = threading.Event()

    def send(message: FromWorker) -> None:
        sent.append(message)
        if len(sent) == 200:
            enough.set()

    worker = threading.Thread(target=run_worker, args=(stage(ThreadedModel), inbox, send))
    worker.start()
    for name in "abc":
        inbox.put(StageInput(name))
    assert enough.wait(TIMEOUT_S)
    inbox.put(StageStop())
    worker.join(TIMEOUT_S)

    outputs = [message for message in sent if isinstance(message, StageOutput)]
    for name in "abc":
        numbers = [int(output.text) for output in outputs if output.request_id == name]
        assert numbers == list(range(len(numbers)))


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"model_class": "tests.stages.worker_models:NotAModel"}, "is not a StageModel"),
        ({"model_class": "tests.stages.worker_models:path_of"}, "is not a StageModel"),
        ({"model_class": "tests.stages.worker_models:Missing"}, "has no 'Missing'"),
        ({"options": {"prefiks": "x"}}, r"test.: prefiks: unknown key \(there are: prefix\)"),
        ({"options": {"prefix": 3}}, r"options of stage 'test': .* - at `\$\.prefix`"),
    ],
)
def test_a_wrong_class_or_option_is_a_config_error(fields: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"model_class": "tests.stages.worker_models:EchoModel", **fields}
    config = StageConfig(stage_id=0, name="test", **given)

    with pytest.raises(ConfigError, match=message):
        create_model(config, lambda output: None)


def test_only_the_newest_aborted_requests_are_remembered() -> None:
    aborted = AbortedRequests(limit=3)

    aborted.add(["a", "b"])
    aborted.add(["c", "d"])

    assert [name for name in "abcd" if name in aborted] == ["b", "c", "d"]


PARENT = """
import asyncio, sys
from pathlib import Path
import msgspec
from omniduplex.config.pipeline import StageConfig
from omniduplex.stages.messages import StageInput
from omniduplex.stages.process_client import ProcessStageClient

async def main():
    client = ProcessStageClient(msgspec.json.decode(sys.argv[1], type=StageConfig))
    on_output = lambda output: print(output.text, flush=True)
    started = asyncio.create_task(client.start(on_output, print))
    while client.pid is None:
        await asyncio.sleep(0)
    print(client.pid, flush=True)
    await started
    client.submit(StageInput("any", text="hello"))
    await asyncio.Event().wait()

asyncio.run(main())
"""


@pytest.mark.parametrize("model", [EchoModel, HangingModel, SlowModel])
def test_a_worker_does_not_outlive_a_parent_that_was_killed(
    model: type[EchoModel], fifo: Path
) -> None:
    options = {"go": str(fifo)} if model is SlowModel else {}
    config = msgspec.json.encode(stage(model, options=options)).decode()
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, config],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert parent.stdout is not None
    with parent.stdout as output:
        pid = int(output.readline())
        if model is not SlowModel:
            assert output.readline().strip() in ("hello", "hangs")
        parent.kill()
        parent.wait(TIMEOUT_S)
        # The worker holds the other copy of this pipe: its end is the end of the worker.
        assert output.read() == ""
    assert_gone_soon(pid)


def assert_gone_soon(pid: int) -> None:
    """The exit of a process that is not our child cannot be waited for except through its pidfd."""
    if process_is_gone(pid):
        return
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    try:
        assert select.select([pidfd], [], [], TIMEOUT_S)[0], f"process {pid} lives on"
    finally:
        os.close(pidfd)


class LatePen(QueuedHandler):
    """Writes nothing before it is flushed, like a thread that has had no turn yet."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self._flushed = threading.Event()
        super().__init__(self._write_late)

    def flush(self) -> None:
        self._flushed.set()
        super().flush()

    def _write_late(self, text: str) -> None:
        self._flushed.wait()
        self.written.append(text)


def test_an_orphan_that_hangs_ends_when_its_last_words_are_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def leave(status: int) -> None:
        raise SystemExit(status)

    monkeypatch.setattr(os, "_exit", leave)
    monkeypatch.setattr(log_queue, "FLUSH_TIMEOUT_S", TIMEOUT_S)
    pen = LatePen()
    monkeypatch.setattr(logging.getLogger(), "handlers", [pen])

    with pytest.raises(SystemExit, match="1"):
        end_orphan()

    assert pen.written == ["the worker did not end by itself\n"]


def test_a_worker_whose_parent_says_nothing_ends() -> None:
    ours, theirs = socket.socketpair()
    with theirs:
        worker = subprocess.Popen(
            [
                *(sys.executable, "-m", "omniduplex.stages.worker", "test"),
                *("--log-level=20", f"--socket={theirs.fileno()}"),
            ],
            pass_fds=[theirs.fileno()],
        )
    ours.close()

    assert worker.wait(TIMEOUT_S) == 1
