"""The answers that a listening stage writes: a prompt in, clauses and tool calls out."""

import logging
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Executor, Future
from dataclasses import dataclass, field
from typing import Any, Literal

import msgspec

from omniduplex.engine.prompts import PromptMessage, ResponsePrompt
from omniduplex.models.local import messages
from omniduplex.models.local.clauses import ClauseSplitter
from omniduplex.models.local.language_model import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    ChatTool,
    Finished,
    LanguageModel,
    LanguageModelError,
    NamedTool,
    TextDelta,
    ToolCall,
)
from omniduplex.models.local.messages import AnswerEnded, AnswerText, FromListen, ToolCalled, encode
from omniduplex.stages.messages import StageOutput
from omniduplex.stages.model import Emit

logger = logging.getLogger(__name__)


class _Function(msgspec.Struct, frozen=True):
    """A tool as the Realtime API describes it; other fields do not concern a chat model."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class _FunctionChoice(msgspec.Struct, frozen=True):
    name: str


def chat_request(
    prompt: ResponsePrompt, default_instructions: str, default_temperature: float | None
) -> ChatRequest:
    """The chat request of a prompt.

    Raises:
        msgspec.ValidationError: a tool or the tool choice is not of the Realtime API's shape.
    """
    instructions = default_instructions if prompt.instructions is None else prompt.instructions
    system = (ChatMessage(role="system", content=instructions),) if instructions else ()
    return ChatRequest(
        messages=(*system, *map(_chat_message, prompt.messages)),
        temperature=default_temperature if prompt.temperature is None else prompt.temperature,
        max_tokens=prompt.max_tokens,
        tools=tuple(map(_chat_tool, prompt.tools)),
        tool_choice=_chat_tool_choice(prompt.tool_choice),
    )


def _chat_message(message: PromptMessage) -> ChatMessage:
    return ChatMessage(
        role=message.role,
        content=message.text or (None if message.tool_calls else ""),
        tool_calls=tuple(
            ToolCall(call_id=call.call_id, name=call.name, arguments=call.arguments)
            for call in message.tool_calls
        ),
        tool_call_id=message.tool_call_id,
    )


def _chat_tool(tool: dict[str, Any]) -> ChatTool:
    function = msgspec.convert(tool, _Function)
    described = ChatTool(name=function.name, description=function.description or "")
    if function.parameters is None:
        return described
    schema = msgspec.Raw(msgspec.json.encode(function.parameters))
    return msgspec.structs.replace(described, parameters=schema)


def _chat_tool_choice(
    choice: str | dict[str, Any],
) -> Literal["none", "auto", "required"] | NamedTool:
    if isinstance(choice, dict):
        return NamedTool(msgspec.convert(choice, _FunctionChoice).name)
    kind: Literal["none", "auto", "required"] = msgspec.convert(
        choice, Literal["none", "auto", "required"]
    )
    return kind


@dataclass(slots=True)
class _Answer:
    """One answer being written; nothing of it comes out once it is cancelled."""

    request_id: str
    epoch: int
    prompt: ResponsePrompt
    asked_at: float
    cancelled: threading.Event = field(default_factory=threading.Event)
    splitter: ClauseSplitter = field(default_factory=ClauseSplitter)
    future: Future[None] | None = None
    first_token_s: float | None = None
    spoke: bool = False
    called: bool = False
    """Whether it calls a tool."""
    written: str = ""


class Answers:
    """Streams answers from a language model, as many at a time as `pool` has workers.

    After an answer, what the next prompt will begin with is read ahead while nothing else is asked.
    """

    def __init__(
        self,
        model: LanguageModel,
        pool: Executor,
        emit: Emit,
        clock: Callable[[], float],
        *,
        instructions: str,
        temperature: float | None,
    ) -> None:
        self._model = model
        self._pool = pool
        self._emit = emit
        self._clock = clock
        self._instructions = instructions
        self._temperature = temperature
        self._lock = threading.Lock()
        self._answers: dict[str, _Answer] = {}

    def start(self, request_id: str, epoch: int, prompt: ResponsePrompt) -> None:
        """Begin an answer; its clauses come out in order, each as an output of the request."""
        answer = _Answer(request_id, epoch, prompt, self._clock())
        with self._lock:
            self._answers[request_id] = answer
        answer.future = self._pool.submit(self._run, answer)

    def expect(self, prompt: ResponsePrompt) -> None:
        """Read how prompts to come begin; what is bad about one is told when it is asked."""
        self._pool.submit(self._read_beginning, prompt)

    def abort(self, request_ids: Iterable[str]) -> None:
        """Stop these answers at once; ids of no answer are ignored."""
        with self._lock:
            found = [self._answers.pop(name) for name in request_ids if name in self._answers]
            for answer in found:
                answer.cancelled.set()
        for answer in found:
            if answer.future:
                answer.future.cancel()

    def close(self) -> None:
        """Stop all answers."""
        with self._lock:
            names = tuple(self._answers)
        self.abort(names)

    def _run(self, answer: _Answer) -> None:
        try:
            self._write(answer)
        except LanguageModelError as error:
            logger.warning("an answer failed: %s", error)
            self._fail(answer, error)
        except Exception as error:  # one answer fails, the stage lives
            logger.exception("an answer failed")
            self._fail(answer, error)

    def _fail(self, answer: _Answer, error: Exception) -> None:
        self._forget(answer)
        self._send(answer, StageOutput(answer.request_id, answer.epoch, error=str(error)))

    def _write(self, answer: _Answer) -> None:
        request = chat_request(answer.prompt, self._instructions, self._temperature)
        for delta in self._model.stream(request, answer.cancelled.is_set):
            self._take(answer, delta)
        self._forget(answer)
        if answer.written and not (answer.called or answer.cancelled.is_set()):
            self._read_ahead(request, answer.written)

    def _forget(self, answer: _Answer) -> None:
        with self._lock:
            if self._answers.get(answer.request_id) is answer:
                del self._answers[answer.request_id]

    def _read_beginning(self, prompt: ResponsePrompt) -> None:
        if self._is_asked():
            return
        try:
            request = chat_request(prompt, self._instructions, self._temperature)
            self._model.read_ahead(request, self._is_asked)
        except Exception:
            logger.exception("the beginning of a prompt could not be read")

    def _read_ahead(self, request: ChatRequest, written: str) -> None:
        said = ChatMessage(role="assistant", content=written)
        request = msgspec.structs.replace(request, messages=(*request.messages, said))
        try:
            self._model.read_ahead(request, self._is_asked)
        except Exception:  # this answer is given; the next one will tell if it cannot be
            logger.exception("a prompt could not be read ahead")

    def _is_asked(self) -> bool:
        with self._lock:
            return bool(self._answers)

    def _take(self, answer: _Answer, delta: ChatDelta) -> None:
        match delta:
            case TextDelta(text):
                if answer.first_token_s is None:
                    answer.first_token_s = self._clock() - answer.asked_at
                answer.written += text
                # What is not spoken need not wait for a clause to be whole.
                pieces = answer.splitter.push(text) if answer.prompt.speak else [text]
                self._say(answer, pieces)
            case ToolCall(call_id=call_id, name=name, arguments=arguments):
                answer.called = True
                self._say(answer, answer.splitter.finish())
                self._tell(answer, ToolCalled(call_id, name, arguments))
            case Finished():
                self._say(answer, answer.splitter.finish())
                reason = "length" if delta.finish_reason == "length" else "stop"
                ended = AnswerEnded(reason, delta.prompt_tokens, delta.completion_tokens)
                self._tell(answer, ended, finished=True)

    def _say(self, answer: _Answer, pieces: list[str]) -> None:
        for piece in pieces:
            self._tell(answer, AnswerText(), piece, metrics=self._first_metrics(answer))

    def _first_metrics(self, answer: _Answer) -> dict[str, float]:
        if answer.spoke:
            return {}
        answer.spoke = True
        now = self._clock()
        return {
            messages.AT_PROMPT: answer.asked_at,
            messages.AT_FIRST_CLAUSE: now,
            messages.FIRST_TOKEN: answer.first_token_s or 0.0,
            messages.FIRST_CLAUSE: now - answer.asked_at,
        }

    def _tell(
        self,
        answer: _Answer,
        message: FromListen,
        text: str = "",
        *,
        finished: bool = False,
        metrics: dict[str, float] | None = None,
    ) -> None:
        output = StageOutput(
            answer.request_id,
            answer.epoch,
            text=text,
            finished=finished,
            data=encode(message),
            metrics=metrics or {},
        )
        self._send(answer, output)

    def _send(self, answer: _Answer, output: StageOutput) -> None:
        with self._lock:  # an abort returns only when nothing can follow it
            if not answer.cancelled.is_set():
                self._emit(output)
