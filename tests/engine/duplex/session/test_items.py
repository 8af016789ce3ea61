"""The conversation's items: wire contract, section 7.6, and the prompts made of them."""

import msgspec
import pytest
from tests.engine.duplex.session.driver import SessionDriver

from omniduplex.engine.duplex.session.prompts import MAX_PROMPT_MESSAGES
from omniduplex.protocol.duplex import (
    ContentPart,
    CreateItem,
    CreateResponse,
    DeleteItem,
    ItemAdded,
    ItemDeleted,
    ItemDone,
    ItemInput,
    ItemRetrieved,
    ItemStatus,
    MalformedFunctionCall,
    ResponseDone,
    ResponseOptions,
    RetrieveItem,
    Role,
    SpeechStarted,
)

ASK = CreateResponse()
SPOKEN = ContentPart(type="input_audio", audio=bytes(4800))


def text(words: str, kind: str = "input_text") -> tuple[ContentPart, ...]:
    return (ContentPart(type=kind, text=words),)


def put(driver: SessionDriver, item: ItemInput, after: str | None = None) -> None:
    driver.send(CreateItem(item=item, previous_item_id=after, event_id="e1"))


def called(driver: SessionDriver) -> SessionDriver:
    """The model has called a tool."""
    driver.says("What time is it?")
    driver.send(ASK)
    driver.model_calls()
    driver.model_ends()
    driver.events()
    return driver


def test_an_item_is_added_and_done_at_once(by_hand: SessionDriver) -> None:
    put(by_hand, ItemInput(id="mine", content=text("Hi")))
    assert by_hand.kinds() == ["ItemAdded", "ItemCreated", "ItemDone"]
    by_hand.send(RetrieveItem(item_id="mine"))
    item = by_hand.last(ItemRetrieved).item
    assert (item.id, item.role, item.status, item.content) == (
        "mine",
        "user",
        "completed",
        text("Hi"),
    )


@pytest.mark.parametrize("status", ["incomplete", "in_progress"])
@pytest.mark.parametrize(("role", "kind"), [("assistant", "output_text"), ("system", "input_text")])
def test_what_a_client_says_is_not_whole_stays_so(
    by_hand: SessionDriver, role: Role, kind: str, status: ItemStatus
) -> None:
    put(by_hand, ItemInput(id="mine", role=role, status=status, content=text("Once upon", kind)))
    assert by_hand.kinds() == ["ItemAdded", "ItemCreated"]
    by_hand.send(RetrieveItem(item_id="mine"))
    assert by_hand.last(ItemRetrieved).item.status == status

    by_hand.send(DeleteItem(item_id="mine"))
    assert by_hand.last(ItemDeleted).item_id == "mine"


def test_what_the_user_said_is_done_with_the_status_that_it_came_with(
    by_hand: SessionDriver,
) -> None:
    put(by_hand, ItemInput(status="incomplete", content=text("I wonder if")))
    assert by_hand.kinds() == ["ItemAdded", "ItemCreated", "ItemDone"]
    assert by_hand.last(ItemDone).item.status == "incomplete"

    by_hand.send(ASK)
    assert by_hand.said == [("user", "I wonder if")]


def test_text_is_answered_without_any_audio(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    by_hand.send(ASK)
    assert by_hand.said == [("user", "Hi")]
    by_hand.answers((100, "Hello."))
    assert by_hand.last(ResponseDone).response.status == "completed"


def test_written_answers_are_in_the_next_prompt(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    by_hand.send(CreateResponse(response=ResponseOptions(output_modalities=("text",))))
    by_hand.model_text("Hello ")
    by_hand.model_text("there.")
    by_hand.model_ends()
    by_hand.says("And?")
    by_hand.send(ASK)
    by_hand.model_audio(100, "Spoken.")
    by_hand.model_text("Written.")
    by_hand.model_ends()
    by_hand.send(ASK)

    assert by_hand.said == [
        ("user", "Hi"),
        ("assistant", "Hello there."),
        ("user", "And?"),
        ("assistant", "Spoken. Written."),
    ]


def test_items_go_where_they_are_put(by_hand: SessionDriver) -> None:
    put(by_hand, ItemInput(id="b", content=text("B")))
    put(by_hand, ItemInput(id="a", content=text("A")), after="root")
    put(by_hand, ItemInput(id="d", content=text("D")))
    put(by_hand, ItemInput(id="c", content=text("C")), after="b")

    places = {event.item.id: event.previous_item_id for event in by_hand.of(ItemAdded)}
    assert places == {"b": None, "a": None, "d": "b", "c": "b"}
    by_hand.send(ASK)
    assert [words for _, words in by_hand.said] == ["A", "B", "C", "D"]


def test_all_roles_speak(by_hand: SessionDriver) -> None:
    put(by_hand, ItemInput(role="system", content=text("Be kind.")))
    put(by_hand, ItemInput(role="user", content=text("Hi")))
    put(by_hand, ItemInput(role="assistant", content=text("Hello.", "output_text")))
    part = ContentPart(type="input_audio", transcript="Spoken before")
    put(by_hand, ItemInput(content=(part,)))
    by_hand.send(ASK)

    assert by_hand.said == [
        ("system", "Be kind."),
        ("user", "Hi"),
        ("assistant", "Hello."),
        ("user", "Spoken before"),
    ]


@pytest.mark.parametrize(
    ("item", "after", "code", "param"),
    [
        (ItemInput(id="there"), None, "item_create_duplicate_item_id", "item.id"),
        (ItemInput(id="new"), "nowhere", "item_not_found", "previous_item_id"),
        (
            ItemInput(content=text("x", "output_text")),
            None,
            "bad_event",
            "item.content[0].type",
        ),
        (
            ItemInput(role="assistant", content=text("x")),
            None,
            "bad_event",
            "item.content[0].type",
        ),
        (
            ItemInput(content=(*text("x"), ContentPart(type="input_image", image_url="data:"))),
            None,
            "unsupported",
            "item.content[1].type",
        ),
        (
            ItemInput(content=(ContentPart(type="input_audio"),)),
            None,
            "bad_event",
            "item.content[0].audio",
        ),
        (
            ItemInput(content=(ContentPart(type="input_text"),)),
            None,
            "bad_event",
            "item.content[0].text",
        ),
        (ItemInput(type="item_reference", id="there"), None, "bad_event", "item.type"),
        (ItemInput(type="function_call", name="f"), None, "bad_event", "item.call_id"),
        (
            ItemInput(type="function_call_output", call_id="nobody", output="1"),
            None,
            "invalid_function_call_output",
            "item.call_id",
        ),
        (
            ItemInput(type="function_call_output", output="1"),
            None,
            "invalid_function_call_output",
            "item.call_id",
        ),
    ],
)
def test_items_that_cannot_be_are_refused_and_change_nothing(
    by_hand: SessionDriver, item: ItemInput, after: str | None, code: str, param: str
) -> None:
    put(by_hand, ItemInput(id="there", content=text("Hi")))
    by_hand.events()
    put(by_hand, item, after)

    assert by_hand.kinds() == ["ErrorEvent"]
    error = by_hand.error()
    assert (error.code, error.param, error.event_id) == (code, param, "e1")
    by_hand.send(ASK)
    assert by_hand.said == [("user", "Hi")]


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (RetrieveItem(item_id="no"), "item_retrieve_invalid_item_id"),
        (DeleteItem(item_id="no"), "item_not_found"),
    ],
)
def test_items_that_are_not_there_are_named(
    by_hand: SessionDriver, command: RetrieveItem | DeleteItem, code: str
) -> None:
    by_hand.send(msgspec.structs.replace(command, event_id="e1"))
    error = by_hand.error()
    assert (error.code, error.param, error.event_id) == (code, "item_id", "e1")

    by_hand.send(msgspec.structs.replace(command, item_id="", event_id="e2"))
    assert (by_hand.error().code, by_hand.error().event_id) == ("missing_item_id", "e2")


def test_a_deleted_item_leaves_the_prompt_and_its_place(by_hand: SessionDriver) -> None:
    for name in "abc":
        put(by_hand, ItemInput(id=name, content=text(name)))
    by_hand.send(DeleteItem(item_id="b"))
    assert by_hand.last(ItemDeleted).item_id == "b"
    by_hand.send(DeleteItem(item_id="b"))
    assert by_hand.error().code == "item_not_found"

    by_hand.send(ASK)
    assert [words for _, words in by_hand.said] == ["a", "c"]
    put(by_hand, ItemInput(id="b", content=text("again")), after="a")
    assert by_hand.last(ItemAdded).previous_item_id == "a"


def test_an_answer_under_way_cannot_be_deleted(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    by_hand.send(ASK)
    by_hand.send(DeleteItem(item_id="item_resp_1", event_id="e1"))
    assert (by_hand.error().code, by_hand.error().event_id) == ("bad_event", "e1")

    by_hand.answers((100, "Hello."))
    by_hand.send(DeleteItem(item_id="item_resp_1"))
    by_hand.send(ASK)
    assert by_hand.said == [("user", "Hi")]


def test_b51_all_turns_are_in_the_prompt_in_their_order(driver: SessionDriver) -> None:
    expected = []
    for number in range(10):
        driver.user_turn(f"Question {number}")
        driver.answers((100, f"Answer {number}."))
        driver.passes(200)
        expected += [("user", f"Question {number}"), ("assistant", f"Answer {number}.")]
    driver.user_turn("Last")

    assert driver.said == [*expected, ("user", "Last")]


def test_a_prompt_has_a_length(by_hand: SessionDriver) -> None:
    for number in range(MAX_PROMPT_MESSAGES + 3):
        by_hand.says(str(number))
    by_hand.send(ASK)
    assert len(by_hand.said) == MAX_PROMPT_MESSAGES
    assert by_hand.said[-1] == ("user", str(MAX_PROMPT_MESSAGES + 2))
    by_hand.send(RetrieveItem(item_id="item_1"))
    assert by_hand.last(ItemRetrieved).item.id == "item_1"


# Tools


def test_a_tools_output_joins_its_call_in_the_prompt(by_hand: SessionDriver) -> None:
    called(by_hand)
    put(by_hand, ItemInput(type="function_call_output", call_id="call_1", output="noon"))
    assert by_hand.kinds() == ["ItemAdded", "ItemCreated", "ItemDone"]
    by_hand.send(ASK)

    question, call, output = by_hand.prompts[-1].messages
    assert question.text == "What time is it?"
    assert [(c.call_id, c.name, c.arguments) for c in call.tool_calls] == [
        ("call_1", "look_up", '{"a": 1}')
    ]
    assert (output.role, output.tool_call_id, output.text) == ("tool", "call_1", "noon")


def test_an_output_must_be_there(by_hand: SessionDriver) -> None:
    called(by_hand)
    put(by_hand, ItemInput(type="function_call_output", call_id="call_1"))
    error = by_hand.error()
    assert (error.code, error.param) == ("invalid_function_call_output", "item.output")


def test_a_call_has_one_output(by_hand: SessionDriver) -> None:
    called(by_hand)
    for output in ("noon", "midnight"):
        put(by_hand, ItemInput(type="function_call_output", call_id="call_1", output=output))
    error = by_hand.error()
    assert (error.code, error.param) == ("invalid_function_call_output", "item.call_id")
    by_hand.send(ASK)
    assert [m.text for m in by_hand.prompts[-1].messages if m.role == "tool"] == ["noon"]


def test_nobody_answers_an_output_by_itself(by_hand: SessionDriver) -> None:
    called(by_hand)
    put(by_hand, ItemInput(type="function_call_output", call_id="call_1", output="noon"))
    assert by_hand.open_responses == []
    assert len(by_hand.prompts) == 1


@pytest.mark.parametrize(("call_id", "name"), [("", "look_up"), ("call_1", "")])
def test_a_call_without_name_or_id_is_told_apart(
    by_hand: SessionDriver, call_id: str, name: str
) -> None:
    by_hand.says("What time is it?")
    by_hand.send(ASK)
    by_hand.events()
    by_hand.model_calls(name, call_id=call_id)
    assert by_hand.kinds() == ["MalformedFunctionCall"]
    facts = by_hand.last(MalformedFunctionCall).event
    assert (facts.call_id, facts.name) == (call_id or None, name or None)
    assert facts.arguments == '{"a": 1}'
    by_hand.model_ends()
    assert by_hand.open_responses == []


def test_b63_two_outputs_and_two_requests_make_one_follow_up(by_hand: SessionDriver) -> None:
    by_hand.says("What time is it, here and there?")
    by_hand.send(ASK)
    by_hand.model_calls(call_id="call_1")
    by_hand.model_calls(call_id="call_2")
    by_hand.model_ends()
    for call_id in ("call_1", "call_2"):
        put(by_hand, ItemInput(type="function_call_output", call_id=call_id, output="noon"))
        by_hand.send(CreateResponse(event_id=call_id))

    assert by_hand.open_responses == ["resp_2"]
    error = by_hand.error()
    assert (error.code, error.event_id) == ("response_already_active", "call_2")
    by_hand.answers((100, "Noon, both."))
    assert by_hand.open_responses == []


# What an answer cannot be asked


@pytest.mark.parametrize(
    ("options", "code", "param"),
    [
        (
            ResponseOptions(input=(ItemInput(type="item_reference", id="no"),)),
            "item_not_found",
            "response.input[0].id",
        ),
        (
            ResponseOptions(input=(ItemInput(role="assistant", content=text("x")),)),
            "bad_event",
            "response.input[0].content[0].type",
        ),
        (
            ResponseOptions(input=(ItemInput(content=(SPOKEN,)),)),
            "unsupported",
            "response.input[0].content[0].audio",
        ),
        (ResponseOptions(temperature=-1), "bad_event", "response.temperature"),
        (ResponseOptions(tool_choice="any"), "bad_event", "response.tool_choice"),
        (
            ResponseOptions(output_audio_format="opus"),
            "unsupported_audio_format",
            "response.output_audio_format",
        ),
        (
            ResponseOptions(audio={"output": {"format": {"type": "audio/opus"}}}),
            "unsupported_audio_format",
            "response.audio.output.format.type",
        ),
        (
            ResponseOptions(response_format="pcm_f32le"),
            "unsupported_audio_format",
            "response.response_format",
        ),
        (ResponseOptions(audio={"output": 1}), "bad_event", "response.audio"),
        (ResponseOptions(conversation="other"), "bad_event", "response.conversation"),
        (ResponseOptions(modalities=("video",)), "bad_event", "response.modalities"),
        (ResponseOptions(output_modalities=()), "bad_event", "response.output_modalities"),
        (ResponseOptions(max_output_tokens=0), "bad_event", "response.max_output_tokens"),
        (ResponseOptions(max_tokens="few"), "bad_event", "response.max_tokens"),
    ],
)
def test_options_that_cannot_be_are_refused_by_name(
    by_hand: SessionDriver, options: ResponseOptions, code: str, param: str
) -> None:
    by_hand.says("Hi")
    by_hand.events()
    by_hand.send(CreateResponse(response=options, event_id="e1"))

    assert by_hand.kinds() == ["ErrorEvent"]
    error = by_hand.error()
    assert (error.code, error.param, error.event_id) == (code, param, "e1")
    by_hand.send(ASK)
    assert by_hand.open_responses == ["resp_1"]


@pytest.mark.parametrize("name", ["max_output_tokens", "max_response_output_tokens", "max_tokens"])
def test_the_token_limit_has_three_spellings_and_inf(by_hand: SessionDriver, name: str) -> None:
    by_hand.send(CreateResponse(response=msgspec.convert({name: 5}, ResponseOptions)))
    assert by_hand.prompts[-1].max_tokens == 5
    by_hand.model_ends()
    by_hand.send(CreateResponse(response=msgspec.convert({name: "inf"}, ResponseOptions)))
    assert by_hand.prompts[-1].max_tokens is None


def test_an_announced_id_is_taken_before_its_item_is_there(driver: SessionDriver) -> None:
    driver.user_speaks()
    announced = driver.last(SpeechStarted).item_id
    driver.says("mine", item_id=announced)
    assert driver.error().code == "item_create_duplicate_item_id"
    driver.user_turn_ends("Hello")
    assert driver.said == [("user", "Hello")]


def test_an_item_that_no_reader_could_take_is_refused(by_hand: SessionDriver) -> None:
    by_hand.says("x" * (512 * 1024))
    assert (by_hand.error().code, by_hand.error().param) == ("bad_event", "item")
    by_hand.says("x" * (512 * 1024 - 256))
    assert by_hand.kinds()[-3:] == ["ItemAdded", "ItemCreated", "ItemDone"]


def test_a_conversation_has_an_end(by_hand: SessionDriver) -> None:
    for _ in range(63):
        by_hand.says("x" * (256 * 1024))
    assert set(by_hand.kinds()) == {"ItemAdded", "ItemCreated", "ItemDone"}
    by_hand.says("x" * (256 * 1024))
    assert by_hand.error().code == "input_backpressure"
    first = by_hand.of(ItemAdded)[0].item.id
    by_hand.send(DeleteItem(item_id=first))
    by_hand.events()
    by_hand.says("x" * (256 * 1024))
    assert by_hand.kinds() == ["ItemAdded", "ItemCreated", "ItemDone"]
