from __future__ import annotations

from xml.etree import ElementTree

import numpy as np
import pytest

from omniduplex.benchmarks.turns.agent_track import AgentTrack
from omniduplex.benchmarks.turns.picture import LEFT, PX_PER_S, draw
from omniduplex.benchmarks.turns.recording import Recording, TimedEvent
from omniduplex.benchmarks.turns.spans import Kind, UserSpan

SVG = "{http://www.w3.org/2000/svg}"
RATE_HZ = 1000


def picture() -> ElementTree.Element:
    track = AgentTrack(0)
    track.arrive("a", np.full(2000, 8000, dtype="<i2").tobytes(), 3000)
    recording = Recording(
        rate_hz=RATE_HZ,
        user_pcm=bytes(2 * 6000),
        user=(UserSpan(kind=Kind.TURN, start_s=1.0, end_s=2.0, clip="ask <b>"),),
        agent=track,
        echo=False,
        missed=(),
        latest_chunk_ms=0.0,
        events=(
            TimedEvent(at_s=1.1, type="input_audio_buffer.speech_started"),
            TimedEvent(at_s=2.5, type="overlap.decision", note="listen: short_ack"),
            TimedEvent(at_s=2.6, type="rate_limits.updated"),
        ),
        errors=(),
    )
    return ElementTree.fromstring(draw("a & b", recording, recording.timeline()))


def texts(root: ElementTree.Element) -> list[str]:
    return ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]


def test_both_speakers_are_where_they_spoke() -> None:
    boxes = [box for box in picture().iter(f"{SVG}rect") if box.find(f"{SVG}title") is not None]
    found = [(float(box.attrib["x"]), float(box.attrib["width"])) for box in boxes]
    assert found == [(LEFT + PX_PER_S, PX_PER_S), (LEFT + 3 * PX_PER_S, 2 * PX_PER_S)]


def test_names_are_text_whatever_is_in_them() -> None:
    assert {"a & b", "turn: ask <b>", "agent"} <= set(texts(picture()))


def test_events_are_told_that_matter_with_their_verdict() -> None:
    told = texts(picture())
    assert "speech" in told
    assert "overlap listen" in told
    assert not any("rate" in text for text in told)


def test_a_wave_is_drawn_where_there_is_sound() -> None:
    user, agent = picture().iter(f"{SVG}path")
    assert user.attrib["d"] == ""
    lines = agent.attrib["d"].split(" M")
    assert len(lines) == pytest.approx(2 * PX_PER_S, rel=0.05)
    assert float(lines[1].split()[0]) == pytest.approx(LEFT + 3 * PX_PER_S, abs=2)
