"""The inside of a stage: one model, the queue of its inputs, and the loop between them."""

from __future__ import annotations

import argparse
import contextlib
import logging
import os
import queue
import signal
import socket
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NoReturn

import msgspec

from omniduplex.config.errors import ConfigError
from omniduplex.config.objects import load_object
from omniduplex.config.options import read_options
from omniduplex.config.pipeline import StageConfig
from omniduplex.stages.messages import (
    FromWorker,
    StageAbort,
    StageAlive,
    StageDrained,
    StageFatal,
    StageInput,
    StageMessage,
    StageOutput,
    StagePing,
    StagePong,
    StageProbe,
    StageReady,
    StageStop,
    ToInbox,
    ToWorker,
)
from omniduplex.stages.model import Emit, StageModel
from omniduplex.stages.transport import FrameError, FrameSender, read_frames
from omniduplex.telemetry.logging import LogSettings, setup_logging

# Not __name__: a worker process runs this module as __main__.
logger = logging.getLogger("omniduplex.stages.worker")

Send = Callable[[FromWorker], None]

# What whoever deploys a stage can put right: told in a line, where anything else is a bug.
DEPLOYMENT_ERRORS = (ConfigError, FileNotFoundError)
# Aborted requests produce late outputs for seconds at most; a worker has far fewer in that time.
MAX_ABORTED_IDS = 4096
# A worker without a parent may finish its step and close its model, but not live on.
ORPHAN_GRACE_S = 2.0
FLUSH_TIMEOUT_S = 5.0


class AbortedRequests:
    """The newest aborted request ids; one thread adds, any may ask."""

    def __init__(self, limit: int = MAX_ABORTED_IDS) -> None:
        self._limit = limit
        self._ids: dict[str, None] = {}

    def add(self, request_ids: Iterable[str]) -> None:
        self._ids.update(dict.fromkeys(request_ids))
        while len(self._ids) > self._limit:
            del self._ids[next(iter(self._ids))]

    def __contains__(self, request_id: str) -> bool:
        return request_id in self._ids


class Inbox:
    """What waits for the model: filled by one thread, drained by the worker's.

    An abort counts from `put` on, while the model may still be busy with what it stops.
    """

    def __init__(self) -> None:
        self.aborted = AbortedRequests()
        self._messages: queue.SimpleQueue[ToInbox] = queue.SimpleQueue()
        self._stopped = False

    def put(self, message: ToInbox) -> None:
        if isinstance(message, StageAbort):
            self.aborted.add(message.request_ids)
        self._messages.put(message)

    def drain(self, *, wait: bool = True) -> list[StageMessage | StagePing] | None:
        """Take all there is, by default not before there is something; None when it is to stop."""
        if self._stopped:
            return None
        batch: list[StageMessage | StagePing] = []
        for message in self._waiting(wait):
            if isinstance(message, StageStop):
                self._stopped = True
                return batch or None
            batch.append(message)
        return batch

    def _waiting(self, wait: bool) -> Iterator[ToInbox]:
        if wait:
            yield self._messages.get()
        with contextlib.suppress(queue.Empty):
            while True:
                yield self._messages.get_nowait()

    def wanted(self, batch: Iterable[StageMessage | StagePing]) -> list[StageMessage]:
        """What the model is to see: inputs of aborted requests are of no use any more."""
        return [
            message
            for message in batch
            if isinstance(message, StageAbort)
            or (isinstance(message, StageInput) and message.request_id not in self.aborted)
        ]


def run_loop(model: StageModel, inbox: Inbox, send: Send) -> None:
    """Drain, step, until told to stop; what the model emits goes out by itself."""
    more = False
    while (batch := inbox.drain(wait=not more)) is not None:
        if inputs := sum(isinstance(message, StageInput) for message in batch):
            send(StageDrained(inputs))
        wanted = inbox.wanted(batch)
        if wanted or more:
            more = bool(model.step(wanted))
        if any(isinstance(message, StagePing) for message in batch):
            send(StagePong())


def create_model(config: StageConfig, emit: Emit) -> StageModel:
    """The model of a stage with its own options; raises `ConfigError`."""
    model_class = load_object(config.model_class)
    if not (isinstance(model_class, type) and issubclass(model_class, StageModel)):
        raise ConfigError(f"{config.model_class} is not a StageModel")
    return model_class(read_options(config, model_class.Options), emit)


def run_worker(
    config: StageConfig, inbox: Inbox, send: Send, *, answering: tuple[int, ...] = ()
) -> bool:
    """Load the model, run it to its end, close it; false if it failed.

    `send` must be safe to call from any thread; `answering` as in `StageReady`.
    """

    def emit(output: StageOutput) -> None:
        if output.request_id not in inbox.aborted:
            send(output)

    errors: list[str] = []

    def fail(reason: str) -> None:
        errors.append(reason)
        send(StageFatal(reason))

    @contextlib.contextmanager
    def supervised(*told: type[Exception]) -> Iterator[None]:
        try:
            yield
        except told as error:
            logger.error("stage %s did not start: %s", config.name, error)
            fail(str(error))
        except Exception as error:
            logger.exception("stage %s failed", config.name)
            fail(f"{type(error).__name__}: {error}")

    started = time.monotonic()
    with supervised(*DEPLOYMENT_ERRORS):
        model = create_model(config, emit)
        model.load()
    if errors:
        return False
    with supervised():
        send(StageReady(time.monotonic() - started, answering, model.sleepless))
        run_loop(model, inbox, send)
    with supervised():
        model.close()
    return not errors


def worker_main(arguments: Sequence[str]) -> int:
    """A worker process: its config is the first frame on the socket it inherits."""
    parser = argparse.ArgumentParser(prog="omniduplex.stages.worker")
    parser.add_argument("name", help="of the stage, for whoever lists processes")
    parser.add_argument("--socket", type=int, required=True, help="inherited file descriptor")
    parser.add_argument("--log-level", type=int, required=True)
    parser.add_argument("--log-json", action="store_true")
    given = parser.parse_args(arguments)
    # Ctrl-C and a service manager's stop go to every process of the group; the parent, which may
    # have conversations to end, decides when its workers end, and its death ends them as well.
    for stop in (signal.SIGINT, signal.SIGTERM):
        signal.signal(stop, signal.SIG_IGN)
    setup_logging(LogSettings(level=given.log_level, json_lines=given.log_json))
    with socket.socket(fileno=given.socket) as connection:
        connection.set_inheritable(False)
        return _serve(connection)


def _serve(connection: socket.socket) -> int:
    frames = read_frames(connection)
    first = next(frames, None)
    if first is None:
        return 1
    config = msgspec.msgpack.decode(first, type=StageConfig)
    os.nice(config.nice)
    inbox = Inbox()
    sender = FrameSender(connection)
    reader = threading.Thread(
        target=_receive, args=(frames, inbox, sender.send), name="frame-reader", daemon=True
    )
    reader.start()
    answering = tuple(id_ for id_ in (reader.native_id, sender.thread_id) if id_ is not None)
    succeeded = run_worker(config, inbox, sender.send, answering=answering)
    sender.close(FLUSH_TIMEOUT_S)
    # Tells the parent that nothing more comes, even if a thread of the model keeps us alive.
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    return 0 if succeeded else 1


def _receive(frames: Iterator[bytes], inbox: Inbox, send: Send) -> None:
    """Feed the inbox; when the parent is gone, stop, and at last end even a worker that hangs."""
    decoder = msgspec.msgpack.Decoder(ToWorker)
    try:
        for frame in frames:
            message = decoder.decode(frame)
            if isinstance(message, StageProbe):
                send(StageAlive())
            else:
                inbox.put(message)
    except (FrameError, msgspec.DecodeError):
        logger.exception("the parent broke the protocol")
    inbox.put(StageStop())
    time.sleep(ORPHAN_GRACE_S)
    end_orphan()


def end_orphan() -> NoReturn:
    """End this process at once, whatever its model does, but not before that is logged."""
    logger.error("the worker did not end by itself")
    for handler in logging.getLogger().handlers:
        handler.flush()  # lines are written by a thread, which ends here too
    os._exit(1)


if __name__ == "__main__":
    sys.exit(worker_main(sys.argv[1:]))
