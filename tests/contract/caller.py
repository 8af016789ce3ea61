"""A client for contract tests: it says what a person does, and reads what the server shows."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from tests.entrypoints.talk import Talk

PATHS = {
    "duplex": "/v1/duplex?model=m",
    "openai": "/v1/realtime?model=gpt-realtime",
    "beta": "/v1/realtime?model=gpt-4o-realtime-preview",
}
# The last event that comes before the client has said anything.
OPENED = {
    "duplex": "session.updated",
    "openai": "session.created",
    "beta": "conversation.created",
}
RATES_HZ = {"duplex": 16_000, "openai": 24_000, "beta": 24_000}
LOOK_UP = {"type": "function", "name": "look_up", "parameters": {"type": "object"}}
SET_ALARM = {"type": "function", "name": "set_alarm", "parameters": {"type": "object"}}

# What the model or the clock brings about.
BY_ITSELF = {"response.listen", "output_audio_buffer.stopped"}

Event = dict[str, Any]


class Caller:
    """One connection in one dialect."""

    def __init__(self, talk: Talk, dialect: str) -> None:
        self.talk = talk
        self.dialect = dialect
        self.seen: list[Event] = []

    # -- saying -----------------------------------------------------------------------------

    def send(self, wire_type: str, **fields: Any) -> None:
        self.talk.send(wire_type, **fields)

    def configure(self, **session: Any) -> Event:
        """Change the session; the session as it stands then."""
        self.send("session.update", session={"type": "realtime", **session})
        updated = self.until("session.updated")[-1]["session"]
        assert isinstance(updated, dict)
        return updated

    def says(self, seconds: float = 1.0, hz: float = 300) -> None:
        """Sound that is speech to echo; 0 Hz is silence."""
        self.send("input_audio_buffer.append", audio=self.sound(seconds, hz))

    def sound(self, seconds: float = 1.0, hz: float = 300) -> str:
        rate_hz = RATES_HZ[self.dialect]
        phase = np.arange(int(seconds * rate_hz)) * 2 * np.pi * hz / rate_hz
        pcm = (8000 * np.sin(phase)).astype("<i2").tobytes()
        return base64.b64encode(pcm).decode()

    def writes(self, text: str, **fields: Any) -> list[Event]:
        """Put a user's text into the conversation; what the server shows of it."""
        content = [{"type": "input_text", "text": text}]
        return self.puts({"type": "message", "role": "user", "content": content, **fields})

    def puts(self, item: Event, **fields: Any) -> list[Event]:
        """Put an item into the conversation; what the server shows of it."""
        self.send("conversation.item.create", item=item, **fields)
        last = "created" if self.dialect == "beta" else "done"
        return self.until(f"conversation.item.{last}")

    def asks(self, **response: Any) -> list[Event]:
        """Ask for an answer and read it to its end."""
        self.send("response.create", response=response)
        return self.until("rate_limits.updated")

    # -- reading ----------------------------------------------------------------------------

    def until(self, wire_type: str) -> list[Event]:
        events = self.talk.until(wire_type)
        self.seen += events
        return events

    def answer_to(self, wire_type: str, **fields: Any) -> list[Event]:
        """All that comes of one client event, but for what comes by itself."""
        self.send(wire_type, **fields)
        return [event for event in self.until_now() if event["type"] not in BY_ITSELF]

    def until_now(self) -> list[Event]:
        """All that the session has shown: up to what a question for no item draws."""
        self.send("conversation.item.retrieve", item_id="no such", event_id="fence")
        events: list[Event] = []
        while True:
            events += self.until("error")
            if events[-1]["error"]["event_id"] == "fence":
                return events[:-1]

    def refusal(self, wire_type: str, **fields: Any) -> Event:
        """The one error that an event is answered with, and nothing else."""
        (event,) = self.answer_to(wire_type, event_id="e1", **fields)
        assert event["type"] == "error"
        error = event["error"]
        assert error["event_id"] == "e1"
        assert isinstance(error, dict)
        return error

    def still_answers(self) -> None:
        """The session goes on as if nothing had been."""
        self.writes("are you there")
        done = self.asks()[-2]
        assert done["type"] == "response.done"
        assert done["response"]["status"] == "completed"


def types(events: Sequence[Event]) -> list[str]:
    return [event["type"] for event in events]


def one(events: Sequence[Event], wire_type: str) -> Event:
    (found,) = (event for event in events if event["type"] == wire_type)
    return found


def spoken(events: Sequence[Event]) -> str:
    """The words of the answer in these events."""
    ends = (".transcript.done", "_transcript.done")
    return "".join(event["transcript"] for event in events if event["type"].endswith(ends))


@contextmanager
def call(base: str, dialect: str, **options: Any) -> Iterator[Caller]:
    """Connect; `options` are those of `websockets`."""
    headers = {"OpenAI-Beta": "realtime=v1"} if dialect == "beta" else {}
    with Talk(base, PATHS[dialect], additional_headers=headers, **options) as talk:
        caller = Caller(talk, dialect)
        caller.until(OPENED[dialect])
        yield caller
