"""What a model provides to be served as a duplex model: one plugin, one state per session."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.duplex.contracts import DuplexFence, StageWork
from omniduplex.engine.duplex.model_events import Projected
from omniduplex.engine.prompts import ResponsePrompt
from omniduplex.protocol.duplex import DuplexCapabilities, DuplexSessionConfig
from omniduplex.stages.messages import StageOutput


class DuplexModelSessionState(ABC):
    """The model's side of one session: plans stage work, projects stage outputs.

    Owned by the session and called by it alone, on the engine loop: every method is quick,
    pure of I/O and never awaits. `fence` is the session's current fence.
    """

    @abstractmethod
    def plan_open(self, fence: DuplexFence, config: DuplexSessionConfig) -> Sequence[StageWork]:
        """Work that starts the listening request."""

    @abstractmethod
    def plan_update(self, fence: DuplexFence, config: DuplexSessionConfig) -> Sequence[StageWork]:
        """Work that makes an accepted `session.update` known to the stages."""

    @abstractmethod
    def plan_append(
        self, fence: DuplexFence, pcm: bytes, *, force_listen: bool = False
    ) -> Sequence[StageWork]:
        """Work for newly heard audio: int16 mono at the plugin's `input_rate_hz`."""

    @abstractmethod
    def plan_commit(self, fence: DuplexFence, item_id: str) -> Sequence[StageWork]:
        """The client ended the user's turn by itself; the words may follow as `UserTranscript`."""

    def plan_recognise(
        self, fence: DuplexFence, item_id: str, content_index: int, pcm: bytes
    ) -> Sequence[StageWork]:
        """Work that finds the words of audio beside the stream, to follow as `UserTranscript`.

        `pcm` is int16 mono at the plugin's `input_rate_hz`. Only asked of a plugin that says that
        it `recognises_items`.
        """
        raise NotImplementedError(f"{type(self).__name__} recognises no items")

    @abstractmethod
    def plan_clear(self, fence: DuplexFence) -> Sequence[StageWork]:
        """Open input is dropped: forget the utterance, keep the input clock."""

    @abstractmethod
    def plan_response(
        self, fence: DuplexFence, key: str, prompt: ResponsePrompt
    ) -> Sequence[StageWork] | None:
        """Work that answers; its outputs carry `key`. None: this model speaks only by itself."""

    @abstractmethod
    def plan_cancel(self, fence: DuplexFence, key: str) -> Sequence[StageWork]:
        """Stop the response `key`; `fence` already holds the new epoch."""

    def plan_overlap(self, fence: DuplexFence, *, active: bool) -> Sequence[StageWork]:
        """The user has begun to speak over an answer: is it to be judged before it ends?

        While active, an ear that can reports `UserSpeechProgress` about every 100 ms of speech,
        and the words as soon as it has some. A model that cannot does nothing.
        """
        return ()

    @abstractmethod
    def plan_close(self) -> Sequence[StageWork]:
        """Abort everything that is still running; requests that this leaves open end, too."""

    @abstractmethod
    def project(self, stage_id: int, output: StageOutput) -> Sequence[Projected]:
        """Turn a stage output into events and follow-up work; stale outputs give nothing."""


class DuplexModelPlugin(ABC):
    """The one class a model provides, named by `PipelineConfig.duplex_plugin`."""

    input_rate_hz: ClassVar[int]
    """Rate of the audio that `plan_append` gets, in Hz."""
    recognises_items: ClassVar[bool] = False
    """Whether audio may come inside an item, beside the stream."""
    needs_clocked_input: ClassVar[bool] = False
    """Whether the model goes on only with more input: then it hears silence while nobody speaks."""
    refused_options: ClassVar[frozenset[str]] = frozenset()
    """Fields of a `response.create` that no prompt can make this model follow."""

    def __init__(self, pipeline: PipelineConfig) -> None:
        self.pipeline = pipeline

    @abstractmethod
    def capabilities(self, max_sessions: int) -> DuplexCapabilities:
        """What clients may rely on."""

    @abstractmethod
    def validate_config(self, config: DuplexSessionConfig) -> None:
        """Refuse what this model cannot do.

        Raises:
            DuplexError: with the code and the `param` of the offending field.
        """

    @abstractmethod
    def create_session_state(
        self, session_id: str, config: DuplexSessionConfig
    ) -> DuplexModelSessionState:
        """A fresh state; called once at open, off the loop, so it may read files."""
