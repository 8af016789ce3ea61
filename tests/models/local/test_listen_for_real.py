"""The listening stage with its own models hears real speech, and answers."""

import queue
from collections.abc import Iterator

import msgspec
import numpy as np
import pytest
from tests.e2e.hearing import understood
from tests.models.local.listening_room import SEMANTIC, Told, hear_out, message_in, silence
from tests.models.local.speech import at_16k

from omniduplex.audio.pcm import float32_to_int16
from omniduplex.engine.prompts import PromptMessage, ResponsePrompt
from omniduplex.models.local.messages import (
    AnswerEnded,
    AnswerText,
    CommitHeard,
    CommitInput,
    ConfigureEar,
    EarSettings,
    KeptListening,
    SpeechBegan,
    StartAnswer,
    ToListen,
    TurnDrafted,
    TurnEnded,
    encode,
)
from omniduplex.models.local.stages.listen import ListenStage
from omniduplex.models.local.stages.listen_parts import ListenOptions
from omniduplex.models.local.voice import Voice
from omniduplex.stages.messages import StageAbort, StageInput, StageOutput


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
# However soon the detector falls silent, the draft comes before the end.
@pytest.mark.parametrize(
    "settings", [EarSettings(), msgspec.structs.replace(SEMANTIC, complete_hold_ms=500)]
)
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
    assert understood(QUESTION, draft.transcript)
    assert isinstance(end, TurnEnded)
    assert understood(QUESTION, end.transcript)
    # The hold begins where the detector hears no speech: some frames before or behind the end.
    length_ms = 500 + len(asked) // 32
    assert length_ms <= end.audio_end_ms <= length_ms + settings.hold_ms + 250


@pytest.mark.local
def test_two_spoken_turns_in_one_append_are_both_heard(real_room: RealRoom, voice: Voice) -> None:
    real_room.tell(ConfigureEar(EarSettings()))
    spoken = [at_16k(voice.say(text), voice.rate) for text in (QUESTION, SENTENCE)]
    real_room.hear(silence(1000).join([b"", *spoken, b""]))
    first = real_room.until(TurnEnded)[-1]
    began, *_, second = real_room.until(TurnEnded)

    assert isinstance(first, TurnEnded)
    assert isinstance(began, SpeechBegan)
    assert isinstance(second, TurnEnded)
    assert understood(QUESTION, first.transcript)
    assert understood(SENTENCE, second.transcript)
    assert first.audio_end_ms <= began.audio_start_ms < second.audio_end_ms


@pytest.mark.local
def test_a_spoken_commit_is_heard_whole(real_room: RealRoom, voice: Voice) -> None:
    real_room.tell(ConfigureEar(EarSettings(finds_turns=False)))
    real_room.hear(silence(2000) + at_16k(voice.say(SENTENCE), voice.rate))
    real_room.tell(CommitInput("item_1"))
    (heard,) = real_room.until(CommitHeard)
    assert isinstance(heard, CommitHeard)
    assert understood(SENTENCE, heard.transcript)


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
    assert ended.reason in ("length", "stop")
    assert (ended.completion_tokens or 0) <= 4
