"""What went over a client's connection, and when: names and numbers, no words and no sound."""

from __future__ import annotations

import math
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec

from omniduplex.clients.events import ServerEvent, wire_type
from omniduplex.clients.transport import Message, Transport
from omniduplex.protocol.duplex import RealtimeCommand, UnknownEvent

Direction = Literal["send", "receive"]

_TEXTS = ("event_id", "session_id", "response_id", "item_id")
_NUMBERS = ("server_event_seq", "played_ms", "sample_rate_hz")
# Inside a message's objects: whose field goes by which name in the trace.
_NESTED = (
    ("response", "id", "response_id"),
    ("response", "status", "response_status"),
    ("error", "code", "error_code"),
    ("error", "event_id", "related_event_id"),
    ("session", "id", "session_id"),
)
# No id of ours is as long as this; what is longer is somebody's text.
_ID_LIMIT = 256
_MILESTONES = {
    "receive:response.created": "created_s",
    "receive:response.output_audio.delta": "first_audio_s",
    "send:response.cancel": "cancel_sent_s",
    "receive:response.done": "done_s",
}


class DuplexTrace:
    """The last `max_events` messages of one client in both directions; give it as `trace=`.

    A message is noted when it has been sent, and when it has arrived, be it for the second time in
    a replay. `now` gives seconds. Nothing is written before `write_json`.

    Raises:
        ValueError: `max_events` is not positive.
    """

    def __init__(
        self, *, max_events: int = 4096, now: Callable[[], float] = time.monotonic
    ) -> None:
        if max_events <= 0:
            raise ValueError(f"max_events={max_events} keeps nothing")
        self._events: deque[dict[str, Any]] = deque(maxlen=max_events)
        self._total = 0
        self._now = now
        self._started_at: float | None = None

    def record(self, direction: Direction, message: ServerEvent | Message) -> None:
        """Note a message: its type, ids, sequence number and state, never its contents."""
        now = self._now()
        if self._started_at is None:
            self._started_at = now
        row = {"index": self._total, "elapsed_s": now - self._started_at, "direction": direction}
        self._events.append(row | _described(message))
        self._total += 1

    def snapshot(self) -> dict[str, Any]:
        """The trace as `write_json` writes it; times in s since the first message.

        Counts and responses are those of the events that are still kept.
        """
        events = [dict(row) for row in self._events]
        return {
            "schema_version": 1,
            "clock": "client_monotonic",
            "events": events,
            "total_events": self._total,
            "dropped_events": self._total - len(events),
            "event_counts": dict(Counter(map(_kind, events))),
            "responses": _responses(events),
        }

    def write_json(self, path: Path | str) -> None:
        """Write the snapshot as a JSON file; raises OSError when it cannot be written."""
        text = msgspec.json.format(msgspec.json.encode(self.snapshot()), indent=2)
        Path(path).write_bytes(text + b"\n")


class TracedTransport(Transport):
    """A transport whose messages are noted on their way."""

    def __init__(self, transport: Transport, trace: DuplexTrace) -> None:
        self._transport = transport
        self._trace = trace

    async def connect(self) -> None:
        """Make the connection."""
        await self._transport.connect()

    async def send(self, command: Message) -> None:
        """Send, then note it."""
        await self._transport.send(command)
        self._trace.record("send", command)

    async def receive(self) -> ServerEvent:
        """Receive, and note it."""
        event = await self._transport.receive()
        self._trace.record("receive", event)
        return event

    async def close(self) -> None:
        """Let go of the connection."""
        await self._transport.close()


def traced(transport: Transport, trace: DuplexTrace | None) -> Transport:
    """The transport, with a trace of what it carries if one is wanted."""
    return transport if trace is None else TracedTransport(transport, trace)


def _described(message: ServerEvent | Message) -> dict[str, Any]:
    body = message.raw if isinstance(message, UnknownEvent) else message
    row: dict[str, Any] = {}
    kind = _type_of(message)
    if _is_short(kind):
        row["type"] = kind
    row |= {name: text for name in _TEXTS if _is_short(text := _field(body, name))}
    row |= {name: number for name in _NUMBERS if _is_finite(number := _field(body, name))}
    for part, name, shown_as in _NESTED:
        if _is_short(text := _field(_field(body, part), name)):
            row.setdefault(shown_as, text)
    return row


def _type_of(message: ServerEvent | Message) -> object:
    if isinstance(message, Mapping):
        return message.get("type")
    if isinstance(message, RealtimeCommand):
        return message.__struct_config__.tag
    return wire_type(message)


def _field(body: object, name: str) -> object:
    return body.get(name) if isinstance(body, Mapping) else getattr(body, name, None)


def _is_short(value: object) -> bool:
    return isinstance(value, str) and len(value) <= _ID_LIMIT


def _is_finite(value: object) -> bool:
    return type(value) in (int, float) and math.isfinite(value)  # type: ignore[arg-type]


def _kind(row: dict[str, Any]) -> str:
    return f"{row['direction']}:{row.get('type', 'unknown')}"


def _responses(events: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Each response's milestones, the first of each kind, in the order of appearance.

    A cancel that names no response is one of the response under way.
    """
    found: dict[str, dict[str, Any]] = {}
    under_way: str | None = None
    for row in events:
        milestone = _MILESTONES.get(_kind(row))
        name = row.get("response_id", under_way if milestone == "cancel_sent_s" else None)
        if name is None:
            continue
        response = found.setdefault(name, {"response_id": name})
        if milestone is None:
            continue
        response.setdefault(milestone, row["elapsed_s"])
        if milestone == "created_s":
            under_way = name
        elif milestone == "done_s":
            under_way = None
            response.setdefault("status", row.get("response_status"))
    return list(found.values())
