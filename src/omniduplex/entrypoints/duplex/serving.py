"""The WebSocket endpoint of `/v1/realtime` and `/v1/duplex`."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Callable

from starlette.websockets import WebSocket

from omniduplex.entrypoints.duplex.connection import NORMAL_CLOSURE, SHUTDOWN, DuplexConnection
from omniduplex.entrypoints.duplex.handshake import open_session, read_url
from omniduplex.entrypoints.duplex.ports import ServedOmni
from omniduplex.entrypoints.duplex.websocket import ClientGone, ClientSocket
from omniduplex.protocol.duplex import Dialect, DuplexError

SUBPROTOCOL = "realtime"
# Wire contract, transport: how long a client may take for its first event.
CONFIG_TIMEOUT_S = 10.0
# A client that reads nothing for this long while we write is gone.
SEND_TIMEOUT_S = 30.0
# RFC 6455, section 7.4.1.
POLICY_VIOLATION, INTERNAL_ERROR = 1008, 1011

logger = logging.getLogger(__name__)


def random_id() -> str:
    """Return 32 hexadecimal digits."""
    return uuid.uuid4().hex


class DuplexServing:
    """Serves each connection as one session, and knows which of them are live."""

    def __init__(
        self,
        omni: ServedOmni,
        model: str,
        *,
        new_id: Callable[[], str] = random_id,
        config_timeout_s: float = CONFIG_TIMEOUT_S,
        send_timeout_s: float = SEND_TIMEOUT_S,
    ) -> None:
        self._omni = omni
        self._model = model
        self._new_id = new_id
        self._config_timeout_s = config_timeout_s
        self._send_timeout_s = send_timeout_s
        self._live = 0
        self._idle = asyncio.Event()
        self._idle.set()

    async def serve(self, websocket: WebSocket) -> None:
        """Serve one connection from its upgrade to its close frame."""
        offered = websocket.scope.get("subprotocols", [])
        await websocket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        socket = ClientSocket(
            websocket,
            Dialect.DUPLEX,
            new_id=self._new_id,
            send_timeout_s=self._send_timeout_s,
        )
        try:
            await self._serve(websocket, socket)
        except ClientGone as gone:
            logger.debug("a client left before it had a session: %d", gone.code)
        except DuplexError as error:
            # The contract lets a route that is not there close normally.
            code = NORMAL_CLOSURE if error.code == "unsupported" else POLICY_VIOLATION
            await _turn_away(socket, error, code)
        except Exception:
            logger.exception("a connection failed")
            failure = DuplexError("internal_error", "The server failed; this session is over.")
            await _turn_away(socket, failure, INTERNAL_ERROR)

    async def drain(self, timeout_s: float) -> None:
        """Tell every session that the server stops, and see their connections off."""
        await self._omni.close_all_sessions(SHUTDOWN)
        try:
            async with asyncio.timeout(timeout_s):
                await self._idle.wait()
        except TimeoutError:
            logger.warning("%d connections did not end within %g s", self._live, timeout_s)

    async def _serve(self, websocket: WebSocket, socket: ClientSocket) -> None:
        handshake = read_url(websocket.url.path, websocket.query_params, self._model)
        socket.dialect = handshake.dialect
        opened = await open_session(self._omni, socket, handshake, self._config_timeout_s)
        name = opened.session.session_id
        logger.info("session %s: connected, %s dialect", name, handshake.dialect.value)
        self._live += 1
        self._idle.clear()
        try:
            await DuplexConnection(opened.session, socket).run(opened.pending)
        finally:
            self._live -= 1
            if not self._live:
                self._idle.set()
            logger.info("session %s: disconnected", name)


async def _turn_away(socket: ClientSocket, error: DuplexError, code: int) -> None:
    try:
        await socket.refuse(error)
    except ClientGone:
        return
    await socket.close(code, error.code)
