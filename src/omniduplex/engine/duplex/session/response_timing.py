"""How soon a response came and for how long it was made, by the session's clock."""

from __future__ import annotations

from dataclasses import dataclass

from msgspec import UNSET, UnsetType

from omniduplex.protocol.duplex import ResponseRequestMetrics

# A response opens when its turn is committed, or when it is asked for.
ORIGIN = "response.created"


@dataclass(slots=True)
class ResponseTiming:
    """When the response opened and its parts came, in s."""

    opened_at: float
    text_at: float | None = None
    first_audio_at: float | None = None
    last_audio_at: float | None = None

    def came(self, now: float, *, audio: bool, text: bool) -> None:
        """A part of the response came."""
        if text and self.text_at is None:
            self.text_at = now
        if audio:
            self.last_audio_at = now
            if self.first_audio_at is None:
                self.first_audio_at = now

    def metrics(self, audio_ms: float) -> ResponseRequestMetrics | UnsetType:
        """The latencies of a response with so much audio; of one that said nothing, none."""
        if self.text_at is None and self.first_audio_at is None:
            return UNSET
        return ResponseRequestMetrics(
            measurement_origin={"ttft": ORIGIN, "ttfp": ORIGIN},
            ttft_ms=self._since_open(self.text_at),
            ttfp_ms=self._since_open(self.first_audio_at),
            audio_generation_ms=self._since_open(self.last_audio_at),
            audio_duration_ms=round(audio_ms, 3),
        )

    def _since_open(self, moment: float | None) -> float | UnsetType:
        return UNSET if moment is None else round((moment - self.opened_at) * 1000, 3)
