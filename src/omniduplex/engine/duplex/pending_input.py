"""How much of its client's input a session holds that its model did not take yet."""

from __future__ import annotations

from omniduplex.protocol.duplex import AppendAudio, CreateItem, RealtimeCommand
from omniduplex.stages.backlog import Backlog

# Of the inputs that may wait for a stage, audio may be half, and all that a client asks for three
# quarters; the rest is for what the session has to tell its model by itself.
AUDIO_SHARE = 1 / 2
CLIENT_SHARE = 3 / 4


class PendingInput:
    """The count of one session, written on the engine loop alone; its link reads it.

    What a client sends is counted where it is: in the session (`held_bytes`, until it is converted
    and given on), in a turn that only its client ends (`turn_bytes`), in the queues of the stages
    (`backlog`), and with a model that took audio but did not hear it yet (`unheard_bytes`).
    """

    __slots__ = (
        "backlog",
        "held_bytes",
        "held_commands",
        "turn_bytes",
        "unheard_bytes",
        "wire_share",
    )

    def __init__(self) -> None:
        self.held_bytes = 0
        self.held_commands = 0
        self.turn_bytes = 0
        self.backlog = Backlog()
        self.unheard_bytes = 0
        """PCM at the model's rate, as is that of the backlog."""
        self.wire_share = 1.0
        """How many bytes of the client become one byte of the model's."""

    @property
    def passing_bytes(self) -> int:
        """What will be taken without anything that the client does."""
        unheard = self.backlog.pcm_bytes + self.unheard_bytes
        return self.held_bytes + int(unheard * self.wire_share) if unheard else self.held_bytes

    @property
    def size_bytes(self) -> int:
        """All of it, in bytes as they came; what waits to be heard of an open turn counts once."""
        unheard = self.backlog.pcm_bytes + self.unheard_bytes
        if not unheard:
            return self.held_bytes + self.turn_bytes
        return self.held_bytes + max(self.turn_bytes, int(unheard * self.wire_share))

    def has_no_room_for(self, command: RealtimeCommand) -> bool:
        """Whether so much waits for the stages that this command has to be refused."""
        waiting = self.backlog.inputs + self.held_commands
        share = AUDIO_SHARE if isinstance(command, AppendAudio) else CLIENT_SHARE
        return waiting >= self.backlog.most * share


def input_bytes(command: RealtimeCommand) -> int:
    """What a command counts against the input limit: bytes of audio and of base64 video."""
    if isinstance(command, AppendAudio):
        size = len(command.audio)
        return size + sum(map(len, command.video_frames)) if command.video_frames else size
    if isinstance(command, CreateItem):
        return sum(len(part.audio) for part in command.item.content if part.audio)
    return 0
