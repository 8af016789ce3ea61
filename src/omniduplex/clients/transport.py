"""The seam under a client: what carries commands out and events in."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any

from omniduplex.clients.events import ServerEvent
from omniduplex.protocol.duplex import DuplexCommand

# A command, or a message of the wire as it is.
Message = DuplexCommand | Mapping[str, Any]


class Transport(ABC):
    """One connection to one session, used by one reader and any number of senders.

    Every method raises DuplexConnectionError when the connection is not there (any more).
    """

    @abstractmethod
    async def connect(self) -> None:
        """Make the connection."""

    @abstractmethod
    async def send(self, command: Message) -> None:
        """Send a command; the first one opens the session.

        Raises:
            DuplexProtocolError: the command was refused on the spot.
        """

    @abstractmethod
    async def receive(self) -> ServerEvent:
        """The next event.

        Raises:
            DuplexProtocolError: what came is no event.
        """

    @abstractmethod
    async def close(self) -> None:
        """Let go of the connection; once is enough, and more does no harm."""
