"""Commands that a model's capabilities rule out are refused before anything happens."""

from __future__ import annotations

from collections.abc import Iterable

from omniduplex.engine.conversation.history import HistoryEntry
from omniduplex.engine.conversation.response_options import Wanted
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.protocol.duplex import (
    AckPlayback,
    BargeIn,
    Commit,
    DuplexCapabilities,
    DuplexError,
    InputCommit,
    RealtimeCommand,
    SignalTurn,
)


def check_offered(command: RealtimeCommand, offers: DuplexCapabilities) -> None:
    """Refuse what this model says it has no use for.

    Raises:
        DuplexError: `barge_in_unsupported` or `unsupported`.
    """
    code, message = "unsupported", ""
    match command:
        case BargeIn() if not offers.supports_barge_in:
            code, message = "barge_in_unsupported", "this model cannot be interrupted"
        case Commit() | InputCommit() if not offers.supports_client_commit:
            message = "this model ends turns by itself; it takes no commit"
        case SignalTurn() if not offers.supports_external_turn_signal:
            message = "this model takes no turn signals"
        case AckPlayback() if not offers.supports_playback_ack:
            message = "this model keeps no account of what was heard"
        case _:
            return
    raise DuplexError(code, message)


def check_there_is_speech(core: SessionCore, response: Wanted) -> None:
    """A model that answers speech needs some.

    Raises:
        DuplexError: `response_create_without_input`, `text_only_turn_unsupported`.
    """
    if core.capabilities.supports_text_only_turn:
        return
    entries = _unanswered(core.history) if response.input is None else response.input
    asked = [entry.item for entry in entries if entry.item.type == "function_call_output"]
    asked += [entry.item for entry in entries if entry.item.role == "user"]
    if not asked:
        message = "there is nothing to answer: append and commit audio"
        raise DuplexError("response_create_without_input", message)
    for item in asked:
        parts = item.content or ()
        if item.type != "message" or any(part.type == "input_audio" for part in parts):
            return
    raise DuplexError("text_only_turn_unsupported", "this model answers speech, not text alone")


def _unanswered(entries: Iterable[HistoryEntry]) -> list[HistoryEntry]:
    found: list[HistoryEntry] = []
    for entry in entries:
        if entry.item.role == "assistant":
            found.clear()
        found.append(entry)
    return found
