from __future__ import annotations

import asyncio
import json

import pytest
from tests.benchmarks.stepping_clock import SteppingClock

from omniduplex.benchmarks.baseline import answer
from omniduplex.benchmarks.frames import APPEND_BYTES, DELTA_BYTES, Frames
from omniduplex.benchmarks.overhead import side
from omniduplex.protocol.duplex import AppendAudio, AudioDelta, decode_event, encode_command


def sent(frames: Frames, count: int, answers: int) -> None:
    """Send so many frames, each answered this often before the next."""

    async def send() -> None:
        for _ in range(answers):
            frames.received()
        if frames.appends == count:
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(frames.send_paced(send, 0.02))


def test_frames_go_out_every_80_ms_from_their_offset() -> None:
    clock = SteppingClock()
    frames = Frames(clock)
    frames.counting = True
    sent(frames, count=5, answers=1)
    assert clock.now() == pytest.approx(100.0 + 0.02 + 4 * 0.08)
    assert (frames.appends, frames.pairs, frames.late) == (5, 5, 0)
    assert frames.latencies_s == [0.0] * 5


def test_a_second_answer_to_one_frame_was_late_and_has_no_latency() -> None:
    frames = Frames(SteppingClock())
    frames.counting = True
    sent(frames, count=3, answers=2)
    assert (frames.pairs, frames.late, len(frames.latencies_s)) == (6, 3, 3)


def test_nothing_counts_outside_the_window() -> None:
    frames = Frames(SteppingClock())
    frames.received()
    assert (frames.appends, frames.pairs, frames.late) == (0, 0, 0)


def test_cpu_per_pair_leaves_out_what_an_idle_server_costs() -> None:
    counted = [Frames(SteppingClock()) for _ in range(2)]
    for frames in counted:
        frames.appends = frames.pairs = 50
        frames.latencies_s = [0.001, 0.003]
    found = side(counted, used_s=0.03, idle_s=0.01, took_s=4.0)
    assert found.cpu_us_per_pair == pytest.approx(200)
    assert (found.appends, found.pairs, found.seconds) == (100, 100, 4.0)
    assert found.added_latency_ms is not None
    assert found.added_latency_ms.p50 == pytest.approx(2.0)


def test_a_server_that_answers_nothing_has_no_cost_per_pair() -> None:
    with pytest.raises(ValueError, match="no frame"):
        side([Frames(SteppingClock())], used_s=1.0, idle_s=0.0, took_s=4.0)


def test_the_bare_loop_answers_an_append_with_a_delta_of_the_models_size() -> None:
    append = encode_command(AppendAudio(audio=b"\1\2" * (APPEND_BYTES // 2)))
    said = json.loads(answer(append))
    assert said["type"] == "response.output_audio.delta"
    whole = said | {"response_id": "r", "item_id": "i", "output_index": 0, "content_index": 0}
    delta = decode_event(json.dumps(whole))
    assert isinstance(delta, AudioDelta)
    assert delta.delta == b"\1\2" * (DELTA_BYTES // 2)
