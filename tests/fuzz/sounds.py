"""Fuzz of what audio may be: appends in every encoding, telephone bytes, WAV files."""

from __future__ import annotations

import math

from omniduplex.audio.g711 import decode_alaw, decode_ulaw, encode_alaw, encode_ulaw
from omniduplex.audio.pcm import SAMPLE_BYTES
from omniduplex.audio.stream import InputDecoder, InputEncoding
from omniduplex.entrypoints.openai.request_audio import RATES_HZ, wav_audio
from omniduplex.entrypoints.openai.turn_http import RequestRefused

ENCODINGS: tuple[tuple[InputEncoding, int], ...] = (
    ("pcm16", 2),
    ("pcm_f32le", 4),
    ("g711_ulaw", 1),
    ("g711_alaw", 1),
)
"""Each with the bytes of a sample."""
APPEND_RATES_HZ = (8_000, 16_000, 24_000, 44_100)
ULAW_MINUS_ZERO, ULAW_PLUS_ZERO = b"\x7f", b"\xff"


def wire_audio(data: bytes) -> None:
    """Audio cut anywhere is the PCM of the whole; only a float that is not finite is refused.

    The first three bytes choose encoding and rates, and where it is cut.
    """
    kind, rate, cut = data[:3].ljust(3, b"\0")
    body = data[3:]
    encoding, width = ENCODINGS[kind % len(ENCODINGS)]
    in_rate = APPEND_RATES_HZ[rate % len(APPEND_RATES_HZ)]
    out_rate = APPEND_RATES_HZ[rate // len(APPEND_RATES_HZ) % len(APPEND_RATES_HZ)]
    whole, sliced = (InputDecoder(encoding, in_rate, out_rate) for _ in range(2))
    try:
        expected = whole.process(body) + whole.flush()
    except ValueError:
        assert encoding == "pcm_f32le"
        return
    cut %= len(body) + 1
    parts = sliced.process(body[:cut]) + sliced.process(body[cut:])
    assert sliced.pending == len(body) % width
    assert parts + sliced.flush() == expected
    samples = len(body) // width
    assert len(expected) <= SAMPLE_BYTES * (math.ceil(samples * out_rate / in_rate) + 1)


def g711(data: bytes) -> None:
    """Every telephone byte comes back from PCM as it was; mu-law has two zeros."""
    assert encode_alaw(decode_alaw(data)) == data
    assert encode_ulaw(decode_ulaw(data)) == data.replace(ULAW_MINUS_ZERO, ULAW_PLUS_ZERO)
    for encode in (encode_alaw, encode_ulaw):
        try:
            assert len(encode(data)) * SAMPLE_BYTES == len(data)
        except ValueError:
            assert len(data) % SAMPLE_BYTES == 1


def wav(data: bytes) -> None:
    """A file is sound in whole samples, never more than is in it, or it is refused."""
    try:
        audio = wav_audio(data, "file")
    except RequestRefused as refused:
        assert refused.code in ("invalid_audio", "audio_too_long")
        return
    assert audio.sample_rate_hz in RATES_HZ
    assert len(audio.pcm) % SAMPLE_BYTES == 0
    # Samples of 8 bits become twice as large.
    assert len(audio.pcm) <= SAMPLE_BYTES * len(data)
