"""What a half-duplex conversation wants done, in order."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

from omniduplex.engine.conversation.response_options import Wanted
from omniduplex.entrypoints.openai.turn_realtime.sound import ShownEvent, Sound
from omniduplex.protocol.duplex import Item

PartOfItem = tuple[str, int]
"""An item's id and the index of one of its parts."""


class Emit(msgspec.Struct, frozen=True):
    """Show this event to the client."""

    event: ShownEvent


class Hear(msgspec.Struct, frozen=True):
    """Find the words of a sound."""

    part: PartOfItem
    sound: Sound


class Ask(msgspec.Struct, frozen=True):
    """Make this response; `sounds` are those whose words the model itself has to hear."""

    response_id: str
    wanted: Wanted
    items: tuple[Item, ...]
    sounds: Mapping[PartOfItem, Sound]


class Stop(msgspec.Struct, frozen=True):
    """Make no more of this response, and send none of its audio that is still here."""

    response_id: str


Effect = Emit | Hear | Ask | Stop
