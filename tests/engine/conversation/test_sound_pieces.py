"""A model's sound is cut to the frames of stock clients, and nothing of it is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.audio.stream import OutputEncoder
from omniduplex.engine.conversation.sound_pieces import MAX_DELTA_BYTES, sound_pieces
from omniduplex.protocol.duplex import AudioFormat

RATES = st.integers(8_000, 192_000)


@given(
    st.integers(0, 600_000),
    RATES,
    st.builds(AudioFormat, st.sampled_from(["pcm16", "g711_ulaw", "wav"]), RATES),
)
def test_pieces_are_the_whole_and_none_is_longer_than_one_event_may_be(
    samples: int, rate_hz: int, told_in: AudioFormat
) -> None:
    pcm = bytes(2 * samples)
    pieces = sound_pieces(pcm, rate_hz, told_in)
    assert b"".join(pieces) == pcm
    assert all(len(piece) % 2 == 0 for piece in pieces)
    # A sample of the model's more or less is at most 24 of the client's.
    longest = max(told_in.byte_count(len(piece) * 500 / rate_hz) for piece in pieces)
    assert longest <= MAX_DELTA_BYTES + 24 * told_in.bytes_per_sample
    assert len(pieces) == 1 or longest > MAX_DELTA_BYTES * 0.99


def test_what_is_converted_still_fits() -> None:
    """A resampler holds back and catches up; base64 makes four bytes of three."""
    told_in = AudioFormat("wav", 192_000)
    encoder = OutputEncoder(8_000, "wav", 192_000)
    for piece in sound_pieces(bytes(2 * 8_000 * 5), 8_000, told_in):
        assert len(encoder.process(piece)) * 4 / 3 < 0.6 * 1024 * 1024


def test_no_sound_is_one_piece() -> None:
    assert list(sound_pieces(b"", 24_000, AudioFormat())) == [b""]


def test_a_rate_of_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="zero"):
        sound_pieces(bytes(2), 0, AudioFormat())
