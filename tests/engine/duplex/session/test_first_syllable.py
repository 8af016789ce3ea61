"""Recorded speech over an answer of the echo model: nothing of its beginning is lost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
import pytest
from tests.e2e.recordings import RATE_HZ, recording
from tests.models.echo.driver import echo_pipeline

from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.engine.duplex.contracts import Abort, DuplexFence, StageWork, Submit
from omniduplex.engine.duplex.plugin import DuplexModelSessionState
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.effects import Effect, Emit
from omniduplex.engine.duplex.session.engine_session import DuplexEngineSession
from omniduplex.engine.duplex.session.inputs import SessionInput, StageResult
from omniduplex.models.echo.messages import EchoOptions
from omniduplex.models.echo.plugin import EchoDuplexPlugin
from omniduplex.models.echo.session_state import EchoSessionState
from omniduplex.models.echo.stage import EchoStage
from omniduplex.protocol.duplex import (
    AppendAudio,
    CommitFacts,
    ContentPart,
    CreateItem,
    CreateResponse,
    DuplexEvent,
    DuplexSessionConfig,
    InputCommit,
    InputCommitted,
    ItemInput,
    OverlapDecision,
    ResponseDone,
    TranscriptionCompleted,
)
from omniduplex.stages.messages import StageAbort, StageOutput

QUESTION = "Please tell me of everything that you know about the history of the sea"
"""Echo answers with a tone for each word, as the audio that it hears goes on."""


class _Listening(EchoSessionState):
    """Remembers what it was given to hear since the newest clear."""

    heard = b""

    def plan_append(
        self, fence: DuplexFence, pcm: bytes, *, force_listen: bool = False
    ) -> Sequence[StageWork]:
        self.heard += pcm
        return super().plan_append(fence, pcm, force_listen=force_listen)

    def plan_clear(self, fence: DuplexFence) -> Sequence[StageWork]:
        self.heard = b""
        return super().plan_clear(fence)


class EchoOverSession:
    """A session whose client ends turns, and the echo stage, which answers in real time."""

    def __init__(self) -> None:
        options = EchoOptions(paced=True)
        self.log: list[DuplexEvent] = []
        self._outputs: list[StageOutput] = []
        self._ids: Counter[str] = Counter()
        self._now = 0.0
        self._stage = EchoStage(options, self._outputs.append)
        self._stage.load()
        self.model = _Listening(0, options)
        plugin = EchoDuplexPlugin(echo_pipeline(options))
        state: DuplexModelSessionState = self.model
        core = SessionCore(
            session_id="s1",
            config=DuplexSessionConfig(model="omniduplex/echo"),
            capabilities=plugin.capabilities(1),
            plugin=plugin,
            model=state,
            new_id=self._new_id,
            limits=DuplexSessionRuntimeConfig(),
            opened_at=0.0,
        )
        self.session = DuplexEngineSession(core)
        self._do(self.session.open(0.0))

    def _new_id(self, prefix: str) -> str:
        self._ids[prefix] += 1
        return f"{prefix}_{self._ids[prefix]}"

    def send(self, item: SessionInput) -> None:
        self._do(self.session.handle(item, self._now))
        while self._outputs:
            result = StageResult(0, self._outputs.pop(0))
            self._do(self.session.handle(result, self._now))

    def _do(self, effects: list[Effect]) -> None:
        for effect in effects:
            match effect:
                case Emit(event):
                    self.log.append(event)
                case Submit(_, message):
                    self._stage.step([message])
                case Abort(request_ids):
                    self._stage.step([StageAbort(request_ids)])

    def ask(self) -> None:
        part = ContentPart(type="input_text", text=QUESTION)
        self.send(CreateItem(item=ItemInput(content=(part,))))
        self.send(CreateResponse())

    def hear(self, pcm: bytes, *, force_barge_in: bool = False) -> None:
        self.send(AppendAudio(audio=pcm, force_barge_in=force_barge_in))
        self._now += len(pcm) / 2 / RATE_HZ

    @property
    def answering(self) -> bool:
        return self.session.active_response_id is not None

    @property
    def statuses(self) -> list[str]:
        return [event.response.status for event in self.log if isinstance(event, ResponseDone)]

    @property
    def decisions(self) -> list[OverlapDecision]:
        return [event for event in self.log if isinstance(event, OverlapDecision)]

    @property
    def facts(self) -> CommitFacts:
        facts = [event.event for event in self.log if isinstance(event, InputCommitted)][-1]
        assert isinstance(facts, CommitFacts)
        return facts


def in_chunks(pcm: bytes, ms: int) -> Iterator[bytes]:
    size = ms * RATE_HZ // 1000 * 2
    for at in range(0, len(pcm), size):
        yield pcm[at : at + size]


def stream(lead_ms: int) -> tuple[bytes, int]:
    """A quiet room, then someone who speaks; the byte at which the recording first rises."""
    spoken = recording("stop").pcm
    room = np.random.default_rng(3).integers(-8, 8, lead_ms * RATE_HZ // 1000, dtype=np.int16)
    samples = np.frombuffer(spoken, np.int16)
    loud_frames = np.flatnonzero(np.abs(samples) > np.abs(samples).max() * 0.01)
    return room.tobytes() + spoken, 2 * (len(room) + int(loud_frames[0]))


def assert_heard_from_before_the_onset(echo: EchoOverSession, sent: bytes, onset: int) -> None:
    """The first half second that the model heard is as it was sent, from before the onset."""
    heard = echo.model.heard[:RATE_HZ]
    at = sent.find(heard)
    assert 0 <= at <= onset
    assert at + len(heard) > onset


@pytest.mark.parametrize("chunk_ms", [20, 100, 160])
@pytest.mark.parametrize("lead_ms", [400, 430, 485])
def test_an_interruption_is_heard_from_before_its_onset(chunk_ms: int, lead_ms: int) -> None:
    """The client's own detector is late by 300 ms, and it knows nothing of what came before."""
    echo = EchoOverSession()
    echo.ask()
    sent, onset = stream(lead_ms)
    so_far = 0
    for pcm in in_chunks(sent, chunk_ms):
        so_far += len(pcm)
        echo.hear(pcm, force_barge_in=echo.answering and so_far >= onset + RATE_HZ * 6 // 10)

    assert echo.statuses == ["cancelled"]
    assert_heard_from_before_the_onset(echo, sent, onset)
    echo.send(InputCommit())
    words = [event for event in echo.log if isinstance(event, TranscriptionCompleted)]
    assert words[-1].transcript.startswith("tone ")


@pytest.mark.parametrize("chunk_ms", [20, 160])
def test_a_turn_over_an_answer_is_heard_from_before_its_onset(chunk_ms: int) -> None:
    echo = EchoOverSession()
    echo.ask()
    sent, onset = stream(700)
    for pcm in in_chunks(sent, chunk_ms):
        echo.hear(pcm)
    assert echo.answering
    assert not any(echo.model.heard)

    echo.send(InputCommit())
    assert echo.facts.overlap_deferred is True
    assert_heard_from_before_the_onset(echo, sent, onset)
    reasons = {event.reason for event in echo.decisions}
    assert reasons == {"policy_listen_only", "silence_or_noise"}
    while not echo.statuses:
        echo.hear(bytes(5120))
    assert echo.statuses == ["completed"]
    assert echo.session.active_response_id == "resp_2"


def test_who_speaks_on_when_the_answer_ends_is_heard_from_before_the_onset() -> None:
    """The answer ends in the middle of the first word."""
    rehearsal = EchoOverSession()
    rehearsal.ask()
    answer_ms = 0
    while rehearsal.answering:
        rehearsal.hear(bytes(2560))
        answer_ms += 80

    echo = EchoOverSession()
    echo.ask()
    _, silent_bytes = stream(0)
    sent, onset = stream(answer_ms - 240 - silent_bytes * 1000 // RATE_HZ // 2)
    for pcm in in_chunks(sent, 80):
        echo.hear(pcm)
    assert echo.statuses == ["completed"]
    overlaps = [event.metadata.overlap_ms or 0 for event in echo.decisions if event.metadata]
    assert 0 < max(overlaps) <= 700
    assert_heard_from_before_the_onset(echo, sent, onset)
