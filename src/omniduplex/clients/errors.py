"""What can go wrong between a client and its session.

DuplexClientError
├── DuplexConnectionError      the transport failed, or never came up
├── DuplexProtocolError        the server refused a command, or spoke out of turn
└── DuplexSessionClosedError   the session is over
"""

from __future__ import annotations

from omniduplex.protocol.duplex import DuplexError, ErrorEvent
from omniduplex.protocol.duplex.errors import told


class DuplexClientError(Exception):
    """Base of everything that the client library raises about a session."""


class DuplexConnectionError(DuplexClientError):
    """The transport failed, or the session did not open in time."""


class DuplexProtocolError(DuplexClientError):
    """A command was refused: the code, the field, the command's id, the event that said so, if any.

    Without an event the refusal comes from this process.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        param: str | None = None,
        event_id: str | None = None,
        raw: ErrorEvent | None = None,
    ) -> None:
        super().__init__(told(code, message, param))
        self.code = code
        self.message = message
        self.param = param
        self.event_id = event_id
        self.raw = raw

    @classmethod
    def from_event(cls, event: ErrorEvent) -> DuplexProtocolError:
        """The refusal that the server reported."""
        error = event.error
        return cls(error.code, error.message, param=error.param, event_id=error.event_id, raw=event)

    @classmethod
    def from_refusal(cls, error: DuplexError) -> DuplexProtocolError:
        """The refusal that the protocol's own code raised in this process."""
        return cls(error.code, error.message, param=error.param, event_id=error.event_id)


class DuplexSessionClosedError(DuplexClientError):
    """The session ended, by itself, by the server or with its connection; `reason` says which."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the session is over: {reason}")
        self.reason = reason
