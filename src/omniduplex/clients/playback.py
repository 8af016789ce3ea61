"""Playback as it would be at a loudspeaker: what was heard when, reported to the server."""

from __future__ import annotations

from dataclasses import dataclass

from omniduplex.clients.audio import delta_format, duration_ms
from omniduplex.clients.base import DuplexClientBase
from omniduplex.clients.clock import Clock
from omniduplex.clients.events import ServerEvent
from omniduplex.protocol.duplex import AudioDelta, OutputCleared, ResponseDone


@dataclass
class _Track:
    """One answer's audio: how much there is, and when its last sample sounds."""

    total_ms: float = 0.0
    ends_at: float = 0.0
    acked_ms: int = -1
    stopped_ms: int | None = None
    complete: bool = False


class RealTimePlayer:
    """A loudspeaker without sound, in real time by an injected clock.

    Feed it every event. Answers queue up one behind the other; an interruption stops the sound at
    once. `run` reports positions as they change, and at an interruption what was heard of the
    answer that it cut off.
    """

    def __init__(
        self, client: DuplexClientBase, *, clock: Clock, report_interval_s: float = 0.1
    ) -> None:
        self._client = client
        self._clock = clock
        self._report_interval_s = report_interval_s
        self._tracks: dict[str, _Track] = {}
        self._heard: dict[str, int] = {}
        self._free_at = 0.0

    @property
    def idle(self) -> bool:
        """Whether all audio so far has sounded."""
        return self._clock.now() >= self._free_at

    def played_ms(self, response_id: str) -> int:
        """Whole ms of an answer that have sounded."""
        track = self._tracks.get(response_id)
        if track is None:
            return self._heard.get(response_id, 0)
        if track.stopped_ms is not None:
            return track.stopped_ms
        ahead_ms = max(0.0, track.ends_at - self._clock.now()) * 1000
        return int(max(0.0, track.total_ms - ahead_ms))

    def feed(self, event: ServerEvent) -> None:
        """Play audio, and stop it where it is cut off; other events mean nothing here."""
        match event:
            case AudioDelta():
                self._play(event)
            case OutputCleared():
                self._stop(event.response_id)
            case ResponseDone():
                if event.response.status == "cancelled":
                    self._stop(event.response_id)
                track = self._tracks.get(event.response_id)
                if track is not None:
                    track.complete = True

    async def run(self) -> None:
        """Report positions until cancelled."""
        while True:
            await self._clock.sleep(self._report_interval_s)
            await self.report()

    async def report(self) -> None:
        """Acknowledge every position that has moved."""
        for response_id, track in list(self._tracks.items()):
            played_ms = self.played_ms(response_id)
            cut_off = track.stopped_ms is not None
            if played_ms > track.acked_ms or cut_off:
                track.acked_ms = played_ms
                await self._client.ack_playback(
                    played_ms, response_id=response_id, truncate=cut_off
                )
            if cut_off or (track.complete and self._clock.now() >= track.ends_at):
                self._heard[response_id] = played_ms
                del self._tracks[response_id]

    def _play(self, delta: AudioDelta) -> None:
        track = self._tracks.setdefault(delta.response_id, _Track())
        if track.stopped_ms is not None:
            return
        audio_format = delta_format(delta, self._client.config.output_audio)
        length_ms = duration_ms(audio_format, len(delta.delta))
        # Audio that comes late starts when it comes: the gap was silence.
        self._free_at = max(self._free_at, self._clock.now()) + length_ms / 1000
        track.total_ms += length_ms
        track.ends_at = self._free_at

    def _stop(self, response_id: str | None) -> None:
        for name, track in self._tracks.items():
            if response_id in (None, name) and track.stopped_ms is None:
                track.stopped_ms = self.played_ms(name)
        self._free_at = max(
            (track.ends_at for track in self._tracks.values() if track.stopped_ms is None),
            default=self._clock.now(),
        )
