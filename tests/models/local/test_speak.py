import threading
from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.e2e.hearing import understood
from tests.models.local.manual_executor import ManualExecutor
from tests.models.local.speech import at_16k

from omniduplex.models.local import messages
from omniduplex.models.local.asr import Recognizer
from omniduplex.models.local.stages.speak import SpeakOptions, SpeakParts, SpeakStage
from omniduplex.models.local.stages.speech_slices import slice_speech
from omniduplex.models.local.voice import Voice
from omniduplex.stages.messages import StageAbort, StageInput, StageOutput

RATE = 1000  # two bytes of audio are a millisecond


class Booth:
    """A speaking stage whose voice says 100 ms for each character, on a clock of the test's."""

    def __init__(self) -> None:
        self.pool = ManualExecutor()
        self.out: list[StageOutput] = []
        self.said: list[str] = []
        self.speeds: list[float] = []
        self.now = 10.0
        self.while_saying: Callable[[str], None] = lambda _: None
        self.stage = SpeakStage(SpeakOptions(), self.out.append, build=lambda _: self._parts())
        self.stage.load()

    def _parts(self) -> SpeakParts:
        return SpeakParts(say=self._say, rate=RATE, pool=self.pool, clock=lambda: self.now)

    def _say(self, text: str, speed: float) -> bytes:
        self.said.append(text)
        self.speeds.append(speed)
        self.while_saying(text)
        return bytes(200 * len(text))

    def ask(self, request_id: str, *clauses: str, final: bool = True) -> None:
        self.stage.step([StageInput(request_id, 2, text=clause) for clause in clauses])
        if final:
            self.stage.step([StageInput(request_id, 2, final=True)])

    def text_of(self, request_id: str) -> str:
        return "".join(output.text for output in self.out if output.request_id == request_id)


def test_each_clause_says_how_fast_it_is_spoken() -> None:
    booth = Booth()
    how = messages.encode(messages.HowToSpeak(1.5))
    booth.stage.step([StageInput("a", 2, text="fast", data=how)])
    booth.ask("a", "as usual")
    booth.pool.run()
    assert booth.speeds[:2] == [1.5, 1.0]


def test_clauses_become_slices_in_order_and_then_the_end() -> None:
    booth = Booth()
    booth.ask("a", "one two ", "three.")
    booth.pool.run()

    assert booth.said[:2] == ["one two", "three."]
    *slices, end = booth.out
    assert [len(output.pcm) // 2 for output in slices] == [100, 200, 200, 200, 200, 200, 200]
    assert [output.text for output in slices] == ["", "one ", "", "two ", "", "three.", ""]
    assert {output.sample_rate_hz for output in slices} == {RATE}
    assert not any(output.finished for output in slices)
    assert (end.finished, end.pcm, end.text) == (True, b"", "")
    assert {output.epoch for output in booth.out} == {2}


def test_only_the_first_slice_is_short_and_tells_when_it_was() -> None:
    booth = Booth()
    booth.ask("a", "one ", "two ", final=False)
    booth.now = 10.5
    booth.pool.run()

    first, *others = booth.out
    assert first.metrics == {
        messages.AT_FIRST_CLAUSE_IN: 10.0,
        messages.AT_FIRST_AUDIO_OUT: 10.5,
        messages.FIRST_SPEECH: 0.5,
    }
    assert [len(output.pcm) // 2 for output in others] == [200, 200, 100][: len(others)]
    assert not any(output.metrics for output in others)


def test_several_answers_are_spoken_in_turns() -> None:
    booth = Booth()
    booth.ask("a", "a1 ", "a2 ", "a3 ")
    booth.ask("b", "b1 ", "b2 ")
    booth.pool.run()

    assert [said for said in booth.said if said] == ["a1", "b1", "a2", "b2", "a3"]
    assert booth.text_of("a") == "a1 a2 a3 "
    assert booth.text_of("b") == "b1 b2 "


def test_one_answer_is_spoken_by_one_thread_at_a_time() -> None:
    booth = Booth()
    booth.ask("a", "a1 ", "a2 ")
    booth.ask("b", "b1 ")
    nested: list[int] = []

    def another_thread_comes(text: str) -> None:
        if text == "a1":
            nested.append(booth.pool.run())

    booth.while_saying = another_thread_comes
    booth.pool.run()
    assert nested[0] > 0
    assert [said for said in booth.said if said] == ["a1", "b1", "a2"]
    assert booth.text_of("a") == "a1 a2 "


def test_a_clause_that_comes_while_its_answer_is_spoken_waits() -> None:
    booth = Booth()
    booth.ask("a", "a1 ", final=False)
    slices_before_a2: list[int] = []

    def more_comes(text: str) -> None:
        if text == "a1":
            booth.ask("a", "a2 ")
            booth.pool.run()
        if text == "a2":
            slices_before_a2.append(len(booth.out))

    booth.while_saying = more_comes
    booth.pool.run()
    assert slices_before_a2 == [2]
    assert [said for said in booth.said if said] == ["a1", "a2"]
    assert booth.text_of("a") == "a1 a2 "


def test_an_abort_silences_an_answer_at_once() -> None:
    booth = Booth()
    booth.ask("a", "a1 ", "a2 ")
    booth.ask("b", "b1 ")

    def interrupt(text: str) -> None:
        if text == "a1":
            booth.stage.step([StageAbort(("a", "unknown"))])

    booth.while_saying = interrupt
    booth.pool.run()
    assert booth.text_of("a") == ""
    assert booth.text_of("b") == "b1 "
    assert "a2" not in booth.said


def test_an_answer_without_clauses_just_ends() -> None:
    booth = Booth()
    booth.ask("a")
    booth.pool.run()
    (end,) = booth.out
    assert end.finished


def test_text_without_a_sound_goes_with_the_next_sound_or_the_end() -> None:
    booth = Booth()
    booth.ask("a", "☀️ ", "sun. ", "☀️")
    booth.pool.run()

    *slices, end = booth.out
    assert "".join(output.text for output in slices) == "☀️ sun. "
    assert (end.text, end.finished) == ("☀️", True)


def test_a_clause_that_cannot_be_spoken_fails_its_answer_alone() -> None:
    booth = Booth()

    def fail(text: str) -> None:
        if text == "a1":
            raise RuntimeError("no such sound")

    booth.while_saying = fail
    booth.ask("a", "a1 ", "a2 ")
    booth.ask("b", "b1 ")
    booth.pool.run()

    assert [output.error for output in booth.out if output.request_id == "a"] == ["no such sound"]
    assert booth.text_of("b") == "b1 "
    assert "a2" not in booth.said


def test_close_drops_what_waits() -> None:
    booth = Booth()
    booth.ask("a", "a1 ")
    booth.stage.close()
    booth.pool.run()
    assert booth.out == []
    assert booth.pool.closed


@settings(deadline=None)  # a busy machine is no failure
@given(
    st.text(alphabet="ab .\n", max_size=60),
    st.integers(0, 3000),
    st.sampled_from([1000, 16000, 22050]),
    st.sampled_from([100, 200]),
)
def test_slices_lose_neither_audio_nor_text(
    text: str, samples: int, rate: int, first_ms: int
) -> None:
    pcm = b"".join(i.to_bytes(2, "little") for i in range(samples))
    slices = slice_speech(pcm, rate, text, first_ms)

    assert b"".join(audio for audio, _ in slices) == pcm
    assert "".join(words for _, words in slices) == (text if samples else "")
    assert all(0 < len(audio) <= 2 * (rate // 5) for audio, _ in slices)
    assert all(len(audio) <= 2 * (rate * first_ms // 1000 + 1) for audio, _ in slices[:1])


def test_words_are_never_cut() -> None:
    slices = slice_speech(bytes(20_000), 10_000, " extraordinary  things happen ", 100)
    spoken = [words for _, words in slices if words]
    assert spoken == [" extraordinary  ", "things ", "happen "]


@pytest.mark.local
def test_what_is_spoken_is_understood(voice: Voice, recognizer: Recognizer) -> None:
    clauses = ["The train to London ", "leaves at seven in the evening, ", "from platform two."]
    out: list[StageOutput] = []
    over = threading.Event()

    def emit(output: StageOutput) -> None:
        out.append(output)
        if output.finished or output.error:
            over.set()

    stage = SpeakStage(SpeakOptions(), emit)
    stage.load()
    try:
        stage.step([StageInput("a", text=clause) for clause in clauses])
        stage.step([StageInput("a", final=True)])
        assert over.wait(60)
    finally:
        stage.close()

    assert "".join(output.text for output in out) == "".join(clauses)
    assert all(len(output.pcm) <= 2 * voice.rate // 5 for output in out)
    spoken = at_16k(b"".join(output.pcm for output in out), voice.rate)
    assert understood("".join(clauses), recognizer.transcribe(spoken).text)


def test_unknown_options_are_refused() -> None:
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert({"voice": "joe"}, SpeakOptions)
