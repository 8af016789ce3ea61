"""The words of user items: one delta, one end, or the word that there are none."""

import msgspec
import pytest
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import BY_HAND, LISTENING, SessionDriver, loud
from tests.engine.duplex.session.scripted_model import ScriptedPlugin

from omniduplex.protocol.duplex import (
    AudioFormat,
    ContentPart,
    CreateItem,
    CreateResponse,
    DeleteItem,
    Dialect,
    InputCommitted,
    ItemDone,
    ItemInput,
    ItemRetrieved,
    ResponseDone,
    ResponseOptions,
    RetrieveItem,
    TranscriptionCompleted,
    TranscriptionDelta,
    TranscriptionFailed,
)

ASK = CreateResponse()


def spoken(*sounds: bytes, item_id: str = "said", after: str | None = None) -> CreateItem:
    parts = tuple(ContentPart(type="input_audio", audio=sound) for sound in sounds)
    return CreateItem(
        item=ItemInput(id=item_id, content=parts), previous_item_id=after, event_id="e1"
    )


def retrieved(driver: SessionDriver, item_id: str) -> list[str | None]:
    driver.send(RetrieveItem(item_id=item_id))
    parts = driver.last(ItemRetrieved).item.content or ()
    return [part.transcript or None for part in parts]


def test_the_delta_is_the_whole_and_comes_before_the_end(driver: SessionDriver) -> None:
    driver.user_turn("What time is it?")
    kinds = driver.kinds()
    at = kinds.index("TranscriptionDelta")
    assert kinds[at + 1] == "TranscriptionCompleted"
    assert driver.last(TranscriptionDelta).delta == driver.last(TranscriptionCompleted).transcript


def test_without_words_there_is_no_delta(by_hand: SessionDriver) -> None:
    by_hand.append(300)
    by_hand.commit()
    by_hand.events()
    by_hand.transcript("item_1", "")
    assert by_hand.kinds() == ["TranscriptionCompleted"]


# What cannot be recognised


def test_a_commit_whose_words_cannot_be_recognised_is_told(by_hand: SessionDriver) -> None:
    by_hand.append(300)
    by_hand.commit()
    by_hand.events()
    by_hand.unheard("item_1")

    assert by_hand.kinds() == ["TranscriptionFailed"]
    error = by_hand.last(TranscriptionFailed).error
    assert (error.type, error.code) == ("server_error", "transcription_failed")
    assert error.message == "the recogniser broke"
    assert retrieved(by_hand, "item_1") == [None]
    by_hand.says("Then in writing")
    by_hand.send(ASK)
    assert by_hand.said == [("user", "Then in writing")]


def test_an_answer_that_waited_for_those_words_fails(by_hand: SessionDriver) -> None:
    by_hand.append(300)
    by_hand.commit(response_create=True)
    by_hand.events()
    by_hand.unheard("item_1")

    assert by_hand.kinds()[0] == "TranscriptionFailed"
    assert by_hand.error().code == "transcription_failed"
    done = by_hand.last(ResponseDone).response
    assert done.status == "failed"
    assert by_hand.prompts == []
    by_hand.append(300)
    by_hand.commit(response_create=True)
    by_hand.transcript(by_hand.model.commits[-1], "Once more")
    assert by_hand.said == [("user", "Once more")]


def test_a_turn_that_nobody_could_hear_is_committed_and_not_answered(
    driver: SessionDriver,
) -> None:
    driver.user_speaks()
    driver.events()
    driver.user_turn_unheard()

    assert driver.kinds() == [
        "SpeechStopped",
        "ItemAdded",
        "ItemCreated",
        "InputCommitted",
        "TranscriptionFailed",
        "ItemDone",
    ]
    assert driver.open_responses == []
    driver.user_turn("Once more")
    assert driver.said == [("user", "Once more")]


def test_a_failure_for_nobody_is_dropped(by_hand: SessionDriver) -> None:
    by_hand.append(300)
    by_hand.commit()
    by_hand.send(DeleteItem(item_id="item_1"))
    by_hand.events()
    by_hand.unheard("item_1")
    assert by_hand.events() == []


# Audio inside an item


def test_audio_in_an_item_is_recognised_and_never_answered(by_hand: SessionDriver) -> None:
    by_hand.send(spoken(loud(300)))
    assert by_hand.kinds() == ["ItemAdded", "ItemCreated", "InputCommitted", "ItemDone"]
    ((item_id, index, pcm),) = by_hand.model.recognising
    assert (item_id, index, pcm) == ("said", 0, loud(300))
    (part,) = by_hand.last(ItemDone).item.content or ()
    assert (part.transcript, part.audio) == (None, msgspec.UNSET)

    by_hand.transcript("said", "What time is it?")
    assert by_hand.kinds() == ["TranscriptionDelta", "TranscriptionCompleted"]
    assert by_hand.open_responses == []
    assert retrieved(by_hand, "said") == ["What time is it?"]
    facts = by_hand.last(InputCommitted).event
    assert facts
    assert facts.turn_id == 1


def test_it_leaves_the_open_turn_alone(by_hand: SessionDriver) -> None:
    by_hand.append(300)
    by_hand.send(spoken(loud(100)))
    by_hand.append(300)
    by_hand.commit()
    assert by_hand.model.heard == loud(300) * 2
    assert by_hand.model.commits == ["item_1"]


def test_an_openai_client_committed_nothing(open_session: OpenSession) -> None:
    driver = open_session(msgspec.structs.replace(BY_HAND, dialect=Dialect.OPENAI))
    driver.send(spoken(loud(300)))
    assert driver.kinds() == ["ItemAdded", "ItemCreated", "ItemDone"]


def test_an_answer_waits_for_the_words_of_items(by_hand: SessionDriver) -> None:
    by_hand.send(spoken(loud(100), loud(200)))
    by_hand.send(ASK)
    assert by_hand.prompts == []
    by_hand.transcript("said", "What time", 0)
    assert by_hand.prompts == []
    by_hand.transcript("said", "is it?", 1)
    assert by_hand.said == [("user", "What time is it?")]
    assert [event.content_index for event in by_hand.of(TranscriptionCompleted)] == [0, 1]


def test_an_input_of_its_own_waits_for_nothing_else(by_hand: SessionDriver) -> None:
    by_hand.send(spoken(loud(100)))
    aside = ItemInput(id="said", content=(ContentPart(type="input_text", text="Aside"),))
    by_hand.send(CreateResponse(response=ResponseOptions(conversation="none", input=(aside,))))
    assert by_hand.said == [("user", "Aside")]
    by_hand.unheard("said")
    assert len(by_hand.open_responses) == 1


def test_an_input_waits_for_the_words_that_it_names(by_hand: SessionDriver) -> None:
    by_hand.send(spoken(loud(100), item_id="named"))
    by_hand.send(spoken(loud(100), item_id="other"))
    named = ItemInput(type="item_reference", id="named")
    by_hand.send(CreateResponse(response=ResponseOptions(conversation="none", input=(named,))))
    assert by_hand.prompts == []
    by_hand.transcript("named", "What time is it?")
    assert by_hand.said == [("user", "What time is it?")]


def test_it_is_converted_from_the_sessions_format(open_session: OpenSession) -> None:
    config = msgspec.structs.replace(
        LISTENING, input_format=AudioFormat(encoding="g711_ulaw", sample_rate_hz=8000)
    )
    driver = open_session(config)
    driver.send(spoken(b"\xff" * 800))
    ((_, _, pcm),) = driver.model.recognising
    assert pcm == bytes(3200)


def test_large_audio_is_converted_off_the_loop(by_hand: SessionDriver) -> None:
    by_hand.send(spoken(loud(5000)))
    by_hand.append(100)
    assert by_hand.model.recognising == []
    assert by_hand.model.heard == loud(100)
    by_hand.converted()
    assert [len(pcm) for _, _, pcm in by_hand.model.recognising] == [160_000]


def test_audio_of_an_item_that_was_deleted_is_not_recognised(by_hand: SessionDriver) -> None:
    by_hand.send(spoken(loud(5000)))
    by_hand.send(DeleteItem(item_id="said"))
    by_hand.converted()
    assert by_hand.model.recognising == []


def test_audio_that_cannot_be_converted_fails_what_waits_for_it(
    open_session: OpenSession,
) -> None:
    driver = open_session(
        msgspec.structs.replace(BY_HAND, input_format=AudioFormat(encoding="pcm_f32le"))
    )
    nan = b"\x00\x00\xc0\x7f"
    driver.send(spoken(nan * 100, item_id="small"))
    assert driver.last(TranscriptionFailed).error.code == "bad_audio"

    driver.send(spoken(nan * 50_000, item_id="large"))
    driver.send(ASK)
    driver.converted(error="not finite")
    assert driver.last(TranscriptionFailed).item_id == "large"
    assert driver.last(ResponseDone).response.status == "failed"


def test_a_transcript_of_the_clients_own_is_believed(by_hand: SessionDriver) -> None:
    part = ContentPart(type="input_audio", audio=loud(300), transcript="Hi")
    by_hand.send(CreateItem(item=ItemInput(content=(part,))))
    assert by_hand.model.recognising == []
    by_hand.send(ASK)
    assert by_hand.said == [("user", "Hi")]


@pytest.mark.parametrize(
    ("sound", "code"), [(b"", "bad_audio"), (b"\0\0\0", "bad_audio")], ids=["empty", "half"]
)
def test_audio_that_is_none_is_refused(by_hand: SessionDriver, sound: bytes, code: str) -> None:
    by_hand.send(spoken(loud(10), sound))
    assert by_hand.kinds() == ["ErrorEvent"]
    error = by_hand.error()
    assert (error.code, error.param, error.event_id) == (code, "item.content[1].audio", "e1")


class OneEar(ScriptedPlugin):
    recognises_items = False


def test_a_model_without_a_second_ear_says_so() -> None:
    driver = SessionDriver(BY_HAND, plugin=OneEar())
    driver.send(spoken(loud(300)))
    error = driver.error()
    assert (error.code, error.param) == ("unsupported", "item.content[0].audio")


def test_only_so_many_turns_wait_to_be_heard(by_hand: SessionDriver) -> None:
    for number in range(4):
        by_hand.send(spoken(loud(10), item_id=f"i{number}"))
    by_hand.send(spoken(loud(10), item_id="one more"))
    assert (by_hand.error().code, by_hand.error().event_id) == ("input_backpressure", "e1")
    by_hand.transcript("i0", "Hi")
    by_hand.send(spoken(loud(10), item_id="one more"))
    assert len(by_hand.model.recognising) == 5
