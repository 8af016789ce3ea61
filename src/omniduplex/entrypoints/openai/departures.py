"""Answers that their clients do not read: they hold a connection, and what makes them, so long."""

from __future__ import annotations

import asyncio

from omniduplex.entrypoints.openai.arrivals import ArrivingProtocol
from omniduplex.entrypoints.patience import SEND_TIMEOUT_S


class DepartingProtocol(ArrivingProtocol):
    """HTTP that cuts a connection off whose client leaves a full buffer unread for too long.

    Whatever answers it is told that the client has left.
    """

    send_timeout_s = SEND_TIMEOUT_S

    _patience: asyncio.TimerHandle | None = None

    def pause_writing(self) -> None:
        """The buffer is full."""
        super().pause_writing()
        self._patience = self.loop.call_later(self.send_timeout_s, self.transport.abort)

    def resume_writing(self) -> None:
        """The client reads."""
        self._go_on()
        super().resume_writing()

    def handle_websocket_upgrade(self) -> None:
        """Hand the connection over to a protocol that looks after its writes itself."""
        self._go_on()
        super().handle_websocket_upgrade()

    def connection_lost(self, exc: Exception | None) -> None:
        """Let the connection go."""
        self._go_on()
        super().connection_lost(exc)

    def _go_on(self) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
