"""What the user has heard of each answer, by the loudspeaker's own account, told to the server."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple, TypeVar

from omniduplex.clients.audio import delta_format, samples_of
from omniduplex.clients.base import DuplexClientBase
from omniduplex.clients.clock import Clock, MonotonicClock
from omniduplex.clients.events import ServerEvent
from omniduplex.clients.playback_cut import PlaybackCut, immediate_cut
from omniduplex.protocol.duplex import AudioDelta, AudioFormat, OutputCleared, ResponseDone

# Floats of ms that should be whole may lack this much.
_TOLERANCE_MS = 1e-6
# Answers that are over and still known by name: an application asks for the last few.
ANSWERS_KEPT = 1024


_Known = TypeVar("_Known")


class Truncation(NamedTuple):
    """Where an answer was cut off: as `conversation.item.truncate` wants it, in whole ms."""

    response_id: str
    item_id: str
    audio_end_ms: int


@dataclass
class _Track:
    """One answer's audio: how much there is, and where in the queue its last sample is."""

    item_id: str
    total_ms: float = 0.0
    ends_at_ms: float = 0.0
    acked_ms: int = -1
    is_cut: bool = False
    complete: bool = False

    def unheard_ms(self, position_ms: float) -> float:
        """How much of it has not sounded where the loudspeaker is now."""
        return min(self.total_ms, max(0.0, self.ends_at_ms - position_ms))

    def heard_ms(self, position_ms: float) -> int:
        """Whole ms of it that have sounded; of one that was cut off, or will have."""
        unheard_ms = 0.0 if self.is_cut else self.unheard_ms(position_ms)
        return int(self.total_ms - unheard_ms + _TOLERANCE_MS)

    def cut(self, end_ms: float) -> None:
        """Nothing of it sounds beyond that position."""
        self.total_ms -= self.unheard_ms(end_ms)
        self.ends_at_ms = min(self.ends_at_ms, end_ms)
        self.is_cut = True


def _keep(known: dict[str, _Known], name: str, value: _Known) -> None:
    """Know this, too, and forget the oldest of too many."""
    known[name] = value
    if len(known) > ANSWERS_KEPT:
        del known[next(iter(known))]


class PlaybackTracker:
    """Follows answers through a loudspeaker that somebody else runs, and reports to the server.

    Feed it every event. Answers queue up one behind the other; an interruption silences all that is
    queued, and audio of an answer that was cut off is not played. `run` reports positions as they
    change, and at an interruption what was heard of the answers that it cut off.

    Args:
        position_ms: how much of the audio that was queued, since the beginning, has sounded.
        play: queues samples, a WAV's as PCM16; none, if the application does so itself.
        stop: drops what is queued, and gives the position at which the last sound ends; by default
            the position of the moment.
        report_interval_s: how often `run` reports.
    """

    def __init__(
        self,
        client: DuplexClientBase,
        *,
        position_ms: Callable[[], float],
        play: Callable[[bytes, AudioFormat], None] | None = None,
        stop: Callable[[], float] | None = None,
        clock: Clock | None = None,
        report_interval_s: float = 0.1,
    ) -> None:
        self._client = client
        self._position_ms = position_ms
        self._play = play
        self._stop = stop or position_ms
        self._clock = clock or MonotonicClock()
        self._report_interval_s = report_interval_s
        self._tracks: dict[str, _Track] = {}
        self._heard: dict[str, int] = {}
        self._responses: dict[str, str] = {}
        self._queued_ms = 0.0

    @property
    def idle(self) -> bool:
        """Whether all audio so far has sounded."""
        return self._position_ms() >= self._queued_ms - _TOLERANCE_MS

    def played_ms(self, name: str) -> int:
        """Whole ms of an answer that have sounded; `name` is its response's id or its item's."""
        response_id = self._responses.get(name, name)
        track = self._tracks.get(response_id)
        if track is None:
            return self._heard.get(response_id, 0)
        return track.heard_ms(self._position_ms())

    def feed(self, event: ServerEvent) -> None:
        """Queue audio, and cut it off where the server did; other events mean nothing here."""
        match event:
            case AudioDelta():
                self._queue(event)
            case OutputCleared():
                self.cut(event.response_id)
            case ResponseDone():
                if event.response.status == "cancelled":
                    self.cut(event.response_id)
                track = self._tracks.get(event.response_id)
                if track is not None:
                    track.complete = True

    def cut(self, response_id: str | None = None) -> list[Truncation]:
        """Cut off an answer, or all, and with it whatever is queued; tells where they end."""
        position_ms = self._position_ms()
        tracks = {name: track for name, track in self._tracks.items() if not track.is_cut}
        named = {name for name in tracks if response_id in (None, name)}
        if any(tracks[name].unheard_ms(position_ms) for name in named):
            position_ms = self._queued_ms = self._stop()
            named |= {name for name, track in tracks.items() if track.unheard_ms(position_ms)}
        for name in named:
            tracks[name].cut(position_ms)
        return [
            Truncation(name, track.item_id, track.heard_ms(position_ms))
            for name, track in tracks.items()
            if name in named
        ]

    async def run(self) -> None:
        """Report positions until cancelled."""
        while True:
            await self._clock.sleep(self._report_interval_s)
            await self.report()

    async def report(self) -> None:
        """Acknowledge every position that has moved."""
        for response_id, track in list(self._tracks.items()):
            position_ms = self._position_ms()
            heard_ms = track.heard_ms(position_ms)
            if track.is_cut or (track.complete and not track.unheard_ms(position_ms)):
                _keep(self._heard, response_id, heard_ms)
                del self._tracks[response_id]
            if heard_ms > track.acked_ms or track.is_cut:
                track.acked_ms = heard_ms
                await self._client.ack_playback(
                    heard_ms, response_id=response_id, truncate=track.is_cut
                )

    def _queue(self, delta: AudioDelta) -> None:
        if delta.response_id in self._heard:
            return
        _keep(self._responses, delta.item_id, delta.response_id)
        track = self._tracks.setdefault(delta.response_id, _Track(delta.item_id))
        if track.is_cut:
            return
        expected = self._client.config.output_audio
        samples, audio_format = samples_of(delta.delta, delta_format(delta, expected))
        length_ms = audio_format.duration_ms(len(samples))
        self._queued_ms += length_ms
        track.total_ms += length_ms
        track.ends_at_ms = self._queued_ms
        if self._play is not None:
            self._play(samples, audio_format)


class RealTimePlayer(PlaybackTracker):
    """A tracker with a loudspeaker of its own, which makes no sound: real time by a clock."""

    def __init__(
        self,
        client: DuplexClientBase,
        *,
        clock: Clock,
        report_interval_s: float = 0.1,
        cut: PlaybackCut = immediate_cut(),  # noqa: B008 - frozen
    ) -> None:
        speaker = _MuteLoudspeaker(clock, cut)
        super().__init__(
            client,
            position_ms=speaker.position_ms,
            play=speaker.play,
            stop=speaker.stop,
            clock=clock,
            report_interval_s=report_interval_s,
        )


class _MuteLoudspeaker:
    """Audio that comes late starts when it comes: the gap was silence."""

    def __init__(self, clock: Clock, cut: PlaybackCut) -> None:
        self._clock = clock
        self._cut = cut
        self._queued_ms = 0.0
        self._free_at = 0.0

    def position_ms(self) -> float:
        return self._queued_ms - self._left_ms()

    def play(self, pcm: bytes, audio_format: AudioFormat) -> None:
        length_ms = audio_format.duration_ms(len(pcm))
        self._queued_ms += length_ms
        self._free_at = max(self._free_at, self._clock.now()) + length_ms / 1000

    def stop(self) -> float:
        left_ms = min(self._left_ms(), self._cut.drain_ms)
        self._queued_ms = self.position_ms() + left_ms
        self._free_at = self._clock.now() + left_ms / 1000
        return self._queued_ms

    def _left_ms(self) -> float:
        return max(0.0, self._free_at - self._clock.now()) * 1000
