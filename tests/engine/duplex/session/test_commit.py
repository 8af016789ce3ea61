"""Turns that end: wire contract, sections 7.1 and 7.2."""

from typing import Any

import msgspec
import pytest
from tests.engine.duplex.session.conftest import OpenSession
from tests.engine.duplex.session.driver import (
    BY_HAND,
    LISTENING,
    MAX_INPUT_BYTES,
    MAX_TURNS,
    SessionDriver,
    kinds,
    loud,
    quiet,
)

from omniduplex.protocol.duplex import (
    CancelResponse,
    ClearInput,
    Commit,
    CreateResponse,
    DeleteItem,
    Dialect,
    ErrorEvent,
    InputCommit,
    InputCommitted,
    ItemAdded,
    ItemDone,
    ListenDecision,
    ResponseCreated,
    RetrieveItem,
    SpeechStarted,
    SpeechStopped,
    TranscriptionCompleted,
)

WORDS = ["TranscriptionDelta", "TranscriptionCompleted"]
ITEM = ["ItemAdded", "ItemCreated", "InputCommitted"]
ANSWER = ["ResponseCreated", "ItemAdded", "ItemCreated", "OutputItemAdded", "ContentPartAdded"]


def test_a_turn_heard_to_its_end_is_committed_and_answered(driver: SessionDriver) -> None:
    driver.user_speaks(at_ms=120)
    driver.user_turn_ends("How are you?", at_ms=1500)

    assert driver.kinds() == [
        "SpeechStarted",
        "SpeechStopped",
        *ITEM,
        "TranscriptionDelta",
        "TranscriptionCompleted",
        "ItemDone",
        *ANSWER,
    ]
    started, stopped = driver.last(SpeechStarted), driver.last(SpeechStopped)
    assert (started.audio_start_ms, stopped.audio_end_ms) == (120, 1500)
    assert started.item_id == stopped.item_id == driver.last(InputCommitted).item_id
    assert driver.said == [("user", "How are you?")]


def test_the_openai_dialect_hears_of_the_commit_first(open_session: OpenSession) -> None:
    driver = open_session(msgspec.structs.replace(LISTENING, dialect=Dialect.OPENAI))
    driver.user_turn("Hi")

    assert driver.kinds()[2:7] == [
        "InputCommitted",
        "ItemAdded",
        "ItemCreated",
        "TranscriptionDelta",
        "TranscriptionCompleted",
    ]


def test_items_name_the_one_before_them(driver: SessionDriver) -> None:
    driver.user_turn("One")
    driver.answers((100, "First."))
    driver.user_turn("Two")

    places = [(event.item.id, event.previous_item_id) for event in driver.of(ItemAdded)]
    assert places == [
        ("item_1", None),
        ("item_resp_1", "item_1"),
        ("item_2", "item_resp_1"),
        ("item_resp_2", "item_2"),
    ]


def test_a_turn_without_words_leaves_nothing_but_a_decision_to_listen(
    driver: SessionDriver,
) -> None:
    driver.user_speaks()
    driver.user_turn_ends("")

    assert driver.kinds() == ["SpeechStarted", "SpeechStopped", "ListenDecision"]
    facts = driver.last(ListenDecision).response.metadata
    assert facts.reason == "silence_or_noise"
    assert driver.prompts == []


def test_a_turn_that_was_never_announced_has_no_end_to_announce(driver: SessionDriver) -> None:
    driver.user_turn_ends("Out of nowhere")
    assert driver.kinds() == [*ITEM, *WORDS, "ItemDone", *ANSWER]


def test_a_session_may_end_turns_without_answering_them(open_session: OpenSession) -> None:
    assert LISTENING.turn_detection
    detection = msgspec.structs.replace(LISTENING.turn_detection, create_response=False)
    driver = open_session(msgspec.structs.replace(LISTENING, turn_detection=detection))
    driver.user_turn("Just noting this")
    assert driver.of(ResponseCreated) == []

    driver.send(CreateResponse())
    assert driver.said == [("user", "Just noting this")]


# Turns that the client ends


def test_a_commit_asks_for_nothing_by_itself(by_hand: SessionDriver) -> None:
    by_hand.append(300)
    by_hand.commit()

    assert by_hand.kinds() == [*ITEM, "ItemDone"]
    assert by_hand.model.commits == ["item_1"]
    facts = by_hand.last(InputCommitted).event
    assert facts
    assert (facts.turn_id, facts.epoch, facts.history_len) == (1, 0, 1)


@pytest.mark.parametrize("command", [Commit(response_create=True), InputCommit()])
def test_an_answer_opens_at_once_and_is_asked_for_when_the_words_are_known(
    by_hand: SessionDriver, command: Commit | InputCommit
) -> None:
    by_hand.append(300)
    by_hand.send(command)
    assert by_hand.kinds() == [*ITEM, "ItemDone", *ANSWER]
    assert by_hand.prompts == []

    by_hand.transcript("item_1", "What time is it?")
    assert by_hand.kinds() == WORDS
    assert by_hand.said == [("user", "What time is it?")]

    by_hand.answers((200, "Noon."))
    by_hand.send(RetrieveItem(item_id="item_1"))


def test_a_client_that_knows_the_words_need_not_wait_for_them(by_hand: SessionDriver) -> None:
    for hint in ("What time", "What time", None, " is it? "):
        by_hand.append(100, transcript=hint)
    by_hand.send(InputCommit())

    assert by_hand.kinds() == [*ITEM, *WORDS, "ItemDone", *ANSWER]
    assert by_hand.last(TranscriptionCompleted).transcript == "What time is it?"
    assert by_hand.said == [("user", "What time is it?")]
    assert by_hand.model.commits == ["item_1"]
    by_hand.transcript("item_1", "Watt I miss it")
    assert by_hand.events() == []


def test_input_commit_may_say_that_it_wants_no_answer(by_hand: SessionDriver) -> None:
    by_hand.append(300)
    by_hand.send(InputCommit(response_create=False))
    assert by_hand.of(ResponseCreated) == []


def test_an_answer_waits_for_the_words_of_every_turn_before_it(by_hand: SessionDriver) -> None:
    for _ in range(2):
        by_hand.append(300)
        by_hand.commit()
    by_hand.send(CreateResponse())
    by_hand.transcript("item_2", "Second.")
    assert by_hand.prompts == []

    by_hand.transcript("item_1", "First.")
    assert by_hand.said == [("user", "First."), ("user", "Second.")]
    assert len(by_hand.prompts) == 1


def test_two_commits_in_a_row_are_two_answers_one_after_the_other(by_hand: SessionDriver) -> None:
    by_hand.append(300)
    by_hand.send(InputCommit())
    by_hand.append(300)
    by_hand.send(InputCommit())
    facts = by_hand.last(InputCommitted).event
    assert facts
    assert facts.response_create_deferred is True
    by_hand.transcript("item_1", "First?")
    by_hand.transcript("item_2", "Second?")
    assert by_hand.open_responses == ["resp_1"]

    by_hand.answers((100, "One."))
    assert by_hand.open_responses == ["resp_2"]
    assert by_hand.said == [("user", "First?"), ("assistant", "One."), ("user", "Second?")]
    by_hand.answers((100, "Two."))
    assert by_hand.open_responses == []


def test_a_deferred_answer_waits_for_its_words_too(by_hand: SessionDriver) -> None:
    by_hand.append(300)
    by_hand.send(InputCommit())
    by_hand.transcript("item_1", "First?")
    by_hand.append(300)
    by_hand.send(InputCommit())
    by_hand.answers((100, "One."))
    assert len(by_hand.prompts) == 1

    by_hand.transcript("item_2", "Second?")
    assert len(by_hand.prompts) == 2
    by_hand.answers((100, "Two."))


def test_a_failed_answer_takes_the_deferred_one_with_it(by_hand: SessionDriver) -> None:
    by_hand.says("Hi")
    by_hand.send(CreateResponse())
    by_hand.append(300)
    by_hand.send(InputCommit())
    by_hand.transcript("item_2", "And?")
    by_hand.model_fails()
    assert by_hand.open_responses == []

    by_hand.send(CreateResponse())
    by_hand.answers((100, "Here."))
    assert by_hand.open_responses == []


def test_an_answer_does_not_wait_for_an_item_that_was_deleted(by_hand: SessionDriver) -> None:
    by_hand.says("Before")
    by_hand.append(300)
    by_hand.send(InputCommit())
    by_hand.send(DeleteItem(item_id="item_2"))
    assert by_hand.said == [("user", "Before")]

    by_hand.events()
    by_hand.transcript("item_2", "Never said")
    assert by_hand.events() == []
    by_hand.answers((100, "Yes."))
    assert by_hand.open_responses == []


def test_words_that_come_after_a_cancel_are_kept_and_ask_for_nothing(
    by_hand: SessionDriver,
) -> None:
    by_hand.append(300)
    by_hand.send(InputCommit())
    by_hand.send(CancelResponse())
    by_hand.transcript("item_1", "Too late")

    assert by_hand.prompts == []
    by_hand.send(CreateResponse())
    assert by_hand.said == [("user", "Too late")]


def test_words_are_told_once(by_hand: SessionDriver) -> None:
    by_hand.append(300)
    by_hand.commit()
    by_hand.transcript("item_1", "Once")
    by_hand.transcript("item_1", "Twice")

    (told,) = by_hand.of(TranscriptionCompleted)
    assert (told.transcript, told.usage.seconds) == ("Once", 1.0)


# Nothing to commit


def test_a_commit_of_nothing_is_refused_by_name(by_hand: SessionDriver) -> None:
    by_hand.send(Commit(event_id="e9"))

    (error,) = by_hand.events()
    assert kinds([error]) == ["ErrorEvent"]
    assert (by_hand.error().code, by_hand.error().event_id) == ("input_audio_buffer_empty", "e9")


def test_b29_a_commit_right_behind_the_servers_own_is_one_refusal(driver: SessionDriver) -> None:
    driver.append(300)
    driver.user_turn("Hello")
    driver.append(pcm=quiet(40))
    driver.events()
    driver.send(Commit(event_id="e9"))

    assert driver.kinds() == ["ErrorEvent"]
    assert (driver.error().code, driver.error().event_id) == ("input_audio_buffer_empty", "e9")
    driver.answers((100, "Hello."))
    assert driver.open_responses == []


def test_a_client_may_end_a_turn_that_the_server_listens_to(driver: SessionDriver) -> None:
    driver.append(300)
    driver.user_speaks()
    driver.commit(response_create=True)
    assert driver.kinds()[:2] == ["SpeechStarted", "SpeechStopped"]
    driver.transcript("item_1", "Now.")

    assert driver.said == [("user", "Now.")]


@pytest.mark.parametrize(
    ("dialect", "extensions", "end_ms"),
    [
        (Dialect.DUPLEX, (), 0),
        (Dialect.OPENAI, ("duplex",), 0),
        (Dialect.OPENAI, (), 800),
        (Dialect.BETA, (), 800),
    ],
)
def test_a_commit_in_the_middle_of_speech_ends_it_where_its_dialect_says(
    open_session: OpenSession, dialect: Dialect, extensions: tuple[str, ...], end_ms: int
) -> None:
    """Section 2, event 10; a stock client gets the time of the last sound that came."""
    driver = open_session(
        msgspec.structs.replace(LISTENING, dialect=dialect, extensions=extensions)
    )
    driver.append(500)
    driver.user_speaks(at_ms=120)
    driver.append(300)
    driver.commit()

    started, stopped = driver.last(SpeechStarted), driver.last(SpeechStopped)
    assert (started.audio_start_ms, stopped.audio_end_ms) == (120, end_ms)
    assert started.item_id == stopped.item_id == driver.last(InputCommitted).item_id


@pytest.mark.parametrize(
    ("pcm", "verdict"), [(quiet(300), None), (loud(300), False)], ids=["silence", "client's word"]
)
def test_silence_is_committed_as_such_and_not_answered(
    by_hand: SessionDriver, pcm: bytes, verdict: bool | None
) -> None:
    by_hand.append(pcm=pcm)
    by_hand.events()
    by_hand.commit(is_speech=verdict, response_create=True)

    assert by_hand.kinds() == [*ITEM, "ItemDone", "ListenDecision"]
    facts = by_hand.last(InputCommitted).event
    assert facts
    assert (facts.empty, facts.is_speech, facts.no_response) == (True, False, True)
    assert (by_hand.model.commits, by_hand.model.clears) == ([], 1)
    part = by_hand.last(ItemDone).item.content
    assert part
    assert (part[0].transcript, part[0].is_speech) == ("", False)


@pytest.mark.parametrize(
    ("hints", "speech"),
    [
        ({"is_speech": True}, True),
        ({"speech_probability": 0.5}, True),
        ({"speech_probability": 0.49}, False),
        ({"overlap_silence_rms": 0.0}, True),
        ({}, False),
    ],
)
def test_the_clients_word_about_speech_comes_before_the_level(
    by_hand: SessionDriver, hints: dict[str, Any], speech: bool
) -> None:
    by_hand.append(pcm=quiet(200), **hints)
    by_hand.commit()
    assert bool(by_hand.model.commits) == speech


# Limits


def test_b30_too_much_open_audio_is_refused_and_a_clear_makes_room(by_hand: SessionDriver) -> None:
    piece = loud(1000)
    for _ in range(MAX_INPUT_BYTES // len(piece)):
        by_hand.append(pcm=piece)
    assert by_hand.events() == []
    heard = len(by_hand.model.heard)
    by_hand.append(pcm=piece, event_id="e1")
    assert (by_hand.error().code, by_hand.error().event_id) == ("input_backpressure", "e1")
    assert len(by_hand.model.heard) == heard

    by_hand.send(ClearInput())
    by_hand.append(pcm=piece)
    by_hand.commit()
    assert by_hand.kinds()[-4:] == [*ITEM, "ItemDone"]


def test_a_commit_gives_the_room_back_too(by_hand: SessionDriver) -> None:
    piece = loud(1000)
    for turn in range(3):
        for _ in range(MAX_INPUT_BYTES // len(piece)):
            by_hand.append(pcm=piece)
        by_hand.commit()
        by_hand.transcript(f"item_{turn + 1}", "words")
    assert "ErrorEvent" not in by_hand.kinds()


def test_a_session_that_listens_may_stream_for_ever(driver: SessionDriver) -> None:
    for _ in range(2 * MAX_INPUT_BYTES // len(loud(1000))):
        driver.append(1000)
    assert driver.events() == []


def test_a_commit_that_is_refused_for_want_of_room_leaves_the_open_turn_as_it_was(
    by_hand: SessionDriver,
) -> None:
    for _ in range(MAX_TURNS):
        by_hand.append(100)
        by_hand.commit()
    by_hand.append(pcm=loud(100, 48_000), sample_rate_hz=48_000)
    heard = by_hand.model.heard
    by_hand.commit()
    assert by_hand.error().code == "input_backpressure"
    assert by_hand.model.heard == heard

    by_hand.transcript("item_1", "words")
    by_hand.commit()
    assert len(by_hand.of(InputCommitted)) == MAX_TURNS + 1


def test_turns_that_wait_for_their_words_are_bounded(by_hand: SessionDriver) -> None:
    for _ in range(MAX_TURNS):
        by_hand.append(100)
        by_hand.commit()
    by_hand.append(100)
    by_hand.send(Commit(event_id="e1"))
    assert (by_hand.error().code, by_hand.error().event_id) == ("input_backpressure", "e1")

    by_hand.transcript("item_1", "words")
    by_hand.commit()
    assert len(by_hand.of(InputCommitted)) == MAX_TURNS + 1


def test_auto_response_answers_every_commit(open_session: OpenSession) -> None:
    driver = open_session(msgspec.structs.replace(BY_HAND, auto_response=True))
    driver.append(300)
    driver.commit()
    driver.transcript("item_1", "Hi")
    assert driver.said == [("user", "Hi")]


def test_half_a_sample_ends_with_its_turn(open_session: OpenSession) -> None:
    driver = open_session(BY_HAND)
    driver.append(pcm=loud(200) + b"\7")
    driver.commit()
    driver.append(pcm=loud(100))

    assert driver.model.heard == loud(200) + loud(100)


def test_half_a_sample_is_nothing_to_commit(open_session: OpenSession) -> None:
    driver = open_session(BY_HAND)
    driver.append(pcm=b"\7")
    driver.commit(event_id="e1")
    assert driver.last(ErrorEvent).error.code == "input_audio_buffer_empty"

    driver.append(pcm=loud(100))
    assert driver.model.heard == loud(100)


def test_a_committed_turn_is_heard_to_its_last_sample(open_session: OpenSession) -> None:
    driver = open_session(BY_HAND)
    driver.append(pcm=loud(200, 24_000), sample_rate_hz=24_000)
    driver.commit()

    assert len(driver.model.heard) == len(loud(200))
