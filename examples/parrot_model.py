"""A duplex model in 80 lines behind its imports: a parrot, which says back what you committed."""

from __future__ import annotations

from collections.abc import Sequence

from omniduplex.engine.duplex.contracts import Abort, DuplexFence, StageWork, Submit
from omniduplex.engine.duplex.model_events import (
    Projected,
    ResponseAudio,
    ResponseEnded,
    UserTranscript,
)
from omniduplex.engine.duplex.plugin import DuplexModelPlugin, DuplexModelSessionState
from omniduplex.engine.prompts import ResponsePrompt
from omniduplex.protocol.duplex import DuplexCapabilities, DuplexError, DuplexSessionConfig
from omniduplex.stages.messages import StageAbort, StageInput, StageMessage, StageOutput
from omniduplex.stages.model import StageModel

RATE_HZ = 16_000


class ParrotStage(StageModel):
    def load(self) -> None:
        self.open: dict[str, bytes] = {}
        self.committed: dict[str, bytes] = {}

    def step(self, batch: Sequence[StageMessage]) -> None:
        for message in batch:
            if isinstance(message, StageAbort):
                for request_id in message.request_ids:
                    self.open.pop(request_id, None)
                    self.committed.pop(request_id, None)
            else:
                self.obey(message, message.request_id)

    def obey(self, message: StageInput, request_id: str) -> None:
        match message.text:
            case "hear":
                self.open[request_id] = self.open.get(request_id, b"") + message.pcm
            case "clear":
                self.open.pop(request_id, None)
            case "commit":
                pcm = self.committed[request_id] = self.open.pop(request_id, b"")
                words = f"{len(pcm) / 2 / RATE_HZ:.1f} s of sound"
                self.emit(StageOutput(request_id, message.epoch, text=words, data=message.data))
            case "answer":
                pcm = self.committed.get(message.data.decode(), b"")
                self.emit(StageOutput(request_id, message.epoch, pcm, RATE_HZ, finished=True))

    def close(self) -> None:
        """There is nothing to release."""


class ParrotState(DuplexModelSessionState):
    def plan_open(self, fence: DuplexFence, config: DuplexSessionConfig) -> Sequence[StageWork]:
        self.listening = fence.request_id("listen")
        self.keys: dict[str, str] = {}  # of the answers that are being made, by request
        return ()

    def tell(self, fence: DuplexFence, order: str, about: str = "", pcm: bytes = b"") -> Submit:
        return Submit(0, StageInput(self.listening, fence.epoch, pcm, order, data=about.encode()))

    def plan_update(self, fence: DuplexFence, config: DuplexSessionConfig) -> Sequence[StageWork]:
        return ()

    def plan_append(
        self, fence: DuplexFence, pcm: bytes, *, force_listen: bool = False
    ) -> Sequence[StageWork]:
        return (self.tell(fence, "hear", pcm=pcm),)

    def plan_commit(self, fence: DuplexFence, item_id: str) -> Sequence[StageWork]:
        return (self.tell(fence, "commit", item_id),)

    def plan_clear(self, fence: DuplexFence) -> Sequence[StageWork]:
        return (self.tell(fence, "clear"),)

    def plan_response(
        self, fence: DuplexFence, key: str, prompt: ResponsePrompt
    ) -> Sequence[StageWork]:
        request_id = fence.request_id(key)
        self.keys[request_id] = key
        about = self.listening.encode()
        asked = StageInput(request_id, fence.epoch, text="answer", final=True, data=about)
        return (Submit(0, asked),)

    def plan_cancel(self, fence: DuplexFence, key: str) -> Sequence[StageWork]:
        cancelled = tuple(name for name, made in self.keys.items() if made == key)
        self.keys = {name: made for name, made in self.keys.items() if made != key}
        return (Abort(cancelled),)

    def plan_close(self) -> Sequence[StageWork]:
        return (Abort((self.listening, *self.keys)),)

    def project(self, stage_id: int, output: StageOutput) -> Sequence[Projected]:
        if output.request_id == self.listening:
            return (UserTranscript(output.data.decode(), output.text),)
        key = self.keys.pop(output.request_id, None)
        if key is None:  # cancelled
            return ()
        return ResponseAudio(key, output.pcm, output.sample_rate_hz), ResponseEnded(key)


class ParrotPlugin(DuplexModelPlugin):
    input_rate_hz = RATE_HZ

    def capabilities(self, max_sessions: int) -> DuplexCapabilities:
        return DuplexCapabilities(
            implementation_level="turn_based_duplex",
            supports_input_append=True,
            supports_turn_commit_only=True,
        )

    def validate_config(self, config: DuplexSessionConfig) -> None:
        if config.decides_turns:
            message = "a parrot waits until you commit"
            raise DuplexError("unsupported_turn_detection", message, param="turn_detection")

    def create_session_state(self, session_id: str, config: DuplexSessionConfig) -> ParrotState:
        return ParrotState()
