"""The words of answers that were given as sound: clients name the sound when they go on."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable

KEPT_S = 3600
MAX_KEPT = 1024


class SpokenAnswers:
    """Remembers the newest answers for an hour; `clock` gives Unix seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._kept: OrderedDict[str, tuple[float, str]] = OrderedDict()

    def expiry(self) -> int:
        """When an answer that begins now is forgotten, in Unix seconds."""
        return int(self._clock()) + KEPT_S

    def remember(self, audio_id: str, words: str, expires_at: int) -> None:
        """Keep the words of an answer."""
        self._kept[audio_id] = (expires_at, words)
        if len(self._kept) > MAX_KEPT:
            self._kept.popitem(last=False)

    def recall(self, audio_id: str) -> str | None:
        """The words of an answer that is still kept."""
        expires_at, words = self._kept.get(audio_id, (0, ""))
        return words if expires_at > self._clock() else None
