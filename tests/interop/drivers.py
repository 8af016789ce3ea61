"""The drivers: programs around real clients that hold one conversation and tell how it went."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from concurrent.futures import Executor, Future
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.server import Server

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[1]
NODE_MODULES = FOLDER / "node" / "node_modules"
OTHER_PYTHON = ROOT / ".venv-interop" / "bin" / "python"

# For a whole conversation, and for the program around it, on a machine that does more than that.
TIMEOUT_S = 150
START_TIMEOUT_S = 100

Event = dict[str, Any]


@dataclass(frozen=True)
class CallerFiles:
    """What a caller says: headerless 24 kHz mono PCM16."""

    speech: Path
    barge: Path


@dataclass(frozen=True)
class Told:
    """A driver's report; see Report in python/talk.py."""

    client: str
    version: str
    complaints: list[str]
    events: list[Event]
    played_bytes: int
    calls: list[str]
    interruptions: int | None
    not_understood: list[str] | None = None
    """Types of events that the client let pass as unknown, where it can be asked."""

    def of(self, wire_type: str) -> list[Event]:
        return [event for event in self.events if event["type"] == wire_type]

    @property
    def responses(self) -> list[Event]:
        return [event["response"] for event in self.of("response.done")]

    def transcript(self, response_id: str) -> str:
        deltas = self.of("response.output_audio_transcript.delta")
        return "".join(e["delta"] for e in deltas if e["response_id"] == response_id)


@dataclass(frozen=True)
class Driver:
    """One client; `command` starts it, which takes what `runtime` names."""

    name: str
    command: tuple[str, ...]
    runtime: Path | None = None

    def lacks(self) -> str | None:
        """What is missing to run it, if anything is."""
        if shutil.which(self.command[0]) is None:
            return f"{self.name}: {self.command[0]} is not installed"
        if self.runtime is not None and not self.runtime.exists():
            return f"{self.name}: {self.runtime.relative_to(ROOT)} is missing (scripts/interop.sh)"
        return None

    def talk(
        self,
        server: Server,
        model: str,
        mode: str,
        vad: str,
        files: CallerFiles,
        *,
        speed: float,
    ) -> Told:
        """Hold one conversation; time goes `speed` times as fast for the caller's microphone."""
        told = subprocess.run(
            [
                *self.command,
                *("--url", f"{server.url}/v1"),
                *("--model", model),
                *("--mode", mode),
                *("--vad", vad),
                *("--speech", str(files.speech)),
                *("--barge", str(files.barge)),
                *("--speed", str(speed)),
                *("--timeout", str(TIMEOUT_S)),
            ],
            cwd=ROOT,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_S + START_TIMEOUT_S,
            check=False,
        )
        assert told.returncode == 0, told.stderr
        (line,) = told.stdout.splitlines()
        return Told(**json.loads(line))


DRIVERS = (
    Driver("openai-python", (sys.executable, "-m", "tests.interop.python.openai_driver")),
    Driver(
        "openai-agents-python",
        (str(OTHER_PYTHON), "-m", "tests.interop.python.agents_driver"),
        OTHER_PYTHON.parent.parent / ".installed",
    ),
    Driver(
        "openai-node",
        ("node", "tests/interop/node/openai_driver.mjs"),
        NODE_MODULES / ".installed",
    ),
    Driver(
        "openai-agents-node",
        ("node", "tests/interop/node/agents_driver.mjs"),
        NODE_MODULES / ".installed",
    ),
)


class Rounds:
    """Conversations that all clients hold at the same time, since most of each is waiting."""

    def __init__(self, files: CallerFiles, pool: Executor) -> None:
        self._files = files
        self._pool = pool
        self._held: dict[tuple[str, str, str], dict[str, Future[Told]]] = {}

    def talk(
        self, driver: Driver, server: Server, model: str, mode: str, vad: str, *, speed: float
    ) -> Told:
        """This client's part of the round, which begins when the first client asks for it."""
        key = (server.url, mode, vad)
        if key not in self._held:
            self._held[key] = {
                one.name: self._pool.submit(
                    one.talk, server, model, mode, vad, self._files, speed=speed
                )
                for one in DRIVERS
                if one.lacks() is None
            }
        return self._held[key][driver.name].result()
