import os
import queue
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray
from tests.models.local.fake_language_model import DONE, FakeLanguageModel
from tests.models.local.manual_executor import ManualExecutor
from tests.models.local.speech import at_16k, told_of_words, word_error_rate

from omniduplex.audio.pcm import SAMPLE_BYTES, byte_count, float32_to_int16
from omniduplex.audio.vad import VadState
from omniduplex.engine.prompts import PromptMessage, ResponsePrompt
from omniduplex.models.local import messages
from omniduplex.models.local.asr import Recognition
from omniduplex.models.local.language_model import TextDelta
from omniduplex.models.local.messages import (
    AnswerEnded,
    AnswerText,
    ClearInput,
    CommitHeard,
    CommitInput,
    CommitUnheard,
    ConfigureEar,
    EarSettings,
    FromListen,
    Heard,
    KeptListening,
    Report,
    SpeechBegan,
    SpeechGrew,
    StartAnswer,
    ToListen,
    Transcribe,
    TurnDrafted,
    TurnEnded,
    TurnUnheard,
    WatchSpeech,
    decode_from_listen,
    encode,
)
from omniduplex.models.local.sound_kind import Kinds
from omniduplex.models.local.stages.listen import (
    FRAMES_PER_STEP,
    MAX_UNHEARD_S,
    ListenStage,
)
from omniduplex.models.local.stages.listen_parts import (
    EmbeddedLanguageModel,
    ListenOptions,
    ListenParts,
    RemoteLanguageModel,
)
from omniduplex.models.local.stages.threads import nice_pool
from omniduplex.models.local.voice import Voice
from omniduplex.stages.messages import StageAbort, StageInput, StageOutput

SEMANTIC = EarSettings(hold_ms=992, complete_hold_ms=320)
PROMPT = ResponsePrompt(instructions=None, messages=(PromptMessage(role="user", text="Hello?"),))


def silence(ms: int) -> bytes:
    return bytes(byte_count(ms, 16_000))


def speech(ms: int, loudness: int = 8000) -> bytes:
    return loudness.to_bytes(2, "little") * (byte_count(ms, 16_000) // 2)


Told = FromListen | Heard


def message_in(output: StageOutput) -> Told:
    """What an output tells, taken out of an ear's report."""
    message = decode_from_listen(output.data)
    return message.heard if isinstance(message, Report) else message


def hear_out(stage: ListenStage, *batch: StageInput | StageAbort) -> None:
    """Step over the batch until nothing of it is left to hear."""
    while stage.step(batch):
        batch = ()


@dataclass
class Room:
    """A listening stage: loud frames are speech, and words are how loud the speech was."""

    out: list[StageOutput] = field(default_factory=list)
    recognition_pool: ManualExecutor = field(default_factory=ManualExecutor)
    judge_pool: ManualExecutor = field(default_factory=ManualExecutor)
    answer_pool: ManualExecutor = field(default_factory=ManualExecutor)
    model: FakeLanguageModel = field(default_factory=lambda: FakeLanguageModel(DONE))
    vad_batches: list[int] = field(default_factory=list)
    vad_states: dict[int, VadState] = field(default_factory=dict)
    recognised: int = 0
    glimpses: int = 0
    classified: list[tuple[int, int]] = field(default_factory=list)
    broken: bool = False
    now: float = 5.0
    while_recognising: Callable[[], None] = lambda: None

    def __post_init__(self) -> None:
        self.stage = ListenStage(ListenOptions(), self.out.append, build=lambda _: self._parts())
        self.stage.load()

    def _parts(self) -> ListenParts:
        return ListenParts(
            vad=self,
            recognise=self._recognise,
            glimpse=self._glimpse,
            judge=self._judge,
            kinds=self._kinds,
            language_model=self.model,
            recognition_pool=self.recognition_pool,
            judge_pool=self.judge_pool,
            answer_pool=self.answer_pool,
            clock=lambda: self.now,
        )

    def probabilities(
        self, states: Sequence[VadState], frames: Sequence[NDArray[np.float32]]
    ) -> list[float]:
        self.vad_batches.append(len(frames))
        self.vad_states |= {id(state): state for state in states}
        return [0.9 if float(np.abs(frame).max()) > 0.01 else 0.05 for frame in frames]

    def _recognise(self, pcm: bytes) -> Recognition:
        self.recognised += 1
        self.now += 0.25
        self.while_recognising()
        if self.broken:
            raise RuntimeError("no recogniser")
        return Recognition(str(np.frombuffer(pcm, np.int16).max()), 0.0, 1.0)

    def _glimpse(self, pcm: bytes) -> Recognition:
        self.glimpses += 1
        return Recognition(f"{len(pcm) // 32} ms", 0.0, 1.0)

    def _kinds(self, pcm: bytes, frames: int) -> Kinds:
        self.classified.append((len(pcm) // SAMPLE_BYTES, frames))
        if self.broken:
            raise RuntimeError("no kinds")
        return Kinds(0.9, 0.1, 0.0)

    def _judge(self, pcm: bytes) -> float:
        self.now += 0.0625
        if self.broken:
            raise RuntimeError("no judge")
        return 1.0

    def tell(self, order: ToListen, request_id: str = "ear", epoch: int = 2) -> StageInput:
        return StageInput(request_id, epoch, data=encode(order))

    def open(self, *request_ids: str, settings: EarSettings = EarSettings()) -> None:  # noqa: B008
        self.stage.step([self.tell(ConfigureEar(settings), name) for name in request_ids])

    def hear(self, pcm: bytes, request_id: str = "ear") -> None:
        hear_out(self.stage, StageInput(request_id, 2, pcm))

    def told(self, request_id: str = "ear") -> list[Told]:
        told = [message_in(out) for out in self.out if out.request_id == request_id]
        return [told_of_words(message) for message in told if message != KeptListening()]


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
    assert room.told() == []

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


def test_an_ear_that_is_given_too_much_fails_alone_and_says_why() -> None:
    room = Room()
    room.open("flood", "live")
    minute = silence(60_000)
    flood = [StageInput("flood", 2, minute) for _ in range(MAX_UNHEARD_S // 60)]
    room.stage.step(flood)
    assert not any(out.error for out in room.out)

    room.stage.step([StageInput("flood", 2, minute)])
    failed = [out for out in room.out if out.error]
    assert [(out.request_id, out.epoch, out.error) for out in failed] == [
        ("flood", 2, "too much audio at once")
    ]

    hear_out(room.stage, StageInput("flood", 2, minute), StageInput("live", 2, speech(320)))
    assert room.told("live") == [SpeechBegan(0)]
    assert room.out[-1].request_id == "live"


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


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a niceness per thread")
def test_heavy_threads_and_the_threads_they_start_give_way() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def niceness_of_a_child() -> int:
        with ThreadPoolExecutor(1) as child:
            return child.submit(niceness).result()

    mine = niceness()
    with nice_pool(1, 3, "heavy") as pool:
        assert pool.submit(niceness).result() == min(mine + 3, 19)
        assert pool.submit(niceness_of_a_child).result() == min(mine + 3, 19)
    assert niceness() == mine


def test_a_deploy_file_chooses_the_language_model() -> None:
    options = msgspec.convert(
        {"language_model": {"type": "remote", "base_url": "http://localhost/v1", "model": "m"}},
        ListenOptions,
    )
    assert options.language_model == RemoteLanguageModel(base_url="http://localhost/v1", model="m")
    assert msgspec.convert({}, ListenOptions).language_model == EmbeddedLanguageModel()
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"language_model": {"type": "remote"}}, ListenOptions)


class RealRoom:
    """The stage with its real models, one ear, and each output as it comes."""

    def __init__(self, stage: ListenStage, out: "queue.SimpleQueue[StageOutput]") -> None:
        self._stage = stage
        self._out = out

    def tell(self, order: ToListen, request_id: str = "ear") -> None:
        hear_out(self._stage, StageInput(request_id, data=encode(order)))

    def hear(self, pcm: bytes) -> None:
        hear_out(self._stage, StageInput("ear", pcm=pcm))

    def abort(self, request_id: str) -> None:
        self._stage.step([StageAbort((request_id,))])

    def until(self, last: type[Told]) -> list[Told]:
        """What is told up to the first message of that type, without units of mere listening."""
        told: list[Told] = []
        while not told or not isinstance(told[-1], last):
            output = self._out.get(timeout=60)
            assert output.error == ""
            message = message_in(output)
            if not isinstance(message, KeptListening):
                told.append(message)
        return told

    def told_by_now(self) -> list[Told]:
        self.tell(CommitInput("mark"))
        *told, _ = self.until(CommitHeard)
        return told


@pytest.fixture(scope="module")
def real_stage(
    voice: Voice, smollm2: object, whisper_base: object, smart_turn: object
) -> Iterator[tuple[ListenStage, "queue.SimpleQueue[StageOutput]"]]:
    out: queue.SimpleQueue[StageOutput] = queue.SimpleQueue()
    stage = ListenStage(ListenOptions(), out.put)
    stage.load()
    yield stage, out
    stage.close()


@pytest.fixture
def real_room(
    real_stage: tuple[ListenStage, "queue.SimpleQueue[StageOutput]"],
) -> Iterator[RealRoom]:
    room = RealRoom(*real_stage)
    yield room
    room.abort("ear")


QUESTION = "What is the capital of France?"
SENTENCE = "My brother lives in a small house near the river."


@pytest.mark.local
@pytest.mark.parametrize("settings", [EarSettings(), SEMANTIC])
def test_a_spoken_question_is_drafted_and_then_ends(
    real_room: RealRoom, voice: Voice, settings: EarSettings
) -> None:
    real_room.tell(ConfigureEar(settings))
    asked = at_16k(voice.say(QUESTION), voice.rate)
    real_room.hear(silence(500) + asked + silence(160))
    began, draft = real_room.until(TurnDrafted)
    real_room.hear(silence(1500))
    *_, end = real_room.until(TurnEnded)

    assert isinstance(began, SpeechBegan)
    assert 0 <= began.audio_start_ms <= 500
    assert isinstance(draft, TurnDrafted)
    assert word_error_rate(QUESTION, draft.transcript) == 0
    assert isinstance(end, TurnEnded)
    assert end.transcript == draft.transcript
    length_ms = 500 + len(asked) // 32
    assert abs(end.audio_end_ms - length_ms) <= settings.hold_ms


@pytest.mark.local
def test_two_spoken_turns_in_one_append_are_both_heard(real_room: RealRoom, voice: Voice) -> None:
    real_room.tell(ConfigureEar(EarSettings()))
    spoken = [at_16k(voice.say(text), voice.rate) for text in (QUESTION, SENTENCE)]
    real_room.hear(silence(700).join([b"", *spoken, b""]))
    first = real_room.until(TurnEnded)[-1]
    began, *_, second = real_room.until(TurnEnded)

    assert isinstance(first, TurnEnded)
    assert isinstance(began, SpeechBegan)
    assert isinstance(second, TurnEnded)
    assert word_error_rate(QUESTION, first.transcript) <= 0.2
    assert word_error_rate(SENTENCE, second.transcript) <= 0.2
    assert first.audio_end_ms <= began.audio_start_ms < second.audio_end_ms


@pytest.mark.local
def test_a_spoken_commit_is_heard_whole(real_room: RealRoom, voice: Voice) -> None:
    real_room.tell(ConfigureEar(EarSettings(finds_turns=False)))
    real_room.hear(silence(2000) + at_16k(voice.say(SENTENCE), voice.rate))
    real_room.tell(CommitInput("item_1"))
    (heard,) = real_room.until(CommitHeard)
    assert isinstance(heard, CommitHeard)
    assert word_error_rate(SENTENCE, heard.transcript) <= 0.2


@pytest.mark.local
def test_noise_hum_and_clicks_are_no_speech(real_room: RealRoom) -> None:
    real_room.tell(ConfigureEar(EarSettings()))
    random = np.random.default_rng(7)
    seconds = np.arange(3 * 16_000) / 16_000
    noise = random.normal(0, 10 ** (-45 / 20), len(seconds))
    hum = 10 ** (-35 / 20) * np.sin(2 * np.pi * 50 * seconds) * np.sqrt(2)
    clicks = np.where(np.arange(len(seconds)) % 4800 < 160, random.normal(0, 0.3, len(seconds)), 0)
    for sound in (noise, hum, clicks):
        real_room.hear(float32_to_int16(sound.astype(np.float32)))
    assert real_room.told_by_now() == []


@pytest.mark.local
def test_the_embedded_model_answers(real_room: RealRoom) -> None:
    asked = PromptMessage(role="user", text=QUESTION)
    prompt = ResponsePrompt(instructions=None, messages=(asked,), temperature=0.0)
    real_room.tell(StartAnswer(prompt), "answer")
    *pieces, end = real_room.until(AnswerEnded)

    assert pieces
    assert all(isinstance(piece, AnswerText) for piece in pieces)
    assert isinstance(end, AnswerEnded)
    assert end.prompt_tokens
    assert end.completion_tokens


@pytest.mark.local
def test_an_answer_that_is_aborted_makes_room_for_the_next(real_room: RealRoom) -> None:
    story = PromptMessage(role="user", text="Tell me a very long story about a cat.")
    prompt = ResponsePrompt(instructions=None, messages=(story,), max_tokens=400)
    real_room.tell(StartAnswer(prompt), "long")
    real_room.until(AnswerText)
    real_room.abort("long")
    short = msgspec.structs.replace(prompt, max_tokens=4)
    real_room.tell(StartAnswer(short), "short")
    ended = real_room.until(AnswerEnded)[-1]
    assert isinstance(ended, AnswerEnded)
    assert ended.reason == "length"
    assert (ended.completion_tokens or 0) <= 4


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
