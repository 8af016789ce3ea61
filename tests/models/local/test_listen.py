"""The listening stage: what it tells of several sessions' audio, orders and answers."""

import pytest
from tests.models.local.fake_language_model import DONE
from tests.models.local.listening_room import SEMANTIC, Room, hear_out, message_in, silence, speech

from omniduplex.engine.prompts import PromptMessage, ResponsePrompt
from omniduplex.models.local import messages
from omniduplex.models.local.language_model import TextDelta
from omniduplex.models.local.messages import (
    AnswerEnded,
    AnswerText,
    AudioWaits,
    ClearInput,
    CommitHeard,
    CommitInput,
    CommitUnheard,
    ConfigureEar,
    EarSettings,
    Report,
    SpeechBegan,
    SpeechGrew,
    StartAnswer,
    Transcribe,
    TurnDrafted,
    TurnEnded,
    TurnUnheard,
    WatchSpeech,
    decode_from_listen,
    encode,
)
from omniduplex.models.local.stages.listen import (
    FRAMES_PER_STEP,
    UNHEARD_STEP_MS,
)
from omniduplex.stages.messages import StageAbort, StageInput

PROMPT = ResponsePrompt(instructions=None, messages=(PromptMessage(role="user", text="Hello?"),))


@pytest.fixture
def room() -> Room:
    room = Room()
    room.open("ear")
    return room


def test_a_turn_is_told_as_it_happens(room: Room) -> None:
    room.hear(silence(1024) + speech(1024))
    assert room.told() == [SpeechBegan(724)]

    room.hear(silence(192))
    room.recognition_pool.run()
    assert room.told()[1:] == [TurnDrafted("8000")]

    room.now = 9.0
    room.hear(silence(1000))
    assert room.told()[2:] == [TurnEnded(2560, "8000")]
    (ended,) = [output for output in room.out if isinstance(message_in(output), TurnEnded)]
    assert ended.metrics == {
        messages.HOLD: 0.512,
        messages.RECOGNITION: 0.25,
        messages.AT_TURN_AUDIO: 9.0,
        messages.AT_TURN_END: 9.0,
    }
    assert {(output.request_id, output.epoch) for output in room.out} == {("ear", 2)}
    assert not any(output.finished for output in room.out)


def test_the_verdict_on_the_turn_shortens_the_hold() -> None:
    room = Room()
    room.open("ear", settings=SEMANTIC)
    room.hear(silence(1024) + speech(1024) + silence(160))
    room.judge_pool.run()
    room.recognition_pool.run()
    room.hear(silence(192))
    assert room.told()[-1] == TurnEnded(2368, "8000")
    metrics = next(out.metrics for out in room.out if messages.END_OF_TURN in out.metrics)
    assert metrics[messages.END_OF_TURN] == 0.0625


def test_sessions_share_a_run_of_the_vad_but_not_its_memory() -> None:
    room = Room()
    room.open("a", "b")
    room.stage.step([StageInput("a", 0, speech(320)), StageInput("b", 0, silence(640))])

    assert room.vad_batches == [2] * 10 + [1] * 10
    assert len(room.vad_states) == 2
    assert room.told("a") == [SpeechBegan(0)]
    assert room.told("b") == []


def test_an_order_counts_between_the_audio_before_and_after_it(room: Room) -> None:
    room.stage.step(
        [
            StageInput("ear", 2, speech(1000, 1000)),
            room.tell(CommitInput("item_1")),
            StageInput("ear", 2, speech(1000, 2000)),
            room.tell(CommitInput("item_2")),
            StageInput("ear", 2, speech(1000, 3000)),
            room.tell(ClearInput()),
            room.tell(CommitInput("item_3")),
        ]
    )
    room.recognition_pool.run()

    assert [told for told in room.told() if isinstance(told, CommitHeard)] == [
        CommitHeard("item_1", "1000", 1.0),
        CommitHeard("item_2", "2000", 1.0),
        CommitHeard("item_3", "", 0.0),
    ]


def test_a_step_hears_a_part_of_much_audio_and_of_every_session_the_same() -> None:
    room = Room()
    room.open("much", "live")
    batch = [StageInput("much", 0, silence(60_000)), StageInput("live", 0, speech(320))]

    assert room.stage.step(batch)
    assert sum(room.vad_batches) <= FRAMES_PER_STEP + 1
    assert room.vad_batches[:10] == [2] * 10
    assert room.told("live") == [SpeechBegan(0)]

    room.vad_batches.clear()
    assert room.stage.step([StageInput("live", 0, speech(320))])
    assert room.vad_batches[:10] == [2] * 10
    hear_out(room.stage)
    assert not room.stage.step([])


def test_an_order_waits_until_the_audio_before_it_is_heard(room: Room) -> None:
    room.stage.step(
        [
            StageInput("ear", 2, silence(60_000) + speech(1000, 1000)),
            room.tell(CommitInput("item_1")),
            StageInput("ear", 2, speech(1000, 2000)),
            room.tell(CommitInput("item_2")),
        ]
    )
    assert {type(told) for told in room.told()} == {AudioWaits}

    hear_out(room.stage)
    room.recognition_pool.run()
    assert [told for told in room.told() if isinstance(told, CommitHeard)] == [
        CommitHeard("item_1", "1000", 61.0),
        CommitHeard("item_2", "2000", 1.0),
    ]


def test_audio_keeps_the_time_of_its_arrival_while_it_waits(room: Room) -> None:
    room.now = 7.0
    room.stage.step([StageInput("ear", 2, silence(60_000) + speech(1024) + silence(1024))])
    room.now = 8.0
    hear_out(room.stage, StageInput("ear", 2, silence(1024)))
    room.recognition_pool.run()

    (ended,) = [out for out in room.out if isinstance(message_in(out), TurnEnded)]
    assert ended.metrics[messages.AT_TURN_AUDIO] == 7.0


def test_a_session_is_told_how_much_waits_to_be_heard_until_nothing_does() -> None:
    room = Room()
    room.open("flood", "live")
    room.stage.step([StageInput("flood", 2, silence(60_000)) for _ in range(10)])
    hear_out(room.stage, StageInput("live", 2, speech(320)))

    waiting = [told.audio_ms for told in room.told("flood") if isinstance(told, AudioWaits)]
    minutes = [60_000 * (minute + 1) + UNHEARD_STEP_MS for minute in range(10)]
    assert waiting[:10] == minutes
    assert waiting[10:] == [*range(600_000, UNHEARD_STEP_MS, -UNHEARD_STEP_MS), 0]
    assert room.told("live") == [SpeechBegan(0)]


def test_a_stream_that_is_heard_as_it_comes_is_told_of_nothing_that_waits(room: Room) -> None:
    for _ in range(30):
        room.hear(silence(1024))
    assert not [told for told in room.told() if isinstance(told, AudioWaits)]


def test_an_aborted_ear_leaves_nothing_to_hear(room: Room) -> None:
    assert room.stage.step([StageInput("ear", 2, silence(60_000))])
    assert not room.stage.step([StageAbort(("ear",))])


def test_recordings_wait_until_no_ear_needs_words(room: Room) -> None:
    room.stage.step([StageInput("r", 0, speech(70_000), data=encode(Transcribe()))])
    room.hear(silence(1024) + speech(1024) + silence(192))
    order: list[int] = []

    def note() -> None:
        order.append(len(room.told()))

    room.while_recognising = note
    room.recognition_pool.run()

    # One window of the recording, the draft of the turn, and only then the other windows.
    assert order == [1, 1, 2, 2]


def test_a_clear_forgets_what_the_vad_heard(room: Room) -> None:
    room.hear(speech(320))
    room.stage.step([room.tell(ClearInput())])
    room.hear(speech(320))
    assert len(room.vad_states) == 2


def test_new_settings_reach_the_open_ear(room: Room) -> None:
    room.open("ear", settings=EarSettings(finds_turns=False))
    room.hear(speech(1024) + silence(3000))
    assert room.told() == []


def test_a_superseded_recognition_never_runs(room: Room) -> None:
    room.hear(silence(1024) + speech(1024) + silence(192) + speech(512) + silence(192))
    room.recognition_pool.run()
    assert room.recognised == 1


def test_speech_is_told_of_while_it_goes_on_if_that_is_wanted(room: Room) -> None:
    room.stage.step([room.tell(WatchSpeech(True))])
    room.hear(silence(1024) + speech(320))
    assert room.told()[1:] == [
        SpeechGrew(96, -12.2),
        SpeechGrew(192, -12.2),
        SpeechGrew(288, -12.2),
    ]

    room.recognition_pool.run()
    assert room.told()[4:] == [SpeechGrew(320, -12.2, "820 ms")]
    assert (room.glimpses, room.recognised) == (1, 0)

    room.stage.step([room.tell(WatchSpeech(False))])
    before = len(room.told())
    room.hear(speech(960))
    assert len(room.told()) == before


def test_a_report_names_the_commits_and_clears_before_it(room: Room) -> None:
    room.hear(speech(320))
    room.stage.step([room.tell(ClearInput(1))])
    room.hear(speech(320))
    room.stage.step([room.tell(CommitInput("item_1", 2))])
    room.hear(speech(320))

    reports = [decode_from_listen(out.data) for out in room.out]
    began = [
        report.generation
        for report in reports
        if isinstance(report, Report) and isinstance(report.heard, SpeechBegan)
    ]
    assert began == [0, 1]
    room.recognition_pool.run()
    began = [
        report.generation
        for report in map(decode_from_listen, (out.data for out in room.out))
        if isinstance(report, Report) and isinstance(report.heard, SpeechBegan)
    ]
    assert began == [0, 1, 2]


def test_a_closed_ear_says_nothing_more(room: Room) -> None:
    room.hear(silence(1024) + speech(1024) + silence(192))
    before = len(room.out)
    room.stage.step([StageAbort(("ear", "unknown"))])
    room.hear(speech(1024))
    room.stage.step([room.tell(CommitInput("item_1"))])

    assert room.recognition_pool.run() == 0
    assert len(room.out) == before


def test_a_result_for_an_ear_that_closed_meanwhile_is_dropped(room: Room) -> None:
    room.hear(silence(1024) + speech(1024) + silence(192))
    before = len(room.out)
    room.while_recognising = lambda: hear_out(room.stage, StageAbort(("ear",)))
    room.recognition_pool.run()
    assert room.recognised == 1
    assert len(room.out) == before


def test_a_broken_model_costs_the_words_and_not_the_session_and_is_told() -> None:
    room = Room(broken=True)
    room.open("ear", settings=SEMANTIC)
    for _ in range(2):
        room.hear(silence(1024) + speech(1024) + silence(160))
        room.judge_pool.run()
        room.recognition_pool.run()
        room.hear(silence(864))

    assert [told for told in room.told() if isinstance(told, TurnEnded | TurnUnheard)] == [
        TurnUnheard(3040, "the recogniser failed"),
        TurnUnheard(6112, "the recogniser failed"),
    ]
    room.hear(speech(1024))
    room.stage.step([room.tell(CommitInput("item_1"))])
    room.recognition_pool.run()
    assert room.told()[-1] == CommitUnheard("item_1", "the recogniser failed")


def test_an_answer_is_written_while_the_ear_listens(room: Room) -> None:
    room.model.deltas = (TextDelta("Hello there, "), DONE)
    room.stage.step([room.tell(StartAnswer(PROMPT), "answer", 6)])
    room.hear(silence(1024) + speech(1024))
    room.answer_pool.run()

    assert room.told() == [SpeechBegan(724)]
    assert room.told("answer") == [AnswerText(), AnswerEnded("stop", 7, 5)]
    assert {out.epoch for out in room.out if out.request_id == "answer"} == {6}


def test_instructions_are_read_when_the_ear_opens() -> None:
    room = Room()
    room.stage.step([room.tell(ConfigureEar(EarSettings(), PROMPT))])
    room.answer_pool.run()
    (ahead,) = room.model.read
    assert [message.content for message in ahead.messages][1:] == ["Hello?"]
    assert room.out == []


def test_an_answer_is_aborted_and_the_ear_is_not(room: Room) -> None:
    room.stage.step([room.tell(StartAnswer(PROMPT), "answer")])
    room.stage.step([StageAbort(("answer",))])
    assert room.answer_pool.run() == 0

    room.hear(silence(1024) + speech(1024))
    assert room.told() == [SpeechBegan(724)]


def test_close_ends_the_models_and_their_threads(room: Room) -> None:
    room.hear(silence(1024) + speech(1024) + silence(192))
    room.stage.step([room.tell(StartAnswer(PROMPT), "answer")])
    room.stage.close()

    assert room.recognition_pool.run() == room.answer_pool.run() == 0
    assert room.recognition_pool.closed
    assert room.judge_pool.closed
    assert room.answer_pool.closed
    assert room.model.closed


def test_the_kind_of_a_sound_is_told_beside_recognition(room: Room) -> None:
    room.stage.step([room.tell(WatchSpeech(True))])
    room.hear(silence(1024) + speech(256))
    room.judge_pool.run()
    assert room.classified == [((6 + 8) * 512, 8)]
    assert [grown.floor for grown in room.told()[1:] if isinstance(grown, SpeechGrew)][-1] == 0.9


def test_a_kind_that_cannot_be_told_is_not(room: Room) -> None:
    room.broken = True
    room.stage.step([room.tell(WatchSpeech(True))])
    room.hear(silence(1024) + speech(256))
    room.judge_pool.run()
    assert {grown.floor for grown in room.told()[1:] if isinstance(grown, SpeechGrew)} == {None}
