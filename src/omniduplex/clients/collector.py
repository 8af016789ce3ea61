"""Keeps every event with the moment it came, for assertions and measurements."""

from __future__ import annotations

import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from typing import Any

from omniduplex.clients.audio import delta_format, samples_of
from omniduplex.clients.base import DuplexClientBase
from omniduplex.clients.events import ServerEvent, wire_type
from omniduplex.clients.subscription import Subscription
from omniduplex.clients.timing import (
    Arrival,
    GlobalTimingSummary,
    TimingSummary,
    global_timing_summary,
    origin_of,
    responses_of,
    timing_summary,
)
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioFormat,
    ErrorEvent,
    ResponseCreated,
    ResponseDone,
    TextDelta,
    TranscriptDelta,
)

_DEFAULT_OUTPUT = AudioFormat(sample_rate_hz=24000)


class EventCollector:
    """Events in order of arrival, and what they amount to by response.

    `now` gives seconds; it is read once for each event. The collector grows with the session.
    """

    def __init__(self, *, now: Callable[[], float] = time.monotonic) -> None:
        self.events: list[ServerEvent] = []
        self.event_received_at_s: list[float] = []
        self.response_audio: dict[str, bytearray] = {}
        self.response_ids: list[str] = []
        self.output_format = _DEFAULT_OUTPUT
        self._wire_format = _DEFAULT_OUTPUT
        self._text: dict[str, list[str]] = {}
        self._done: dict[str, ResponseDone] = {}
        self._now = now

    def add(self, event: ServerEvent) -> None:
        """Take one event, as of now."""
        self.events.append(event)
        self.event_received_at_s.append(self._now())
        match event:
            case ResponseCreated():
                self._know(event.response_id)
            case AudioDelta():
                self._know(event.response_id)
                self._wire_format = delta_format(event, self._wire_format)
                samples, self.output_format = samples_of(event.delta, self._wire_format)
                self.response_audio.setdefault(event.response_id, bytearray()).extend(samples)
            case TranscriptDelta() | TextDelta():
                self._know(event.response_id)
                self._text.setdefault(event.response_id, []).append(event.delta)
            case ResponseDone():
                self._know(event.response_id)
                self._done[event.response_id] = event

    def consume(self, client: DuplexClientBase) -> Coroutine[Any, Any, None]:
        """Await it to take every event of the client, counted from this call, until the end."""
        return self._consume(client.events())

    def count(self, kind: str) -> int:
        """How many events of a wire type came."""
        return sum(wire_type(event) == kind for event in self.events)

    def errors(self) -> list[ErrorEvent]:
        """Every error event."""
        return [event for event in self.events if isinstance(event, ErrorEvent)]

    def audio_bytes(self, response_id: str | None = None) -> bytes:
        """The audio of one response, or of all, one behind the other."""
        if response_id is not None:
            return bytes(self.response_audio.get(response_id, b""))
        return b"".join(self.response_audio.values())

    def audio_ms(self, response_id: str) -> float:
        """How long a response's audio lasts."""
        return self.output_format.duration_ms(len(self.response_audio.get(response_id, b"")))

    def response_text(self, response_id: str) -> str:
        """A response's words, of its audio or its text."""
        return "".join(self._text.get(response_id, ()))

    def response_done(self, response_id: str) -> ResponseDone | None:
        """How a response ended, once it has."""
        return self._done.get(response_id)

    def response_is_done(self, response_id: str | None = None) -> bool:
        """Whether a response, or any, has ended."""
        return bool(self._done) if response_id is None else response_id in self._done

    def first_received_at(self, *kinds: str, after_s: float | None = None) -> float | None:
        """When the first event of these wire types came, at or after a moment."""
        return next(self._moments(kinds, after_s), None)

    def last_received_at(self, *kinds: str) -> float | None:
        """When the last event of these wire types came."""
        return max(self._moments(kinds, None), default=None)

    def timing_summary(
        self,
        *,
        after_s: float,
        input_committed_at_s: float | None = None,
        response_id: str | None = None,
        measurement_origin: str | Mapping[str, str] | None = None,
    ) -> TimingSummary:
        """Latencies of one response, by default the first with events at or after `after_s`.

        They count from `input_committed_at_s`, or from `after_s` where that is not given, and then
        the server's own figures go first; `measurement_origin` names the moment for the reader, one
        name for all latencies or a name for each. All moments are in s on this collector's clock.
        """
        arrivals = self._arrivals(after_s)
        if response_id is None:
            response_id = next(iter(responses_of(arrivals)), None)
        return timing_summary(
            arrivals,
            response_id,
            origin_of(after_s, input_committed_at_s, measurement_origin),
            committed_at_s=input_committed_at_s,
            output=self._wire_format,
        )

    def global_timing_summary(
        self,
        *,
        after_s: float,
        input_committed_at_s: float | None = None,
        measurement_origin: str | Mapping[str, str] | None = None,
    ) -> GlobalTimingSummary:
        """Latencies of all responses at or after `after_s` taken together."""
        origin = origin_of(after_s, input_committed_at_s, measurement_origin)
        return global_timing_summary(self._arrivals(after_s), origin, output=self._wire_format)

    @property
    def output_sample_rate_hz(self) -> int:
        """The rate of the audio that came last, or of the default format."""
        return self.output_format.sample_rate_hz

    def _arrivals(self, after_s: float) -> list[Arrival]:
        pairs = zip(self.events, self.event_received_at_s, strict=True)
        return [Arrival(event, at_s) for event, at_s in pairs if at_s >= after_s]

    def _moments(self, kinds: tuple[str, ...], after_s: float | None) -> Iterator[float]:
        for event, at_s in zip(self.events, self.event_received_at_s, strict=True):
            if wire_type(event) in kinds and (after_s is None or at_s >= after_s):
                yield at_s

    def _know(self, response_id: str) -> None:
        if response_id not in self.response_ids:
            self.response_ids.append(response_id)

    async def _consume(self, events: Subscription[ServerEvent]) -> None:
        async for event in events:
            self.add(event)


async def acknowledge_collected_playback(
    client: DuplexClientBase, collector: EventCollector
) -> None:
    """Report all audio that the collector holds as heard to its end."""
    for response_id in collector.response_audio:
        await client.ack_playback(collector.audio_ms(response_id), response_id=response_id)
