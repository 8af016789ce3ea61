"""A stage without a worker: the model steps on the engine loop itself."""

from __future__ import annotations

import threading
import time

from omniduplex.stages.client import StageClient
from omniduplex.stages.errors import StageStartError
from omniduplex.stages.messages import (
    StageAbort,
    StageDrained,
    StageInput,
    StageMessage,
    StageOutput,
    StageReady,
    ToWorker,
)
from omniduplex.stages.model import StageModel
from omniduplex.stages.worker import create_model


class InlineStageClient(StageClient):
    """For models whose step takes microseconds: it saves both ways to a worker.

    All that is submitted in one turn of the loop is one batch, over all sessions. A step that
    takes long holds up every session; that is why it is not for models with weights.
    """

    async def _launch(self) -> None:
        started = time.monotonic()
        self._thread = threading.get_ident()
        self._batch: list[StageMessage] = []
        self._step_due = False
        try:
            self._model: StageModel | None = create_model(self.config, self._emit)
            self._model.load()
        except Exception as error:
            raise StageStartError(f"{type(error).__name__}: {error}") from error
        self._receive(StageReady(time.monotonic() - started))

    def _emit(self, output: StageOutput) -> None:
        if threading.get_ident() == self._thread:
            self._receive(output)
        else:
            self._loop.call_soon_threadsafe(self._receive, output)

    def _send(self, message: ToWorker) -> None:
        if isinstance(message, (StageInput, StageAbort)):
            self._batch.append(message)
            self._step_soon()

    def _step_soon(self) -> None:
        if not self._step_due:
            self._step_due = True
            self._loop.call_soon(self._step)

    def _step(self) -> None:
        self._step_due = False
        batch, self._batch = self._batch, []
        if self._model is None:
            return
        wanted = [
            message
            for message in batch
            if isinstance(message, StageAbort) or message.request_id not in self._aborted
        ]
        self._receive(StageDrained(sum(isinstance(message, StageInput) for message in batch)))
        try:
            more = self._model.step(wanted)
        except Exception as error:
            self._worker_ended(f"{type(error).__name__}: {error}")
            return
        if more:
            self._step_soon()

    def _hang_timeout_s(self) -> float:
        """Never: who would notice is held up as well."""
        return 0.0

    def _abandon(self) -> None:
        """There is no worker to leave behind."""

    async def _finish(self, timeout_s: float) -> None:
        model, self._model = self._model, None
        if model is not None:
            model.close()
        self._exited.set()

    async def _discard(self) -> None:
        self._model = None
