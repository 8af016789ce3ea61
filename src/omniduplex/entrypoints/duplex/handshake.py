"""How a connection becomes a session: what its upgrade asks for, and what its first event does."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import NamedTuple

from omniduplex.entrypoints.duplex.websocket import ClientSocket
from omniduplex.protocol.duplex import (
    Dialect,
    DuplexCommand,
    DuplexError,
    DuplexSessionConfig,
    UpdateSession,
    apply_patch,
    default_config,
)

REALTIME_PATH, DUPLEX_PATH = "/v1/realtime", "/v1/duplex"
SUBPROTOCOL = "realtime"
# Wire contract, transport: which query values mean what.
_DUPLEX_ON = frozenset({"1", "true", "on"})
_AUTOSTART_OFF = frozenset({"0", "false", "no", "off"})
_RESUME_ON = frozenset({"1", "true", "yes", "on"})
# `OpenAI-Beta`, a list of features, as the API's beta asks for its dialect (interop MUST 16).
BETA_HEADER = "openai-beta"
_BETA_FEATURE = "realtime=v1"


class Handshake(NamedTuple):
    """What a connection's URL and headers ask for."""

    dialect: Dialect
    model: str
    opens_at_once: bool
    """Whether the session opens before the first client event is read."""


def read_upgrade(
    path: str, query: Mapping[str, str], headers: Mapping[str, str], default_model: str
) -> Handshake:
    """Choose the dialect and the way of opening from a connection's path, query and headers.

    Raises:
        DuplexError: `unsupported`, when it asks for the turn-based API.
    """
    model = query.get("model") or default_model
    explicit = _opens_by_hand(query)
    if path != DUPLEX_PATH:
        asked = asks_for_duplex(query)
        if asked is None and not explicit:
            dialect = Dialect.BETA if asks_for_beta(headers) else Dialect.OPENAI
            return Handshake(dialect, model, opens_at_once=True)
        if asked is False:
            raise DuplexError("unsupported", "Realtime API is not available", param="duplex")
    return Handshake(Dialect.DUPLEX, model, bool(query.get("model")) and not explicit)


def _opens_by_hand(query: Mapping[str, str]) -> bool:
    """Whether a client opens, or resumes, by its first event: the contract's words alone."""
    return (
        query.get("autostart", "").lower() in _AUTOSTART_OFF
        or query.get("resume", "").lower() in _RESUME_ON
    )


def asks_for_duplex(query: Mapping[str, str]) -> bool | None:
    """Whether a URL asks for the duplex API or for the turn-based one; None when for neither."""
    wanted = query.get("duplex")
    return None if wanted is None else wanted.lower() in _DUPLEX_ON


def asks_for_beta(headers: Mapping[str, str]) -> bool:
    """Whether a client speaks the API's beta; `headers` have lower-case names."""
    features = headers.get(BETA_HEADER, "").split(",")
    return any(feature.strip() == _BETA_FEATURE for feature in features)


async def first_command(
    socket: ClientSocket, handshake: Handshake, timeout_s: float
) -> DuplexCommand | None:
    """Read the event by which a client says what it wants; None when its URL says it all.

    Raises:
        ClientGone: the client left before it said so.
        DuplexError: `config_timeout`, or what is wrong with the event.
    """
    if handshake.opens_at_once:
        return None
    try:
        async with asyncio.timeout(timeout_s):
            return await socket.receive()
    except TimeoutError:
        message = f"No first event arrived within {timeout_s:g} s."
        raise DuplexError("config_timeout", message) from None


def opening_config(handshake: Handshake, first: DuplexCommand | None) -> DuplexSessionConfig:
    """Return the configuration that a connection opens its session with. Raises DuplexError."""
    config = default_config(handshake.model, handshake.dialect)
    return apply_patch(config, first.session) if isinstance(first, UpdateSession) else config
