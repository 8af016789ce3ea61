"""The smallest model of the guide holds a conversation, and is as small as it says."""

from __future__ import annotations

import ast
import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.entrypoints.turn.sounds import tone

from omniduplex.config.loader import load_pipeline
from omniduplex.entrypoints.cli.serve import why_not_stock_clients
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.protocol.duplex import (
    AudioDelta,
    DuplexError,
    DuplexEvent,
    ResponseDone,
    TranscriptionCompleted,
)

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RATE_HZ = 16_000
AT_16K = {"audio": {"output": {"format": {"type": "audio/pcm", "rate": RATE_HZ}}}}


@pytest.fixture
def parrot(monkeypatch: pytest.MonkeyPatch) -> Iterator[DuplexOmni]:
    monkeypatch.syspath_prepend(str(EXAMPLES))
    with DuplexOmni(pipeline=load_pipeline("parrot", EXAMPLES / "parrot.yaml")) as omni:
        yield omni


async def ask(omni: DuplexOmni, *sounds: bytes) -> list[DuplexEvent]:
    """Everything up to the end of an answer to each sound."""
    events: list[DuplexEvent] = []
    async with asyncio.timeout(30), await omni.open_session(AT_16K) as session:
        coming = session.events()
        for sound in sounds:
            await session.append_audio(sound)
            await session.commit()
            await session.create_response()
            async for event in coming:
                events.append(event)
                if isinstance(event, ResponseDone):
                    break
    return events


def test_it_says_back_what_was_committed(parrot: DuplexOmni) -> None:
    sounds = tone(300, rate=RATE_HZ), tone(200, hz=220, rate=RATE_HZ)
    events = asyncio.run(ask(parrot, *sounds))

    assert b"".join(e.delta for e in events if isinstance(e, AudioDelta)) == b"".join(sounds)
    heard = [e.transcript for e in events if isinstance(e, TranscriptionCompleted)]
    assert heard == ["0.3 s of sound", "0.2 s of sound"]
    done = [e.response.status for e in events if isinstance(e, ResponseDone)]
    assert done == ["completed", "completed"]


def test_it_finds_no_turns_and_says_so(parrot: DuplexOmni) -> None:
    detection = {"turn_detection": {"type": "server_vad"}}
    with pytest.raises(DuplexError) as refused:
        asyncio.run(parrot.open_session(detection))
    assert (refused.value.code, refused.value.param) == (
        "unsupported_turn_detection",
        "turn_detection",
    )


def test_the_start_promises_it_to_no_stock_client(parrot: DuplexOmni) -> None:
    assert why_not_stock_clients(parrot) == "a parrot waits until you commit"
    with DuplexOmni("omniduplex/echo") as echo:
        assert why_not_stock_clients(echo) is None


def test_it_has_80_lines_behind_its_imports() -> None:
    source = (EXAMPLES / "parrot_model.py").read_text("utf-8")
    imports = [
        node for node in ast.parse(source).body if isinstance(node, ast.Import | ast.ImportFrom)
    ]
    end = imports[-1].end_lineno
    assert end is not None
    assert sum(bool(line.strip()) for line in source.splitlines()[end:]) <= 80
