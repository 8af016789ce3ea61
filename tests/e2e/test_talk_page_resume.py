"""The talk page after a cut: it comes back to its session, or tells that it is over."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.e2e.browser import (
    ScriptedServer,
    scripted_server,
    talk_page,
)

pytestmark = [pytest.mark.browser, pytest.mark.e2e, pytest.mark.timeout(180)]

# The patience of the page ends when a test calls what is in giveUp, by its length in s; its toasts
# stay.
BY_HAND = """
const set = setTimeout;
window.giveUp = {};
window.setTimeout = (act, ms) => {
  if (ms >= 10000) window.giveUp[ms / 1000] = act;
  return ms < 10000 ? set(act, ms) : 0;
};
"""
# What its server says of it: no default, and no two alike.
GRACE_S = 47
NEXT_GRACE_S = 61.5


@pytest.fixture
def served() -> Iterator[tuple[ScriptedServer, str]]:
    with scripted_server() as served:
        served[0].created = {
            "resume_token": "first",
            "disconnect_grace_s": GRACE_S,
            "server_event_seq": 7,
        }
        yield served


@pytest.fixture
def cut(browser: Browser, served: tuple[ScriptedServer, str]) -> Iterator[Page]:
    """The page, whose resume has arrived and is not answered yet."""
    server, base = served
    with talk_page(browser, base) as page:
        page.evaluate(BY_HAND)
        page.get_by_role("button", name="Start").click()
        expect(page.get_by_role("status")).to_have_text("Listening")
        server.cuts = True
        server.wait("session.resume")
        yield page


def come_back(server: ScriptedServer) -> None:
    """Give the page its session back."""
    server.send(
        "session.resumed",
        session={"id": "duplex-1", "model": "scripted/model"},
        resume_token="second",
        disconnect_grace_s=NEXT_GRACE_S,
        server_event_seq=7,
    )


def test_a_cut_connection_is_resumed_with_what_was_held(cut: Page, server: ScriptedServer) -> None:
    expect(cut.get_by_role("status")).to_have_text("Reconnecting")
    [resume] = server.received("session.resume")
    asked = {name: resume[name] for name in resume if name not in ("type", "event_id")}
    assert asked == {
        "session_id": "duplex-1",
        "resume_token": "first",
        "last_received_server_event_seq": 7,
    }
    cut.get_by_label("Message").fill("Still there?")
    cut.keyboard.press("Enter")
    heard = len(server.received("input_audio_buffer.append"))
    come_back(server)

    server.wait("response.create")
    server.wait("input_audio_buffer.append", heard + 1)
    server.answer("resp_1", 1)
    server.end_response("resp_1")
    server.wait("playback.ack", where=lambda ack: ack["played_ms"] == 1000)
    expect(cut.get_by_role("status")).to_have_text("Listening")
    expect(cut.get_by_role("alert")).to_be_empty()


def test_a_second_cut_is_resumed_with_the_new_token(cut: Page, server: ScriptedServer) -> None:
    come_back(server)
    expect(cut.get_by_role("status")).to_have_text("Listening")
    session = {"id": "duplex-1", "model": "scripted/model"}
    server.send("session.updated", session=session, server_event_seq=8)
    server.cuts = True
    _, again = server.wait("session.resume", 2)

    assert (again["resume_token"], again["last_received_server_event_seq"]) == ("second", 8)


def test_a_session_that_cannot_be_reached_for_its_grace_is_told(
    cut: Page, server: ScriptedServer
) -> None:
    expect(cut.get_by_role("status")).to_have_text("Reconnecting")
    cut.evaluate(f"giveUp[{GRACE_S}]()")

    expect(cut.get_by_role("alert")).to_contain_text("The connection ended (1006).")
    expect(cut.get_by_role("status")).to_have_text("Ready")


def test_a_session_is_waited_for_as_long_as_its_newest_grace(
    cut: Page, server: ScriptedServer
) -> None:
    come_back(server)
    expect(cut.get_by_role("status")).to_have_text("Listening")
    server.cuts = True
    server.wait("session.resume", 2)
    expect(cut.get_by_role("status")).to_have_text("Reconnecting")
    cut.evaluate(f"giveUp[{NEXT_GRACE_S}]()")

    expect(cut.get_by_role("alert")).to_contain_text("The connection ended (1006).")
    expect(cut.get_by_role("status")).to_have_text("Ready")


def test_a_session_that_is_over_is_told(cut: Page, server: ScriptedServer) -> None:
    expect(cut.get_by_role("status")).to_have_text("Reconnecting")
    server.hang_up(1008)

    expect(cut.get_by_role("alert")).to_contain_text("The connection ended (1008).")
    expect(cut.get_by_role("status")).to_have_text("Ready")


def test_one_can_stop_while_it_reconnects(cut: Page, server: ScriptedServer) -> None:
    expect(cut.get_by_role("status")).to_have_text("Reconnecting")
    cut.get_by_role("button", name="Stop").click()

    expect(cut.get_by_role("status")).to_have_text("Ready")
    expect(cut.get_by_role("alert")).to_be_empty()
