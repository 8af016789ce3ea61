"""What the two sides of a session share: its output buffer and the count of its input."""

from __future__ import annotations

import msgspec

from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.engine.duplex.output_buffer import DuplexOutputBuffer
from omniduplex.engine.duplex.pending_input import PendingInput, input_bytes
from omniduplex.protocol.duplex import DuplexCommand, DuplexError

EVENTS_OF_A_COMMAND = 3
"""What a command typically makes at once: an item is added, created and done."""


class DuplexSessionLink:
    """One session's crossing between the caller's loop and the engine's.

    Each counter has one writing thread, so neither needs a lock.
    """

    def __init__(self, session_id: str, limits: DuplexSessionRuntimeConfig) -> None:
        self.session_id = session_id
        self.output = DuplexOutputBuffer(
            max_bytes=limits.max_pending_output_bytes_per_session,
            max_events=limits.max_pending_output_events_per_session,
            gives_up_answers=limits.output_overflow == "fail_response",
        )
        self.pending = PendingInput()
        self._max_input_bytes = limits.max_pending_input_bytes_per_session
        self._max_events = limits.max_pending_output_events_per_session
        self._sent = 0
        self._taken = 0
        self._commands_sent = 0
        self._commands_taken = 0

    @property
    def crowded(self) -> bool:
        """Whether a caller should wait a moment: its own commands would flood its reader."""
        on_their_way = self._commands_sent - self._commands_taken + self.pending.held_commands
        return (
            EVENTS_OF_A_COMMAND * on_their_way + self.output.pending_events > self._max_events // 2
        )

    def reserve(self, command: DuplexCommand) -> None:
        """Count a command in, on the caller's side.

        Raises:
            DuplexError: `input_backpressure` when too much is on its way to the model already.
        """
        size = input_bytes(command)
        if size:
            waiting = self._sent - self._taken + self.pending.passing_bytes
            if waiting + size > self._max_input_bytes:
                message = f"more than {self._max_input_bytes} bytes of input wait to be handled"
                raise DuplexError("input_backpressure", message, event_id=command.event_id)
        self._sent += size
        self._commands_sent += 1

    def taken(self, command: DuplexCommand) -> None:
        """A command is the session's from now on, which counts what it keeps of it in `pending`."""
        self._taken += input_bytes(command)
        self._commands_taken += 1


class SessionCommand(msgspec.Struct, frozen=True, gc=False):
    """A command on its way to a session's runner."""

    session_id: str
    command: DuplexCommand


class AbandonSession(msgspec.Struct, frozen=True, gc=False):
    """Nobody waits for the open of this session any more: end it if it came to be."""

    session_id: str
