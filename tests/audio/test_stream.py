import io
import struct
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.audio.g711 import encode_alaw, encode_ulaw
from omniduplex.audio.resample import StreamResampler
from omniduplex.audio.stream import InputDecoder, InputEncoding, OutputEncoder, OutputEncoding
from omniduplex.audio.wav import read_wav_file

SPEECHLIKE = (6000 * np.sin(np.arange(4800) ** 1.2 / 90) * np.hanning(4800)).astype("<i2").tobytes()


def f32le(pcm: bytes) -> bytes:
    return (np.frombuffer(pcm, dtype="<i2") / 32768).astype("<f4").tobytes()


@pytest.mark.parametrize(
    ("encoding", "data"),
    [
        ("pcm16", b"\x00\x00\x7c\x7d\x84\x82"),
        ("pcm_f32le", struct.pack("<3f", 0, 32124 / 32768, -32124 / 32768)),
        ("g711_ulaw", b"\xff\x80\x00"),
    ],
)
def test_each_encoding_becomes_pcm(encoding: InputEncoding, data: bytes) -> None:
    pcm = InputDecoder(encoding, 8000, 8000).process(data)

    assert struct.unpack("<3h", pcm) == (0, 32124, -32124)


def test_alaw_becomes_pcm() -> None:
    assert struct.unpack("<2h", InputDecoder("g711_alaw", 8000, 8000).process(b"\xaa\x2a")) == (
        32256,
        -32256,
    )


def test_a_split_pcm16_sample_waits_for_its_other_byte() -> None:
    decoder = InputDecoder("pcm16", 16000, 16000)

    assert decoder.process(b"\1\2\3") == b"\1\2"
    assert decoder.pending == 1
    assert decoder.process(b"\4\5") == b"\3\4"
    assert decoder.pending == 1
    assert decoder.process(b"\6") == b"\5\6"
    assert decoder.pending == 0


def test_a_float_sample_may_come_byte_by_byte() -> None:
    decoder = InputDecoder("pcm_f32le", 16000, 16000)
    pending = []
    out = b""
    for byte in struct.pack("<2f", 0.5, -0.5):
        out += decoder.process(bytes([byte]))
        pending.append(decoder.pending)

    assert pending == [1, 2, 3, 0, 1, 2, 3, 0]
    assert struct.unpack("<2h", out) == (16384, -16384)


ENCODED: list[tuple[InputEncoding, bytes]] = [
    ("pcm16", SPEECHLIKE),
    ("pcm_f32le", f32le(SPEECHLIKE)),
    ("g711_ulaw", encode_ulaw(SPEECHLIKE)),
    ("g711_alaw", encode_alaw(SPEECHLIKE)),
]


@pytest.mark.parametrize(("encoding", "data"), ENCODED)
@given(cuts=st.lists(st.integers(0, 19200), max_size=10))
def test_any_slicing_of_the_bytes_gives_the_same_audio(
    encoding: InputEncoding, data: bytes, cuts: list[int]
) -> None:
    edges = [0, *sorted(min(cut, len(data)) for cut in cuts), len(data)]
    whole, sliced = InputDecoder(encoding, 8000, 16000), InputDecoder(encoding, 8000, 16000)

    wanted = whole.process(data) + whole.flush()
    parts = [sliced.process(data[a:b]) for a, b in pairwise(edges)]
    got = b"".join(parts) + sliced.flush()

    assert len(got) == len(wanted) == 2 * len(SPEECHLIKE)
    difference = np.frombuffer(got, "<i2").astype(int) - np.frombuffer(wanted, "<i2")
    assert np.abs(difference).max() <= 1


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_a_float_that_is_not_finite_is_refused_and_leaves_no_trace(bad: float) -> None:
    decoder = InputDecoder("pcm_f32le", 16000, 16000)
    half = struct.pack("<f", 0.5)
    decoder.process(half[:3])

    with pytest.raises(ValueError, match="not finite"):
        decoder.process(half[3:] + struct.pack("<f", bad))

    assert decoder.pending == 3
    assert decoder.process(half[3:]) == struct.pack("<h", 16384)


def test_flush_gives_the_tail_and_drops_a_sample_never_completed() -> None:
    decoder = InputDecoder("pcm16", 24000, 16000)
    head = decoder.process(SPEECHLIKE + b"\1")
    tail = decoder.flush()

    assert head + tail == StreamResampler(24000, 16000).process(SPEECHLIKE, last=True)
    assert tail
    assert decoder.pending == 0
    assert decoder.flush() == b""


def test_reset_drops_the_carried_bytes_and_the_audio_inside() -> None:
    decoder = InputDecoder("pcm16", 24000, 16000)
    decoder.process(SPEECHLIKE + b"\1")
    decoder.reset()

    assert decoder.pending == 0
    assert decoder.process(bytes(24000)) + decoder.flush() == bytes(16000)


@pytest.mark.parametrize(
    ("encoding", "encoded"),
    [
        ("pcm16", SPEECHLIKE),
        ("g711_ulaw", encode_ulaw(SPEECHLIKE)),
        ("g711_alaw", encode_alaw(SPEECHLIKE)),
    ],
)
def test_output_is_encoded(encoding: OutputEncoding, encoded: bytes) -> None:
    assert OutputEncoder(24000, encoding, 24000).process(SPEECHLIKE, last=True) == encoded


@given(cuts=st.lists(st.integers(0, 4800), max_size=6))
def test_every_piece_in_wav_is_a_whole_file_of_its_own_samples(cuts: list[int]) -> None:
    edges = [0, *(2 * cut for cut in sorted(cuts)), len(SPEECHLIKE)]
    wav, pcm = OutputEncoder(24000, "wav", 16000), OutputEncoder(24000, "pcm16", 16000)
    for start, end in pairwise(edges):
        last = end == len(SPEECHLIKE)
        piece = wav.process(SPEECHLIKE[start:end], last=last)
        samples = pcm.process(SPEECHLIKE[start:end], last=last)

        assert (not piece) == (not samples)
        assert not piece or read_wav_file(io.BytesIO(piece)) == (samples, 16000)


def test_an_encoding_goes_its_own_way_only() -> None:
    with pytest.raises(ValueError, match="no input in wav"):
        InputDecoder("wav", 24000, 24000)
    with pytest.raises(ValueError, match="no output in pcm_f32le"):
        OutputEncoder(24000, "pcm_f32le", 24000)


def test_output_is_resampled_before_it_is_encoded() -> None:
    encoder = OutputEncoder(24000, "g711_ulaw", 8000)
    parts = [
        encoder.process(SPEECHLIKE[: 4001 * 2]),
        encoder.process(SPEECHLIKE[4001 * 2 :], last=True),
    ]

    assert b"".join(parts) == encode_ulaw(
        StreamResampler(24000, 8000).process(SPEECHLIKE, last=True)
    )
    assert len(b"".join(parts)) == len(SPEECHLIKE) // 2 // 3


def test_output_reset_forgets_the_audio_inside() -> None:
    encoder = OutputEncoder(24000, "pcm16", 16000)
    encoder.process(SPEECHLIKE)
    encoder.reset()

    assert encoder.process(bytes(4800), last=True) == bytes(3200)
