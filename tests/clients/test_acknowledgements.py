"""The numbers of events: each seen once, the missing ones counted."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from omniduplex.clients.acknowledgements import AckLedger


def test_a_number_seen_before_is_old() -> None:
    ledger = AckLedger()

    assert [ledger.see(seq) for seq in (1, 2, 2, 1, 3)] == [True, True, False, False, True]
    assert (ledger.last_seen, ledger.missed) == (3, 0)


def test_a_jump_counts_what_it_jumps_over() -> None:
    ledger = AckLedger()
    for seq in (1, 2, 5, 6, 10):
        ledger.see(seq)

    assert ledger.missed == 5


def test_a_ledger_goes_on_where_another_left_off() -> None:
    ledger = AckLedger(last_seen=40)

    assert [ledger.see(seq) for seq in (40, 41, 43)] == [False, True, True]
    assert ledger.missed == 1


def test_an_event_ahead_of_its_replay_hides_nothing_of_it() -> None:
    ledger = AckLedger(last_seen=40)
    assert ledger.see_ahead(44)
    assert not ledger.see_ahead(44)

    assert [ledger.see(seq) for seq in (41, 42, 43, 44, 45)] == [True, True, True, False, True]
    assert (ledger.last_seen, ledger.missed) == (45, 0)


def test_a_replay_that_is_not_whole_behind_an_event_ahead() -> None:
    ledger = AckLedger(last_seen=40)
    ledger.see_ahead(44)
    for seq in (42, 46):
        ledger.see(seq)

    # 41, 43 and 45
    assert ledger.missed == 3


def test_an_acknowledgement_covers_what_came_since_the_last() -> None:
    ledger = AckLedger()
    assert ledger.take() is None
    for seq in (1, 2, 2):
        ledger.see(seq)

    assert (ledger.waiting, ledger.take(), ledger.waiting, ledger.take()) == (2, 2, 0, None)


def test_what_follows_an_export_is_left_for_who_takes_over() -> None:
    ledger = AckLedger()
    for seq in (1, 2, 3):
        ledger.see(seq)
    assert ledger.export() == 3
    ledger.see(4)
    assert (ledger.take(), ledger.take()) == (3, None)
    ledger.see(5)

    assert (ledger.take(), ledger.export(), ledger.take()) == (None, 5, 5)


@given(st.data())
def test_whatever_is_cut_and_replayed_each_event_is_new_once_and_in_order(
    data: st.DataObject,
) -> None:
    ledger, taken, head = AckLedger(), [], 0
    for _ in range(data.draw(st.integers(1, 6), label="connections")):
        # The server replays from what it was told, or from before it where acks were lost.
        start = data.draw(st.integers(0, ledger.last_seen), label="replay from")
        resumed = data.draw(st.none() | st.just(head + 1), label="session.resumed")
        if resumed is not None:
            head += 1
            if ledger.see_ahead(resumed):
                taken.append(resumed)
        sent = data.draw(st.integers(0, 5), label="new events")
        stream = range(start + 1, head + sent + 1)
        head += sent
        arrived = data.draw(st.integers(0, len(stream)), label="arrived")
        taken += [seq for seq in stream[:arrived] if ledger.see(seq)]
    taken += [seq for seq in range(ledger.last_seen + 1, head + 1) if ledger.see(seq)]

    assert sorted(taken) == list(range(1, head + 1))
    assert ledger.last_seen == head
    assert ledger.missed == 0


@given(st.sets(st.integers(1, 60), min_size=1))
def test_missed_is_what_never_came(came: set[int]) -> None:
    ledger = AckLedger()
    for seq in sorted(came):
        ledger.see(seq)

    assert ledger.missed == max(came) - len(came)
