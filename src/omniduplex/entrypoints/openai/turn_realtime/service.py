"""The WebSocket routes of a server in turn mode: `/v1/realtime`, and who knocks at a wrong door."""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from typing import Any

from msgspec import structs
from starlette.routing import BaseRoute, WebSocketRoute
from starlette.websockets import WebSocket

from omniduplex.entrypoints.async_omni import AsyncOmniBase
from omniduplex.entrypoints.duplex.handshake import (
    DUPLEX_PATH,
    REALTIME_PATH,
    SUBPROTOCOL,
    asks_for_beta,
    asks_for_duplex,
)
from omniduplex.entrypoints.duplex.websocket import (
    INTERNAL_ERROR,
    NORMAL_CLOSURE,
    POLICY_VIOLATION,
    ClientSocket,
    Farewell,
)
from omniduplex.entrypoints.openai.turn_realtime.connection import TurnConnection
from omniduplex.entrypoints.openai.turn_realtime.conversation import TurnConversation
from omniduplex.entrypoints.openai.turn_serving import TurnServing
from omniduplex.entrypoints.patience import SEND_TIMEOUT_S
from omniduplex.protocol.duplex import (
    Dialect,
    DuplexError,
    DuplexSessionConfig,
    default_config,
    encode_event,
    error_event,
    project,
)

# Conversations at a time: their clients may say nothing for minutes, by the API's design.
MAX_CONVERSATIONS = 1024
_WHY = "this server is deployed with session_mode: turn, and has no duplex sessions"

logger = logging.getLogger(__name__)


def random_id(prefix: str) -> str:
    """An id that was never used."""
    return f"{prefix}_{uuid.uuid4().hex}"


def half_duplex_config(model: str, dialect: Dialect) -> DuplexSessionConfig:
    """What holds for a client that says nothing: nobody but it ends a turn."""
    defaults = default_config(model, dialect)
    return structs.replace(defaults, turn_detection=None, overlap_policy="listen_only")


class TurnRealtimeService:
    """Half-duplex Realtime conversations over turns of an engine."""

    def __init__(
        self,
        omni: AsyncOmniBase[Any],
        model: str,
        serving: TurnServing,
        *,
        new_id: Callable[[str], str] = random_id,
        send_timeout_s: float = SEND_TIMEOUT_S,
        max_conversations: int = MAX_CONVERSATIONS,
    ) -> None:
        self._omni = omni
        self._model = model
        self._serving = serving
        self._new_id = new_id
        self._send_timeout_s = send_timeout_s
        self._max_conversations = max_conversations
        self._conversations = 0

    def routes(self) -> Sequence[BaseRoute]:
        """Both paths that clients know."""
        return (
            WebSocketRoute(REALTIME_PATH, self._serve),
            WebSocketRoute(DUPLEX_PATH, self._serve),
        )

    async def _serve(self, websocket: WebSocket) -> None:
        offered = websocket.scope.get("subprotocols", [])
        await websocket.accept(SUBPROTOCOL if SUBPROTOCOL in offered else None)
        socket = ClientSocket(websocket, send_timeout_s=self._send_timeout_s)
        dialect = Dialect.BETA if asks_for_beta(websocket.headers) else Dialect.OPENAI
        refusal = self._refusal(websocket)
        if refusal is not None:
            socket.release(refusal)
        else:
            self._conversations += 1
            try:
                await self._converse(websocket, socket, dialect)
            finally:
                self._conversations -= 1
        farewell = socket.released.result()
        if farewell is not None:
            await socket.part(farewell)

    def _refusal(self, websocket: WebSocket) -> Farewell | None:
        """What a client is told that asks for what is not here (wire contract, section 0)."""
        if websocket.url.path == DUPLEX_PATH:
            return self._farewell(
                "unsupported", f"Duplex API is not available: {_WHY}", NORMAL_CLOSURE
            )
        if asks_for_duplex(websocket.query_params):
            return self._farewell(
                "unsupported", f"VAD realtime is not enabled: {_WHY}", POLICY_VIOLATION
            )
        if not self._omni.turn_features.supports_chat_completions:
            return self._farewell("unsupported", "Realtime API is not available", NORMAL_CLOSURE)
        if self._conversations >= self._max_conversations:
            message = "Too many conversations are open."
            return self._farewell("resource_exhausted", message, POLICY_VIOLATION)
        return None

    async def _converse(self, websocket: WebSocket, socket: ClientSocket, dialect: Dialect) -> None:
        model = websocket.query_params.get("model") or self._model
        conversation = TurnConversation(
            half_duplex_config(model, dialect),
            transcribes=self._omni.turn_features.supports_transcription,
            max_pending_turns=self._omni.pipeline.duplex_session.max_pending_turns_per_session,
            new_id=self._new_id,
        )
        connection = TurnConnection(
            self._omni,
            socket,
            conversation,
            dialect=dialect,
            new_id=self._new_id,
            stopping=self._serving.stopping,
        )
        try:
            await connection.run()
        except Exception:
            logger.exception("a connection failed")
            message = "The server failed; this conversation is over."
            socket.release(self._farewell("internal_error", message, INTERNAL_ERROR))

    def _farewell(self, code: str, message: str, close_code: int) -> Farewell:
        error = project(error_event(DuplexError(code, message)), Dialect.DUPLEX)
        text = encode_event(error, event_id=self._new_id("event"), seq=None) if error else None
        return Farewell(text, close_code, code)
