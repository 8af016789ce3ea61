"""One event stream and its renderings: the OpenAI dialect, that of its beta, the duplex dialect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, structs, to_builtins

from omniduplex.protocol.duplex.beta_dialect import project_beta
from omniduplex.protocol.duplex.config import Dialect
from omniduplex.protocol.duplex.errors import DUPLEX_CODES
from omniduplex.protocol.duplex.events import (
    DuplexEvent,
    DuplexResponse,
    ErrorEvent,
    ResponseCreated,
    ResponseDone,
)
from omniduplex.protocol.duplex.openai_dialect import project_openai
from omniduplex.protocol.realtime.buffer_events import OutputStarted, OutputStopped
from omniduplex.protocol.realtime.conversation_events import (
    ConversationCreated,
    TranscriptionDelta,
)
from omniduplex.protocol.realtime.events import RateLimitsUpdated, RealtimeEvent

# The contract fixes the order and number of the events around these, and does not have them.
NOT_DUPLEX: frozenset[type[RealtimeEvent]] = frozenset(
    {ConversationCreated, TranscriptionDelta, OutputStarted, OutputStopped}
)


def project(event: DuplexEvent, dialect: Dialect) -> RealtimeEvent | None:
    """Render an event for a dialect; None when that dialect does not show it."""
    match dialect:
        case Dialect.OPENAI:
            return project_openai(event)
        case Dialect.BETA:
            return project_beta(event)
        case Dialect.DUPLEX:
            return _project_duplex(event)


def _project_duplex(event: DuplexEvent) -> RealtimeEvent | None:
    if type(event) in NOT_DUPLEX:
        return None
    projection = _DUPLEX.get(type(event))
    return event if projection is None else projection(event)


def _duplex_response(response: DuplexResponse, facts: dict[str, Any]) -> DuplexResponse:
    modalities = response.output_modalities
    shown = response.modalities
    if shown is UNSET and modalities is not UNSET:
        shown = tuple(name for name in ("audio", "text") if name in modalities)
    own = response.metadata or {}
    metadata = {**own, **facts}
    if not own.keys().isdisjoint(facts):  # the client has what it gave back all the same
        metadata["client"] = own
    return structs.replace(
        response, modalities=shown, facts=UNSET, conversation_id=UNSET, metadata=metadata or None
    )


def _duplex_created(event: ResponseCreated) -> ResponseCreated:
    facts = event.response.facts
    shown = {} if facts is UNSET else {"duplex_event": to_builtins(facts)}
    return structs.replace(event, response=_duplex_response(event.response, shown))


def _duplex_done(event: ResponseDone) -> ResponseDone:
    facts = event.response.facts
    shown = {} if facts is UNSET else to_builtins(facts)
    return structs.replace(event, response=_duplex_response(event.response, shown))


def _duplex_error(event: ErrorEvent) -> ErrorEvent:
    """Use the contract's codes and its names of fields."""
    code, param = event.error.code, duplex_param(event.error.param)
    error = structs.replace(event.error, code=DUPLEX_CODES.get(code, code), param=param)
    return structs.replace(event, error=error)


def duplex_param(param: str | None) -> str | None:
    """The field of a session as the session object names it: `voice`, not its full path."""
    return None if param is None else param.removeprefix("session.")


def _duplex_limits(event: RateLimitsUpdated) -> RateLimitsUpdated:
    """Show the list that is always empty by the contract."""
    return structs.replace(event, rate_limits=())


_DUPLEX: dict[type[Any], Callable[[Any], RealtimeEvent]] = {
    ResponseCreated: _duplex_created,
    ResponseDone: _duplex_done,
    RateLimitsUpdated: _duplex_limits,
    ErrorEvent: _duplex_error,
}
