"""A TCP proxy that is a bad network: it delays, slices, stalls, cuts and resets, as planned."""

from __future__ import annotations

import asyncio
import random
import socket
import struct
import threading
from collections import deque
from collections.abc import Coroutine
from concurrent.futures import Future
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

CHUNK_BYTES = 64 * 1024
TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Lane:
    """What happens to one direction of one connection; byte counts include the HTTP upgrade."""

    cut_at: int | None = None
    """Both directions are reset when this many bytes went through."""
    cut_after_frames: int | None = None
    """Both directions are reset at the end of this WebSocket frame; 0: after the upgrade."""
    stall_at: int | None = None
    """Nothing goes through beyond this many bytes, and nobody is told."""
    slice_bytes: int = CHUNK_BYTES
    delay_s: float = 0.0
    """How late each slice is."""
    jitter_s: float = 0.0
    """How much later or earlier, at most."""
    bytes_per_s: float | None = None
    """The width of the line; None: as wide as it is."""
    lingers_s: float = 0.0
    """For so long a cut connection looks alive, and then it is closed, not reset."""


@dataclass(frozen=True)
class Plan:
    """What happens to one connection: up is towards the server."""

    up: Lane = Lane()
    down: Lane = Lane()


class FrameCounter:
    """Finds where WebSocket frames end in a stream of bytes that begins with an HTTP head."""

    def __init__(self) -> None:
        self.ends: list[int] = []
        """Offsets of the end of the HTTP head, then of each whole frame."""
        self._seen = 0
        self._rest = bytearray()

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self._seen += len(data)
        self._rest += data
        while (size := self._first_size()) is not None and size <= len(self._rest):
            del self._rest[:size]
            self.ends.append(self._seen - len(self._rest))

    def _first_size(self) -> int | None:
        rest = self._rest
        if not self.ends:
            head = rest.find(b"\r\n\r\n")
            return None if head < 0 else head + 4
        if len(rest) < 2:
            return None
        # RFC 6455, section 5.2.
        mask = 4 if rest[1] & 0x80 else 0
        length = rest[1] & 0x7F
        extended = {126: 2, 127: 8}.get(length, 0)
        if len(rest) < 2 + extended:
            return None
        if extended:
            length = int.from_bytes(rest[2 : 2 + extended])
        return 2 + extended + mask + length


class _Direction:
    """The bytes of one direction on their way."""

    def __init__(self, lane: Lane, chance: random.Random) -> None:
        self.lane = lane
        self.frames = FrameCounter()
        self.passed = 0
        self._chance = chance

    async def carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Forward until the stream ends or the plan cuts it."""
        while data := await reader.read(self.lane.slice_bytes):
            await asyncio.sleep(self._time_of(len(data)))
            allowed, is_cut = self._allowed(data)
            writer.write(data[:allowed])
            await writer.drain()
            self.passed += allowed
            if is_cut:
                return
            if allowed < len(data):
                await asyncio.Event().wait()

    def _time_of(self, size: int) -> float:
        lane = self.lane
        late_s = lane.delay_s + self._chance.uniform(-lane.jitter_s, lane.jitter_s)
        return late_s + (size / lane.bytes_per_s if lane.bytes_per_s else 0.0)

    def _allowed(self, data: bytes) -> tuple[int, bool]:
        """How many of these bytes go through, and whether the cut comes then."""
        lane = self.lane
        self.frames.feed(data)
        cut_at = lane.cut_at
        nth = lane.cut_after_frames
        if nth is not None and nth < len(self.frames.ends):
            cut_at = self.frames.ends[nth]
        if cut_at is not None and cut_at <= self.passed + len(data):
            return max(0, cut_at - self.passed), True
        if lane.stall_at is not None:
            return max(0, min(len(data), lane.stall_at - self.passed)), False
        return len(data), False


class TcpProxy:
    """Forwards loopback connections to a port, each by its plan; runs on a thread of its own."""

    def __init__(self, target_port: int) -> None:
        self.port = 0
        self.up: list[FrameCounter] = []
        self.down: list[FrameCounter] = []
        """Per connection, in order: what client and server sent."""
        self._target_port = target_port
        self._chance = random.Random("network")
        self._plans: deque[Plan] = deque()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="proxy")
        self._server: asyncio.Server
        self._tasks: set[asyncio.Task[Any]] = set()

    @property
    def base(self) -> str:
        """The URL that clients use instead of the server's."""
        return f"http://127.0.0.1:{self.port}"

    def plan(self, *plans: Plan) -> None:
        """Say what happens to the next connections; those beyond go through unharmed."""
        self._plans.extend(plans)

    @property
    def has_plans(self) -> bool:
        """Whether a connection is still to come for which something is planned."""
        return bool(self._plans)

    def cut(self) -> None:
        """Reset every connection."""
        self._run(self._cut())

    def __enter__(self) -> Self:
        self._thread.start()
        self._run(self._start())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(TIMEOUT_S)
        self._loop.close()

    def _run(self, work: Coroutine[Any, Any, None]) -> None:
        future: Future[None] = asyncio.run_coroutine_threadsafe(work, self._loop)
        future.result(TIMEOUT_S)

    async def _start(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _stop(self) -> None:
        self._server.close()
        await self._cut()

    async def _cut(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        plan = self._plans.popleft() if self._plans else Plan()
        up, down = (_Direction(lane, self._chance) for lane in (plan.up, plan.down))
        self.up.append(up.frames)
        self.down.append(down.frames)
        writers = [writer]
        try:
            server_reader, server_writer = await asyncio.open_connection(
                "127.0.0.1", self._target_port
            )
            writers.append(server_writer)
            await _first_end(up.carry(reader, server_writer), down.carry(server_reader, writer))
            await _linger(max(plan.up.lingers_s, plan.down.lingers_s), *writers)
        except (OSError, asyncio.CancelledError):
            pass  # one side is gone, or the test is over: the other side learns it by the reset
        finally:
            for one in writers:
                if not one.is_closing():
                    reset(one.get_extra_info("socket"))
                    one.transport.abort()


async def _linger(seconds: float, *writers: asyncio.StreamWriter) -> None:
    """Keep a connection through which nothing goes any more, then close it without a reset."""
    if seconds:
        await asyncio.sleep(seconds)
        for writer in writers:
            writer.close()
        await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


async def _first_end(*works: Coroutine[Any, Any, None]) -> None:
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def reset(raw: socket.socket) -> None:
    """Make the close of a TCP connection an RST."""
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
