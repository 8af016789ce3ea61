"""The embedded language model: a GGUF file on llama.cpp, inside this process."""

import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from secrets import token_hex

import msgspec

from omniduplex.models.local.chat_wire import Chunk, ChunkReader, request_body
from omniduplex.models.local.history import fit
from omniduplex.models.local.language_model import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    LanguageModel,
    LanguageModelError,
)
from omniduplex.models.local.pump import pump

SYSTEM_PROMPT = (
    "You are a friendly voice assistant. Answer in one or two short simple English sentences."
)
TEMPERATURE = 0.2
REPEAT_PENALTY = 1.1
MAX_TOKENS = 96
# A prompt that is not in the cache costs 6 ms a token on one core; more history than this would be
# heard as a pause whenever the oldest turns are dropped.
PROMPT_TOKENS = 768
CACHE_MIB = 256  # prompts of other conversations that llama.cpp keeps outside its slots
OVERFLOW = "exceed_context_size_error"


class LlamaCppModel(LanguageModel):
    """A GGUF model run in this process by llama.cpp; callers beyond `n_parallel` wait in line.

    Each slot has `context` tokens for prompt and answer, and keeps its prompt cached. The default
    system prompt stands in where a request brings none.
    """

    def __init__(
        self, path: Path, threads: int = 1, context: int = 2048, n_parallel: int = 1
    ) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(path)
        params.n_ctx = context * n_parallel
        params.n_parallel = n_parallel
        params.verbosity = 0
        params.cache_ram_mib = CACHE_MIB
        params.ui = False
        params.endpoint_slots = False
        # The runtime opens a loopback port of its own; a key that nobody has keeps it shut.
        params.api_keys = [token_hex(32)]
        for cpu in (params.cpuparams, params.cpuparams_batch):
            cpu.n_threads = threads
            cpu.poll = 0  # spinning threads starve the other stages
        self._context = context
        self._server = xllamacpp.Server(params)
        self._pool = ThreadPoolExecutor(n_parallel, thread_name_prefix="llama")

    def stream(
        self, request: ChatRequest, cancelled: Callable[[], bool]
    ) -> Generator[ChatDelta, None, None]:
        """Answer one request; see `LanguageModel.stream`."""
        request = _with_defaults(request)
        budget = min(self._context - (request.max_tokens or MAX_TOKENS), PROMPT_TOKENS)
        while True:
            messages = fit(request.messages, budget)
            try:
                yield from self._answer(
                    msgspec.structs.replace(request, messages=messages), cancelled
                )
                return
            except LanguageModelError as error:
                if error.code != OVERFLOW:
                    raise
                if len(messages) <= 2:
                    raise LanguageModelError("context_length_exceeded", error.message) from error
                # The size was guessed too low; the refusal comes before any delta.
                budget //= 2

    def _answer(
        self, request: ChatRequest, cancelled: Callable[[], bool]
    ) -> Generator[ChatDelta, None, None]:
        body = request_body(request) | {"repeat_penalty": REPEAT_PENALTY, "timings_per_token": True}
        reader = ChunkReader()
        over = threading.Event()

        def run(emit: Callable[[Chunk], None]) -> None:
            def on_event(event: object) -> bool:
                emit(msgspec.convert(event, Chunk))
                return over.is_set() or cancelled()

            if not over.is_set():
                self._server.handle_chat_completions(body, on_event)

        def start(emit: Callable[[Chunk], None]) -> Future[None]:
            return self._pool.submit(run, emit)

        try:
            for chunk in pump(start, cancelled):
                yield from reader.read(chunk)
        finally:
            over.set()
        if cancelled():
            yield reader.cancelled()
        else:
            yield from reader.finish()

    def close(self) -> None:
        """Release the model's threads and memory."""
        self._pool.shutdown()
        del self._server


def _with_defaults(request: ChatRequest) -> ChatRequest:
    messages = request.messages
    if not any(message.role == "system" for message in messages):
        messages = (ChatMessage(role="system", content=SYSTEM_PROMPT), *messages)
    return msgspec.structs.replace(
        request,
        messages=messages,
        temperature=TEMPERATURE if request.temperature is None else request.temperature,
        max_tokens=MAX_TOKENS if request.max_tokens is None else request.max_tokens,
    )
