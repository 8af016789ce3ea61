"""Speech over an answer on the talk page: chosen in its settings, told by the server."""

from __future__ import annotations

from typing import Any

import pytest
from playwright.sync_api import Browser, Locator, Page, expect
from tests.e2e.browser import (
    LONG_S,
    ScriptedServer,
    serving,
    talk_page,
)

from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(180)]

SERVER_VAD = {"type": "server_vad", "silence_duration_ms": 500}
UNINTERRUPTED = {**SERVER_VAD, "interrupt_response": False}
POLICIES: dict[str, dict[str, Any]] = {
    "": {"turn_detection": SERVER_VAD},
    "barge_in_on_speech": {"turn_detection": SERVER_VAD, "overlap_policy": "barge_in_on_speech"},
    "adaptive": {"turn_detection": SERVER_VAD, "overlap_policy": "adaptive"},
    "listen_only": {"turn_detection": UNINTERRUPTED, "overlap_policy": "listen_only"},
}


def start(page: Page) -> None:
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("status")).to_have_text("Listening")


def policy(page: Page) -> Locator:
    """The setting, to be seen and chosen."""
    page.get_by_text("Settings", exact=True).click()
    return page.get_by_label("What you say over an answer")


@pytest.mark.parametrize("chosen", POLICIES)
def test_a_session_is_asked_for_the_policy_and_for_turns_that_go_with_it(
    page: Page, server: ScriptedServer, chosen: str
) -> None:
    policy(page).select_option(chosen)
    page.get_by_role("button", name="Start").click()
    [update] = server.wait("session.update")

    asked = {name: update["session"].get(name) for name in ("turn_detection", "overlap_policy")}
    assert asked == {"overlap_policy": None, **POLICIES[chosen]}


def test_an_answer_that_only_listens_is_played_on_under_speech(
    page: Page, server: ScriptedServer
) -> None:
    server.session = {"overlap_policy": "listen_only"}
    start(page)
    server.answer("resp_1", LONG_S)
    server.wait("playback.ack")
    expect(page.locator("#hint")).to_have_text("It is said to its end; Escape stops it.")
    server.send("input_audio_buffer.speech_started", item_id="item_1", audio_start_ms=900)
    # The line of the user shows that the page knows.
    expect(page.get_by_role("log").get_by_role("listitem")).to_have_count(2)
    so_far = max(ack["played_ms"] for ack in server.received("playback.ack"))
    server.wait("playback.ack", where=lambda ack: ack["played_ms"] > so_far)

    assert not any("truncate" in ack for ack in server.received("playback.ack"))
    page.keyboard.press("Escape")
    [cut] = server.wait("playback.ack", where=lambda ack: "truncate" in ack)
    assert cut["played_ms"] < 1000 * LONG_S


def test_what_an_adaptive_server_tells_of_as_speech_silences_the_answer(
    page: Page, server: ScriptedServer
) -> None:
    server.session = {"overlap_policy": "adaptive"}
    start(page)
    server.answer("resp_1", LONG_S)
    server.wait("playback.ack")
    server.send("input_audio_buffer.speech_started", item_id="item_1", audio_start_ms=900)

    [cut] = server.wait("playback.ack", where=lambda ack: "truncate" in ack)
    assert cut["played_ms"] < 1000 * LONG_S


def test_a_change_in_mid_session_counts_at_once(page: Page, server: ScriptedServer) -> None:
    start(page)
    server.send("session.updated", session={"overlap_policy": "listen_only"})
    page.wait_for_function("omniduplex.overlapPolicy === 'listen_only'")


def test_a_model_that_cannot_be_interrupted_is_offered_no_interruption(
    page: Page, server: ScriptedServer
) -> None:
    server.session = {"capabilities": {"supports_barge_in": False}}
    chosen = policy(page)
    chosen.select_option("adaptive")
    start(page)

    expect(chosen).to_have_value("")
    offered = chosen.locator("option:not([disabled])")
    assert offered.evaluate_all("all => all.map((one) => one.value)") == ["", "listen_only"]


def test_a_server_takes_every_policy_that_the_page_has(browser: Browser) -> None:
    with (
        DuplexOmni("omniduplex/echo") as omni,
        serving(create_app(omni)) as base,
        talk_page(browser, base) as page,
    ):
        chosen = policy(page)
        for name in POLICIES:
            chosen.select_option(name)
            start(page)
            in_force = name or "barge_in_on_speech"
            page.wait_for_function(f"omniduplex.overlapPolicy === '{in_force}'")
            page.get_by_role("button", name="Stop").click()
            expect(page.get_by_role("status")).to_have_text("Ready")
        expect(page.get_by_role("alert")).to_be_empty()
