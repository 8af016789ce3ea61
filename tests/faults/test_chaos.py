"""Clients that come and go as no client should: afterwards the server is as it was (B49, B47)."""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from urllib.request import urlopen

import pytest
from starlette.websockets import WebSocket
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.talk import Talk
from tests.faults.resumable_echo import resumable_echo
from tests.faults.tcp_proxy import reset
from tests.faults.test_cuts import tone

from omniduplex.engine.duplex_orchestrator import CONVERTERS
from omniduplex.entrypoints.duplex.serving import DuplexServing
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

PATTERNS = 1000
# Pools of threads grow as they are first needed.
WARM_UP = 200
CAPACITY = 4
TIMEOUT_S = 60.0
CLOSE_CODES = (1000, 1001, 3000, 4999)


class WatchedServing(DuplexServing):
    """Lets a test count the tasks of its loop."""

    loop: asyncio.AbstractEventLoop

    async def serve(self, websocket: WebSocket) -> None:
        self.loop = asyncio.get_running_loop()
        await super().serve(websocket)

    def tasks(self) -> int:
        return len(asyncio.all_tasks(self.loop))


@pytest.fixture(scope="module")
def omni() -> Iterator[DuplexOmni]:
    """Room for the patterns and for one that looks on."""
    pipeline = resumable_echo(
        max_sessions=CAPACITY + 1, disconnect_grace_s=0.01, reaper_interval_s=0.005
    )
    with DuplexOmni(pipeline=pipeline) as omni:
        yield omni


def open_files() -> int:
    return len(os.listdir("/proc/self/fd"))


def settles(measure: Callable[[], int], expected: int) -> bool:
    """Whether a count comes back to what it was; waits no longer than it must."""
    deadline = time.monotonic() + TIMEOUT_S
    while measure() > expected:
        if time.monotonic() > deadline:
            return False
        threading.Event().wait(0.01)
    return True


def frame(data: bytes, opcode: int = 0x81) -> bytes:
    """A client's frame, masked with zeros (RFC 6455, section 5.2)."""
    size = len(data)
    length = bytes([0x80 | size]) if size < 126 else b"\xfe" + size.to_bytes(2)
    if size > 0xFFFF:
        length = b"\xff" + size.to_bytes(8)
    return bytes([opcode]) + length + bytes(4) + data


def event(wire_type: str, **fields: object) -> bytes:
    return frame(json.dumps({"type": wire_type, **fields}).encode())


def upgrade(path: str) -> bytes:
    return (
        f"GET {path} HTTP/1.1\r\nHost: x\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
        "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    ).encode()


class Vandal:
    """One client that misbehaves, in a way that its number chooses."""

    def __init__(self, port: int, number: int) -> None:
        self._chance = random.Random(number)
        self._port = port

    def run(self) -> None:
        chance = self._chance
        with socket.create_connection(("127.0.0.1", self._port), TIMEOUT_S) as raw:
            raw.settimeout(TIMEOUT_S)
            try:
                self._talk(raw)
                chance.choice((self._reset, self._half_close, self._close, self._vanish))(raw)
            except (ConnectionError, BrokenPipeError):
                return  # the server had enough of it first

    def _talk(self, raw: socket.socket) -> None:
        chance = self._chance
        sent = upgrade(chance.choice(("/v1/realtime", "/v1/duplex?model=m", "/v1/duplex")))
        sent += event("session.update", session={})
        if chance.random() < 0.5:
            sent += event("input_audio_buffer.append", audio=tone(0.3, 300))
            sent += event("input_audio_buffer.commit") + event("response.create")
            sent += event("response.cancel") if chance.random() < 0.5 else b""
        whole = chance.random() < 0.5
        raw.sendall(sent if whole else sent[: chance.randrange(len(sent))])
        if whole:
            raw.recv(chance.randrange(1, 4096))

    def _reset(self, raw: socket.socket) -> None:
        reset(raw)

    def _half_close(self, raw: socket.socket) -> None:
        raw.shutdown(socket.SHUT_WR)
        while raw.recv(65536):
            pass

    def _close(self, raw: socket.socket) -> None:
        code = self._chance.choice(CLOSE_CODES)
        raw.sendall(frame(code.to_bytes(2), 0x88))

    def _vanish(self, raw: socket.socket) -> None:
        """Leave without a word; the kernel sends a FIN, or an RST if something is unread."""


def opened_sessions(base: str) -> float:
    """How many sessions the engine has ever opened, as an operator reads it."""
    with urlopen(f"{base}/metrics", timeout=TIMEOUT_S) as response:
        found = re.search(
            r"^omniduplex_sessions_opened_total (\S+)$", response.read().decode(), re.M
        )
    assert found is not None
    return float(found[1])


def run_vandals(port: int, numbers: range) -> None:
    with ThreadPoolExecutor(CAPACITY) as pool:
        for vandal in [pool.submit(Vandal(port, number).run) for number in numbers]:
            vandal.result()


def test_after_a_thousand_vandals_the_server_is_as_it_was(
    omni: DuplexOmni, serve_app: ServeApp
) -> None:
    serving = WatchedServing(omni, "echo")
    base = serve_app(create_app(omni, serving=serving))
    port = int(base.rpartition(":")[2])
    with Talk(base, "/v1/duplex?model=m") as control:
        control.until("session.updated")
        run_vandals(port, range(PATTERNS, PATTERNS + WARM_UP))
        assert settles(lambda: serving.sessions, 1)
        files, threads, tasks = open_files(), threading.active_count(), serving.tasks()
        opened_before = opened_sessions(base)
        run_vandals(port, range(PATTERNS))
        assert opened_sessions(base) - opened_before > PATTERNS / 10
        control.send("session.heartbeat")
        assert control.recv()["type"] == "session.heartbeat_ack"
        assert settles(lambda: serving.sessions, 1)
        assert settles(serving.tasks, tasks)
        assert settles(open_files, files)
        # A pool makes a thread more whenever it finds none of its own free, up to its size.
        assert settles(threading.active_count, threads + CONVERTERS)
        with ExitStack() as opened:
            for _ in range(CAPACITY):
                talk = opened.enter_context(Talk(base, "/v1/duplex?model=m"))
                talk.until("session.updated")
            with Talk(base, "/v1/duplex?model=m") as one_too_many:
                assert one_too_many.ends()[2] == "resource_exhausted"
