from __future__ import annotations

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from omniduplex.entrypoints.duplex.journal import EventJournal, JournalGap
from omniduplex.protocol.duplex import DuplexError

MAX_BYTES = 100
TTL_S = 10.0


def journal_of(*texts: str, max_bytes: int = MAX_BYTES) -> EventJournal:
    journal = EventJournal(max_bytes=max_bytes, ttl_s=TTL_S)
    for seq, text in enumerate(texts, start=1):
        journal.record(seq, text, 0.0)
    return journal


def test_a_replay_is_everything_behind_the_cursor_in_order() -> None:
    journal = journal_of("a", "b", "c")

    assert journal.replay_after(0, 0.0) == ["a", "b", "c"]
    assert journal.replay_after(2, 0.0) == ["c"]
    assert journal.replay_after(3, 0.0) == []


def test_a_cursor_ahead_of_the_head_is_a_conflict() -> None:
    with pytest.raises(DuplexError) as refused:
        journal_of("a").replay_after(2, 0.0)

    assert refused.value.code == "session_resume_conflict"


def test_beyond_its_bytes_the_oldest_are_dropped() -> None:
    journal = journal_of("a" * 60, "b" * 30, "c" * 60)

    assert journal.held_bytes == 90
    assert journal.replay_after(1, 0.0) == ["b" * 30, "c" * 60]
    with pytest.raises(JournalGap) as gap:
        journal.replay_after(0, 0.0)
    assert gap.value.head == 3


def test_an_event_larger_than_the_journal_is_not_held() -> None:
    journal = journal_of("a", "b" * (MAX_BYTES + 1))

    assert journal.held_bytes == 0
    assert journal.replay_after(2, 0.0) == []
    with pytest.raises(JournalGap):
        journal.replay_after(1, 0.0)


def test_bytes_are_those_of_utf_8() -> None:
    assert journal_of("ü" * 50).held_bytes == 100
    assert journal_of("ü" * 51).held_bytes == 0


def test_events_expire_with_time() -> None:
    journal = journal_of("a")
    journal.record(2, "b", 5.0)

    assert journal.replay_after(0, TTL_S) == ["a", "b"]
    with pytest.raises(JournalGap):
        journal.replay_after(0, TTL_S + 0.1)
    assert journal.replay_after(1, TTL_S + 0.1) == ["b"]


def test_a_full_acknowledgement_makes_an_overflowed_journal_whole() -> None:
    journal = journal_of("a" * 60, "b" * 60)
    journal.ack(2)
    journal.record(3, "c", 0.0)

    assert journal.replay_after(2, 0.0) == ["c"]


@pytest.mark.parametrize("seq", [-1, 2, 2**63])
def test_what_was_not_sent_cannot_be_acknowledged(seq: int) -> None:
    journal = journal_of("a")
    with pytest.raises(DuplexError) as refused:
        journal.ack(seq)

    assert refused.value.code == "invalid_event_ack"
    assert journal.replay_after(0, 0.0) == ["a"]


def test_a_journal_that_begins_late_has_nothing_from_before() -> None:
    journal = EventJournal(max_bytes=MAX_BYTES, ttl_s=TTL_S, head=5)
    journal.record(6, "f", 0.0)

    assert journal.replay_after(5, 0.0) == ["f"]
    with pytest.raises(JournalGap):
        journal.replay_after(4, 0.0)


def test_numbers_follow_each_other() -> None:
    with pytest.raises(ValueError, match="does not follow"):
        journal_of("a").record(3, "c", 0.0)


class JournalMachine(RuleBasedStateMachine):
    """The journal against a list of all that was ever recorded."""

    def __init__(self) -> None:
        super().__init__()
        self.journal = EventJournal(max_bytes=MAX_BYTES, ttl_s=TTL_S)
        self.now = 0.0
        self.everything: list[tuple[str, float]] = []
        self.acked = 0

    @rule(text=st.text(alphabet="aü", max_size=MAX_BYTES))
    def record(self, text: str) -> None:
        self.everything.append((text, self.now))
        self.journal.record(len(self.everything), text, self.now)

    @rule(seconds=st.floats(0.0, 2 * TTL_S))
    def wait(self, seconds: float) -> None:
        self.now += seconds

    @precondition(lambda self: self.everything)
    @rule(data=st.data())
    def ack(self, data: st.DataObject) -> None:
        seq = data.draw(st.integers(0, len(self.everything)))
        self.journal.ack(seq)
        self.acked = max(self.acked, seq)

    @rule(back=st.integers(0, 5))
    def replay(self, back: int) -> None:
        cursor = max(0, len(self.everything) - back)
        missed = self.everything[cursor:]
        try:
            replay = self.journal.replay_after(cursor, self.now)
        except JournalGap:
            fits = sum(len(text.encode()) for text, _ in missed) <= MAX_BYTES
            fresh = all(self.now - at <= TTL_S for _, at in missed)
            assert cursor < self.acked or not (fits and fresh)
        else:
            assert replay == [text for text, _ in missed]

    @invariant()
    def it_is_bounded_and_at_its_head(self) -> None:
        assert 0 <= self.journal.held_bytes <= MAX_BYTES
        assert self.journal.head == len(self.everything)
        assert self.journal.replay_after(self.journal.head, self.now) == []


TestJournal = JournalMachine.TestCase
