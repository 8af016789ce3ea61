"""Commands that a model's capabilities rule out are refused before anything happens."""

from __future__ import annotations

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
