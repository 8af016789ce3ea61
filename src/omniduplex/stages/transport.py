"""Messages over a stream socket: each is a frame, its length in 4 bytes, then its msgpack.

The worker's side blocks (a reader, and a sender with a thread of its own), the engine's side is an
asyncio protocol. Audio travels as raw bytes.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from typing import Any, cast

import msgspec

logger = logging.getLogger(__name__)

MAX_FRAME_BYTES = 64 * 1024 * 1024
READ_BYTES = 256 * 1024
LENGTH = struct.Struct(">I")

_encoder = msgspec.msgpack.Encoder()


class FrameError(Exception):
    """A frame is too large, or the stream ended inside one."""


def encode_frame(message: msgspec.Struct) -> bytearray:
    """One message as it goes over the socket; raises `FrameError` above 64 MiB."""
    frame = bytearray(LENGTH.size)
    _encoder.encode_into(message, frame, LENGTH.size)
    length = len(frame) - LENGTH.size
    if length > MAX_FRAME_BYTES:
        raise FrameError(f"a message of {length} bytes is more than a frame may have")
    LENGTH.pack_into(frame, 0, length)
    return frame


class FrameDecoder:
    """Cuts a stream of bytes, however it is sliced, into the contents of its frames."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def pending(self) -> int:
        """Bytes of a frame that is not yet whole."""
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[bytes]:
        """The frames that `data` completes; raises `FrameError` at one that is too large."""
        self._buffer += data
        while (payload := self._take()) is not None:
            yield payload

    def _take(self) -> bytes | None:
        if len(self._buffer) < LENGTH.size:
            return None
        (length,) = LENGTH.unpack_from(self._buffer)
        if length > MAX_FRAME_BYTES:
            raise FrameError(f"the peer announces a frame of {length} bytes")
        end = LENGTH.size + length
        if len(self._buffer) < end:
            return None
        with memoryview(self._buffer) as view:
            payload = bytes(view[LENGTH.size : end])
        del self._buffer[:end]
        return payload


def read_frames(connection: socket.socket) -> Iterator[bytes]:
    """Block for each next frame until the peer closes; raises `FrameError`."""
    decoder = FrameDecoder()
    while True:
        try:
            data = connection.recv(READ_BYTES)
        except ConnectionError:  # the peer is gone with bytes of ours unread
            data = b""
        if not data:
            break
        yield from decoder.feed(data)
    if decoder.pending:
        raise FrameError(f"the stream ended {decoder.pending} bytes into a frame")


class FrameSender:
    """Sends messages in the order of `send`, which never blocks and may be called from any thread.

    What waits to be sent is not bounded here: the engine reads at once or is dead, and a stage
    gets no more inputs than its queue may hold.
    """

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self._frames: queue.SimpleQueue[bytearray | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="frame-sender", daemon=True)
        self._thread.start()

    @property
    def thread_id(self) -> int | None:
        """The kernel's id of the thread that sends."""
        return self._thread.native_id

    def send(self, message: msgspec.Struct) -> None:
        self._frames.put(encode_frame(message))

    def close(self, timeout_s: float) -> None:
        """Wait until all is sent, or the time is over."""
        self._frames.put(None)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        while (frame := self._frames.get()) is not None:
            try:
                self._connection.sendall(frame)
            except OSError as error:
                logger.warning("the peer takes no more messages: %s", error)
                return


class FrameProtocol(asyncio.Protocol):
    """The engine's end of a connection to one worker.

    `on_message` gets each message in order, then `on_lost` is called once. A frame that is not
    valid ends the connection, as nothing after it can be trusted.

    A transport that cannot write any more reads no more either, though the peer may have said why
    it goes. What it leaves is read from a copy of its socket.
    """

    def __init__(
        self, message_type: Any, on_message: Callable[[Any], None], on_lost: Callable[[], None]
    ) -> None:
        self._frames = FrameDecoder()
        self._decode = msgspec.msgpack.Decoder(message_type).decode
        self._on_message = on_message
        self._on_lost = on_lost
        self._transport: asyncio.Transport | None = None
        self._copy: socket.socket
        self._broken = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        descriptor = transport.get_extra_info("socket").fileno()
        self._copy = socket.fromfd(descriptor, socket.AF_UNIX, socket.SOCK_STREAM)

    def data_received(self, data: bytes) -> None:
        try:
            messages = [self._decode(payload) for payload in self._frames.feed(data)]
        except (FrameError, msgspec.DecodeError) as error:
            logger.error("a stage worker broke the protocol: %s", error)
            self._broken = True
            self.abort()
            return
        for message in messages:
            self._on_message(message)

    def connection_lost(self, exc: Exception | None) -> None:
        self._transport = None
        with self._copy, contextlib.suppress(OSError):
            self._copy.setblocking(False)
            while not self._broken and (data := self._copy.recv(READ_BYTES)):
                self.data_received(data)
        self._on_lost()

    def send(self, message: msgspec.Struct) -> None:
        """Queue a message; one for a connection that is gone is dropped."""
        if self._transport is not None:
            self._transport.write(encode_frame(message))

    def abort(self) -> None:
        """Close at once; what is queued is lost."""
        if self._transport is not None:
            self._transport.abort()
