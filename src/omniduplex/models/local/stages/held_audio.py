"""The newest audio of a stream, addressed by its place on the stream's clock."""

from omniduplex.audio.pcm import SAMPLE_BYTES


class HeldAudio:
    """Keeps int16 PCM from `start` to `end`, both in samples since the stream began."""

    def __init__(self) -> None:
        self.start = 0
        self._pcm = bytearray()

    @property
    def end(self) -> int:
        """The sample after the last one heard."""
        return self.start + len(self._pcm) // SAMPLE_BYTES

    def append(self, pcm: bytes) -> None:
        """Add whole samples at the end."""
        self._pcm += pcm

    def read(self, start: int, stop: int) -> bytes:
        """The samples of `start` to `stop`, as far as they are still held."""
        first, last = (max(0, place - self.start) * SAMPLE_BYTES for place in (start, stop))
        return bytes(self._pcm[first:last])

    def read_padded(self, start: int, stop: int) -> bytes:
        """The samples of `start` to `stop`; what is not held is silence."""
        first, last = max(start, self.start), min(stop, self.end)
        before, behind = (bytes(SAMPLE_BYTES * gap) for gap in (first - start, stop - last))
        return before + self.read(first, last) + behind

    def forget_before(self, place: int) -> None:
        """Let go of everything that is older than `place`."""
        count = min(place, self.end) - self.start
        if count > 0:
            del self._pcm[: count * SAMPLE_BYTES]
            self.start += count
