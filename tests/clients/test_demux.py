"""Which event belongs to which answer, in any order that a server may choose."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import UNSET
from tests.clients.scripted import audio, created, done, listen, speak, text, wav, words

from omniduplex.clients.demux import ResponseDemux
from omniduplex.clients.duplex import ResponseHandle, ServerEvent, Subscription
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioFormat,
    RealtimeEvent,
    ResponseStatus,
    TextDelta,
    TextDone,
    TranscriptDelta,
    TranscriptDone,
)

STATUSES: tuple[ResponseStatus, ...] = ("completed", "cancelled", "failed", "incomplete")


@pytest.fixture
def demux() -> ResponseDemux:
    return ResponseDemux(AudioFormat(sample_rate_hz=24000))


def waiting(consumer: Subscription[ResponseHandle]) -> list[ResponseHandle]:
    return consumer.drain()


async def whole_audio(handle: ResponseHandle) -> bytes:
    return b"".join([chunk async for chunk in handle.audio()])


def feed(demux: ResponseDemux, *events: ServerEvent) -> None:
    for event in events:
        demux.add(event)


def all_words(response_id: str, transcript: str) -> TranscriptDone:
    return TranscriptDone(response_id=response_id, item_id="item", transcript=transcript)


def all_text(response_id: str, whole: str) -> TextDone:
    return TextDone(response_id=response_id, item_id="item", text=whole)


def test_an_answer_is_announced_by_its_first_sign_of_speech(demux: ResponseDemux) -> None:
    answers = demux.subscribe()
    feed(demux, created("r"))
    assert waiting(answers) == []

    feed(demux, speak("r"), audio("r", b"ab"), words("r", "a"))
    (handle,) = waiting(answers)
    assert (handle.response_id, handle.decision, handle.finished) == ("r", "speak", False)


def test_an_answer_without_a_word_is_announced_at_its_end(demux: ResponseDemux) -> None:
    answers = demux.subscribe()
    feed(demux, created("r"), done("r", "failed"))

    (handle,) = waiting(answers)
    assert (handle.decision, handle.status, handle.finished) == ("speak", "failed", True)


def test_a_listen_decision_of_no_response_is_a_finished_handle(demux: ResponseDemux) -> None:
    answers = demux.subscribe()
    feed(demux, created("r"), audio("r", b"ab"), listen())

    speaking, listening = waiting(answers)
    assert (listening.response_id, listening.decision) == (None, "listen")
    assert listening.finished
    assert not speaking.finished


def test_a_listen_decision_ends_the_response_it_names(demux: ResponseDemux) -> None:
    answers = demux.subscribe()
    feed(demux, created("silent"), listen("silent"), created("r"), audio("r", b"a"), listen("r"))

    silent, spoken = waiting(answers)
    assert (silent.decision, silent.finished) == ("listen", True)
    assert (spoken.decision, spoken.finished) == ("speak", True)

    feed(demux, done("silent", "cancelled"))
    assert waiting(answers) == []
    assert silent.done_event is not None
    assert silent.status == "cancelled"


def test_a_straggler_does_not_raise_the_dead(demux: ResponseDemux) -> None:
    answers = demux.subscribe()
    feed(demux, created("r"), audio("r", b"ab"), done("r"))
    (handle,) = waiting(answers)

    feed(demux, audio("r", b"cd"), words("r", "late"), done("r", "failed"))

    assert waiting(answers) == []
    assert (handle.transcript, handle.status) == ("", "completed")


def test_whole_texts_count_only_where_no_delta_came(demux: ResponseDemux) -> None:
    answers = demux.subscribe()
    feed(demux, created("r"), all_words("r", "all of it"))
    feed(demux, all_text("r", "and text"), done("r"))
    feed(demux, words("s", "some"), all_words("s", "some of it"))
    feed(demux, text("s", "t"), all_text("s", "tt"), done("s"))

    first, second = waiting(answers)
    assert (first.transcript, first.text) == ("all of it", "and text")
    assert (second.transcript, second.text) == ("some", "t")


def test_only_the_latest_unclaimed_answers_wait(demux: ResponseDemux) -> None:
    for n in range(20):
        feed(demux, created(f"r{n}"), audio(f"r{n}", b"ab"), done(f"r{n}"), listen())

    names = [handle.response_id for handle in waiting(demux.subscribe())]
    assert names == [f"r{n}" for n in range(12, 20)]
    assert waiting(demux.subscribe()) == []


def test_the_rate_of_the_audio_is_what_the_audio_says(demux: ResponseDemux) -> None:
    answers = demux.subscribe()
    feed(demux, audio("r", b"ab", rate_hz=22050))

    (handle,) = waiting(answers)
    assert handle.audio_format == AudioFormat(sample_rate_hz=22050)


def test_what_comes_as_wav_is_handed_out_as_samples(demux: ResponseDemux) -> None:
    answers = demux.subscribe()
    feed(demux, wav("r", b"abcd"), wav("r", b""), wav("r", b"ef"), done("r"))

    (handle,) = waiting(answers)
    assert asyncio.run(whole_audio(handle)) == b"abcdef"
    assert handle.audio_format == AudioFormat("pcm16", 24000)


def test_a_wav_whose_delta_tells_no_format_is_what_the_session_asked_for() -> None:
    demux = ResponseDemux(AudioFormat("wav", 24000))
    answers = demux.subscribe()
    bare = msgspec.structs.replace(wav("r", bytes(48000)), format=UNSET, sample_rate_hz=UNSET)
    feed(demux, bare, bare, done("r"))

    (handle,) = waiting(answers)
    assert asyncio.run(whole_audio(handle)) == bytes(96000)
    assert handle.played_ms == 2000


@dataclass
class Truth:
    """What one answer must come out as."""

    status: ResponseStatus
    events: list[RealtimeEvent] = field(default_factory=list)

    @property
    def audio(self) -> bytes:
        return b"".join(e.delta for e in self.events if isinstance(e, AudioDelta))

    @property
    def transcript(self) -> str:
        return "".join(e.delta for e in self.events if isinstance(e, TranscriptDelta))

    @property
    def text(self) -> str:
        return "".join(e.delta for e in self.events if isinstance(e, TextDelta))


@st.composite
def answer(draw: st.DrawFn, name: str) -> Truth:
    truth = Truth(draw(st.sampled_from(STATUSES)))
    if draw(st.booleans()):
        truth.events.append(created(name))
    if draw(st.booleans()):
        truth.events.append(speak(name))
    for kind in draw(st.lists(st.sampled_from(["audio", "words", "text"]), max_size=6)):
        if kind == "audio":
            truth.events.append(audio(name, draw(st.binary(min_size=2, max_size=8))))
        elif kind == "words":
            truth.events.append(words(name, draw(st.text(max_size=4))))
        else:
            truth.events.append(text(name, draw(st.text(max_size=4))))
    truth.events.append(done(name, truth.status))
    return truth


@st.composite
def interleaved(draw: st.DrawFn) -> tuple[dict[str, Truth], list[RealtimeEvent], int]:
    """Answers whose events keep their own order only, with listen decisions anywhere."""
    names = [f"r{n}" for n in range(draw(st.integers(0, 4)))]
    truths = {name: draw(answer(name)) for name in names}
    queues = [list(truth.events) for truth in truths.values()]
    listens = draw(st.integers(0, 3))
    queues += [[listen()] for _ in range(listens)]
    stream: list[RealtimeEvent] = []
    while queues:
        queue = draw(st.sampled_from(queues))
        stream.append(queue.pop(0))
        queues = [left for left in queues if left]
    return truths, stream, listens


# The first draws of a fresh process can take a second on a busy machine.
@settings(suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(interleaved())
def test_any_legal_order_gives_each_answer_its_own(
    drawn: tuple[dict[str, Truth], list[RealtimeEvent], int],
) -> None:
    truths, stream, listens = drawn
    demux = ResponseDemux(AudioFormat(sample_rate_hz=24000))
    answers = demux.subscribe()
    feed(demux, *stream)
    handles = waiting(answers)

    spoken = {h.response_id: h for h in handles if h.response_id is not None}
    assert len(spoken) + listens == len(handles)
    assert spoken.keys() == truths.keys()
    for name, truth in truths.items():
        handle = spoken[name]
        assert (handle.decision, handle.status, handle.finished) == ("speak", truth.status, True)
        assert (handle.transcript, handle.text) == (truth.transcript, truth.text)
        assert asyncio.run(whole_audio(handle)) == truth.audio
        assert (handle.created_event is not None) == (truth.events[0] == created(name))
        assert handle.done_event == truth.events[-1]
