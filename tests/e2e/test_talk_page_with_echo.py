"""The talk page in headless Chromium, against the real server with the echo model."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from playwright.sync_api import WebSocket, expect
from tests.e2e.browser import chromium, serving, silence, talk_page, voice, write_microphone

from omniduplex.config.loader import load_pipeline
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(300)]


def echo(paced: bool) -> PipelineConfig:
    """Echo that speaks at the pace it hears, or sends each answer at once."""
    pipeline = load_pipeline("omniduplex/echo", None)
    stage = msgspec.structs.replace(pipeline.stages[0], options={"paced": paced})
    return msgspec.structs.replace(pipeline, stages=(stage,))


@pytest.mark.parametrize(("paced", "status"), [(True, "cancelled"), (False, "completed")])
def test_echo_answers_the_microphone_and_is_interrupted_by_it(
    tmp_path: Path, paced: bool, status: str
) -> None:
    # The answer to 8 s lasts 8 s and begins 0.5 s after them, so the second burst is in it, with
    # 4 s to spare on either side, and the page has 2 s to open its session before the first.
    bursts = silence(2.0), voice(8.0), silence(4.5), voice(0.6), silence(90.0)
    with (
        DuplexOmni(pipeline=echo(paced)) as omni,
        serving(create_app(omni)) as base,
        chromium(write_microphone(tmp_path / "bursts.wav", *bursts)) as browser,
        talk_page(browser, base) as page,
    ):
        lines = page.get_by_role("log").get_by_role("listitem")
        frames: list[dict[str, Any]] = []
        page.on("websocket", lambda socket: record(socket, frames))
        page.get_by_role("button", name="Start").click()

        expect(page.locator("#model")).to_have_text("omniduplex/echo")
        expect(lines.nth(0)).to_contain_text("tone")
        expect(lines.nth(1)).to_contain_text("cut after")
        expect(lines.nth(2)).to_contain_text("tone")
        expect(lines.nth(3)).to_contain_text("You said tone")
        # An answer that is whole before it sounds leaves the page listening for a moment, too.
        expect(lines.nth(3)).not_to_have_attribute("aria-busy", "true")
        expect(page.get_by_role("status")).to_have_text("Listening")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("status")).to_have_text("Ready")
        expect(page.get_by_role("alert")).to_be_empty()

    ends = [frame["response"] for frame in frames if frame["type"] == "response.done"]
    told = [frame["event"] for frame in frames if frame["type"] == "playback.acknowledged"]
    cut = [event for event in told if event["truncate"]]
    assert [end["status"] for end in ends] == [status, "completed"]
    assert [event["item_id"] for event in cut] == [f"item_{ends[0]['id']}"]
    assert 0 < cut[0]["committed_ms"] < 8000
    last = told[-1]
    assert last["item_id"] == f"item_{ends[1]['id']}"
    assert last["played_ms"] == last["playback"]["sent_ms"]
    assert frames[-1]["type"] == "session.closed"


def test_a_server_with_a_key_is_reached_with_it(tmp_path: Path) -> None:
    with (
        DuplexOmni(pipeline=echo(paced=False)) as omni,
        serving(create_app(omni, api_key="sesame-1")) as base,
        chromium(write_microphone(tmp_path / "silence.wav", silence(1.0))) as browser,
        talk_page(browser, base) as page,
    ):
        page.get_by_text("Settings", exact=True).click()
        page.get_by_label("API key").fill("sesame-1")
        page.get_by_role("button", name="Start").click()

        expect(page.get_by_role("status")).to_have_text("Listening")
        page.get_by_role("button", name="Stop").click()
        expect(page.get_by_role("status")).to_have_text("Ready")


def record(socket: WebSocket, frames: list[dict[str, Any]]) -> None:
    """Keep what the page receives."""
    socket.on("framereceived", lambda payload: frames.append(json.loads(payload)))
