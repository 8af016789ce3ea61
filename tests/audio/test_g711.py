"""The tables against G.711 spelled out one sample at a time, in plain integers."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.audio.g711 import decode_alaw, decode_ulaw, encode_alaw, encode_ulaw

EVERY_SAMPLE = range(-32768, 32768)
EVERY_CODE = bytes(range(256))


def pcm(*samples: int) -> bytes:
    return np.array(samples, dtype="<i2").tobytes()


def samples(data: bytes) -> list[int]:
    decoded: list[int] = np.frombuffer(data, dtype="<i2").tolist()
    return decoded


def slow_ulaw(sample: int) -> int:
    """Table 2a/G.711: segment k begins at 2**(k+5) - 33 (14 bits), a step is 2**(k+1) wide."""
    sample //= 4
    magnitude = min(abs(sample), 8158)
    segment = 0
    while magnitude >= (64 << segment) - 33:
        segment += 1
    step = (magnitude - ((32 << segment) - 33)) // (2 << segment)
    return (0 if sample < 0 else 128) + 16 * (7 - segment) + (15 - step)


def slow_ulaw_value(code: int) -> int:
    """The middle of the step, on the 16-bit scale."""
    segment, step = 7 - code // 16 % 8, 15 - code % 16
    low = (32 << segment) - 33 + step * (2 << segment)
    value = 4 * (low + (1 << segment))
    return value if code >= 128 else -value


def slow_alaw(sample: int) -> int:
    """Table 1a/G.711: steps of 2 in 13-bit units in segments 0 and 1, then twice that each."""
    sample //= 8
    magnitude = sample if sample >= 0 else -sample - 1
    segment, start, width = 0, 0, 2
    while magnitude >= start + 16 * width:
        start += 16 * width
        segment += 1
        width = max(1 << segment, 2)
    plain = (0 if sample < 0 else 128) + 16 * segment + (magnitude - start) // width
    return plain ^ 0x55


def slow_alaw_value(code: int) -> int:
    plain = code ^ 0x55
    segment, step = plain // 16 % 8, plain % 16
    width = max(1 << segment, 2)
    start = 0 if segment == 0 else 16 * width
    value = 8 * (start + step * width) + 4 * width
    return value if plain >= 128 else -value


def test_ulaw_encodes_every_sample_as_the_recommendation_does() -> None:
    assert encode_ulaw(pcm(*EVERY_SAMPLE)) == bytes(map(slow_ulaw, EVERY_SAMPLE))


def test_ulaw_decodes_every_code_as_the_recommendation_does() -> None:
    assert samples(decode_ulaw(EVERY_CODE)) == list(map(slow_ulaw_value, EVERY_CODE))


def test_alaw_encodes_every_sample_as_the_recommendation_does() -> None:
    assert encode_alaw(pcm(*EVERY_SAMPLE)) == bytes(map(slow_alaw, EVERY_SAMPLE))


def test_alaw_decodes_every_code_as_the_recommendation_does() -> None:
    assert samples(decode_alaw(EVERY_CODE)) == list(map(slow_alaw_value, EVERY_CODE))


def test_well_known_codes() -> None:
    assert encode_ulaw(pcm(0, 32767, -32768)) == b"\xff\x80\x00"
    assert encode_alaw(pcm(0, 32767, -32768)) == b"\xd5\xaa\x2a"
    assert samples(decode_ulaw(b"\xff\x80\x00")) == [0, 32124, -32124]
    assert samples(decode_alaw(b"\xd5\xaa\x2a")) == [8, 32256, -32256]


def test_codes_round_trip_except_the_negative_zero_of_ulaw() -> None:
    assert encode_alaw(decode_alaw(EVERY_CODE)) == EVERY_CODE
    assert encode_ulaw(decode_ulaw(EVERY_CODE)) == EVERY_CODE.replace(b"\x7f", b"\xff")


@given(st.lists(st.integers(-32768, 32767), max_size=50))
def test_a_round_trip_errs_by_half_a_step_at_most(wanted: list[int]) -> None:
    """A step is 1/16 of its segment; mu-law clips above 32635, A-law's smallest step is 16."""
    for encode, decode in ((encode_ulaw, decode_ulaw), (encode_alaw, decode_alaw)):
        heard = samples(decode(encode(pcm(*wanted))))

        assert len(heard) == len(wanted)
        for before, after in zip(wanted, heard, strict=True):
            assert abs(before - after) <= max(16, abs(before) / 32 + 8)


def test_half_a_sample_is_refused() -> None:
    for encode in (encode_ulaw, encode_alaw):
        with pytest.raises(ValueError, match="multiple"):
            encode(b"\0")
