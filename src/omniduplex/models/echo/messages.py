"""What the echo plugin and the echo stage say to each other inside `data`, and the options."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

import msgspec

INPUT_RATE_HZ = 16000
UNIT_MS = 80


class EchoOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How this deployment of echo answers."""

    self_start: bool = False
    """The model starts to speak by itself after each turn it heard; nobody can ask it to."""
    paced: bool = False
    """One unit of answer per unit heard, so an answer needs audio flowing in; else all at once."""
    early_words: bool = False
    """Words of speech that goes on are told, too: the description of what there is of it."""


class Listen(msgspec.Struct, frozen=True, tag=1):
    """Opens the listening request, or changes how it listens.

    `silence_ms` of audio end a turn; with `ends_turns` false only commits do. A turn is told to
    begin `padding_ms` before its first loud unit.
    """

    silence_ms: int
    ends_turns: bool
    padding_ms: int = 0


class ForceListen(msgspec.Struct, frozen=True, tag=2):
    """The audio beside this can start neither a turn nor an answer."""


class CommitTurn(msgspec.Struct, frozen=True, tag=3):
    """The client ended the turn; its words go to this item.

    The session knew of so many turns since the commit or clear before; the words of later ones
    belong to the item, too.
    """

    item_id: str
    turns_known: int = 0


class ClearTurn(msgspec.Struct, frozen=True, tag=4):
    """Forget the open utterance."""


class StopAnswer(msgspec.Struct, frozen=True, tag=5):
    """Stop an answer that the model started by itself."""

    key: str


class Answer(msgspec.Struct, frozen=True, kw_only=True, tag=6):
    """Answer this text; the request it comes with is the answer's own.

    An empty `text` stands for the turn heard last, and a text equal to that turn's transcript
    for the turn itself. `listening` is the session's listening request.
    """

    key: str
    listening: str
    text: str
    from_tool: bool = False
    """The text is a tool's output, not the user's words."""
    input_tokens: int = 0
    speak: bool = True
    max_words: int | None = None
    tools: tuple[str, ...] = ()
    """Names of the tools it may call."""
    must_call: str | None = None
    """The one that it has to call, whatever the text says."""


class HearItem(msgspec.Struct, frozen=True, tag=7):
    """Describe the audio beside this, which is no part of the stream; it is of this item."""

    item_id: str
    content_index: int


class WatchSpeech(msgspec.Struct, frozen=True, tag=8):
    """Tell of speech while it goes on, or do so no more."""

    active: bool


ToStage = (
    Listen | ForceListen | CommitTurn | ClearTurn | StopAnswer | Answer | HearItem | WatchSpeech
)


class Listening(msgspec.Struct, frozen=True, tag=11):
    """The first unit was heard and the model listens."""


class SpeechHeard(msgspec.Struct, frozen=True, tag=12):
    """An utterance began; `generation` counts the commits and clears taken before it."""

    start_ms: int
    generation: int


class SpeechGrew(msgspec.Struct, frozen=True, tag=17):
    """So much of the open utterance is loud, at this level; and its words so far, if told."""

    speech_ms: int
    level_dbfs: float
    transcript: str | None
    generation: int


class TurnHeard(msgspec.Struct, frozen=True, tag=13):
    """The ear ended a turn."""

    end_ms: int
    transcript: str
    generation: int


class TurnCommitted(msgspec.Struct, frozen=True, tag=14):
    """What was heard of a committed turn or an item; empty when there was no speech in it."""

    item_id: str
    transcript: str
    seconds: float
    content_index: int = 0


class ToolCall(msgspec.Struct, frozen=True):
    """A call of one tool; `arguments` is a JSON text."""

    call_id: str
    name: str
    arguments: str


class AnswerEnd(msgspec.Struct, frozen=True):
    """How an answer ended, and its words in and out."""

    reason: Literal["stop", "length"]
    input_tokens: int
    output_tokens: int


class AnswerPart(msgspec.Struct, frozen=True, tag=15):
    """One step of an answer; its audio and its words are in the output around it."""

    key: str
    opens: bool = False
    """The model announces an answer of its own."""
    call: ToolCall | None = None
    end: AnswerEnd | None = None


OfTurn = SpeechHeard | SpeechGrew | TurnHeard
FromStage = Listening | OfTurn | TurnCommitted | AnswerPart


def tool_names(
    tools: Sequence[Mapping[str, Any]], choice: str | Mapping[str, Any]
) -> tuple[str, ...]:
    """Names of the tools that an answer may call, by the `tool_choice` beside them."""
    return () if choice == "none" else tuple(str(tool["name"]) for tool in tools)


def must_call(tools: Sequence[Mapping[str, Any]], choice: str | Mapping[str, Any]) -> str | None:
    """The tool that an answer has to call, the first where any would do; None if it is free."""
    if isinstance(choice, Mapping):
        return str(choice.get("name"))
    return next(iter(tool_names(tools, choice)), None) if choice == "required" else None
