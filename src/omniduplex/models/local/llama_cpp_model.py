"""The embedded language model: a GGUF file on llama.cpp, inside this process."""

import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
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
OPTIONS = {
    "repeat_penalty": 1.1,
    "timings_per_token": True,
    "return_progress": True,  # an event after each batch, in which a cancelled prompt can stop
}
MAX_TOKENS = 96
# A prompt that is not in the cache costs 6 to 10 ms a token on one core: what is left of this much
# history, whenever its older half is dropped, is read again while the answer before is heard.
PROMPT_TOKENS = 768
# Room that is left for the user's next turn when the prompt before it is read ahead.
NEXT_TURN_TOKENS = 64
# Tokens of a prompt that are read at a time. Between them a cancelled prompt gives up and others
# write on; on one core larger batches read no faster.
BATCH_TOKENS = 16
KNOWN_PROMPTS = 8  # those of the slots, and some that llama.cpp keeps outside
LEAVE_S = 0.5  # a cancelled answer leaves its slot after a batch, so this is never used up
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
        params.n_batch = BATCH_TOKENS
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
        self._lock = threading.Lock()
        self._known: deque[tuple[ChatMessage, ...]] = deque(maxlen=KNOWN_PROMPTS)
        self._running: dict[Future[None], Callable[[], bool]] = {}

    def stream(
        self, request: ChatRequest, cancelled: Callable[[], bool]
    ) -> Generator[ChatDelta, None, None]:
        """Answer one request; see `LanguageModel.stream`."""
        request = _with_defaults(request)
        budget = min(self._context - (request.max_tokens or MAX_TOKENS), PROMPT_TOKENS)
        while True:
            messages = self._fit(request.messages, budget)
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
        body = request_body(request) | OPTIONS
        reader = ChunkReader()
        over = threading.Event()

        def run(emit: Callable[[Chunk], None]) -> None:
            def on_event(event: object) -> bool:
                emit(msgspec.convert(event, Chunk))
                return over.is_set() or cancelled()

            if not over.is_set():
                self._server.handle_chat_completions(body, on_event)

        def start(emit: Callable[[Chunk], None]) -> Future[None]:
            self._let_the_cancelled_leave()
            future = self._pool.submit(run, emit)
            with self._lock:
                self._running[future] = lambda: over.is_set() or cancelled()
            future.add_done_callback(self._has_left)
            return future

        try:
            for chunk in pump(start, cancelled):
                yield from reader.read(chunk)
        finally:
            over.set()
        if cancelled():
            yield reader.cancelled()
        else:
            yield from reader.finish()

    def read_ahead(self, request: ChatRequest, cancelled: Callable[[], bool]) -> None:
        """Read what the prompt after the user's next turn will begin with."""
        request = _with_defaults(request)
        budget = min(self._context - (request.max_tokens or MAX_TOKENS), PROMPT_TOKENS)
        next_turn = ChatMessage(role="user", content="")
        messages = self._fit((*request.messages, next_turn), budget, reserve=NEXT_TURN_TOKENS)
        known = msgspec.structs.replace(request, messages=messages, max_tokens=0)
        for _ in self._answer(known, cancelled):
            pass

    def _fit(
        self, messages: Sequence[ChatMessage], budget: int, reserve: int = 0
    ) -> tuple[ChatMessage, ...]:
        with self._lock:
            fitted = fit(messages, budget, reserve=reserve, known=self._known)
            self._known.appendleft(fitted)
        return fitted

    def _let_the_cancelled_leave(self) -> None:
        """Wait for their slots: one of them has most likely just read what is to be read now."""
        with self._lock:
            leaving = [future for future, is_over in self._running.items() if is_over()]
        wait(leaving, timeout=LEAVE_S)

    def _has_left(self, future: Future[None]) -> None:
        with self._lock:
            self._running.pop(future, None)

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
