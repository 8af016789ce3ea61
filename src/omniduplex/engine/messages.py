"""Messages of the turn-based engine: they travel one way, from any thread to the engine loop."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from omniduplex.engine.turn_plugin import Turn
from omniduplex.engine.turns import TurnChunk, TurnFailure


class AddTurn(msgspec.Struct, frozen=True):
    """Run this turn; `on_part` gets its chunks, or the failure that ends it."""

    turn_id: str
    turn: Turn
    on_part: Callable[[TurnChunk | TurnFailure], None]


class AbortTurn(msgspec.Struct, frozen=True, gc=False):
    """Forget this turn; nothing more comes out of it."""

    turn_id: str
