"""A model that does what the test says: records what it is asked, says what it is told to say."""

from __future__ import annotations

from collections.abc import Sequence

from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.duplex.contracts import Abort, DuplexFence, StageWork, Submit
from omniduplex.engine.duplex.model_events import Projected
from omniduplex.engine.duplex.plugin import DuplexModelPlugin, DuplexModelSessionState
from omniduplex.engine.prompts import ResponsePrompt
from omniduplex.protocol.duplex import DuplexCapabilities, DuplexError, DuplexSessionConfig
from omniduplex.stages.messages import StageInput, StageOutput

RATE_HZ = 16_000
REFUSED_VOICE = "nobody"
PIPELINE = PipelineConfig(name="scripted", model="scripted", stages=())


class ScriptedModel(DuplexModelSessionState):
    """One session's model. Its stage requests are named after what they are for."""

    def __init__(self) -> None:
        self.prompts: list[ResponsePrompt] = []
        self.keys: list[str] = []
        self.fences: list[DuplexFence] = []
        """Of every response asked for."""
        self.cancelled: list[str] = []
        self.cancel_epochs: list[int] = []
        self.commits: list[str] = []
        self.recognising: list[tuple[str, int, bytes]] = []
        """Audio of items, by item id and index of the part."""
        self.heard = b""
        """All audio, but for what a clear made it forget."""
        self.appends: list[tuple[bytes, bool]] = []
        """Each piece of audio, and whether the model was forced to listen."""
        self.clears = 0
        self.updates: list[DuplexSessionConfig] = []
        self.closed = False
        self.answers_when_asked = True
        self.says: list[Projected] = []
        """What the next stage output will be projected into."""

    def plan_open(self, fence: DuplexFence, config: DuplexSessionConfig) -> Sequence[StageWork]:
        return (work("open"),)

    def plan_update(self, fence: DuplexFence, config: DuplexSessionConfig) -> Sequence[StageWork]:
        self.updates.append(config)
        return (work("update"),)

    def plan_append(
        self, fence: DuplexFence, pcm: bytes, *, force_listen: bool = False
    ) -> Sequence[StageWork]:
        self.heard += pcm
        self.appends.append((pcm, force_listen))
        return (work("append"),)

    def plan_commit(self, fence: DuplexFence, item_id: str) -> Sequence[StageWork]:
        self.commits.append(item_id)
        return (work(f"commit {item_id}"),)

    def plan_recognise(
        self, fence: DuplexFence, item_id: str, content_index: int, pcm: bytes
    ) -> Sequence[StageWork]:
        self.recognising.append((item_id, content_index, pcm))
        return (work(f"recognise {item_id} {content_index}"),)

    def plan_clear(self, fence: DuplexFence) -> Sequence[StageWork]:
        self.clears += 1
        self.heard = b""
        return (work("clear"),)

    def plan_response(
        self, fence: DuplexFence, key: str, prompt: ResponsePrompt
    ) -> Sequence[StageWork] | None:
        if not self.answers_when_asked:
            return None
        self.keys.append(key)
        self.fences.append(fence)
        self.prompts.append(prompt)
        return (work(key),)

    def plan_cancel(self, fence: DuplexFence, key: str) -> Sequence[StageWork]:
        self.cancelled.append(key)
        self.cancel_epochs.append(fence.epoch)
        return (Abort((key,)),)

    def plan_close(self) -> Sequence[StageWork]:
        self.closed = True
        return (Abort(("open",)),)

    def project(self, stage_id: int, output: StageOutput) -> Sequence[Projected]:
        said, self.says = self.says, []
        return said


class ScriptedPlugin(DuplexModelPlugin):
    """Refuses one voice; makes the model that the test already holds."""

    input_rate_hz = RATE_HZ
    recognises_items = True

    def __init__(
        self, pipeline: PipelineConfig = PIPELINE, *, model: ScriptedModel | None = None
    ) -> None:
        super().__init__(pipeline)
        self.model = model or ScriptedModel()
        self.can_barge_in = True
        self.takes_hints = True
        """Commits, turn signals and reports of what was heard."""
        self.needs_speech = False
        self.sees = False

    def capabilities(self, max_sessions: int) -> DuplexCapabilities:
        return DuplexCapabilities(
            supports_audio_truncate=True,
            supports_barge_in=self.can_barge_in,
            supports_client_commit=self.takes_hints,
            supports_external_turn_signal=self.takes_hints,
            supports_playback_ack=self.takes_hints,
            supports_text_only_turn=not self.needs_speech,
            supports_image_input=self.sees,
        )

    def validate_config(self, config: DuplexSessionConfig) -> None:
        if config.voice == REFUSED_VOICE:
            raise DuplexError("bad_event", "no such voice", param="session.voice")

    def create_session_state(
        self, session_id: str, config: DuplexSessionConfig
    ) -> DuplexModelSessionState:
        return self.model


class ClockedPlugin(ScriptedPlugin):
    """Its model goes on only with more input, a unit of 1 s at a time."""

    needs_clocked_input = True


def work(name: str) -> Submit:
    """Stage work that only says what it is for."""
    return Submit(0, StageInput(name))
