"""Commands that wait while a large append before them is converted off the loop."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import msgspec

from omniduplex.engine.conversation.response_options import out_of_band_options
from omniduplex.engine.duplex.pending_input import PendingInput, input_bytes
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
    """At most one append is converted at a time; what comes behind it keeps its order.

    What waits here is counted in `pending`.
    """

    def __init__(self, pending: PendingInput) -> None:
        self._pending = pending
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

    def stops(self, command: RealtimeCommand) -> bool:
        """Whether a command has to wait."""
        return self._append is not None and not isinstance(command, OVERTAKING)

    def hold(self, command: RealtimeCommand) -> None:
        """Keep a command back."""
        self._queue.append(command)
        self._pending.held_commands += 1
        self._pending.held_bytes += input_bytes(command)

    def release(self) -> RealtimeCommand | None:
        """The next command that need not wait any more."""
        if self._append is not None or not self._queue:
            return None
        command = self._queue.popleft()
        self._let_go(command)
        return command

    def _let_go(self, command: RealtimeCommand) -> None:
        self._pending.held_commands -= 1
        self._pending.held_bytes -= input_bytes(command)

    def drop_open(self) -> bool:
        """Drop audio that no commit follows; false if the append being converted is not such."""
        last_commit = -1
        for index, command in enumerate(self._queue):
            if isinstance(command, Commit | InputCommit):
                last_commit = index
        self._keep(
            lambda index, command: index <= last_commit or not isinstance(command, AppendAudio)
        )
        if last_commit < 0:
            self._append = None
        return last_commit < 0

    def forgo_answers(self) -> list[CreateResponse]:
        """Nothing that waits wants an answer any more; what asked for nothing else is returned.

        What waits to be answered beside the conversation is another matter.
        """
        forgone = [one for one in self._queue if isinstance(one, CreateResponse) and _is_here(one)]
        self._keep(lambda _, one: not (isinstance(one, CreateResponse) and _is_here(one)))
        self._queue = deque(
            msgspec.structs.replace(command, response_create=False)
            if isinstance(command, Commit | InputCommit)
            else command
            for command in self._queue
        )
        return forgone

    def _keep(self, wanted: Callable[[int, RealtimeCommand], bool]) -> None:
        queue, self._queue = self._queue, deque()
        for index, command in enumerate(queue):
            if wanted(index, command):
                self._queue.append(command)
            else:
                self._let_go(command)


def _is_here(command: CreateResponse) -> bool:
    """Whether it asks for an answer in the conversation."""
    return out_of_band_options(command) is None
