"""uvicorn, set up for speech: flow control per frame, and goodbyes before the sockets close."""

from __future__ import annotations

import asyncio
import logging
import resource
import socket
import ssl
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from types import FrameType
from typing import NamedTuple, Protocol, cast

import uvicorn
from starlette.applications import Starlette
from uvicorn.protocols.utils import ClientDisconnected
from uvicorn.protocols.websockets.websockets_sansio_impl import WebSocketsSansIOProtocol
from websockets.exceptions import InvalidState
from websockets.frames import CloseCode, Frame
from websockets.http11 import MAX_LINE_LENGTH

from omniduplex.entrypoints.duplex.serving import SEE_OFF_TIMEOUT_S
from omniduplex.entrypoints.duplex.websocket import TEXT_FRAMES, TextSink
from omniduplex.entrypoints.openai.arrivals import Lobby
from omniduplex.entrypoints.openai.departures import DepartingProtocol

logger = logging.getLogger(__name__)

# How long the sessions of a stopping server may go on.
DRAIN_TIMEOUT_S = 5.0

MAX_OPEN_FILES = 65536
# The codec refuses what is over its own limit of 15 MiB and keeps the connection: 16 MiB of sound,
# in base64, must reach it. What is larger still ends its connection before it is in memory.
MAX_FRAME_BYTES = 24 * 1024 * 1024
# uvicorn logs this after every answer of 401 to an upgrade, which it did send.
_UNTRUE_COMPLAINT = "ASGI callable returned without completing handshake."


class Serving(Protocol):
    """What the application puts into its state as `serving`: its goodbyes."""

    async def drain(self, timeout_s: float) -> None:
        """Take nothing new, and let what runs go on for this long."""

    def hurry(self) -> None:
        """Give what runs no more time."""


class UpgradeProtocol(DepartingProtocol):
    """HTTP whose every upgrade is answered: uvicorn is silent about those it cannot parse."""

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection to the WebSocket protocol, or refuse it."""
        # None of the headers that we read is long, so a key of a megabyte is simply no key.
        self.headers[:] = [
            (name, value)
            for name, value in self.headers
            if len(name) + len(value) + len(": \r\n") <= MAX_LINE_LENGTH
        ]
        super().handle_websocket_upgrade()
        protocol = self.transport.get_protocol()
        if isinstance(protocol, WebSocketsSansIOProtocol) and not protocol.handshake_initiated:
            self.send_400_response("Invalid WebSocket upgrade.")


def _is_true(record: logging.LogRecord) -> bool:
    return record.msg != _UNTRUE_COMPLAINT


def _text_of(data: bytes | bytearray | memoryview) -> str | None:
    """What a text frame says; None if it is not UTF-8."""
    try:
        return str(data, "utf-8")
    except UnicodeDecodeError:
        return None


class TalkProtocol(WebSocketsSansIOProtocol):
    """WebSocket whose connection does not outlive its handler by much, whatever the client does.

    uvicorn waits without end for a client that never reads the last frames. To the application it
    offers itself as `TextFrames`.
    """

    sink: TextSink | None = None

    linger_s = 30.0
    _linger: asyncio.TimerHandle | None = None
    _is_lost = False

    async def run_asgi(self) -> None:
        """Run the application; then the client has `linger_s` to read what is left."""
        extensions = self.scope["extensions"]
        extensions[TEXT_FRAMES] = {"frames": self}
        try:
            await super().run_asgi()
        finally:
            # The connection must be no ring with its own scope, which would be freed late.
            del extensions[TEXT_FRAMES]
            self.sink = None
        if not self._is_lost:
            self._linger = self.loop.call_later(self.linger_s, self.transport.abort)

    @property
    def flows(self) -> bool:
        """Whether the client reads what is written."""
        return self.writable.is_set()

    async def flowing(self) -> None:
        """Wait until it does, or is gone."""
        await self.writable.wait()

    def send_texts(self, texts: Sequence[str]) -> None:
        """Write a text frame each, all at once; raises `ClientDisconnected`, an OSError."""
        if self.disconnected or self.close_sent:
            raise ClientDisconnected
        try:
            for text in texts:
                self.conn.send_text(text.encode())
        except InvalidState:
            raise ClientDisconnected from None
        self.transport.write(b"".join(self.conn.data_to_send()))

    def handle_text(self, event: Frame) -> None:
        """Offer a whole frame to the application at once, if none is queued before it."""
        if event.fin and self.sink is not None and self.queue.empty():
            text = _text_of(event.data)
            if text is not None and self.sink(text):
                return
        super().handle_text(event)

    def send_receive_event_to_app(self) -> None:
        """Queue a message; reading goes on until a second one waits."""
        if self.curr_msg_data_type == "text" and not self.close_sent:
            self.frames = [b"".join(self.frames)]
            if _text_of(self.frames[0]) is None:
                self._refuse_text()
                return
        keeps_up = self.queue.empty() and not self.read_paused
        # uvicorn pauses reading for each message, which costs two system calls.
        self.read_paused = self.read_paused or keeps_up
        super().send_receive_event_to_app()
        if keeps_up:
            self.read_paused = False

    def _refuse_text(self) -> None:
        """Close as uvicorn does, which takes a client's fault for its own and logs a traceback."""
        logger.info("a client sent text that is not UTF-8: its connection is closed")
        self.frames = []
        self.conn.send_close(CloseCode.INVALID_DATA)
        self.handle_parser_exception()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the connection go."""
        self._is_lost = True
        if self._linger is not None:
            self._linger.cancel()
        super().connection_lost(exc)


class TalkServer(uvicorn.Server):
    """A server that says when it is ready, and gives its sessions time before it stops."""

    def __init__(
        self,
        config: uvicorn.Config,
        app: Starlette,
        on_ready: Callable[[], None],
        *,
        drain_timeout_s: float = DRAIN_TIMEOUT_S,
    ) -> None:
        super().__init__(config)
        self._app = app
        self._on_ready = on_ready
        self._drain_timeout_s = drain_timeout_s
        self._loop: asyncio.AbstractEventLoop | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Accept connections, then say so."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        if self.started:
            self._on_ready()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note the wish to stop; the second one waits for no session any more."""
        if self.should_exit and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._serving.hurry)
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let sessions end or be resumed for a while, end what is left, then close the port."""
        await self._serving.drain(self._drain_timeout_s)
        await super().shutdown(sockets)

    @property
    def _serving(self) -> Serving:
        serving: Serving = self._app.state.serving
        return serving


class Certificate(NamedTuple):
    """What a server shows to be spoken to in secret: PEM files, the key in the first one or not."""

    certfile: Path
    keyfile: Path | None = None

    def check(self) -> None:
        """Raise the OSError or `ssl.SSLError` that serving with it would end in."""
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(self.certfile, self.keyfile)


def server_config(
    app: Starlette, certificate: Certificate | None = None, *, lobby: Lobby | None = None
) -> uvicorn.Config:
    """Return the settings that serving relies on; with a certificate it speaks TLS alone.

    uvicorn's own access lines hold whole URLs, and its debug lines whole headers; a client may
    have put a key there, so both stay off.
    """
    config = uvicorn.Config(
        app,
        loop="uvloop",
        # What uvicorn calls a class it only calls.
        http=cast("type[asyncio.Protocol]", partial(UpgradeProtocol, lobby=lobby or Lobby())),
        ws=TalkProtocol,
        ws_max_size=MAX_FRAME_BYTES,
        ws_per_message_deflate=False,
        lifespan="on",
        log_config=None,
        log_level="warning",
        access_log=False,
        server_header=False,
        timeout_graceful_shutdown=int(SEE_OFF_TIMEOUT_S),
        ssl_certfile=certificate.certfile if certificate else None,
        ssl_keyfile=certificate.keyfile if certificate else None,
    )
    logging.getLogger("uvicorn.error").addFilter(_is_true)
    return config


def bind(host: str, port: int) -> socket.socket:
    """Take a TCP port without listening on it yet, so that a taken one shows before models load.

    Raises:
        OSError: it is taken, not allowed, or the host is none of this machine's.
    """
    family, _, _, _, address = socket.getaddrinfo(
        host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
    except OSError:
        bound.close()
        raise
    bound.set_inheritable(False)
    return bound


def allow_many_sockets() -> None:
    """Raise this process's soft limit of open files, often 1024, towards the hard one.

    Each client is one file, and they all come back at once after a broken network.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MAX_OPEN_FILES if hard == resource.RLIM_INFINITY else min(hard, MAX_OPEN_FILES)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
