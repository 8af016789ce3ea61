"""Wire audio at the edge: client bytes to model PCM, and model PCM to client bytes."""

from collections.abc import Callable
from functools import partial
from typing import Literal

from omniduplex.audio.g711 import decode_alaw, decode_ulaw, encode_alaw, encode_ulaw
from omniduplex.audio.pcm import decode_f32le, float32_to_int16
from omniduplex.audio.resample import StreamResampler
from omniduplex.audio.wav import wav_bytes

InputEncoding = Literal["pcm16", "pcm_f32le", "g711_ulaw", "g711_alaw"]
OutputEncoding = Literal["pcm16", "g711_ulaw", "g711_alaw", "wav"]


def _f32le_to_pcm(data: bytes) -> bytes:
    return float32_to_int16(decode_f32le(data))


def _unchanged(pcm: bytes) -> bytes:
    return pcm


# Bytes of one sample on the wire, and what turns whole samples into PCM.
_DECODERS: dict[InputEncoding, tuple[int, Callable[[bytes], bytes]]] = {
    "pcm16": (2, _unchanged),
    "pcm_f32le": (4, _f32le_to_pcm),
    "g711_ulaw": (1, decode_ulaw),
    "g711_alaw": (1, decode_alaw),
}


def _as_wav(pcm: bytes, rate: int) -> bytes:
    return wav_bytes(pcm, rate) if pcm else b""


_ENCODERS: dict[OutputEncoding, Callable[[bytes], bytes]] = {
    "pcm16": _unchanged,
    "g711_ulaw": encode_ulaw,
    "g711_alaw": encode_alaw,
}


class InputDecoder:
    """Turns client bytes, cut anywhere, into PCM at `out_rate`.

    The first bytes of a split sample wait for the others. Raises ValueError for an encoding that
    comes out only.
    """

    def __init__(
        self, encoding: InputEncoding | OutputEncoding, in_rate: int, out_rate: int
    ) -> None:
        if encoding == "wav":
            raise ValueError("no input in wav")
        self._sample_bytes, self._decode = _DECODERS[encoding]
        self._resampler = StreamResampler(in_rate, out_rate)
        self._carried = b""

    @property
    def pending(self) -> int:
        """Carried bytes of a sample that is not complete yet."""
        return len(self._carried)

    def process(self, data: bytes) -> bytes:
        """PCM that is ready at the output rate.

        Raises ValueError when a float32 sample is not finite; such a chunk leaves no trace.
        """
        joined = self._carried + data if self._carried else data
        whole = len(joined) - len(joined) % self._sample_bytes
        pcm = self._decode(joined[:whole])
        self._carried = joined[whole:]
        return self._resampler.process(pcm)

    def flush(self) -> bytes:
        """End the stream: the rest of its PCM. A sample never completed is dropped."""
        self._carried = b""
        return self._resampler.process(b"", last=True)

    def reset(self) -> None:
        """Drop carried bytes and all audio still inside."""
        self._carried = b""
        self._resampler.reset()


class OutputEncoder:
    """Turns model PCM into client bytes of `encoding` at `out_rate`.

    In `wav` each piece is a whole file. Raises ValueError for an encoding that goes in only.
    """

    def __init__(
        self, model_rate: int, encoding: InputEncoding | OutputEncoding, out_rate: int
    ) -> None:
        if encoding == "pcm_f32le":
            raise ValueError("no output in pcm_f32le")
        self._encode = partial(_as_wav, rate=out_rate) if encoding == "wav" else _ENCODERS[encoding]
        self._resampler = StreamResampler(model_rate, out_rate)

    def process(self, pcm: bytes, *, last: bool = False) -> bytes:
        """Encoded audio that is ready; `last` adds the tail and starts a new stream.

        Raises ValueError when `pcm` ends inside a sample.
        """
        return self._encode(self._resampler.process(pcm, last=last))

    def reset(self) -> None:
        """Forget all audio still inside."""
        self._resampler.reset()
