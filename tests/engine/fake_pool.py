"""A stage pool without workers: the test says what comes out of it."""

from __future__ import annotations

from omniduplex.config.pipeline import PipelineConfig, StageConfig
from omniduplex.stages.backlog import Backlog
from omniduplex.stages.client import OnOutput
from omniduplex.stages.errors import StageStartError, StageUnavailable
from omniduplex.stages.messages import StageAbort, StageInput, StageMessage, StageOutput
from omniduplex.stages.pool import OnReplicaDead, StagePool


def pipeline(stages: int = 2, **fields: object) -> PipelineConfig:
    """A pipeline whose stages are never started."""
    return PipelineConfig(
        name="test",
        model="test",
        stages=tuple(
            StageConfig(stage_id=index, name=f"stage{index}", model_class="no.such:Model")
            for index in range(stages)
        ),
        **fields,  # type: ignore[arg-type]
    )


class FakePool(StagePool):
    """Keeps what it gets."""

    def __init__(self, config: StageConfig) -> None:
        self.config = config
        self.inputs: list[StageInput] = []
        self.aborted: list[str] = []
        self.starts = True
        self.takes = True
        self.aborts = True
        self.running = False

    @property
    def alive(self) -> bool:
        return self.running

    async def start(self, on_output: OnOutput, on_dead: OnReplicaDead) -> None:
        if not self.starts:
            raise StageStartError("no weights")
        self.running = True
        self.gives = on_output
        self.loses = on_dead

    def submit(self, message: StageMessage, backlog: Backlog | None = None) -> None:
        if isinstance(message, StageAbort):
            if not self.aborts:
                raise RuntimeError("no way to abort")
            self.aborted += message.request_ids
        elif self.takes:
            self.inputs.append(message)
        else:
            raise StageUnavailable("no worker")

    async def stop(self, timeout_s: float = 5.0) -> None:
        self.running = False

    def put_out(self, request_id: str, *, finished: bool = False, error: str = "") -> None:
        """The stage answers a request."""
        self.gives(StageOutput(request_id, text="out", finished=finished, error=error))


class Pools:
    """Makes the pools of an orchestrator, and keeps them by stage."""

    def __init__(self) -> None:
        self.by_stage: dict[int, FakePool] = {}

    def __call__(self, config: StageConfig) -> FakePool:
        self.by_stage[config.stage_id] = FakePool(config)
        return self.by_stage[config.stage_id]

    def __getitem__(self, stage_id: int) -> FakePool:
        return self.by_stage[stage_id]
