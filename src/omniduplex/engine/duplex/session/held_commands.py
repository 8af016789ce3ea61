"""Commands that wait while a large append before them is converted off the loop."""

from __future__ import annotations

from collections import deque

import msgspec

from omniduplex.engine.conversation.response_options import is_out_of_band
from omniduplex.protocol.duplex import (
    AckPlayback,
    AppendAudio,
    BargeIn,
    CancelInput,
    ClearInput,
    ClearOutputAudio,
    CloseSession,
    Commit,
    CreateResponse,
    Heartbeat,
    InputCommit,
    RealtimeCommand,
    TruncateItem,
)

OVERTAKING = (
    CancelInput,
    BargeIn,
    ClearOutputAudio,
    ClearInput,
    TruncateItem,
    AckPlayback,
    Heartbeat,
    CloseSession,
)
"""What stops something, or says what was heard, does not wait."""


class HeldCommands:
    """At most one append is converted at a time; what comes behind it keeps its order."""

    def __init__(self) -> None:
        self._append: AppendAudio | None = None
        self._ticket = 0
        self._queue: deque[RealtimeCommand] = deque()

    @property
    def converting(self) -> bool:
        """Whether an append is being converted."""
        return self._append is not None

    def begin(self, append: AppendAudio, ticket: int) -> None:
        """An append is being converted from now on; its result will carry `ticket`."""
        self._append = append
        self._ticket = ticket

    def finish(self, ticket: int) -> AppendAudio | None:
        """The append whose result came; None when it was dropped meanwhile."""
        if self._append is None or ticket != self._ticket:
            return None
        append, self._append = self._append, None
        return append

    def hold(self, command: RealtimeCommand) -> bool:
        """Keep a command back if it has to wait."""
        if self._append is None or isinstance(command, OVERTAKING):
            return False
        self._queue.append(command)
        return True

    def release(self) -> RealtimeCommand | None:
        """The next command that need not wait any more."""
        if self._append is not None or not self._queue:
            return None
        return self._queue.popleft()

    def drop_open(self) -> bool:
        """Drop audio that no commit follows; false if the append being converted is not such."""
        last_commit = -1
        for index, command in enumerate(self._queue):
            if isinstance(command, Commit | InputCommit):
                last_commit = index
        self._queue = deque(
            command
            for index, command in enumerate(self._queue)
            if index <= last_commit or not isinstance(command, AppendAudio)
        )
        if last_commit < 0:
            self._append = None
        return last_commit < 0

    def forgo_answers(self) -> None:
        """An answer that was asked for by a command that waits is not wanted any more.

        What waits to be answered beside the conversation is another matter.
        """
        self._queue = deque(
            msgspec.structs.replace(command, response_create=False)
            if isinstance(command, Commit | InputCommit)
            else command
            for command in self._queue
            if not isinstance(command, CreateResponse) or is_out_of_band(command)
        )
