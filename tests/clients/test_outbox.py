"""Commands go out once and in order, whatever happens to the connection."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.clients.duplex import DuplexConnectionError, ServerEvent, Transport
from omniduplex.clients.outbox import Outbox, OutboxClosedError
from omniduplex.protocol.duplex import DuplexCommand

pytestmark = pytest.mark.anyio


class Wire(Transport):
    """Keeps what is sent, unless it is broken."""

    def __init__(self) -> None:
        self.sent: list[Any] = []
        self.works = 10_000

    async def connect(self) -> None:
        self.works = 10_000

    async def send(self, command: DuplexCommand | Mapping[str, Any]) -> None:
        if not self.works:
            raise DuplexConnectionError("broken")
        self.works -= 1
        self.sent.append(command)

    async def receive(self) -> ServerEvent:
        raise DuplexConnectionError("nothing to hear")

    async def close(self) -> None:
        self.works = 0


def command(number: int) -> dict[str, Any]:
    return {"number": number}


def numbers(wire: Wire) -> list[int]:
    return [sent["number"] for sent in wire.sent]


async def test_what_is_sent_while_there_is_no_connection_follows_in_order() -> None:
    wire = Wire()
    outbox = Outbox(wire)
    await outbox.send(command(1))
    outbox.hold()
    for number in (2, 3, 4):
        await outbox.send(command(number))
    assert (numbers(wire), outbox.held) == ([1], 3)

    await outbox.release()
    await outbox.send(command(5))

    assert (numbers(wire), outbox.held) == ([1, 2, 3, 4, 5], 0)


async def test_senders_wait_when_too_much_is_held_and_keep_their_order() -> None:
    wire = Wire()
    outbox = Outbox(wire, limit=2)
    outbox.hold()
    senders = [asyncio.create_task(outbox.send(command(number))) for number in range(6)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert outbox.held == 2
    assert [sender.done() for sender in senders] == [True, True, False, False, False, False]

    await outbox.release()
    async with asyncio.timeout(60):
        await asyncio.gather(*senders)

    assert numbers(wire) == list(range(6))


async def test_a_sender_that_waits_when_the_session_ends_is_told() -> None:
    outbox = Outbox(Wire(), limit=1)
    outbox.hold()
    await outbox.send(command(1))
    waiting = asyncio.create_task(outbox.send(command(2)))
    await asyncio.sleep(0)

    outbox.close()

    with pytest.raises(OutboxClosedError):
        await waiting
    with pytest.raises(OutboxClosedError):
        await outbox.send(command(3))
    assert outbox.held == 0


async def test_a_command_that_met_the_end_of_its_connection_is_in_doubt_and_not_sent_again() -> (
    None
):
    wire = Wire()
    outbox = Outbox(wire)
    await outbox.send(command(1))
    await wire.close()
    with pytest.raises(DuplexConnectionError):
        await outbox.send(command(2))

    outbox.hold()
    await wire.connect()
    await outbox.release()

    assert (numbers(wire), outbox.in_doubt) == ([1], 2)


async def test_a_connection_that_breaks_again_leaves_the_rest_held() -> None:
    wire = Wire()
    outbox = Outbox(wire)
    outbox.hold()
    for number in range(5):
        await outbox.send(command(number))
    wire.works = 2

    with pytest.raises(DuplexConnectionError):
        await outbox.release()
    assert outbox.held == 2
    outbox.hold()
    await wire.connect()
    await outbox.release()

    # 2 met the end of the second connection; 0 and 1 may not have arrived over it.
    assert (numbers(wire), outbox.in_doubt) == ([0, 1, 3, 4], 3)


async def test_an_answered_probe_shows_what_has_arrived() -> None:
    outbox = Outbox(Wire())
    await outbox.send(command(1))
    outbox.probed()
    await outbox.send(command(2))
    outbox.probed()
    await outbox.send(command(3))
    outbox.answered()
    await outbox.send(command(4))

    outbox.hold()

    assert outbox.in_doubt == 3


async def test_an_answer_to_a_probe_of_an_earlier_connection_shows_nothing_of_this_one() -> None:
    outbox = Outbox(Wire())
    outbox.probed()
    outbox.hold()
    await outbox.release()
    await outbox.send(command(1))
    outbox.probed()
    outbox.answered()

    outbox.hold()

    assert outbox.in_doubt == 1


async def test_an_answer_that_nobody_asked_for_shows_nothing() -> None:
    outbox = Outbox(Wire())
    await outbox.send(command(1))
    outbox.answered()

    outbox.hold()

    assert outbox.in_doubt == 1


STEPS = st.lists(st.sampled_from(["send", "break", "hold", "release", "probe", "answer"]))


@given(STEPS, st.integers(0, 3))
def test_nothing_is_sent_twice_or_out_of_order_and_every_loss_is_counted(
    steps: list[str], works: int
) -> None:
    async def run() -> None:
        wire = Wire()
        outbox = Outbox(wire)
        offered, answerable, holding = 0, 0, False
        for step in steps:
            if step == "send":
                offered += 1
                try:
                    await outbox.send(command(offered))
                except DuplexConnectionError:
                    continue
            elif step == "break":
                wire.works = works
            elif step == "hold":
                outbox.hold()
                holding = True
            elif step == "release" and holding:
                await wire.connect()
                await outbox.release()
                holding = False
            elif step == "probe":
                outbox.probed()
                answerable += wire.works > 0
            elif step == "answer" and answerable:
                answerable -= 1
                outbox.answered()
        sent = numbers(wire)
        assert sent == sorted(set(sent))
        outbox.hold()
        lost = offered - len(sent) - outbox.held
        assert 0 <= lost <= outbox.in_doubt <= offered

    asyncio.run(run())
