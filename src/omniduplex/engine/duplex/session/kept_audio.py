"""Speech over an answer that its model does not hear yet, and the moment of sound before it."""

from __future__ import annotations

from dataclasses import dataclass, field

from omniduplex.audio.pcm import byte_count

PRE_ROLL_MS = 300
"""Sound before an onset that belongs to it: a first consonant is soft (section 8.3's padding)."""


@dataclass(slots=True)
class KeptAudio:
    """What a later turn begins with: int16 at `rate_hz`, and the `wire_bytes` it came in.

    `words` are what its client says was spoken in it.
    """

    rate_hz: int
    pcm: bytearray = field(default_factory=bytearray)
    words: list[str] = field(default_factory=list)
    wire_bytes: int = 0
    _before: bytes = b""

    def keep(self, pcm: bytes, wire_bytes: int, words: tuple[str, ...] = ()) -> None:
        """Speech, behind what was heard right before it."""
        self.pcm += self.lead_in() + pcm
        self.wire_bytes += wire_bytes
        self.words += words

    def heard_before(self, pcm: bytes) -> None:
        """Sound that is no speech, or not yet: only the end of it matters."""
        self._before = (self._before + pcm)[-byte_count(PRE_ROLL_MS, self.rate_hz) :]

    def lead_in(self) -> bytes:
        """Take what was heard right before now."""
        before, self._before = self._before, b""
        return before

    def take(self) -> tuple[bytes, tuple[str, ...]]:
        """Take all that was kept; its room has to be accounted for elsewhere from now on."""
        pcm, words = bytes(self.pcm), tuple(self.words)
        self.pcm.clear()
        self.words.clear()
        self.wire_bytes = 0
        return pcm, words

    def drop(self, *, goes_on: bool) -> int:
        """Forget what was kept; the bytes it came in.

        If the user `goes_on` speaking, it may be the beginning of more.
        """
        freed = self.wire_bytes
        pcm, _ = self.take()
        self._before = pcm if goes_on else b""
        return freed
