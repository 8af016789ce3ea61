"""The way out of a client: in order, and held while there is no connection."""

from __future__ import annotations

import asyncio
from collections import deque

from omniduplex.clients.transport import Message, Transport

# Commands that wait for a connection before senders do: 20 s of a microphone at 20 ms a chunk.
HELD_LIMIT = 1024


class OutboxClosedError(Exception):
    """The session ended before the command could be sent."""


class Outbox:
    """Sends each command once, in the order of the calls.

    A command that was handed to a connection is never sent again: what had not been shown to have
    arrived when that connection broke is counted in `in_doubt`.
    """

    def __init__(self, transport: Transport, *, limit: int = HELD_LIMIT) -> None:
        self.in_doubt = 0
        self._transport = transport
        self._limit = limit
        self._held: deque[Message] = deque()
        self._holding = False
        self._closed = False
        self._room = asyncio.Event()
        self._turn = asyncio.Lock()
        self._unproven = 0
        self._probes: deque[int] = deque()
        self._stale = 0

    @property
    def held(self) -> int:
        """How many commands wait for a connection."""
        return len(self._held)

    async def send(self, command: Message) -> None:
        """Send a command, or hold it; waits for room when too many are held.

        Raises:
            DuplexConnectionError: the connection broke; the command is in doubt.
            DuplexProtocolError: the command was refused on the spot.
            OutboxClosedError: the session ended first.
        """
        async with self._turn:
            while self._holding and not self._closed and len(self._held) >= self._limit:
                self._room.clear()
                await self._room.wait()
            if self._closed:
                raise OutboxClosedError
            if self._holding:
                self._held.append(command)
                return
            await self._pass_on(command)

    def hold(self) -> None:
        """The connection is gone: send nothing until `release`."""
        self._holding = True
        self.in_doubt += self._unproven
        self._unproven = 0
        # Their answers may still come, in the replay; they say nothing of what is sent after it.
        self._stale += len(self._probes)
        self._probes.clear()

    async def release(self) -> None:
        """Send what is held, then everything at once again.

        Raises:
            DuplexConnectionError: the new connection broke as well; the rest is still held.
        """
        while self._held:
            command = self._held.popleft()
            self._room.set()
            await self._pass_on(command)
        self._holding = False

    def close(self) -> None:
        """The session is over: whoever waits for room need not."""
        self._closed = True
        self._held.clear()
        self._room.set()

    def probed(self) -> None:
        """A question was sent behind all commands so far; answers come in the same order."""
        self._probes.append(self._unproven)

    def answered(self) -> None:
        """The oldest question was answered: what was sent before it has arrived."""
        if self._stale:
            self._stale -= 1
            return
        if not self._probes:
            return
        proven = self._probes.popleft()
        self._unproven -= proven
        self._probes = deque(count - proven for count in self._probes)

    async def _pass_on(self, command: Message) -> None:
        self._unproven += 1
        await self._transport.send(command)
