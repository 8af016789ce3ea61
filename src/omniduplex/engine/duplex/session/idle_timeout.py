"""When a user who was answered has been silent for so long that the model may speak again."""

from __future__ import annotations

from dataclasses import dataclass

from omniduplex.protocol.duplex import DuplexSessionConfig


@dataclass(slots=True)
class IdleTimeout:
    """The quiet after an answer; times in s of the session clock.

    It begins when an answer was heard to its end, anew when the user spoke and said nothing, and
    is over once it was acted upon: the next answer begins another.
    """

    since: float | None = None

    def answered(self, now: float) -> None:
        """An answer ended, or its playback did."""
        self.since = now

    def heard(self, now: float) -> None:
        """The user made a sound."""
        if self.since is not None:
            self.since = now

    def over(self) -> None:
        """The silence was answered."""
        self.since = None

    def due_at(self, config: DuplexSessionConfig) -> float | None:
        """When the silence has lasted as long as the client allows; None: it may last."""
        detection = config.turn_detection
        if detection is None or not detection.create_response or self.since is None:
            return None
        if detection.type != "server_vad" or detection.idle_timeout_ms is None:
            return None
        return self.since + detection.idle_timeout_ms / 1000
