"""How a connection becomes a session: what the URL asks for, and what the first event does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from omniduplex.entrypoints.duplex.ports import ServedOmni, ServedSession
from omniduplex.entrypoints.duplex.websocket import ClientSocket
from omniduplex.protocol.duplex import (
    Dialect,
    DuplexCommand,
    DuplexError,
    ResumeSession,
    UpdateSession,
    apply_patch,
    default_config,
)

DUPLEX_PATH = "/v1/duplex"
# Wire contract, transport: which query values mean what.
_DUPLEX_ON = frozenset({"1", "true", "on"})
_AUTOSTART_OFF = frozenset({"0", "false", "no", "off"})
_RESUME_ON = frozenset({"1", "true", "yes", "on"})


class Handshake(NamedTuple):
    """What a connection's URL asks for."""

    dialect: Dialect
    model: str
    opens_at_once: bool
    """Whether the session opens before the first client event is read."""


class Opened(NamedTuple):
    """A session, and the client event that is still to be run on it."""

    session: ServedSession
    pending: DuplexCommand | None


def read_url(path: str, query: Mapping[str, str], default_model: str) -> Handshake:
    """Choose the dialect and the way of opening from a connection's path and query.

    Raises:
        DuplexError: `unsupported`, when it asks for the turn-based API.
    """
    model = query.get("model") or default_model
    if path != DUPLEX_PATH:
        wanted = query.get("duplex")
        if wanted is None:
            return Handshake(Dialect.OPENAI, model, opens_at_once=True)
        if wanted.lower() not in _DUPLEX_ON:
            raise DuplexError("unsupported", "Realtime API is not available", param="duplex")
    explicit = (
        query.get("autostart", "").lower() in _AUTOSTART_OFF
        or query.get("resume", "").lower() in _RESUME_ON
    )
    return Handshake(Dialect.DUPLEX, model, bool(query.get("model")) and not explicit)


async def open_session(
    omni: ServedOmni, socket: ClientSocket, handshake: Handshake, config_timeout_s: float
) -> Opened:
    """Open the session that a connection asks for, reading its first event if need be.

    Raises:
        ClientGone: the client left before it had a session.
        DuplexError: there will be no session; it carries the client's event id.
    """
    config = default_config(handshake.model, handshake.dialect)
    if handshake.opens_at_once:
        return Opened(await omni.open_session(config), None)
    first = await _first_command(socket, config_timeout_s)
    try:
        match first:
            case ResumeSession():
                raise DuplexError(
                    "unsupported_session_resume", "The sessions of this model cannot be resumed."
                )
            case UpdateSession():
                return Opened(await omni.open_session(apply_patch(config, first.session)), None)
            case _:
                return Opened(await omni.open_session(config), first)
    except DuplexError as error:
        error.event_id = error.event_id or first.event_id
        raise


async def _first_command(socket: ClientSocket, timeout_s: float) -> DuplexCommand:
    try:
        async with asyncio.timeout(timeout_s):
            return await socket.receive()
    except TimeoutError:
        message = f"No first event arrived within {timeout_s:g} s."
        raise DuplexError("config_timeout", message) from None
