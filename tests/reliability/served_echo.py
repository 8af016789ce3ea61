"""The echo model behind `omniduplex serve`, by a deploy file, and what a client asks of it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import msgspec
from tests.e2e.server import Server, serve
from tests.entrypoints.talk import Talk

PATH = "/v1/duplex?model=m"
TIMEOUT_S = 60.0
IS_CI = bool(os.environ.get("CI"))
"""Heavy tests do all of their work there, and a part of it elsewhere."""
LONGEST_ANSWER = " ".join(["word"] * 25)
"""A text that echo answers with 10 s of audio, its longest answer."""


@contextmanager
def served_echo(
    folder: Path, *, stage: dict[str, Any] | None = None, log_level: str = "error", **limits: Any
) -> Iterator[Server]:
    """Serve echo in a process of its own with these session limits and changes to its stage."""
    deploy = {
        "pipeline": "echo",
        "duplex_session": limits,
        "stages": [{"stage_id": 0, **(stage or {})}],
    }
    path = folder / "deploy.yaml"
    path.write_bytes(msgspec.yaml.encode(deploy))
    arguments = ("--deploy-config", str(path), "--log-level", log_level, "--drain-timeout", "0")
    with serve("omniduplex/echo", *arguments) as server:
        yield server


def write(talk: Talk, text: str, **fields: Any) -> None:
    """Say something in writing."""
    part = {"type": "input_text", "text": text}
    item = {"type": "message", "role": "user", "content": [part], **fields}
    talk.send("conversation.item.create", item=item)


def ask(talk: Talk, text: str) -> None:
    """Write to the model and want an answer."""
    write(talk, text)
    talk.send("response.create")


def converse(talk: Talk) -> None:
    """One whole turn."""
    ask(talk, "hello there")
    done = talk.until("response.done")[-1]
    assert done["response"]["status"] == "completed"


def metric(server: Server, name: str) -> float:
    """A metric's value, summed over its labels, as an operator reads it."""
    with urlopen(f"{server.http}/metrics", timeout=TIMEOUT_S) as response:
        lines = response.read().decode().splitlines()
    return sum(float(line.split()[-1]) for line in lines if re.match(rf"{name}[{{ ]", line))


def leave(talk: Talk) -> None:
    """Close the session and see it closed."""
    talk.send("session.close")
    events, code, _ = talk.ends()
    assert (events[-1]["type"], code) == ("session.closed", 1000)
