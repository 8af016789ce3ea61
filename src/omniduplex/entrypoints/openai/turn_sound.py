"""The sound of one turn in its client's format."""

from __future__ import annotations

from typing import Literal

from omniduplex.audio.pcm import SAMPLE_BYTES
from omniduplex.audio.resample import StreamResampler
from omniduplex.audio.wav import endless_wav_header, wav_bytes
from omniduplex.engine.async_omni_engine import StageFailed
from omniduplex.engine.turns import TurnChunk

SoundFormat = Literal["wav", "pcm16"]
# The OpenAI API has headerless PCM at this rate.
PCM_RATE_HZ = 24_000


class TurnSound:
    """Converts chunks as they come: `pcm16` is at 24 kHz, a `wav` at the model's own rate."""

    def __init__(self, sound_format: SoundFormat) -> None:
        self.format = sound_format
        self.rate_hz = 0
        """Rate of what comes out, in Hz; 0 before the first sound."""
        self._model_rate_hz = 0
        self._resampler: StreamResampler | None = None
        self._began = False

    def take(self, chunk: TurnChunk) -> bytes:
        """PCM at `rate_hz` that is ready; the last chunk brings what was held back.

        Raises:
            StageFailed: the model changed its rate.
        """
        if chunk.pcm and self._resampler is None:
            self._model_rate_hz = chunk.sample_rate_hz
            self.rate_hz = PCM_RATE_HZ if self.format == "pcm16" else self._model_rate_hz
            self._resampler = StreamResampler(self._model_rate_hz, self.rate_hz)
        if self._resampler is None:
            return b""
        if chunk.pcm and chunk.sample_rate_hz != self._model_rate_hz:
            raise StageFailed("the model changed its sample rate within one answer")
        return self._resampler.process(chunk.pcm, last=chunk.finished)

    def streamed(self, pcm: bytes) -> bytes:
        """The bytes with which PCM goes out as it comes: a WAV's header goes before the first."""
        header = b"" if self._began or self.format == "pcm16" else endless_wav_header(self.rate_hz)
        self._began = True
        return header + pcm

    def whole(self, pcm: bytes) -> bytes:
        """The bytes of all PCM at once."""
        return pcm if self.format == "pcm16" else wav_bytes(pcm, self.rate_hz)


def frame_count(pcm: bytes) -> int:
    """Samples in mono PCM."""
    return len(pcm) // SAMPLE_BYTES
