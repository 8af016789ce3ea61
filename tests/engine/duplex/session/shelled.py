"""A session in its runner, with nothing real around it."""

from collections.abc import Set

from tests.engine.duplex.session.driver import LISTENING, MODEL_RATE_HZ, kinds
from tests.engine.duplex.session.scripted_model import ScriptedModel, ScriptedPlugin
from tests.engine.duplex.session.shell import FakeClock, FakePort, HandExecutor, read

from omniduplex.audio.pcm import byte_count
from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.engine.duplex.link import DuplexSessionLink
from omniduplex.engine.duplex.model_events import ModelEvent, ResponseAudio, UserTurnEnded
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.engine_session import DuplexEngineSession
from omniduplex.engine.duplex.session.inputs import StageResult
from omniduplex.engine.duplex.session.observer import SessionObserver
from omniduplex.engine.duplex.session.runner import DuplexSessionRunner
from omniduplex.protocol.duplex import DuplexSessionConfig, Heartbeat
from omniduplex.stages.messages import StageOutput
from omniduplex.telemetry.metrics import METRICS
from omniduplex.telemetry.tracing import default_tracer

LIMITS = DuplexSessionRuntimeConfig(max_pending_output_events_per_session=12)
"""Room for the largest batch of these tests, and for one event more."""


class Shell:
    """A session in its runner."""

    def __init__(
        self,
        config: DuplexSessionConfig = LISTENING,
        *,
        model: ScriptedModel | None = None,
        refuses: Set[str] = frozenset(),
        limits: DuplexSessionRuntimeConfig = LIMITS,
    ) -> None:
        plugin = ScriptedPlugin(model=model)
        self.model = plugin.model
        self.port = FakePort()
        self.clock = FakeClock()
        self.port.refuses |= refuses
        self.executor = HandExecutor()
        self.link = DuplexSessionLink("s1", limits)
        self.ended: list[str] = []
        self.slot_is_free = True
        numbers = iter(range(1, 1000))
        core = SessionCore(
            session_id="s1",
            config=config,
            capabilities=plugin.capabilities(1),
            plugin=plugin,
            model=self.model,
            new_id=lambda prefix: f"{prefix}_{next(numbers)}",
            limits=limits,
            opened_at=0.0,
        )
        self.runner = DuplexSessionRunner(
            DuplexEngineSession(core),
            link=self.link,
            port=self.port,
            executor=self.executor,
            clock=self.clock.time,
            call_soon=lambda callback: callback(),
            call_later=self.clock.call_later,
            on_ended=self._over,
            observer=SessionObserver("s1", "scripted", metrics=METRICS, tracer=default_tracer()),
        )
        self.runner.start()

    def _over(self, reason: str) -> bool:
        self.ended.append(reason)
        return self.slot_is_free

    def model_says(self, *events: ModelEvent) -> None:
        self.model.says = list(events)
        self.runner.post(StageResult(0, StageOutput("any")))

    def audio(self) -> None:
        pcm = bytes(byte_count(100, MODEL_RATE_HZ))
        self.model_says(ResponseAudio(self.model.keys[-1], pcm, MODEL_RATE_HZ, "word "))

    def pad(self, room: int) -> None:
        """Leave room for so many events."""
        while self.link.output.pending_events < 12 - room:
            self.runner.post(Heartbeat())


def speaking() -> Shell:
    """An answer is under way, and all events were read."""
    shell = Shell()
    events = read(shell.link)
    shell.model_says(UserTurnEnded(100, "Hi"))
    events += read(shell.link)
    shell.audio()
    events += read(shell.link)
    assert kinds(events)[-2:] == ["AudioDelta", "TranscriptDelta"]
    return shell
