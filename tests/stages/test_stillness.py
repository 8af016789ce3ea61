"""Who is seen to stir, and how long everybody must be seen not to."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Sequence

import pytest
from tests.reliability.processes import comes_true

from omniduplex.stages.stillness import STILL_LOOKS, Seen, Stillness, look_at, look_for_a_stop

ASLEEP = Seen(((7, 3),), works=False, answers=False)
AWAKE_SINCE = Seen(((7, 4),), works=False, answers=False)
BUSY = Seen(((7, 3),), works=True, answers=False)
ANSWERING = Seen(((7, 3),), works=False, answers=True)


def found_still_at(looks: Sequence[Seen | None]) -> int | None:
    """The number of the look that finds nobody working for long enough."""
    stillness = Stillness(iter(looks).__next__)
    return next((number for number, _ in enumerate(looks) if stillness.lasts()), None)


def test_it_takes_several_looks_in_a_row() -> None:
    assert found_still_at([ASLEEP] * (STILL_LOOKS + 1)) == STILL_LOOKS
    assert found_still_at([ASLEEP] * STILL_LOOKS) is None


@pytest.mark.parametrize("sight", [BUSY, AWAKE_SINCE, None])
def test_whoever_works_or_cannot_be_seen_is_not_still(sight: Seen | None) -> None:
    assert found_still_at([ASLEEP, ASLEEP, ASLEEP, sight] * 5) is None
    assert found_still_at([sight, *[ASLEEP] * (STILL_LOOKS + 1)]) is not None


def test_a_busy_process_stays_busy_however_often_one_looks() -> None:
    assert found_still_at([BUSY] * 1000) is None
    assert found_still_at([None] * 1000) is None


def test_a_look_at_somebody_who_is_about_to_answer_does_not_count() -> None:
    assert found_still_at([ASLEEP, *[ANSWERING] * 1000]) is None
    looks = [ASLEEP, ANSWERING, ASLEEP, ANSWERING, ASLEEP, ASLEEP]
    assert found_still_at(looks) == len(looks) - 1


def test_a_new_question_starts_anew() -> None:
    stillness = Stillness(lambda: ASLEEP)
    for _ in range(STILL_LOOKS):
        assert not stillness.lasts()
    stillness.begin()

    assert not stillness.lasts()


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_the_kernel_tells_who_computes_who_sleeps_and_who_is_stopped() -> None:
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as busy:
        assert comes_true(lambda: works(busy.pid))
        os.kill(busy.pid, signal.SIGSTOP)
        assert comes_true(lambda: not works(busy.pid))
        first = look_at(busy.pid)
        assert first is not None
        assert first == look_at(busy.pid)
        os.kill(busy.pid, signal.SIGCONT)
        assert comes_true(lambda: look_at(busy.pid) != first)
        assert look_at(busy.pid, [busy.pid]) in (
            Seen((), works=False, answers=True),
            Seen((), works=False, answers=False),
        )
        busy.kill()
    assert look_at(busy.pid) is None


@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_whoever_looks_for_a_stop_takes_a_sleeper_for_one_at_work() -> None:
    read = [sys.executable, "-c", "input()"]
    with subprocess.Popen(read, stdin=subprocess.PIPE) as sleeper:
        assert comes_true(lambda: not works(sleeper.pid))
        assert look_for_a_stop(sleeper.pid) == Seen((), works=True, answers=False)
        os.kill(sleeper.pid, signal.SIGSTOP)
        stopped = Seen((), works=False, answers=False)
        assert comes_true(lambda: look_for_a_stop(sleeper.pid) == stopped)
        sleeper.kill()
    assert look_for_a_stop(sleeper.pid) is None


def works(pid: int) -> bool:
    seen = look_at(pid)
    return seen is not None and seen.works
