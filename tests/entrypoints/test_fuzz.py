"""Thousands of senseless messages over one connection, and then an ordinary turn."""

from __future__ import annotations

import base64
import itertools
import os
import random
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from tests.entrypoints.conftest import ServeApp
from tests.entrypoints.talk import Talk
from tests.protocol.duplex.test_codec_fuzz import any_message, outcome

from omniduplex.config.loader import load_pipeline
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.protocol.duplex import ERROR_KINDS, OPENAI_CODES, CloseSession

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(240)]

MESSAGES = 5_000 if os.environ.get("CI") else 1_000
BATCH = 50
CODES = {*ERROR_KINDS, *OPENAI_CODES.values()}
# The server's own faults, which no message of a client may cause.
FAULTS = {code for code, kind in ERROR_KINDS.items() if kind.error_class == "server_error"}
RESET = {
    "audio": {
        "input": {"format": {"type": "audio/pcm", "rate": 16000}, "turn_detection": None},
        "output": {"format": {"type": "audio/pcm", "rate": 24000}},
    },
    "output_modalities": ["audio"],
    "max_output_tokens": "inf",
    "tools": [],
    "tool_choice": "auto",
}


@pytest.fixture(scope="module")
def omni() -> Iterator[DuplexOmni]:
    with DuplexOmni(pipeline=load_pipeline("omniduplex/echo", None)) as omni:
        yield omni


def senseless(rng: random.Random) -> Iterator[str]:
    """Messages that fit a text frame, but none that says goodbye or asks to be timed out."""
    while True:
        text = any_message(rng).encode("utf-8", "ignore").decode()
        is_goodbye = isinstance(outcome(text), CloseSession)
        if not is_goodbye and "idle_timeout_s" not in text:
            yield text


def settle(talk: Talk, mark: str) -> list[dict[str, Any]]:
    """Read everything up to the engine's answer to a message of our own."""
    talk.send("conversation.item.retrieve", item_id="no such", event_id=mark)
    events = [talk.recv()]
    while events[-1].get("error", {}).get("event_id") != mark:
        events.append(talk.recv())
    return events


def turn(talk: Talk) -> list[dict[str, Any]]:
    talk.send("input_audio_buffer.clear")
    talk.until("input_audio_buffer.cleared")
    samples = 8000 * np.sin(np.arange(16_000) * 2 * np.pi * 300 / 16_000)
    audio = base64.b64encode(samples.astype("<i2").tobytes()).decode()
    talk.send("input_audio_buffer.append", audio=audio)
    talk.send("input_audio_buffer.commit")
    talk.send("response.create", event_id="ask")
    return talk.until("response.done")


@pytest.mark.parametrize("path", ["/v1/realtime", "/v1/duplex?model=m"])
def test_the_connection_lives_and_answers(path: str, omni: DuplexOmni, serve_app: ServeApp) -> None:
    messages = senseless(random.Random(path))
    with Talk(serve_app(create_app(omni)), path) as talk:
        events = talk.until("session.created")
        for batch in range(MESSAGES // BATCH):
            for text in itertools.islice(messages, BATCH):
                talk.socket.send(text)
            events += settle(talk, f"batch {batch}")
        talk.send("response.cancel")
        talk.send("session.update", session=RESET)
        events += settle(talk, "reset")
        answer = turn(talk)

    codes = {event["error"]["code"] for event in events if event["type"] == "error"}
    assert codes <= CODES
    assert not codes & FAULTS
    assert {"invalid_json", "bad_event", "unknown_event"} <= codes
    assert [event["server_event_seq"] for event in events] == list(range(1, len(events) + 1))
    assert answer[-1]["response"]["status"] == "completed"
    assert any(event["type"] == "response.output_audio.delta" for event in answer)
