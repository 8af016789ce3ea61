"""What the listening stage is made of: its options, its models, the threads they run in."""

import logging
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec
import numpy as np
from numpy.typing import NDArray

from omniduplex.audio.vad import FRAME_SAMPLES, VAD_RATE, SileroVad, VadState
from omniduplex.models.local.asr import Recognition, Recognizer
from omniduplex.models.local.assets import asset_path
from omniduplex.models.local.end_of_turn import EndOfTurn
from omniduplex.models.local.language_model import ChatMessage, ChatRequest, LanguageModel
from omniduplex.models.local.llama_cpp_model import SYSTEM_PROMPT, LlamaCppModel
from omniduplex.models.local.remote_language_model import RemoteModel
from omniduplex.models.local.sound_kind import CONTEXT_SAMPLES, Kinds, load_sound_kind
from omniduplex.models.local.stages.threads import nice_pool

logger = logging.getLogger(__name__)

DEFAULT_KEY_ENV = "OPENAI_API_KEY"
WARM_UP_PCM = bytes(2 * VAD_RATE)  # one second of silence


class EmbeddedLanguageModel(
    msgspec.Struct, frozen=True, kw_only=True, tag="embedded", forbid_unknown_fields=True
):
    """A GGUF model inside the stage: `path` if given, else the named asset.

    `context` is in tokens and for each of the parallel answers.
    """

    asset: str = "smollm2"
    path: str | None = None
    threads: int = 1
    context: int = 2048


class RemoteLanguageModel(
    msgspec.Struct, frozen=True, kw_only=True, tag="remote", forbid_unknown_fields=True
):
    """Any OpenAI-compatible chat endpoint; the key is in the environment variable named.

    None: in OPENAI_API_KEY, if the endpoint wants one.
    """

    base_url: str
    model: str
    api_key_env: str | None = None


class ListenOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What stage 0 can be told in a deploy file."""

    language_model: EmbeddedLanguageModel | RemoteLanguageModel = EmbeddedLanguageModel()
    instructions: str = SYSTEM_PROMPT
    """Stands in where a session gives none."""
    temperature: float | None = None
    parallel_answers: int = 2
    answer_nice: int = 5
    """Niceness of the answering threads above that of the stage (0 to 19)."""
    recognizer_asset: str = "whisper_base"
    language: str = "en"
    recognizer_threads: int = 1
    end_of_turn_threads: int = 1
    recognition_nice: int = 1
    """Niceness of recognition and end of turn above that of the stage."""
    assets_dir: str | None = None


class SpeechDetector(Protocol):
    """What `SileroVad` does."""

    def probabilities(
        self, states: Sequence[VadState], frames: Sequence[NDArray[np.float32]]
    ) -> list[float]:
        """Speech probability of one frame of each stream."""


@dataclass(frozen=True, slots=True)
class ListenParts:
    """The loaded models and the threads they run in."""

    vad: SpeechDetector
    recognise: Callable[[bytes], Recognition]
    glimpse: Callable[[bytes], Recognition]
    judge: Callable[[bytes], float]
    kinds: Callable[[bytes, int], Kinds] | None
    """None: the recogniser's encoder is another than the judgement was made for."""
    language_model: LanguageModel
    recognition_pool: Executor
    judge_pool: Executor
    answer_pool: Executor
    clock: Callable[[], float] = time.monotonic


def load_parts(options: ListenOptions) -> ListenParts:
    """Load and warm up each model in the threads that will run it."""
    folder = Path(options.assets_dir).expanduser() if options.assets_dir else None
    recognition_pool = nice_pool(1, options.recognition_nice, "recognise")
    judge_pool = nice_pool(1, options.recognition_nice, "judge")
    answer_pool = nice_pool(options.parallel_answers, options.answer_nice, "answer")
    vad = SileroVad(asset_path("silero_vad", folder))
    vad.probabilities([VadState()], [np.zeros(FRAME_SAMPLES, dtype=np.float32)])

    def load_recognizer() -> Recognizer:
        path = asset_path(options.recognizer_asset, folder)
        recognizer = Recognizer(path, options.recognizer_threads, options.language)
        recognizer.transcribe(WARM_UP_PCM)
        return recognizer

    def load_end_of_turn() -> EndOfTurn:
        end_of_turn = EndOfTurn(asset_path("smart_turn", folder), options.end_of_turn_threads)
        end_of_turn.probability(WARM_UP_PCM)
        return end_of_turn

    # A model's own threads inherit their niceness from the thread that loads it.
    recognizer = recognition_pool.submit(load_recognizer)
    end_of_turn = judge_pool.submit(load_end_of_turn)
    language_model = answer_pool.submit(load_language_model, options, folder)
    return ListenParts(
        vad=vad,
        recognise=recognizer.result().transcribe,
        glimpse=recognizer.result().glimpse,
        judge=end_of_turn.result().probability,
        kinds=kinds_by(recognizer.result()),
        language_model=language_model.result(),
        recognition_pool=recognition_pool,
        judge_pool=judge_pool,
        answer_pool=answer_pool,
    )


def kinds_by(recognizer: Recognizer) -> Callable[[bytes, int], Kinds] | None:
    """What tells the kinds of sound by what this recogniser's encoder hears."""
    sound_kind = load_sound_kind()
    if recognizer.encode(WARM_UP_PCM, CONTEXT_SAMPLES).shape[1] != sound_kind.width:
        logger.info("this recogniser cannot tell assent from an interruption by its sound")
        return None
    return lambda pcm, frames: sound_kind.kinds(recognizer.encode(pcm, CONTEXT_SAMPLES), frames)


def load_language_model(options: ListenOptions, assets_dir: Path | None) -> LanguageModel:
    """The language model of the options; an embedded one has read its instructions already.

    Raises:
        FileNotFoundError: the file of an embedded model is not there.
    """
    chosen = options.language_model
    if isinstance(chosen, RemoteLanguageModel):
        return _remote(chosen)
    path = Path(chosen.path).expanduser() if chosen.path else asset_path(chosen.asset, assets_dir)
    if not path.is_file():
        raise FileNotFoundError(f"language model: no such file: {path}")
    model = LlamaCppModel(path, chosen.threads, chosen.context, options.parallel_answers)
    hello = (
        ChatMessage(role="system", content=options.instructions),
        ChatMessage(role="user", content="Hello."),
    )
    for _ in model.stream(ChatRequest(messages=hello, max_tokens=1), lambda: False):
        pass
    return model


def _remote(chosen: RemoteLanguageModel) -> RemoteModel:
    if chosen.api_key_env and not os.environ.get(chosen.api_key_env):
        logger.warning(
            "%s is not set: requests to %s carry no key", chosen.api_key_env, chosen.base_url
        )
    return RemoteModel(chosen.base_url, chosen.model, chosen.api_key_env or DEFAULT_KEY_ENV)
