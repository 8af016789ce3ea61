"""An answer on the wire: wire contract, section 7.3 and the terminal group of section 2."""

import msgspec
import pytest
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import BY_HAND, LISTENING, SessionDriver, kinds

from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioFormat,
    AudioTextMark,
    CreateResponse,
    ItemAdded,
    ItemDone,
    OutputItemAdded,
    RateLimitsUpdated,
    ResponseCreated,
    ResponseDone,
    ResponseOptions,
    SessionPatch,
    TextDone,
    TranscriptDelta,
    TranscriptDone,
    UpdateSession,
    encode_event,
)

ASK = CreateResponse()


def test_an_answer_opens_its_parts_before_its_deltas_and_ends_them_before_itself(
    driver: SessionDriver,
) -> None:
    driver.user_turn("How are you?")
    driver.events()
    driver.model_audio(200, "I am ")
    driver.model_audio(200, "fine.")
    driver.model_ends()

    created = kinds(driver.log)
    assert created[created.index("ResponseCreated") :] == [
        "ResponseCreated",
        "ItemAdded",
        "ItemCreated",
        "OutputItemAdded",
        "ContentPartAdded",
        "OutputStarted",
        "SpeakDecision",
        "AudioDelta",
        "TranscriptDelta",
        "AudioDelta",
        "TranscriptDelta",
        "AudioDone",
        "TranscriptDone",
        "ContentPartDone",
        "OutputItemDone",
        "ItemDone",
        "ResponseDone",
        "RateLimitsUpdated",
    ]
    done = driver.last(ResponseDone).response
    assert (done.status, done.status_details) == ("completed", None)
    assert [item.id for item in done.output] == ["item_resp_1"]
    assert driver.last(TranscriptDone).transcript == "I am fine."


def test_deltas_carry_cumulative_time_and_the_marks_of_their_words(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.model_audio(200, "One ")
    driver.model_audio(300)
    driver.model_audio(100, "two.")

    facts = [delta.metadata for delta in driver.of(AudioDelta) if delta.metadata]
    assert [fact.audio_duration_ms for fact in facts] == [200, 500, 600]
    assert [fact.audio_text_marks for fact in facts] == [
        (AudioTextMark(text_chars=4, audio_end_ms=200),),
        (),
        (AudioTextMark(text_chars=8, audio_end_ms=600),),
    ]
    assert [fact.playback.sent_ms for fact in facts] == [200, 500, 600]
    assert [delta.delta for delta in driver.of(TranscriptDelta)] == ["One ", "", "two."]


def test_text_opens_its_part_with_its_first_words(open_session: OpenSession) -> None:
    driver = open_session(msgspec.structs.replace(BY_HAND, modalities=("text",)))
    driver.says("Hi")
    driver.events()
    driver.send(ASK)
    assert kinds(driver.events())[-1] == "OutputItemAdded"

    driver.model_text("Hel")
    driver.model_text("lo")
    driver.model_ends()

    assert driver.kinds() == [
        "ContentPartAdded",
        "TextDelta",
        "TextDelta",
        "TextDone",
        "ContentPartDone",
        "OutputItemDone",
        "ItemDone",
        "ResponseDone",
        "RateLimitsUpdated",
    ]
    assert driver.last(TextDone).text == "Hello"
    assert driver.prompts[-1].speak is False


def test_text_beside_audio_is_the_second_part(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.model_audio(100, "Spoken.")
    driver.model_text("Written.")
    driver.model_ends()

    assert driver.last(TextDone).content_index == 1
    content = driver.last(ResponseDone).response.output[0].content
    assert content
    assert [part.type for part in content] == ["output_audio", "output_text"]


def test_an_answer_without_a_word_still_has_its_message(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.model_ends()

    done = driver.last(ResponseDone).response
    assert (done.status, len(done.output)) == ("completed", 1)
    assert driver.of(AudioDelta) == []


def test_a_cut_off_by_length_is_incomplete(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.model_audio(100, "And")
    driver.model_ends("length")

    done = driver.last(ResponseDone).response
    assert done.status == "incomplete"
    assert done.status_details
    assert done.status_details.reason == "max_output_tokens"


def test_every_answer_is_followed_by_the_rate_limits(driver: SessionDriver) -> None:
    for number in range(3):
        driver.user_turn(f"Question {number}")
        driver.answers((100, "Answer."))

    assert len(driver.of(ResponseCreated)) == 3
    assert len(driver.of(ResponseDone)) == 3
    assert len(driver.of(RateLimitsUpdated)) == 3


def test_output_of_an_answer_that_is_over_is_dropped(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    key = driver.key
    driver.answers((100, "Hello."))
    driver.events()

    driver.model_audio(100, "late", key=key)
    driver.model_ends(key=key)
    driver.model_audio(100, "never asked for", key="answer_99")

    assert driver.events() == []


def test_a_tool_call_is_an_item_of_its_own(open_session: OpenSession) -> None:
    tools = ({"type": "function", "name": "look_up"},)
    driver = open_session(msgspec.structs.replace(LISTENING, tools=tools))
    driver.user_turn("What is the time?")
    driver.events()
    driver.model_calls()
    driver.model_ends()

    assert driver.kinds() == [
        "ItemAdded",
        "ItemCreated",
        "OutputItemAdded",
        "FunctionCallDelta",
        "FunctionCallDone",
        "OutputItemDone",
        "ItemDone",
        "ResponseDone",
        "RateLimitsUpdated",
    ]
    (call,) = driver.last(ResponseDone).response.output
    assert (call.type, call.status, call.arguments) == ("function_call", "completed", '{"a": 1}')


@pytest.mark.parametrize("tools", [(), ({"type": "function", "name": "look_up"},)])
def test_words_and_a_tool_call_of_one_answer_keep_their_places(
    open_session: OpenSession, tools: tuple[dict[str, str], ...]
) -> None:
    """The message is finished last, yet names the item before it and not the call behind it."""
    driver = open_session(msgspec.structs.replace(LISTENING, tools=tools))
    driver.user_turn("What is the time?")
    driver.model_audio(100, "One moment.")
    driver.model_calls()
    driver.model_ends()

    added = {event.item.id: event.previous_item_id for event in driver.of(ItemAdded)}
    done = {event.item.id: event.previous_item_id for event in driver.of(ItemDone)}
    assert added == done == {"item_1": None, "item_resp_1": "item_1", "item_2": "item_resp_1"}
    assert [event.output_index for event in driver.of(OutputItemAdded)] == [0, 1]


def test_a_new_output_format_holds_from_the_next_answer_on(driver: SessionDriver) -> None:
    driver.user_turn("Hi")
    driver.model_audio(100, "In one ")
    driver.send(UpdateSession(session=SessionPatch(output_audio_format="g711_ulaw")))
    driver.model_audio(100, "format.")
    driver.model_ends()
    driver.user_turn("And now?")
    driver.answers((100, "Another."))

    shapes = [(d.format, d.sample_rate_hz, len(d.delta)) for d in driver.of(AudioDelta)]
    assert shapes[:2] == [("pcm16", 24000, 4800)] * 2
    assert {shape[:2] for shape in shapes[2:]} == {("g711_ulaw", 8000)}
    assert sum(shape[2] for shape in shapes[2:]) == 800


@pytest.mark.parametrize("reason", ["stop", "length"])
def test_what_a_resampler_holds_back_is_sent_before_the_end(
    open_session: OpenSession, reason: str
) -> None:
    output = AudioFormat(sample_rate_hz=16000)
    driver = open_session(msgspec.structs.replace(LISTENING, output_format=output))
    driver.user_turn("Hi")
    for _ in range(5):
        driver.model_audio(20, "a")
    driver.model_ends(reason)

    assert sum(len(delta.delta) for delta in driver.of(AudioDelta)) == 100 * 16 * 2


@pytest.mark.parametrize(
    ("output", "pieces"),
    [
        (AudioFormat(sample_rate_hz=24_000), 3),
        (AudioFormat(sample_rate_hz=192_000), 20),
        (AudioFormat("wav", 48_000), 5),
        (AudioFormat("g711_alaw", 8_000), 1),
    ],
    ids=["pcm16", "a high rate", "wav", "a low rate"],
)
def test_sound_that_a_model_gives_at_once_comes_in_frames_that_stock_clients_read(
    open_session: OpenSession, output: AudioFormat, pieces: int
) -> None:
    """Interop, MUST 5."""
    driver = open_session(msgspec.structs.replace(LISTENING, output_format=output))
    driver.user_turn("Hi")
    driver.answers((20_000, "All of it."), (100, " Bye."))

    deltas = driver.of(AudioDelta)
    assert max(len(encode_event(delta, event_id="e", seq=1)) for delta in deltas) < 1024 * 1024
    words = [delta.delta for delta in driver.of(TranscriptDelta)]
    assert words[: pieces + 1] == [""] * (pieces - 1) + ["All of it.", " Bye."]
    assert len(words) == len(deltas)
    assert sum(output.sample_count(len(delta.delta)) for delta in deltas) == pytest.approx(
        20.1 * output.sample_rate_hz, abs=1
    )
    marks = [mark for one in deltas if one.metadata for mark in one.metadata.audio_text_marks or ()]
    assert [(mark.text_chars, mark.audio_end_ms) for mark in marks] == [(10, 20_000), (15, 20_100)]
    assert driver.last(TranscriptDone).transcript == "All of it. Bye."


def test_out_of_band_answers_leave_no_trace_in_the_conversation(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    by_hand.events()
    by_hand.send(CreateResponse(response=ResponseOptions(conversation="none")))
    by_hand.answers((100, "A summary."))

    assert "ItemAdded" not in by_hand.kinds()
    assert [item.id for item in by_hand.last(ResponseDone).response.output] == ["item_resp_1"]
    facts = by_hand.last(ResponseDone).response.facts
    assert facts
    assert facts.committed is False

    by_hand.send(ASK)
    assert by_hand.said == [("user", "Hi")]
    by_hand.answers((100, "Hello."))
    assert by_hand.last(ItemDone).previous_item_id == "item_1"


def test_options_are_those_of_one_answer(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    options = ResponseOptions(
        instructions="Rhyme.",
        temperature=0.2,
        max_output_tokens=7,
        output_modalities=("text",),
        tools=({"type": "function", "name": "f"},),
        tool_choice="none",
        metadata={"topic": "x"},
    )
    by_hand.send(CreateResponse(response=options))
    prompt = by_hand.prompts[-1]
    assert (prompt.instructions, prompt.temperature, prompt.max_tokens) == ("Rhyme.", 0.2, 7)
    assert (prompt.speak, prompt.tool_choice, len(prompt.tools)) == (False, "none", 1)
    by_hand.model_text("Hi")
    by_hand.model_ends()
    assert by_hand.last(ResponseDone).response.metadata == {"topic": "x"}

    by_hand.send(ASK)
    prompt = by_hand.prompts[-1]
    assert (prompt.instructions, prompt.temperature, prompt.speak) == (None, None, True)
    assert by_hand.last(ResponseCreated).response.metadata is None


def test_of_a_written_answer_only_the_words_are_shown(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    by_hand.send(CreateResponse(response=ResponseOptions(output_modalities=("text",))))
    by_hand.model_audio(100, "Spoken ")
    by_hand.model_audio(100)
    by_hand.model_text("all the same.")
    by_hand.model_ends()

    assert by_hand.of(AudioDelta) == []
    assert by_hand.last(TextDone).text == "Spoken all the same."
