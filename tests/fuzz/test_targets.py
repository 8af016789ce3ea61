"""Every fuzz target takes its own seeds, and mutations of them that chance makes.

`make fuzz` runs the same targets for minutes, guided by what they reach.
"""

from __future__ import annotations

import random

import pytest
from tests.fuzz.events import ByteDice
from tests.fuzz.mutation import mutate
from tests.fuzz.targets import TARGETS

MUTATIONS = 400


@pytest.mark.parametrize("name", TARGETS)
def test_seeds_and_their_mutations_are_taken_or_refused_by_name(name: str) -> None:
    target = TARGETS[name]
    seeds = target.seeds()
    assert seeds
    for seed in seeds:
        target.run(seed)
    chance = random.Random(name)
    for _ in range(MUTATIONS):
        target.run(mutate(chance.choice(seeds), seeds, chance))


def test_luck_comes_from_bytes_and_ends_with_them() -> None:
    dice = ByteDice(b"\0\x80" + b"\x03")

    assert dice.random() == 0.5
    assert dice.getrandbits(2) == 3
    assert (dice.random(), dice.getrandbits(30), dice.choice("ab")) == (0, 0, "a")
