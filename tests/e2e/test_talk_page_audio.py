"""The talk page's own arithmetic on audio: rates, and the queue of the loudspeaker."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
import soxr
from playwright.sync_api import Page
from tests.e2e.browser import chromium, scripted_server, silence, talk_page, write_microphone

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(180)]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    wav = tmp_path_factory.mktemp("microphone") / "silence.wav"
    with (
        scripted_server() as (_, base),
        chromium(write_microphone(wav, silence(1.0))) as browser,
        talk_page(browser, base) as page,
    ):
        yield page


@pytest.mark.parametrize("rates_hz", [(48000, 16000), (44100, 16000), (22050, 24000)])
def test_the_resampler_keeps_the_band_and_drops_what_would_alias(
    page: Page, rates_hz: tuple[int, int]
) -> None:
    from_hz, to_hz = rates_hz
    time_s = np.arange(from_hz) / from_hz
    speech = 0.4 * np.sin(2 * np.pi * 440 * time_s) + 0.4 * np.sin(2 * np.pi * 3000 * time_s)
    # Above what the lower rate can hold; from 22050 Hz up nothing is.
    hiss = 0.4 * np.sin(2 * np.pi * 10_500 * time_s) * (to_hz < from_hz)
    converted = page.evaluate(
        """async ([fromHz, toHz, samples]) => {
            const { Resampler } = await import("/static/resample.js");
            const resampler = new Resampler(fromHz, toHz);
            const converted = [];
            for (let i = 0; i < samples.length; i += 128) {
                converted.push(...resampler.process(Float32Array.from(samples.slice(i, i + 128))));
            }
            return converted;
        }""",
        [from_hz, to_hz, (speech + hiss).tolist()],
    )
    reference = soxr.resample(speech, from_hz, to_hz)
    # The ends are where filters of different lengths differ.
    middle = slice(to_hz // 10, to_hz * 8 // 10)

    assert 0 <= to_hz - len(converted) < to_hz // 100
    assert np.abs(np.array(converted[middle]) - reference[middle]).max() < 1e-3


# The processor without its audio thread: blocks are rendered when the test says so.
RENDER = """async (steps) => {
    const reports = [];
    let Processor;
    globalThis.sampleRate = 24000;
    globalThis.AudioWorkletProcessor = class {
        port = { postMessage: (report) => reports.push(report) };
    };
    globalThis.registerProcessor = (_, made) => (Processor = made);
    await import(`/static/playback-worklet.js?${Math.random()}`);
    const processor = new Processor();
    const output = [];
    for (const step of steps) {
        if (step.samples) step.samples = new Float32Array(step.samples).fill(0.5);
        if (step.order) processor.port.onmessage({ data: step });
        for (let block = 0; block < (step.blocks ?? 0); block++) {
            const samples = new Float32Array(128);
            processor.process([], [[samples]]);
            output.push(...samples);
        }
    }
    return { output, reports };
}"""


def test_a_cut_answer_fades_within_20_ms_instead_of_clicking(page: Page) -> None:
    push = {"order": "push", "id": "resp_1", "samples": 48_000}
    rendered = page.evaluate(RENDER, [push, {"blocks": 100}, {"order": "clear"}, {"blocks": 100}])
    cut = 100 * 128
    tail = np.array(rendered["output"][cut : cut + 480])

    assert set(rendered["output"][:cut]) == {0.5}
    assert np.abs(np.diff([0.5, *tail])).max() < 0.01
    assert tail[240] > 0
    assert not any(rendered["output"][cut + 480 :])
    assert rendered["reports"][-1] == {
        "report": "cleared",
        "cut": [{"id": "resp_1", "played": cut}],
    }


def test_units_of_80_ms_that_come_late_leave_no_gap(page: Page) -> None:
    push = {"order": "push", "id": "resp_1", "samples": 1920}
    steps = [
        {**push, "blocks": 15},
        {**push, "blocks": 20},
        {**push, "blocks": 10},
        {"order": "finish", "id": "resp_1", "blocks": 20},
    ]
    rendered = page.evaluate(RENDER, steps)
    output = np.array(rendered["output"])
    sound = np.flatnonzero(output)

    # One unit is too little to begin with; then all three play without a break.
    assert sound[0] == 15 * 128
    assert sound.size == sound[-1] - sound[0] + 1 == 3 * 1920
    started, *_, ended = rendered["reports"]
    assert (started["report"], ended["report"], ended["played"]) == ("started", "ended", 3 * 1920)
