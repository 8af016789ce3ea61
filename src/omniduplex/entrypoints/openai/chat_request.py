"""The body of a chat completions request, and the turn that it asks for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from omniduplex.engine.turns import AnswerRequest, TurnAudio, TurnMessage, TurnToolCall
from omniduplex.entrypoints.openai.request_audio import pcm_audio, wav_audio
from omniduplex.entrypoints.openai.turn_http import RequestRefused
from omniduplex.entrypoints.openai.turn_sound import SoundFormat


class TextPart(msgspec.Struct, frozen=True, tag="text"):
    """Written content."""

    text: str


class RefusalPart(msgspec.Struct, frozen=True, tag="refusal"):
    """What an assistant said instead of an answer."""

    refusal: str


class InputAudio(msgspec.Struct, frozen=True):
    """Base64 of a WAV, or of PCM16 at 24 kHz."""

    data: bytes
    format: str


class AudioPart(msgspec.Struct, frozen=True, tag="input_audio"):
    """Spoken content."""

    input_audio: InputAudio


class CalledFunction(msgspec.Struct, frozen=True):
    """What a tool call calls; `arguments` is a JSON text."""

    name: str
    arguments: str


class CallMade(msgspec.Struct, frozen=True):
    """A tool call that an assistant message made."""

    id: str
    function: CalledFunction


class EarlierAudio(msgspec.Struct, frozen=True):
    """Names the sound of an earlier answer."""

    id: str


class ChatMessage(msgspec.Struct, frozen=True):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool"]
    content: str | tuple[TextPart | AudioPart | RefusalPart, ...] | None = None
    tool_calls: tuple[CallMade, ...] | None = None
    tool_call_id: str | None = None
    audio: EarlierAudio | None = None


class Function(msgspec.Struct, frozen=True, omit_defaults=True):
    """A function that the model may call."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None


class Tool(msgspec.Struct, frozen=True):
    """A tool; functions are the only kind."""

    type: Literal["function"]
    function: Function


class FunctionName(msgspec.Struct, frozen=True):
    """Names a function."""

    name: str


class FunctionChoice(msgspec.Struct, frozen=True):
    """Demands a call of this function."""

    type: Literal["function"]
    function: FunctionName


class VoiceId(msgspec.Struct, frozen=True):
    """A voice as an object."""

    id: str


class AudioOutput(msgspec.Struct, frozen=True):
    """How the answer shall sound."""

    voice: str | VoiceId
    format: str = "wav"


class StreamOptions(msgspec.Struct, frozen=True):
    """What a stream holds beside the answer."""

    include_usage: bool = False


# Beyond what any model can say; engines keep the number in 32 bits.
Tokens = Annotated[int, Meta(ge=1, le=2**31 - 1)]


class ChatCompletionRequest(msgspec.Struct, frozen=True, kw_only=True):
    """What is understood of a request; what would change the answer and is not, is refused."""

    model: str
    messages: Annotated[tuple[ChatMessage, ...], Meta(min_length=1)]
    modalities: Annotated[frozenset[Literal["text", "audio"]], Meta(min_length=1)] | None = None
    audio: AudioOutput | None = None
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    temperature: Annotated[float, Meta(ge=0, le=2)] | None = None
    max_tokens: Tokens | None = None
    max_completion_tokens: Tokens | None = None
    tools: tuple[Tool, ...] = ()
    tool_choice: Literal["none", "auto", "required"] | FunctionChoice = "auto"
    n: Any = None
    stop: Any = None
    top_p: Any = None
    logprobs: Any = None
    top_logprobs: Any = None
    logit_bias: Any = None
    frequency_penalty: Any = None
    presence_penalty: Any = None
    response_format: Any = None
    functions: Any = None
    function_call: Any = None
    prediction: Any = None
    web_search_options: Any = None


# Parameters that no stage follows, with the values that ask for nothing (null always does).
NEUTRAL: dict[str, tuple[object, ...]] = {
    "n": (1,),
    "stop": ([], ""),
    "top_p": (1,),
    "logprobs": (False,),
    "top_logprobs": (0,),
    "logit_bias": ({},),
    "frequency_penalty": (0,),
    "presence_penalty": (0,),
    "response_format": ({"type": "text"},),
    "functions": ([],),
    "function_call": (),
    "prediction": (),
    "web_search_options": (),
}


def check_parameters(request: ChatCompletionRequest) -> None:
    """Refuse what would be ignored otherwise."""
    for name, neutral in NEUTRAL.items():
        value = getattr(request, name)
        if value is not None and value not in neutral:
            message = f"{name} is not supported here."
            raise RequestRefused(message, "unsupported_parameter", param=name)
    if "audio" in (request.modalities or ()) and request.audio is None:
        message = "An answer with audio needs audio: {voice, format}."
        raise RequestRefused(message, "missing_required_parameter", param="audio")


def sound_format(request: ChatCompletionRequest) -> SoundFormat | None:
    """The format in which the answer is to sound; None for an answer in text."""
    if request.audio is None or "audio" not in (request.modalities or ()):
        return None
    match request.audio.format:
        case "wav":
            return "wav"
        case "pcm16":
            return "pcm16"
        case other:
            message = f"Audio comes as wav or pcm16, not as {other!r}."
            raise RequestRefused(message, "unsupported_format", param="audio.format")


def answer_request(
    request: ChatCompletionRequest, recall: Callable[[str], str | None]
) -> AnswerRequest:
    """The turn that is asked for; decodes sound, so it may take a while.

    `recall` gives the words of an earlier spoken answer.

    Raises:
        RequestRefused: some part is not understood.
    """
    check_parameters(request)
    audio = request.audio if sound_format(request) else None
    choice = request.tool_choice
    return AnswerRequest(
        messages=tuple(
            _message(message, f"messages[{index}]", recall)
            for index, message in enumerate(request.messages)
        ),
        modalities=request.modalities or frozenset({"text"}),
        temperature=request.temperature,
        max_tokens=request.max_completion_tokens or request.max_tokens,
        tools=tuple(
            {"type": "function", **msgspec.to_builtins(tool.function)} for tool in request.tools
        ),
        tool_choice=choice
        if isinstance(choice, str)
        else {"type": "function", "name": choice.function.name},
        voice=voice_name(audio.voice) if audio else None,
    )


def voice_name(voice: str | VoiceId) -> str:
    """The name of a voice, however it is given."""
    return voice if isinstance(voice, str) else voice.id


def _message(message: ChatMessage, path: str, recall: Callable[[str], str | None]) -> TurnMessage:
    content = _content(message.content, f"{path}.content")
    if message.audio is not None:
        words = recall(message.audio.id)
        if words is None:
            gone = f"The audio {message.audio.id!r} is not kept here (any more)."
            raise RequestRefused(gone, "audio_not_found", param=f"{path}.audio.id")
        content = (words, *content)
    return TurnMessage(
        role="system" if message.role == "developer" else message.role,
        content=content,
        tool_calls=tuple(
            TurnToolCall(
                call_id=call.id, name=call.function.name, arguments=call.function.arguments
            )
            for call in message.tool_calls or ()
        ),
        tool_call_id=message.tool_call_id,
    )


def _content(
    content: str | tuple[TextPart | AudioPart | RefusalPart, ...] | None, path: str
) -> tuple[str | TurnAudio, ...]:
    if content is None:
        return ()
    if isinstance(content, str):
        return (content,)
    parts: list[str | TurnAudio] = []
    for index, part in enumerate(content):
        match part:
            case TextPart(text):
                parts.append(text)
            case RefusalPart(refusal):
                parts.append(refusal)
            case AudioPart(audio):
                parts.append(_audio(audio, f"{path}[{index}].input_audio"))
    return tuple(parts)


def _audio(audio: InputAudio, path: str) -> TurnAudio:
    match audio.format:
        case "wav":
            return wav_audio(audio.data, f"{path}.data")
        case "pcm16":
            return pcm_audio(audio.data, f"{path}.data")
        case other:
            message = f"Audio is taken as wav or pcm16, not as {other!r}."
            raise RequestRefused(message, "unsupported_format", param=f"{path}.format")
