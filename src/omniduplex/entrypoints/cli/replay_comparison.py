"""Whether a replayed conversation went as the recorded one did: events, statuses, words."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

import msgspec
from msgspec import UNSET

from omniduplex.benchmarks.wer import normalise_words, word_error_rate
from omniduplex.clients.recording import Conversation, Entry
from omniduplex.clients.replay_progress import message_type

# Which field of an event holds words that are final.
_WORDS = {
    "response.output_audio_transcript.done": "transcript",
    "response.output_text.done": "text",
    "response.function_call_arguments.done": "arguments",
    "conversation.item.input_audio_transcription.completed": "transcript",
}


class Tolerance(msgspec.Struct, frozen=True, kw_only=True):
    """How far a replay may be from its recording."""

    word_error_rate: float = 0.25
    delta_count: float = 0.25
    """Share by which the number of deltas may differ; a difference of two is always allowed."""


EXACT = Tolerance(word_error_rate=0.0, delta_count=-1.0)


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """One thing that went otherwise."""

    where: str
    what: str
    recorded: tuple[str, ...]
    live: tuple[str, ...]


class Thread:
    """The events of one response, one item, or the session itself."""

    def __init__(self) -> None:
        self.steps: list[str] = []
        self.deltas: Counter[str] = Counter()
        self.words: list[str] = []

    def add(self, event: dict[str, Any]) -> None:
        """Take the next event; of deltas, the first is a step and all are counted."""
        name = message_type(event)
        if name.endswith(".delta"):
            self.deltas[name] += 1
            if self.deltas[name] > 1:
                return
        self.steps.append(_step(name, event))
        words = event.get(_WORDS.get(name, ""))
        if isinstance(words, str):
            self.words.append(words)


def compare(recorded: Conversation, live: Conversation, tolerance: Tolerance) -> list[Difference]:
    """Return what went otherwise; audio is not compared."""
    before, after = threads(recorded), threads(live)
    names = [*before, *(name for name in after if name not in before)]
    return [
        difference
        for name in names
        for difference in _compare(
            name, before.get(name, Thread()), after.get(name, Thread()), tolerance
        )
    ]


def threads(conversation: Conversation) -> dict[str, Thread]:
    """Split a server's events into threads, named by kind and order of appearance."""
    found: defaultdict[str, Thread] = defaultdict(Thread)
    numbers: dict[str, int] = {}
    kinds: Counter[str] = Counter()
    for entry in conversation.entries:
        if entry.dir == "c2s":
            continue
        if entry.event is UNSET:
            found["session"].steps.append(_ending(entry))
            continue
        kind, name = _owner(entry.event)
        if name not in numbers:
            kinds[kind] += 1
            numbers[name] = kinds[kind]
        label = kind if kind == "session" else f"{kind} {numbers[name]}"
        found[label].add(entry.event)
    return dict(found)


def _compare(
    where: str, recorded: Thread, live: Thread, tolerance: Tolerance
) -> Iterator[Difference]:
    if recorded.steps != live.steps:
        yield Difference(
            where=where, what="events", recorded=tuple(recorded.steps), live=tuple(live.steps)
        )
    for name in sorted(recorded.deltas.keys() & live.deltas.keys()):
        before, after = recorded.deltas[name], live.deltas[name]
        if not _is_near(before, after, tolerance.delta_count):
            yield _difference(where, f"number of {name}", str(before), str(after))
    for before_words, after_words in zip(recorded.words, live.words, strict=False):
        if not _is_said(before_words, after_words, tolerance.word_error_rate):
            yield _difference(where, "words", before_words, after_words)


def _difference(where: str, what: str, recorded: str, live: str) -> Difference:
    return Difference(where=where, what=what, recorded=(recorded,), live=(live,))


def _is_near(before: int, after: int, share: float) -> bool:
    if share < 0:
        return before == after
    return abs(before - after) <= max(2.0, share * max(before, after))


def _is_said(before: str, after: str, rate: float) -> bool:
    if not normalise_words(before):
        return not normalise_words(after)
    return word_error_rate(before, after) <= rate


def _owner(event: dict[str, Any]) -> tuple[str, str]:
    """Kind and id of what an event is about."""
    for kind in ("response", "item"):
        name = event.get(f"{kind}_id")
        inner = event.get(kind)
        if name is None and isinstance(inner, dict):
            name = inner.get("id")
        if isinstance(name, str):
            return kind, name
    return "session", ""


def _step(name: str, event: dict[str, Any]) -> str:
    facts: list[Any] = []
    response, error = event.get("response"), event.get("error")
    if name == "response.done" and isinstance(response, dict):
        details = response.get("status_details") or {}
        facts = [response.get("status"), details.get("reason")]
    elif name == "error":
        facts = [error.get("code") if isinstance(error, dict) else event.get("code")]
    elif name in ("session.closed", "session.expired"):
        facts = [event.get("reason")]
    told = ", ".join(str(fact) for fact in facts if fact)
    return f"{name} ({told})" if told else name


def _ending(entry: Entry) -> str:
    if entry.close is UNSET:
        return "a message that is no event"
    return f"close {entry.close.code} {entry.close.reason}".rstrip()
