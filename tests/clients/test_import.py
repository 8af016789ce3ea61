"""What importing the client costs, and what it does not load."""

from __future__ import annotations

import json
import statistics
import subprocess
import sys

import pytest

from omniduplex.clients import duplex
from omniduplex.protocol import duplex as protocol

DOOR = "omniduplex.clients.duplex"
ROUNDS = 5
# CPU time, so that other work of the machine does not count.
MEASURE = """
import json, sys, time
start = time.process_time()
__import__(sys.argv[1])
print(json.dumps({"took_s": time.process_time() - start, "modules": sorted(sys.modules)}))
"""
HEAVY = ("numpy", "starlette", "uvicorn", "onnxruntime", "soxr")
SERVER = ("omniduplex.engine", "omniduplex.entrypoints", "omniduplex.models", "omniduplex.stages")


def importing(module: str) -> tuple[float, list[str]]:
    """CPU seconds that importing a module takes in a fresh interpreter, and all it loads."""
    command = [sys.executable, "-c", MEASURE, module]
    found = json.loads(subprocess.run(command, capture_output=True, check=True).stdout)
    return found["took_s"], found["modules"]


@pytest.mark.timeout(180)
def test_the_client_imports_in_less_than_half_of_the_time_of_openai() -> None:
    pairs = [(importing(DOOR)[0], importing("openai")[0]) for _ in range(ROUNDS)]

    ours, theirs = (statistics.median(times) for times in zip(*pairs, strict=True))
    assert ours / theirs < 0.5


def test_the_client_loads_neither_arrays_nor_a_server() -> None:
    _, modules = importing(DOOR)

    assert DOOR in modules
    assert not [name for name in modules if name.split(".")[0] in HEAVY]
    assert not [name for name in modules if name.startswith(SERVER)]


def test_the_events_that_every_program_reads_are_at_the_door() -> None:
    read = [
        "SessionCreated",
        "ResponseCreated",
        "AudioDelta",
        "TranscriptDelta",
        "TextDelta",
        "ListenDecision",
        "SpeakDecision",
        "ResponseDone",
        "SessionClosed",
        "SessionExpired",
        "ErrorEvent",
        "DuplexEvent",
    ]
    assert {name: getattr(duplex, name) for name in read} == {
        name: getattr(protocol, name) for name in read
    }
    assert {*read, "ConnectionResumed"} <= set(duplex.__all__)
