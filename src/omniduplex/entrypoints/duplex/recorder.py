"""Writes each connection's conversation to a file of its own, off the event loop."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocket

from omniduplex.clients.recording import (
    CloseFrame,
    ConversationWriter,
    Direction,
    Header,
    redact_url,
)
from omniduplex.entrypoints.duplex.handshake import asks_for_beta, read_upgrade
from omniduplex.entrypoints.duplex.websocket import TEXT_FRAMES
from omniduplex.protocol.duplex import Dialect, DuplexError

# Bytes of messages that may wait for the disk, over all connections.
MAX_WAITING_BYTES = 64 * 1024 * 1024
# What an entry costs in memory besides its data, about.
_ENTRY_BYTES = 200

logger = logging.getLogger(__name__)


class Recording:
    """One connection's file; it holds the whole conversation, or is not there."""

    def __init__(self, recorder: ConversationRecorder, path: Path, header: Header) -> None:
        self._recorder = recorder
        self._path = path
        self._header = header
        self._started = recorder.clock()
        self._is_dropped = False
        self._file: IO[bytes] | None = None
        self._writer: ConversationWriter | None = None

    def message(self, direction: Direction, data: str | bytes) -> None:
        """Note a message; returns at once."""
        at = self._now()
        size = len(data) + _ENTRY_BYTES
        self._note(size, lambda: self._opened().message(at, direction, data))

    def close(self, direction: Direction, frame: CloseFrame) -> None:
        """Note how the connection was closed."""
        at = self._now()
        self._note(_ENTRY_BYTES, lambda: self._opened().close(at, direction, frame))

    def finish(self) -> None:
        """The connection is over: what was noted becomes a whole file."""
        self._recorder.put(0, self.end)

    def _now(self) -> float:
        return round(self._recorder.clock() - self._started, 6)

    def _note(self, size: int, write: Callable[[], None]) -> None:
        if self._is_dropped:
            return
        if not self._recorder.put(size, lambda: self._try(write)):
            self._is_dropped = True
            logger.warning("recording %s is dropped: the disk does not keep up", self._path)

    # -- on the writer's thread -------------------------------------------------------------

    def _try(self, write: Callable[[], None]) -> None:
        if self._is_dropped:
            return
        try:
            write()
        except OSError as error:
            self._is_dropped = True
            logger.warning("recording %s is dropped: %s", self._path, error)

    def _opened(self) -> ConversationWriter:
        if self._writer is None:
            self._file = self._path.open("xb")
            self._recorder.being_written.add(self)
            self._writer = ConversationWriter(self._file, self._header)
        return self._writer

    def end(self) -> None:
        """Close the file, and remove it if it is not whole; for the recorder's thread."""
        if self._file is None or self not in self._recorder.being_written:
            return
        self._recorder.being_written.remove(self)
        try:
            self._file.close()
        except OSError as error:
            self._is_dropped = True
            logger.warning("recording %s is dropped: %s", self._path, error)
        if self._is_dropped:
            self._path.unlink(missing_ok=True)


class ConversationRecorder:
    """A directory of recordings and the thread that writes them while the block runs."""

    def __init__(
        self,
        directory: Path,
        *,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        max_waiting_bytes: int = MAX_WAITING_BYTES,
    ) -> None:
        self.clock = clock
        self.being_written: set[Recording] = set()
        """Recordings with an open file; only the thread looks at them."""
        self._directory = directory
        self._now = now
        self._room = max_waiting_bytes
        self._lock = threading.Lock()
        self._waiting: queue.SimpleQueue[tuple[int, Callable[[], None]] | None] = (
            queue.SimpleQueue()
        )
        self._thread = threading.Thread(target=self._run, name="recorder")
        self._opened = 0

    def __enter__(self) -> Self:
        self._directory.mkdir(parents=True, exist_ok=True)
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._waiting.put(None)
        self._thread.join()

    def open(self, header: Callable[[str], Header]) -> Recording:
        """Begin a recording; `header` is given the time of its creation."""
        created = self._now()
        self._opened += 1
        name = f"{created:%Y%m%dT%H%M%S_%f}-{self._opened}.jsonl"
        stamp = created.isoformat(timespec="milliseconds")
        return Recording(self, self._directory / name, header(stamp))

    def put(self, size: int, work: Callable[[], None]) -> bool:
        """Hand work to the thread; False when `size` bytes have no room any more."""
        with self._lock:
            if size > self._room:
                return False
            self._room -= size
        self._waiting.put((size, work))
        return True

    def _run(self) -> None:
        while (item := self._waiting.get()) is not None:
            size, work = item
            work()
            with self._lock:
                self._room += size
        # Connections that outlive the block end here, as far as they have come.
        for recording in tuple(self.being_written):
            recording.end()


class RecordingMiddleware:
    """Records what goes through a WebSocket, from its acceptance to its close."""

    def __init__(self, app: ASGIApp, recorder: ConversationRecorder, model: str) -> None:
        self._app = app
        self._recorder = recorder
        self._model = model

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass the connection on, noting what passes by."""
        if scope["type"] != "websocket":
            await self._app(scope, receive, send)
            return
        socket = WebSocket(scope, receive, send)
        recording = self._recorder.open(
            lambda created: connection_header(socket, self._model, created)
        )
        tap = _Tap(recording, receive, send)
        try:
            await self._app(_without_shortcut(scope), tap.receive, tap.send)
        finally:
            recording.finish()


def _without_shortcut(scope: Scope) -> Scope:
    """The connection without a way past `receive` and `send`."""
    extensions = scope.get("extensions") or {}
    kept = {name: one for name, one in extensions.items() if name != TEXT_FRAMES}
    return {**scope, "extensions": kept}


class _Tap:
    """Notes messages on their way; only the first close frame counts."""

    def __init__(self, recording: Recording, receive: Receive, send: Send) -> None:
        self._recording = recording
        self._receive = receive
        self._send = send
        self._is_closed = False

    async def receive(self) -> Message:
        message = await self._receive()
        self._note("c2s", message)
        return message

    async def send(self, message: Message) -> None:
        # Noted first: the client's answer to it must not come before it.
        self._note("s2c", message)
        await self._send(message)

    def _note(self, direction: Direction, message: Message) -> None:
        match message["type"]:
            case "websocket.receive" | "websocket.send":
                data = message.get("text")
                self._recording.message(direction, message["bytes"] if data is None else data)
            case "websocket.close" | "websocket.disconnect" if not self._is_closed:
                self._is_closed = True
                frame = CloseFrame(
                    code=message.get("code") or 1000, reason=message.get("reason") or ""
                )
                self._recording.close(direction, frame)


def connection_header(socket: WebSocket, default_model: str, created: str) -> Header:
    """Describe a connection by its URL and headers."""
    model = socket.query_params.get("model") or default_model
    try:
        dialect = read_upgrade(
            socket.url.path, socket.query_params, socket.headers, default_model
        ).dialect
    except DuplexError:
        dialect = Dialect.DUPLEX
    return Header(
        created=created,
        url=redact_url(f"{socket.url.path}?{socket.url.query}"),
        model=model,
        dialect="openai" if dialect.is_openai else "duplex",
        beta=asks_for_beta(socket.headers),
        server=version("omniduplex"),
    )
