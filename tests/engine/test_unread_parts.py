"""What waits for the reader of a turn is bounded; a turn ends once, whoever ends it."""

from __future__ import annotations

import pytest

from omniduplex.engine.turns import TurnChunk, TurnFailure, TurnToolCall
from omniduplex.engine.unread_parts import UnreadParts

# Room for four of the big ones, and not for the end as well.
MAX_BYTES = 10_100
LAST = TurnChunk(finish_reason="stop")
BIG = (
    TurnChunk(pcm=b"\0" * 2000),
    TurnChunk(text="x" * 2000),
    TurnChunk(tool_calls=(TurnToolCall(call_id="c", name="f", arguments="x" * 2000),)),
)


class Turn:
    """What becomes of a turn, in order."""

    def __init__(self) -> None:
        self.told: list[TurnChunk | TurnFailure | str] = []
        self.parts = UnreadParts(
            self.told.append,
            lambda: self.told.append("aborted"),
            lambda: self.told.append("ended"),
            max_bytes=MAX_BYTES,
        )


@pytest.mark.parametrize("chunk", [*BIG, TurnChunk(text="x")])
def test_a_turn_that_nobody_reads_is_given_up(chunk: TurnChunk) -> None:
    turn = Turn()
    for _ in range(100):
        turn.parts.put(chunk)

    *read, aborted, ended, failure = turn.told
    assert (aborted, ended) == ("aborted", "ended")
    assert isinstance(failure, TurnFailure)
    assert 0 < len(read) < 100
    assert set(map(id, read)) == {id(chunk)}


@pytest.mark.parametrize("chunk", BIG)
def test_a_turn_that_is_read_may_be_of_any_length(chunk: TurnChunk) -> None:
    turn = Turn()
    for _ in range(100):
        turn.parts.put(chunk)
        turn.parts.taken(chunk)
    turn.parts.put(LAST)

    assert turn.told == [chunk] * 100 + ["ended", LAST]


@pytest.mark.parametrize("last", [LAST, TurnFailure("it broke")])
def test_an_end_is_delivered_however_much_waits_and_nothing_after_it(
    last: TurnChunk | TurnFailure,
) -> None:
    turn = Turn()
    for _ in range(4):
        turn.parts.put(BIG[0])
    for _ in range(20):
        turn.parts.put(last)
        turn.parts.put(BIG[0])

    assert turn.told == [BIG[0]] * 4 + ["ended", last]
