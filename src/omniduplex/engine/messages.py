"""Messages of the turn-based engine: they travel one way, from any thread to the engine loop."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from omniduplex.stages.messages import StageInput, StageOutput


class AddRequest(msgspec.Struct, frozen=True):
    """Run this input through the pipeline; `on_output` gets the last stage's outputs."""

    request: StageInput
    on_output: Callable[[StageOutput], None]


class AbortRequests(msgspec.Struct, frozen=True, gc=False):
    """Forget these requests; nothing more comes out for them."""

    request_ids: tuple[str, ...]
