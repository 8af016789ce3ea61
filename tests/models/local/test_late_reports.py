"""An ear and its session, with reports under way while the client commits and clears."""

from collections import deque
from collections.abc import Sequence

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.engine.duplex.contracts import DuplexFence, StageWork, Submit
from omniduplex.engine.duplex.model_events import (
    Projected,
    UserSpeechProgress,
    UserSpeechResumed,
    UserSpeechStarted,
    UserTranscript,
    UserTurnDraft,
    UserTurnEnded,
)
from omniduplex.models.local.answer_path import LISTEN_STAGE
from omniduplex.models.local.messages import (
    ClearInput,
    CommitInput,
    EarSettings,
    Report,
    WatchSpeech,
    decode_to_listen,
    encode,
)
from omniduplex.models.local.session_state import LocalSessionState
from omniduplex.models.local.stages.ear import FRAME_MS, SAMPLES_PER_MS, Ear
from omniduplex.models.local.stages.turns import Action, Drop, Recognise, Tell
from omniduplex.protocol.duplex import DuplexSessionConfig
from omniduplex.stages.messages import StageOutput

FENCE = DuplexFence("s", 1, 0)
EAR = FENCE.request_id("stage0")


class Line:
    """Both ends; reports wait until they are delivered. A burst of speech says its number."""

    def __init__(self) -> None:
        self.state = LocalSessionState()
        config = DuplexSessionConfig(model="m")
        self.state.plan_open(FENCE, config)
        self.ear = Ear(EarSettings())
        self.reports: deque[StageOutput] = deque()
        self.jobs: dict[int, bytes] = {}
        self.events: list[tuple[int, Projected]] = []
        """What the session heard, and up to which ms it had sealed or dropped the audio then."""
        self.bursts = 0
        self.now_ms = 0
        self.sealed_ms = 0
        self.commits = 0
        self.may_be_lost = 0
        self._order(self.state.plan_overlap(FENCE, active=True))

    def hear(self, ms: int, burst: int = 0) -> None:
        self.ear.append(np.full(ms * SAMPLES_PER_MS, burst, np.int16).tobytes())
        self.now_ms += ms
        while self.ear.next_frame() is not None:
            self._do(self.ear.push(0.9 if burst else 0.05, 0.0))

    def speak(self, ms: int) -> None:
        self.bursts += 1
        self.hear(ms, self.bursts)

    def recognise(self) -> None:
        for job, pcm in list(self.jobs.items()):
            numbers = sorted(set(np.frombuffer(pcm, np.int16).tolist()) - {0})
            if self.jobs.pop(job, None) is not None:
                self._do(self.ear.recognised(job, " ".join(map(str, numbers)), 0.1))

    def deliver(self, count: int) -> None:
        for _ in range(min(count, len(self.reports))):
            events = self.state.project(LISTEN_STAGE, self.reports.popleft())
            self.events += [(self.sealed_ms, event) for event in events]

    def commit(self) -> None:
        self.commits += 1
        self._order(self.state.plan_commit(FENCE, f"item_{self.commits}"))

    def clear(self) -> None:
        self.may_be_lost = self.bursts
        self._order(self.state.plan_clear(FENCE))

    def finish(self) -> None:
        self.hear(640)
        self.recognise()
        self.deliver(len(self.reports))

    def _order(self, works: Sequence[StageWork]) -> None:
        (work,) = works
        assert isinstance(work, Submit)
        match decode_to_listen(work.message.data):
            case CommitInput(item_id, generation, turns_known):
                self.sealed_ms = self.now_ms
                self._do(self.ear.commit(item_id, generation, turns_known))
            case ClearInput(generation):
                self.sealed_ms = self.now_ms
                self._do(self.ear.clear(generation))
            case WatchSpeech(active):
                self._do(self.ear.watch(active))

    def _do(self, actions: Sequence[Action]) -> None:
        for action in actions:
            match action:
                case Tell(heard, metrics, generation):
                    report = encode(Report(generation, heard))
                    self.reports.append(StageOutput(EAR, 1, data=report, metrics=metrics))
                case Recognise(job, pcm):
                    self.jobs[job] = pcm
                case Drop(job):
                    self.jobs.pop(job, None)


FRAMES = st.integers(4, 24).map(lambda count: count * FRAME_MS)
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("speak"), FRAMES),
        st.tuples(st.just("hear"), FRAMES),
        st.tuples(st.just("deliver"), st.integers(1, 6)),
        st.tuples(st.sampled_from(["recognise", "commit", "clear"])),
    ),
    max_size=40,
)


def play(steps: list[tuple[str, int] | tuple[str]]) -> Line:
    line = Line()
    for name, *arguments in steps:
        getattr(line, name)(*arguments)
    line.finish()
    return line


@given(STEPS)
def test_no_event_is_about_audio_that_was_sealed_or_dropped(
    steps: list[tuple[str, int] | tuple[str]],
) -> None:
    for sealed_ms, event in play(steps).events:
        if isinstance(event, UserSpeechStarted):
            assert event.audio_start_ms >= sealed_ms
        if isinstance(event, UserTurnEnded):
            assert event.audio_end_ms > sealed_ms


@given(STEPS)
def test_what_is_told_of_a_turn_follows_its_start(
    steps: list[tuple[str, int] | tuple[str]],
) -> None:
    line = play(steps)
    open_since = None
    for sealed_ms, event in line.events:
        if isinstance(event, UserSpeechStarted):
            open_since = sealed_ms
        elif isinstance(
            event, UserSpeechProgress | UserTurnDraft | UserSpeechResumed | UserTurnEnded
        ):
            assert open_since == sealed_ms
            if isinstance(event, UserTurnEnded):
                open_since = None


@given(STEPS)
def test_every_word_is_told_once(steps: list[tuple[str, int] | tuple[str]]) -> None:
    line = play(steps)
    transcripts = [
        event.transcript
        for _, event in line.events
        if isinstance(event, UserTurnEnded | UserTranscript)
    ]
    words = [int(word) for transcript in transcripts for word in transcript.split()]

    assert words == sorted(set(words))
    assert set(words) >= set(range(line.may_be_lost + 1, line.bursts + 1))


@given(STEPS)
def test_every_commit_gets_its_words(steps: list[tuple[str, int] | tuple[str]]) -> None:
    line = play(steps)
    items = [event.item_id for _, event in line.events if isinstance(event, UserTranscript)]
    assert items == [f"item_{number}" for number in range(1, line.commits + 1)]


def test_a_turn_whose_end_is_under_way_belongs_to_the_commit() -> None:
    line = Line()
    line.speak(320)
    line.hear(640)
    line.recognise()  # the end is told, and on its way
    line.speak(320)
    line.commit()
    line.finish()

    (heard,) = [event for _, event in line.events if isinstance(event, UserTranscript)]
    assert heard == UserTranscript("item_1", "1 2", 1.28)
    assert not any(isinstance(event, UserTurnEnded) for _, event in line.events)
