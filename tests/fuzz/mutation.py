"""Small accidents that happen to bytes, for fuzz without coverage."""

from __future__ import annotations

import random
from collections.abc import Sequence

MAX_ACCIDENTS = 4
EXTREMES = (b"\0", b"\xff", b"\x7f", b"\x80", b"\0\0\0\x80", b"\xff\xff\xff\xff", b'"', b"9" * 25)


def mutate(data: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """Return the bytes after a few accidents: lost, doubled, overwritten or mixed with others."""
    for _ in range(chance.randint(1, MAX_ACCIDENTS)):
        begin, end = sorted((chance.randrange(len(data) + 1), chance.randrange(len(data) + 1)))
        other = chance.choice(others)
        middle = chance.choice(
            (
                b"",
                data[begin:end] * 2,
                chance.choice(EXTREMES),
                chance.randbytes(min(end - begin, 8)),
                other[: chance.randrange(len(other) + 1)],
            )
        )
        if chance.random() < 0.5:  # an accident in one place, as long as what it brings
            end = min(len(data), begin + len(middle))
        data = data[:begin] + middle + data[end:]
    return data
