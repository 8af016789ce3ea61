from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from tests.clients.scripted import done, session_of

from omniduplex.clients.duplex import (
    chunk_period_ms,
    duplex_unit_boundary_ms,
    has_residual_model_unit,
)
from omniduplex.protocol.duplex import (
    Dialect,
    DuplexSessionObject,
    SessionCreated,
    SessionUpdated,
    default_config,
)


def session(unit_ms: int) -> DuplexSessionObject:
    described = session_of(default_config("m", Dialect.DUPLEX))
    capabilities = structs.replace(described.capabilities, chunk_period_ms=unit_ms)
    return structs.replace(described, capabilities=capabilities)


def test_the_unit_is_that_of_the_newest_description() -> None:
    events = [SessionCreated(session=session(80)), SessionUpdated(session=session(40)), done("r")]

    assert chunk_period_ms(events) == 40
    assert chunk_period_ms(events[:1]) == 80


def test_before_the_session_is_described_the_default_holds() -> None:
    assert chunk_period_ms([]) == 1000
    assert chunk_period_ms([done("r")], default=250) == 250


def test_units_end_every_second() -> None:
    assert [duplex_unit_boundary_ms(index) for index in range(3)] == [1000, 2000, 3000]


@given(units=st.integers(0, 20), rest_ms=st.integers(1, 79))
def test_audio_that_ends_within_a_unit_leaves_a_rest(units: int, rest_ms: int) -> None:
    whole = bytes(units * 80 * 32)

    assert not has_residual_model_unit(whole, chunk_period_ms=80)
    assert has_residual_model_unit(whole + bytes(rest_ms * 32), chunk_period_ms=80)
