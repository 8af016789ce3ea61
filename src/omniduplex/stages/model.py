"""The one class that a model gives to a stage: it runs inside the worker, next to the weights."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import msgspec

from omniduplex.stages.messages import StageMessage, StageOutput

Emit = Callable[[StageOutput], None]


class NoOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options of a stage that has none."""


class StageModel(ABC):
    """A model stage: takes batches of inputs, emits outputs whenever it has them.

    The worker calls every method from one thread. `emit` may be called from any thread, so a
    model can stream from threads of its own while `step` returns at once.
    """

    Options: ClassVar[type[msgspec.Struct]] = NoOptions
    sleepless: ClassVar[bool] = False
    """Whether `step` waits for nothing but processors and the model's own threads.

    Then a step during which all of them sleep is a deadlock, and is known as one in less than a
    second. Not to be said of a model whose step waits for a device, a network or another process.
    """

    def __init__(self, options: Any, emit: Emit) -> None:
        self.options = options
        self.emit = emit

    @abstractmethod
    def load(self) -> None:
        """Load weights and warm up; may take long. Raises on failure, which ends the worker."""

    @abstractmethod
    def step(self, batch: Sequence[StageMessage]) -> bool | None:
        """Take all that has arrived since the last step, in order; must not block for long.

        A model that returns true has more to do than one step should: it is stepped again as soon
        as what else has arrived is taken, if need be with an empty batch.
        A worker process that does not come back from it within the `hang_timeout_s` of its stage,
        by the clock, is killed; until then a step may wait for a device, even with the
        interpreter's lock held. That of a `sleepless` model that sleeps is killed sooner.
        An exception that leaves `step` is a bug or a broken model: the worker dies of it and the
        sessions it carries fail. A failure of one request is an output with `error` instead.
        """

    @abstractmethod
    def close(self) -> None:
        """Stop all threads and release what `load` took."""
