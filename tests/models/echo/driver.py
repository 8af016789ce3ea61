"""One echo session without an engine: plans go straight to the stage, outputs straight back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

import msgspec
import numpy as np

from omniduplex.audio.pcm import float32_to_int16
from omniduplex.config.pipeline import PipelineConfig, StageConfig
from omniduplex.engine.duplex.contracts import Abort, DuplexFence, StageWork
from omniduplex.engine.duplex.model_events import ModelEvent, ResponseAudio, ResponseText
from omniduplex.engine.prompts import PromptMessage, ResponsePrompt
from omniduplex.models.echo.messages import EchoOptions
from omniduplex.models.echo.plugin import EchoDuplexPlugin
from omniduplex.models.echo.stage import EchoStage
from omniduplex.protocol.duplex import DuplexSessionConfig
from omniduplex.stages.messages import StageAbort, StageMessage, StageOutput

EventT = TypeVar("EventT")
ALL_AT_ONCE = EchoOptions()
PACED = EchoOptions(paced=True)
SELF_START = EchoOptions(self_start=True)
SELF_START_PACED = EchoOptions(self_start=True, paced=True)
CONFIG = DuplexSessionConfig(model="omniduplex/echo", auto_response=True)
COMMITS_ONLY = msgspec.structs.replace(CONFIG, auto_response=False)


def echo_pipeline(options: EchoOptions = ALL_AT_ONCE) -> PipelineConfig:
    return PipelineConfig(
        name="echo",
        model="omniduplex/echo",
        stages=(
            StageConfig(
                stage_id=0,
                name="echo",
                model_class="omniduplex.models.echo.stage:EchoStage",
                options=msgspec.to_builtins(options),
            ),
        ),
        duplex_plugin="omniduplex.models.echo.plugin:EchoDuplexPlugin",
    )


def tone(ms: int, hz: float = 440) -> bytes:
    """A sine of half full scale at 16 kHz."""
    time_s = np.arange(ms * 16) / 16000
    return float32_to_int16((0.5 * np.sin(2 * np.pi * hz * time_s)).astype(np.float32))


def silence(ms: int) -> bytes:
    return bytes(ms * 32)


def user(text: str) -> PromptMessage:
    return PromptMessage(role="user", text=text)


def prompt(*messages: PromptMessage, speak: bool = True) -> ResponsePrompt:
    return ResponsePrompt(instructions=None, messages=messages, speak=speak)


class EchoDriver:
    """`events` holds what the session would have been told; `held` outputs wait for `deliver`."""

    def __init__(
        self,
        options: EchoOptions = ALL_AT_ONCE,
        config: DuplexSessionConfig = CONFIG,
        session_id: str = "s1",
    ) -> None:
        self.outputs: list[StageOutput] = []
        self.events: list[ModelEvent] = []
        self.held = False
        self.fence = DuplexFence(session_id, 0, 0)
        self.stage = EchoStage(options, self.outputs.append)
        self.stage.load()
        plugin = EchoDuplexPlugin(echo_pipeline(options))
        plugin.validate_config(config)
        self.state = plugin.create_session_state(session_id, config)
        self.do(self.state.plan_open(self.fence, config))

    def do(self, works: Sequence[StageWork]) -> None:
        """Give work to the stage as one batch."""
        batch: list[StageMessage] = [
            StageAbort(work.request_ids) if isinstance(work, Abort) else work.message
            for work in works
        ]
        self.stage.step(batch)
        if not self.held:
            self.deliver()

    def append(self, pcm: bytes, *, force_listen: bool = False) -> None:
        self.do(self.state.plan_append(self.fence, pcm, force_listen=force_listen))

    def update(self, config: DuplexSessionConfig) -> None:
        self.do(self.state.plan_update(self.fence, config))

    def commit(self, item_id: str = "item_1") -> None:
        self.do(self.state.plan_commit(self.fence, item_id))

    def hear_item(self, pcm: bytes, item_id: str = "item_1", content_index: int = 0) -> None:
        self.do(self.state.plan_recognise(self.fence, item_id, content_index, pcm))

    def clear(self) -> None:
        self.do(self.state.plan_clear(self.fence))

    def respond(self, key: str, prompt: ResponsePrompt) -> None:
        work = self.state.plan_response(self.fence, key, prompt)
        assert work is not None
        self.do(work)

    def cancel(self, key: str) -> None:
        self.fence = msgspec.structs.replace(self.fence, epoch=self.fence.epoch + 1)
        self.do(self.state.plan_cancel(self.fence, key))

    def close(self) -> None:
        self.do(self.state.plan_close())

    def deliver(self) -> None:
        for output in self.outputs:
            for event in self.state.project(0, output):
                assert isinstance(event, ModelEvent)
                self.events.append(event)
        self.outputs.clear()

    def of(self, kind: type[EventT]) -> list[EventT]:
        return [event for event in self.events if isinstance(event, kind)]

    def words(self, key: str) -> str:
        """All text of an answer."""
        return "".join(
            event.text
            for event in self.events
            if isinstance(event, ResponseAudio | ResponseText) and event.key == key
        )

    def audio_ms(self, key: str) -> int:
        """How much of an answer was spoken."""
        return sum(len(event.pcm) // 48 for event in self.of(ResponseAudio) if event.key == key)
