"""What a client may ask of one response: wire contract, section 1.2, and the OpenAI API."""

from typing import Any

import msgspec
import pytest
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import BY_HAND, SessionDriver, loud
from tests.engine.duplex.session.scripted_model import ScriptedPlugin

from omniduplex.engine.duplex.model_events import UserTranscript
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioFormat,
    ContentPart,
    CreateItem,
    CreateResponse,
    Dialect,
    ItemAdded,
    ItemCreated,
    ItemDone,
    ItemInput,
    ItemRetrieved,
    RateLimitsUpdated,
    ResponseCreated,
    ResponseDone,
    ResponseOptions,
    RetrieveItem,
)

ASK = CreateResponse()
OPENAI = msgspec.structs.replace(BY_HAND, dialect=Dialect.OPENAI)
IMAGE = "data:image/png;base64,iVBORw0KGgo="


def ask(**options: Any) -> CreateResponse:
    return CreateResponse(response=msgspec.convert(options, ResponseOptions), event_id="e1")


def written(words: str, role: Any = "user") -> ItemInput:
    kind = "output_text" if role == "assistant" else "input_text"
    return ItemInput(role=role, content=(ContentPart(type=kind, text=words),))


# An input of its own


def test_an_input_of_its_own_stands_in_for_the_conversation(by_hand: SessionDriver) -> None:
    by_hand.says("Hi", item_id="hi")
    by_hand.says("What is your name?", item_id="name")
    options = ResponseOptions(
        conversation="none",
        input=(
            written("Be brief.", "system"),
            ItemInput(type="item_reference", id="name"),
            written("Sam.", "assistant"),
            written("Say it again."),
        ),
    )
    by_hand.send(CreateResponse(response=options))

    assert by_hand.said == [
        ("system", "Be brief."),
        ("user", "What is your name?"),
        ("assistant", "Sam."),
        ("user", "Say it again."),
    ]
    by_hand.answers((100, "Sam."))
    by_hand.send(ASK)
    assert by_hand.said == [("user", "Hi"), ("user", "What is your name?")]


def test_an_empty_input_is_one(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    by_hand.send(ask(input=[], instructions="Greet."))
    assert by_hand.said == []
    assert by_hand.prompts[-1].instructions == "Greet."


def test_an_input_may_hold_a_call_and_its_output(by_hand: SessionDriver) -> None:
    call = ItemInput(type="function_call", name="f", call_id="c", arguments="{}")
    output = ItemInput(type="function_call_output", call_id="c", output="1")
    by_hand.send(CreateResponse(response=ResponseOptions(input=(call, output))))
    assert [message.role for message in by_hand.prompts[-1].messages] == ["assistant", "tool"]


def test_an_answer_with_an_input_may_stay_in_the_conversation(by_hand: SessionDriver) -> None:
    by_hand.send(CreateResponse(response=ResponseOptions(input=(written("Hi"),))))
    by_hand.answers((100, "Hello."))
    by_hand.send(ASK)
    assert by_hand.said == [("assistant", "Hello.")]


def test_the_conversation_is_named_but_for_answers_outside_of_it(by_hand: SessionDriver) -> None:
    for options in ({}, {"conversation": "none"}):
        by_hand.send(ask(**options))
        by_hand.answers((100, "Hello."))
    inside, outside = (event.response.conversation_id for event in by_hand.of(ResponseDone))
    assert (inside, outside) == ("conv_1", None)


# Metadata


@pytest.mark.parametrize(
    ("metadata", "param"),
    [
        ({f"k{number}": "v" for number in range(17)}, "response.metadata"),
        ({"k": 1}, "response.metadata.k"),
        ({"k": {"nested": "object"}}, "response.metadata.k"),
        ({"k": "v" * 513}, "response.metadata.k"),
        ({"k" * 65: "v"}, "response.metadata"),
    ],
    ids=["17 pairs", "a number", "an object", "a long value", "a long key"],
)
def test_metadata_of_the_openai_api_are_few_short_texts(
    open_session: OpenSession, metadata: dict[str, Any], param: str
) -> None:
    driver = open_session(OPENAI)
    driver.send(ask(metadata=metadata))
    error = driver.error()
    assert (error.code, error.param, error.event_id) == ("bad_event", param, "e1")
    assert driver.open_responses == []


def test_the_contract_takes_any_object_for_metadata(by_hand: SessionDriver) -> None:
    metadata = {"k": {"nested": "object"}, **{str(number): number for number in range(20)}}
    by_hand.send(ask(metadata=metadata))
    assert by_hand.last(ResponseCreated).response.metadata == metadata


def test_metadata_come_back_at_both_ends(open_session: OpenSession) -> None:
    driver = open_session(OPENAI)
    metadata = {f"k{number}": "v" * 512 for number in range(16)}
    driver.send(ask(metadata=metadata))
    driver.answers((100, "Hello."))
    assert driver.last(ResponseCreated).response.metadata == metadata
    assert driver.last(ResponseDone).response.metadata == metadata


# Voice, format


@pytest.mark.parametrize(
    "options",
    [
        {"output_audio_format": "g711_ulaw"},
        {"response_format": "ulaw"},
        {"audio": {"output": {"format": {"type": "audio/pcmu"}}}},
    ],
    ids=["beta", "peer", "GA"],
)
def test_one_answer_may_have_a_format_of_its_own(
    by_hand: SessionDriver, options: dict[str, Any]
) -> None:
    by_hand.send(ask(**options))
    by_hand.answers((100, "Hello."))
    assert {(d.format, d.sample_rate_hz) for d in by_hand.of(AudioDelta)} == {("g711_ulaw", 8000)}
    by_hand.send(ASK)
    by_hand.answers((100, "Hello."))
    assert by_hand.last(AudioDelta).format == AudioFormat().encoding


@pytest.mark.parametrize(
    ("options", "speed"),
    [
        ({}, 1.2),
        ({"speed": None}, 1.2),
        ({"speed": 1.5}, 1.5),
        ({"audio": {"output": {"speed": 0.25}}, "speed": 1.5}, 0.25),
        ({"speed": 4}, 4.0),
    ],
)
def test_an_answer_is_spoken_as_fast_as_it_or_its_session_says(
    options: dict[str, Any], speed: float, open_session: OpenSession
) -> None:
    driver = open_session(msgspec.structs.replace(BY_HAND, speed=1.2))
    driver.says("Hi")
    driver.send(ask(**options))
    assert driver.prompts[-1].speed == speed


@pytest.mark.parametrize(
    ("options", "param"),
    [
        ({"speed": 0.2}, "response.speed"),
        ({"speed": -1}, "response.speed"),
        ({"audio": {"output": {"speed": 4.1}}}, "response.audio.output.speed"),
    ],
)
def test_a_speed_is_one_that_can_be_understood(
    by_hand: SessionDriver, options: dict[str, Any], param: str
) -> None:
    by_hand.says("Hi")
    by_hand.send(ask(**options))
    assert (by_hand.error().code, by_hand.error().param) == ("bad_event", param)
    assert by_hand.open_responses == []


@pytest.mark.parametrize(
    "options",
    [
        {"voice": "ash"},
        {"audio": {"output": {"voice": "ash"}}},
        {"audio": {"output": {"voice": {"id": "ash"}}}},
    ],
    ids=["beta", "GA", "object"],
)
def test_one_answer_may_have_a_voice_of_its_own(
    by_hand: SessionDriver, options: dict[str, Any]
) -> None:
    by_hand.send(ask(**options))
    assert by_hand.prompts[-1].voice == "ash"


# What a model cannot do


class Stubborn(ScriptedPlugin):
    refused_options = frozenset({"temperature", "tools"})


@pytest.mark.parametrize("options", [{"temperature": 0.0}, {"tools": [{"name": "f"}]}], ids=str)
def test_an_option_that_the_model_cannot_follow_is_named(options: dict[str, Any]) -> None:
    driver = SessionDriver(BY_HAND, plugin=Stubborn())
    driver.send(ask(**options, instructions="Rhyme."))
    error = driver.error()
    (name,) = options
    assert error.code == "unsupported_native_response_options"
    assert (error.param, error.event_id) == (f"response.{name}", "e1")
    driver.send(ask(instructions="Rhyme."))
    assert len(driver.open_responses) == 1


@pytest.mark.parametrize(
    ("options", "code", "param"),
    [
        ({"tools": [{}]}, "bad_event", "response.tools[0].type"),
        ({"tools": [{"type": "function"}]}, "bad_event", "response.tools[0].name"),
        ({"tools": [{"type": "mcp"}]}, "unsupported", "response.tools[0].type"),
        ({"tool_choice": {"type": "function"}}, "bad_event", "response.tool_choice.name"),
    ],
    ids=str,
)
def test_a_tool_without_a_name_reaches_no_model(
    by_hand: SessionDriver, options: dict[str, Any], code: str, param: str
) -> None:
    by_hand.send(ask(**options))
    error = by_hand.error()
    assert (error.code, error.param, error.event_id) == (code, param, "e1")
    assert not by_hand.open_responses
    by_hand.send(ask(tools=[{"type": "function", "name": "f"}]))
    assert [tool["name"] for tool in by_hand.prompts[-1].tools] == ["f"]


@pytest.fixture
def speech_only() -> SessionDriver:
    """A model that answers speech, not text."""
    plugin = ScriptedPlugin()
    plugin.needs_speech = True
    return SessionDriver(BY_HAND, plugin=plugin)


def test_such_a_model_needs_something_to_answer(speech_only: SessionDriver) -> None:
    speech_only.send(ask(instructions="Greet."))
    error = speech_only.error()
    assert (error.code, error.event_id) == ("response_create_without_input", "e1")


def test_such_a_model_does_not_answer_text_alone(speech_only: SessionDriver) -> None:
    speech_only.says("Hi")
    speech_only.send(ask())
    error = speech_only.error()
    assert (error.code, error.event_id) == ("text_only_turn_unsupported", "e1")
    assert speech_only.open_responses == []

    speech_only.append(300)
    speech_only.commit()
    speech_only.send(ASK)
    assert len(speech_only.open_responses) == 1


def test_what_is_answered_is_no_input_any_more(speech_only: SessionDriver) -> None:
    speech_only.append(300)
    speech_only.commit(response_create=True)
    speech_only.transcript("item_1", "Hi")
    speech_only.answers((100, "Hello."))
    speech_only.send(ask())
    assert speech_only.error().code == "response_create_without_input"


def test_such_a_model_goes_on_after_a_tool(speech_only: SessionDriver) -> None:
    speech_only.append(300)
    speech_only.commit(response_create=True)
    speech_only.transcript("item_1", "What time is it?")
    speech_only.model_calls()
    speech_only.model_ends()
    output = ItemInput(type="function_call_output", call_id="call_1", output="noon")
    speech_only.send(CreateItem(item=output))
    speech_only.send(ASK)
    assert len(speech_only.open_responses) == 1


# Images


def seeing() -> SessionDriver:
    plugin = ScriptedPlugin()
    plugin.sees = True
    return SessionDriver(BY_HAND, plugin=plugin)


def picture(url: str = IMAGE, count: int = 1) -> CreateItem:
    parts = (ContentPart(type="input_image", image_url=url),) * count
    return CreateItem(item=ItemInput(content=parts), event_id="e1")


def test_a_model_that_sees_is_shown_images() -> None:
    driver = seeing()
    driver.send(picture())
    driver.says("What is this?")
    driver.send(ASK)
    assert [(m.text, m.images) for m in driver.prompts[-1].messages] == [
        ("", (IMAGE,)),
        ("What is this?", ()),
    ]


@pytest.mark.parametrize(
    ("url", "code", "param"),
    [
        ("https://example.org/a.png", "invalid_image", "item.content[0].image_url"),
        ("data:image/gif;base64,AAAA", "invalid_image", "item.content[0].image_url"),
        ("data:image/png;base64,?", "invalid_image", "item.content[0].image_url"),
        ("data:image/png;base64," + "A" * 4 * 1024 * 1024, "input_backpressure", "item.content"),
    ],
    ids=["a URL", "a GIF", "no base64", "too large"],
)
def test_an_image_is_a_small_jpeg_or_png_itself(url: str, code: str, param: str) -> None:
    driver = seeing()
    driver.send(picture(url))
    error = driver.error()
    assert (error.code, error.param, error.event_id) == (code, param, "e1")


def test_a_conversation_holds_so_many_images() -> None:
    driver = seeing()
    driver.send(picture(count=5))
    driver.send(picture(count=4))
    assert driver.error().code == "input_backpressure"
    driver.send(picture(count=3))
    driver.send(ASK)
    assert [len(message.images) for message in driver.prompts[-1].messages] == [5, 3]


def test_a_model_sees_all_of_an_image_too_large_to_come_back() -> None:
    driver = seeing()
    url = "data:image/png;base64," + "A" * 3_000_000
    driver.send(picture(url))
    driver.send(RetrieveItem(item_id=driver.last(ItemAdded).item.id))
    kinds = (ItemAdded, ItemCreated, ItemDone, ItemRetrieved)
    items = [event.item for event in driver.log if isinstance(event, kinds)]
    assert [item.content for item in items] == [(ContentPart(type="input_image"),)] * 4

    driver.send(ASK)
    assert driver.prompts[-1].messages[-1].images == (url,)


def said_and_shown() -> CreateItem:
    shown = ContentPart(type="input_image", image_url=IMAGE)
    said = ContentPart(type="input_audio", audio=loud(100))
    written = ContentPart(type="input_text", text="Look:")
    return CreateItem(item=ItemInput(id="mine", content=(shown, written, said)), event_id="e1")


def test_what_is_shown_beside_what_is_said_is_an_item_of_its_own() -> None:
    driver = seeing()
    driver.send(said_and_shown())
    ids = [event.item.id for event in driver.of(ItemAdded)]
    assert ids == ["mine", "mine_image"]
    (recognised,) = driver.model.recognising
    assert recognised[:2] == ("mine", 1)

    driver.model_says(UserTranscript("mine", "what is it", 0.1, 1))
    driver.send(ASK)
    assert [(m.text, m.images) for m in driver.prompts[-1].messages] == [
        ("Look: what is it", ()),
        ("", (IMAGE,)),
    ]
    driver.send(CreateItem(item=ItemInput(id="mine_image"), event_id="e2"))
    assert driver.error().code == "item_create_duplicate_item_id"


def test_the_openai_api_keeps_such_an_item_whole() -> None:
    plugin = ScriptedPlugin()
    plugin.sees = True
    driver = SessionDriver(OPENAI, plugin=plugin)
    driver.send(said_and_shown())
    assert [event.item.id for event in driver.of(ItemAdded)] == ["mine"]


# Limits


def test_the_one_limit_is_how_many_turns_may_wait(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    by_hand.send(ASK)
    by_hand.answers((100, "Hello."))
    (limit,) = by_hand.last(RateLimitsUpdated).rate_limits
    assert (limit.name, limit.limit, limit.remaining, limit.reset_seconds) == ("requests", 4, 4, 0)

    by_hand.send(ASK)
    by_hand.append(pcm=loud(300))
    by_hand.commit()
    by_hand.model_ends()
    (limit,) = by_hand.last(RateLimitsUpdated).rate_limits
    assert (limit.remaining, limit.reset_seconds) == (3, msgspec.UNSET)
