"""The talk page in headless Chromium, against a server that says what a test scripts."""

from __future__ import annotations

import base64
import itertools
import re
from collections.abc import Iterator

import numpy as np
import pytest
from playwright.sync_api import Browser, Page, expect
from tests.e2e.browser import (
    LONG_S,
    OUTPUT_RATE_HZ,
    Event,
    ScriptedServer,
    chromium,
    silence,
    talk_page,
    voice,
    write_microphone,
)

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A browser that hears somebody talk, with pauses."""
    folder = tmp_path_factory.mktemp("microphone")
    wav = write_microphone(folder / "voice.wav", silence(0.3), voice(1.0), silence(0.7))
    with chromium(wav) as browser:
        yield browser


@pytest.fixture
def talking(page: Page, server: ScriptedServer) -> Page:
    """The page with an open session."""
    page.get_by_role("button", name="Start").click()
    expect(page.get_by_role("status")).to_have_text("Listening")
    return page


def test_the_session_is_opened_by_hand_with_rates_and_turns(
    talking: Page, server: ScriptedServer
) -> None:
    [update] = server.received("session.update")

    assert server.url is not None
    assert server.url.query == "duplex=1&autostart=0"
    assert update["session"] == {
        "audio": {
            "input": {"format": {"type": "audio/pcm", "rate": 16000}},
            "output": {"format": {"type": "audio/pcm", "rate": 24000}},
        },
        "turn_detection": {"type": "server_vad", "silence_duration_ms": 500},
        "playback_commit_policy": "ack_only",
    }


def test_settings_reach_the_session(page: Page, server: ScriptedServer) -> None:
    page.get_by_text("Settings", exact=True).click()
    page.get_by_label("Instructions").fill("Be brief.")
    page.get_by_label("Your turn ends").select_option("semantic_vad")
    page.get_by_role("button", name="Start").click()
    [update] = server.wait("session.update")

    assert update["session"]["instructions"] == "Be brief."
    assert update["session"]["turn_detection"] == {"type": "semantic_vad"}


def test_the_microphone_arrives_as_80_ms_of_16_khz_pcm(
    talking: Page, server: ScriptedServer
) -> None:
    appends = server.wait("input_audio_buffer.append", 25)
    chunks = [base64.b64decode(append["audio"]) for append in appends]
    heard = np.frombuffer(b"".join(chunks), "<i2") / 32768
    spectrum = np.abs(np.fft.rfft(heard * np.hanning(heard.size)))
    frequencies_hz = np.fft.rfftfreq(heard.size, 1 / 16000)

    assert {(append["format"], append["sample_rate_hz"]) for append in appends} == {
        ("pcm16", 16000)
    }
    assert {len(chunk) for chunk in chunks} == {2 * 16 * 80}
    assert np.sqrt(np.mean(heard**2)) > 0.02
    # The loudest partial of the voice: at another rate it would be at another place.
    loudest_hz = frequencies_hz[spectrum.argmax()]
    assert min(loudest_hz % 150, -loudest_hz % 150) < 5


def has_sound(append: Event) -> bool:
    return any(base64.b64decode(append["audio"]))


def test_a_muted_microphone_sends_silence_and_keeps_the_clock_running(
    talking: Page, server: ScriptedServer
) -> None:
    server.wait("input_audio_buffer.append", where=has_sound)
    talking.get_by_role("button", name="Mute").click()
    expect(talking.get_by_role("button", name="Unmute")).to_have_attribute("aria-pressed", "true")
    # What was on its way may still hold sound. Then nothing does for 4 s of the WAV, which speaks
    # half the time.
    quiet = 0
    for count in itertools.count(1):
        append = server.wait("input_audio_buffer.append", count)[count - 1]
        quiet = 0 if has_sound(append) else quiet + 1
        if quiet == 50:
            return


def test_playback_is_acknowledged_as_it_is_heard_and_never_beyond_what_came(
    talking: Page, server: ScriptedServer
) -> None:
    server.answer("resp_1", 2)
    first, *_ = server.wait("playback.ack", 2)
    assert first["played_ms"] < 2000
    server.speak("resp_1", " end", voice(0.5, OUTPUT_RATE_HZ), end_ms=2500)
    server.end_response("resp_1")
    expect(talking.get_by_role("status")).to_have_text("Listening")
    server.wait("playback.ack", where=lambda ack: ack["played_ms"] == 2500)

    acks = server.received("playback.ack")
    played = [ack["played_ms"] for ack in acks]
    steps = np.diff([0, *played])
    assert played == sorted(set(played))
    assert played[-1] == 2500
    assert all(200 <= step <= 500 for step in steps[:-1])
    assert {(ack["response_id"], ack["item_id"]) for ack in acks} == {("resp_1", "item_resp_1")}
    assert all(ack["committed_ms"] == ack["played_ms"] for ack in acks)
    assert not any("truncate" in ack for ack in acks)


@pytest.mark.parametrize("how", ["speech", "cancelled", "cleared", "button", "key"])
def test_an_interruption_silences_the_queue_and_tells_what_was_heard(
    talking: Page, server: ScriptedServer, how: str
) -> None:
    server.answer("resp_1", LONG_S)
    server.wait("playback.ack")
    if how == "speech":
        server.send("input_audio_buffer.speech_started", item_id="item_1", audio_start_ms=900)
    elif how == "cancelled":
        server.end_response("resp_1", "cancelled")
    elif how == "cleared":
        server.send("output_audio_buffer.cleared", response_id="resp_1")
    elif how == "button":
        talking.get_by_role("button", name="Interrupt").click()
    else:
        talking.keyboard.press("Escape")
    [cut] = server.wait("playback.ack", where=lambda ack: "truncate" in ack)
    # What was sent before the server knew, and the answer to the next question.
    server.speak("resp_1", " late", voice(1.0, OUTPUT_RATE_HZ), end_ms=1000 * LONG_S + 1000)
    server.end_response("resp_1", "cancelled")
    server.answer("resp_2", 1)
    server.end_response("resp_2")
    server.wait(
        "playback.ack",
        where=lambda ack: (ack["response_id"], ack["played_ms"]) == ("resp_2", 1000),
    )

    acks = server.received("playback.ack")
    first = [ack for ack in acks if ack["response_id"] == "resp_1"]
    assert cut["truncate"] is True
    assert first[-1] == cut
    assert cut["played_ms"] == cut["committed_ms"] == max(ack["played_ms"] for ack in first)
    assert cut["played_ms"] < 1000 * LONG_S
    assert [ack["response_id"] for ack in acks].index("resp_2") == len(first)
    cleared = server.received("output_audio_buffer.clear")
    assert [clear["response_id"] for clear in cleared] == ["resp_1"] * (how in ("button", "key"))


def test_the_transcript_shows_both_sides_and_what_of_a_cut_answer_was_not_heard(
    talking: Page, server: ScriptedServer
) -> None:
    lines = talking.get_by_role("log").get_by_role("listitem")
    server.user_says("item_1", "Tell me <b>everything</b>.")
    server.answer("resp_1", LONG_S)
    server.wait("playback.ack", where=lambda ack: ack["played_ms"] > 700)
    server.send("input_audio_buffer.speech_started", item_id="item_2", audio_start_ms=900)
    server.end_response("resp_1", "cancelled")

    expect(lines.nth(0)).to_contain_text("Tell me <b>everything</b>.")
    expect(lines.nth(1)).to_contain_text("word0 word1")
    expect(lines.nth(1)).to_contain_text("cut after")
    assert (lines.nth(1).locator(".ahead").text_content() or "").endswith(f"word{LONG_S - 1}")
    assert (lines.nth(1).locator(".heard").text_content() or "").startswith(" wor")
    expect(lines.nth(2)).to_contain_text("…")

    server.user_says("item_2", "Enough.")
    expect(lines.nth(2)).to_contain_text("Enough.")
    expect(lines).to_have_count(3)


def test_the_latency_names_the_moment_it_is_measured_from(
    talking: Page, server: ScriptedServer
) -> None:
    server.user_says("item_1", "Well?")
    expect(talking.get_by_role("status")).to_have_text("Thinking")
    server.answer("resp_1", 1)
    server.end_response("resp_1")

    # The words beside it stand there from the start: only the number tells that one was measured.
    expect(talking.locator("#latency")).to_have_text(re.compile(r"^\d+ ms$"))
    expect(talking.locator("#origin")).to_have_text("end of turn to first sound")
    latency = talking.evaluate("omniduplex.latency")
    assert latency["ms"] >= 0
    expect(talking.locator("#latency")).to_have_text(f"{latency['ms']} ms")


def test_a_typed_message_becomes_an_item_and_asks_for_an_answer(
    talking: Page, server: ScriptedServer
) -> None:
    talking.get_by_label("Message").fill("  What is new?  ")
    talking.keyboard.press("Enter")
    server.wait("response.create")

    [item] = server.received("conversation.item.create")
    assert item["item"] == {
        "type": "message",
        "role": "user",
        "content": [{"type": "input_text", "text": "What is new?"}],
    }
    expect(talking.get_by_role("status")).to_have_text("Thinking")
    assert server.received("output_audio_buffer.clear") == []


def test_an_error_is_shown_with_its_code_and_the_conversation_goes_on(
    talking: Page, server: ScriptedServer
) -> None:
    # It would go by itself after 10 s, however slowly it is looked at and dismissed here.
    talking.evaluate("window.setTimeout = () => 0")
    error = {"type": "invalid_request_error", "code": "response_not_active", "message": "None is."}
    server.send("error", error=error)
    toast = talking.get_by_role("alert")
    expect(toast).to_contain_text("response_not_active")
    expect(toast).to_contain_text("None is.")
    talking.get_by_role("button", name="Dismiss response_not_active").click()
    expect(toast).to_be_empty()
    expect(talking.get_by_role("status")).to_have_text("Listening")


def test_a_stopped_page_said_goodbye_and_starts_again(
    talking: Page, server: ScriptedServer
) -> None:
    talking.get_by_role("button", name="Stop").click()
    server.wait("session.close")
    expect(talking.get_by_role("status")).to_have_text("Ready")
    talking.get_by_role("button", name="Start").click()
    server.wait("session.update", 2)

    expect(talking.get_by_role("status")).to_have_text("Listening")


def test_a_page_that_is_left_in_mid_call_says_goodbye(
    talking: Page, server: ScriptedServer
) -> None:
    talking.reload()

    server.wait("session.close")


def test_a_page_that_is_kept_for_the_way_back_has_ended_its_call(
    talking: Page, server: ScriptedServer
) -> None:
    talking.evaluate(
        "dispatchEvent(new PageTransitionEvent('pagehide', { persisted: true }))",
    )
    server.wait("session.close")
    expect(talking.get_by_role("status")).to_have_text("Ready")
    talking.get_by_role("button", name="Start").click()
    server.wait("session.update", 2)

    expect(talking.get_by_role("status")).to_have_text("Listening")
    expect(talking.get_by_role("alert")).to_be_empty()


def test_a_lost_connection_is_told(talking: Page, server: ScriptedServer) -> None:
    server.hang_up(1011)

    told = re.compile("connection_closed.*1011", re.DOTALL)
    expect(talking.get_by_role("alert")).to_contain_text(told)
    expect(talking.get_by_role("status")).to_have_text("Ready")


FULL = {"code": "resource_exhausted", "message": "All places are taken."}


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ((FULL,), "All places are taken."),
        ((), "No connection; does the server want a key? (1008)."),
    ],
    ids=["with a reason", "without"],
)
def test_a_refused_session_is_told_once(
    page: Page, server: ScriptedServer, said: tuple[Event, ...], told: str
) -> None:
    # Toasts would go by themselves after 10 s, however slowly they are looked at here.
    page.evaluate("window.setTimeout = () => 0")
    server.refusal = said
    # While it connects, its name is another.
    start = page.get_by_role("button", name="Start", exact=True)
    start.click()
    toasts = page.get_by_role("alert").locator("p")
    expect(toasts.first).to_be_visible()
    expect(start).to_be_enabled()

    assert toasts.all_text_contents() == [told]
    server.refusal = None
    start.click()
    expect(page.get_by_role("status")).to_have_text("Listening")


def test_without_a_microphone_one_can_type(
    browser: Browser, served: tuple[ScriptedServer, str]
) -> None:
    server, base = served
    with talk_page(browser, base, without_media=True) as page:
        expect(page.get_by_text("No microphone here")).to_be_visible()
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_role("alert")).to_contain_text("microphone_insecure")
        page.get_by_label("Message").fill("Hello")
        page.keyboard.press("Enter")
        server.wait("response.create")
        server.answer("resp_1", 1)
        server.end_response("resp_1")
        server.wait("playback.ack", where=lambda ack: ack["played_ms"] == 1000)
        expect(page.get_by_role("button", name="Mute")).to_be_disabled()


def test_a_question_that_gets_no_answer_leaves_the_page_listening(
    talking: Page, server: ScriptedServer
) -> None:
    lines = talking.get_by_role("log").get_by_role("listitem")
    server.send("input_audio_buffer.speech_started", item_id="item_1", audio_start_ms=0)
    expect(lines).to_have_count(1)
    server.send("input_audio_buffer.speech_stopped", item_id="item_1", audio_end_ms=200)
    expect(talking.get_by_role("status")).to_have_text("Thinking")
    server.send("input_audio_buffer.committed", item_id="item_1", event={"empty": True})

    expect(talking.get_by_role("status")).to_have_text("Listening")
    expect(lines).to_have_count(0)


def test_an_answer_in_text_alone_is_shown(talking: Page, server: ScriptedServer) -> None:
    server.start_response("resp_1")
    server.send("response.output_text.delta", response_id="resp_1", delta="Only ")
    server.send("response.output_text.delta", response_id="resp_1", delta="words.")
    server.end_response("resp_1")

    line = talking.get_by_role("log").get_by_role("listitem")
    expect(line).to_contain_text("Only words.")
    expect(line).not_to_have_attribute("aria-busy", "true")
    expect(talking.get_by_role("status")).to_have_text("Listening")


def test_a_start_that_fails_is_told_and_can_be_tried_again(
    page: Page, server: ScriptedServer
) -> None:
    page.get_by_text("Settings", exact=True).click()
    key = page.get_by_label("API key")
    start = page.get_by_role("button", name="Start", exact=True)
    key.fill("no key has spaces")
    start.click()
    expect(page.get_by_role("alert")).to_contain_text("start_failed")
    key.fill("")
    start.click()

    expect(page.get_by_role("status")).to_have_text("Listening")
