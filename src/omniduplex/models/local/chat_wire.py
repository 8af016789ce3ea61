"""The chat completions wire: requests to JSON-ready objects, stream chunks to deltas."""

from collections.abc import Iterator, Mapping

import msgspec

from omniduplex.models.local.language_model import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    ChatTool,
    Finished,
    LanguageModelError,
    NamedTool,
    TextDelta,
    ToolCall,
)


class _FunctionPart(msgspec.Struct, frozen=True):
    name: str | None = None
    arguments: str | None = None


class _ToolPart(msgspec.Struct, frozen=True):
    index: int = 0
    id: str | None = None
    function: _FunctionPart = _FunctionPart()


class _Delta(msgspec.Struct, frozen=True):
    content: str | None = None
    tool_calls: tuple[_ToolPart, ...] | None = None


class _Choice(msgspec.Struct, frozen=True):
    delta: _Delta = _Delta()
    finish_reason: str | None = None


class _Usage(msgspec.Struct, frozen=True):
    prompt_tokens: int
    completion_tokens: int


class _Timings(msgspec.Struct, frozen=True):
    """Running token counts that llama.cpp adds to each chunk when asked."""

    cache_n: int
    prompt_n: int
    predicted_n: int


class WireError(msgspec.Struct, frozen=True):
    """An error object in a body or in the stream."""

    message: str = "unknown error"
    type: str | None = None
    code: str | int | None = None


class Chunk(msgspec.Struct, frozen=True):
    """One event of a streamed chat completion."""

    choices: tuple[_Choice, ...] = ()
    usage: _Usage | None = None
    timings: _Timings | None = None
    error: WireError | None = None


class ErrorBody(msgspec.Struct, frozen=True):
    """The body of a refused request."""

    error: WireError


def request_body(request: ChatRequest) -> dict[str, object]:
    """Render a request as a streaming chat completions body, without a model name."""
    body: dict[str, object] = {
        "messages": [_message(message) for message in request.messages],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    if request.temperature is not None:
        body["temperature"] = request.temperature
    if request.max_tokens is not None:
        body["max_tokens"] = request.max_tokens
    if request.tools:
        body["tools"] = [_tool(tool) for tool in request.tools]
        body["tool_choice"] = (
            {"type": "function", "function": {"name": request.tool_choice.name}}
            if isinstance(request.tool_choice, NamedTool)
            else request.tool_choice
        )
    return body


def _message(message: ChatMessage) -> Mapping[str, object]:
    wire: dict[str, object] = {"role": message.role, "content": message.content}
    if message.tool_calls:
        wire["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.arguments},
            }
            for call in message.tool_calls
        ]
    if message.tool_call_id is not None:
        wire["tool_call_id"] = message.tool_call_id
    return wire


def _tool(tool: ChatTool) -> Mapping[str, object]:
    function = {
        "name": tool.name,
        "description": tool.description,
        "parameters": msgspec.json.decode(tool.parameters),
    }
    return {"type": "function", "function": function}


class _PendingCall:
    def __init__(self) -> None:
        self.call_id = ""
        self.name = ""
        self.arguments = ""

    def add(self, part: _ToolPart) -> None:
        # The id and name come once; some servers repeat them with every piece of arguments.
        self.call_id = part.id or self.call_id
        self.name = part.function.name or self.name
        self.arguments += part.function.arguments or ""


class ChunkReader:
    """Gathers the chunks of one answer: text at once, tool calls and the end when it is over."""

    def __init__(self) -> None:
        self._calls: dict[int, _PendingCall] = {}
        self._finish_reason: str | None = None
        self._prompt_tokens: int | None = None
        self._completion_tokens: int | None = None

    def read(self, chunk: Chunk) -> Iterator[ChatDelta]:
        """Yield the text of a chunk, and remember the rest.

        Raises:
            LanguageModelError: the chunk reports an error.
        """
        if chunk.error is not None:
            raise stream_error(chunk.error)
        self._count(chunk)
        for choice in chunk.choices[:1]:
            self._finish_reason = choice.finish_reason or self._finish_reason
            for part in choice.delta.tool_calls or ():
                self._calls.setdefault(part.index, _PendingCall()).add(part)
            if choice.delta.content:
                yield TextDelta(choice.delta.content)

    def _count(self, chunk: Chunk) -> None:
        if chunk.timings is not None:
            self._prompt_tokens = chunk.timings.cache_n + chunk.timings.prompt_n
            self._completion_tokens = chunk.timings.predicted_n
        if chunk.usage is not None:
            self._prompt_tokens = chunk.usage.prompt_tokens
            self._completion_tokens = chunk.usage.completion_tokens

    def finish(self) -> Iterator[ChatDelta]:
        """Yield the tool calls and the end.

        Raises:
            LanguageModelError: the stream broke off before it gave a finish reason.
        """
        if self._finish_reason is None:
            raise LanguageModelError("stream_ended", "the answer broke off without an end")
        for index in sorted(self._calls):
            call = self._calls[index]
            yield ToolCall(
                call_id=call.call_id or f"call_{index}",
                name=call.name,
                arguments=call.arguments or "{}",
            )
        yield self._end(self._finish_reason)

    def cancelled(self) -> Finished:
        """Return the end of an answer that was cancelled, with the counts known so far."""
        return self._end("cancelled")

    def _end(self, reason: str) -> Finished:
        return Finished(
            finish_reason=reason,
            prompt_tokens=self._prompt_tokens,
            completion_tokens=self._completion_tokens,
        )


def stream_error(error: WireError) -> LanguageModelError:
    """Name an error object by its type, else its code."""
    code = error.type or error.code
    return LanguageModelError(str(code) if code is not None else "server_error", error.message)
