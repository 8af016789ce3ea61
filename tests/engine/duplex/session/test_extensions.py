"""A client that asks for the duplex dialect late: it gets all of it, and no mixture."""

from collections.abc import Callable

import msgspec
import pytest
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import BY_HAND, LISTENING, SessionDriver, loud
from tests.engine.duplex.session.scripted_model import ScriptedPlugin

from omniduplex.protocol.duplex import (
    CancelResponse,
    ContentPart,
    CreateItem,
    CreateResponse,
    Dialect,
    DuplexSessionConfig,
    ErrorEvent,
    ItemAdded,
    ItemInput,
    ResponseDone,
    ResponseOptions,
    SessionPatch,
    SessionUpdated,
    UpdateSession,
)

PICTURE = ContentPart(type="input_image", image_url="data:image/png;base64,iVBORw0KGgo=")


def says_and_is_answered(driver: SessionDriver) -> None:
    driver.user_turn("How are you?")
    driver.answers((200, "Fine."))


def types_and_is_answered_by_a_tool(driver: SessionDriver) -> None:
    driver.says("What is the weather?")
    tool = {"type": "function", "name": "look_up"}
    driver.send(CreateResponse(response=ResponseOptions(tools=(tool,))))
    driver.model_calls()
    driver.model_ends()


def sends_audio_as_an_item(driver: SessionDriver) -> None:
    part = ContentPart(type="input_audio", audio=loud(200))
    driver.send(CreateItem(item=ItemInput(content=(part,))))


def cancels_what_plays(driver: SessionDriver) -> None:
    driver.says("Tell me a story")
    driver.send(CreateResponse())
    driver.model_audio(5000, "Once upon a time")
    driver.passes(100)
    driver.send(CancelResponse())


def names_its_answer(driver: SessionDriver) -> None:
    driver.says("Hi")
    driver.send(CreateResponse(response=ResponseOptions(metadata={"place": {"row": 3}})))


def renames_the_model(driver: SessionDriver) -> None:
    driver.send(UpdateSession(session=SessionPatch(model="another")))


CONVERSATIONS = [
    (LISTENING, says_and_is_answered),
    (BY_HAND, types_and_is_answered_by_a_tool),
    (BY_HAND, sends_audio_as_an_item),
    (BY_HAND, cancels_what_plays),
    (BY_HAND, names_its_answer),
    (BY_HAND, renames_the_model),
]


def upgraded(driver: SessionDriver) -> SessionDriver:
    """Its client takes up the duplex dialect in mid-connection."""
    driver.send(UpdateSession(session=SessionPatch(extensions=("duplex",))))
    assert isinstance(driver.log[-1], SessionUpdated)
    driver.events()
    return driver


@pytest.mark.parametrize("dialect", [Dialect.OPENAI, Dialect.BETA])
@pytest.mark.parametrize(("config", "hold"), CONVERSATIONS)
def test_from_the_grant_on_all_is_told_as_to_a_duplex_client(
    config: DuplexSessionConfig,
    hold: Callable[[SessionDriver], None],
    dialect: Dialect,
    open_session: OpenSession,
) -> None:
    from_the_start = open_session(config)
    late = upgraded(open_session(msgspec.structs.replace(config, dialect=dialect)))
    stock = open_session(msgspec.structs.replace(config, dialect=dialect))
    for driver in (from_the_start, late, stock):
        hold(driver)

    told = told_to(from_the_start)
    assert told_to(late) == told
    assert told_to(stock) != told


def told_to(driver: SessionDriver) -> tuple[list[str], list[tuple[str, str | None]]]:
    """What a client reads: kinds in their order, and what is refused of it."""
    refused = [(event.error.code, event.error.param) for event in driver.of(ErrorEvent)]
    return driver.kinds(), refused


def test_pictures_beside_speech_become_an_item_of_their_own_as_the_contract_has_it() -> None:
    config = msgspec.structs.replace(BY_HAND, dialect=Dialect.OPENAI)
    plugin = ScriptedPlugin()
    plugin.sees = True
    driver = upgraded(SessionDriver(config, plugin=plugin))
    sound = ContentPart(type="input_audio", audio=loud(200))
    driver.send(CreateItem(item=ItemInput(id="said", content=(sound, PICTURE))))

    assert [event.item.id for event in driver.of(ItemAdded)] == ["said", "said_image"]


def test_an_answer_that_a_stock_client_asked_for_ends_whole_behind_the_grant(
    open_session: OpenSession,
) -> None:
    driver = open_session(msgspec.structs.replace(BY_HAND, dialect=Dialect.OPENAI))
    driver.says("Hi")
    driver.send(CreateResponse())
    driver.model_audio(200, "Hello")
    upgraded(driver)
    driver.model_ends()

    assert driver.last(ResponseDone).response.status == "completed"
