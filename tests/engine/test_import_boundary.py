"""Who serves turns alone loads nothing of sessions."""

import subprocess
import sys

import pytest

PRINT_FOUND = """
import sys
print(*sorted(name for name in sys.modules if "duplex" in name.removeprefix("omniduplex")
              or name.startswith("omniduplex.protocol")))
"""

IMPORT = f"""
import importlib, sys
importlib.import_module(sys.argv[1])
{PRINT_FOUND}
"""

# Its stages run in this process as well, so that what they load is seen.
ASK = f"""
import sys
from msgspec.structs import replace
from omniduplex.config.loader import load_pipeline
from omniduplex.engine.turns import AnswerRequest, TurnMessage
from omniduplex.entrypoints.omni import Omni

deployed = load_pipeline(sys.argv[1], None)
stages = tuple(replace(stage, worker="thread") for stage in deployed.stages)
request = AnswerRequest(
    messages=(TurnMessage(role="user", content=("Hello.",)),),
    modalities=frozenset({{"text", "audio"}}),
    max_tokens=8,
)
with Omni(pipeline=replace(deployed, session_mode="turn", stages=stages)) as omni:
    chunks = list(omni.generate(request))
assert chunks[-1].finished and any(chunk.pcm for chunk in chunks), chunks
{PRINT_FOUND}
"""


def loaded_by(program: str, argument: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", program, argument], capture_output=True, text=True, check=False
    )
    assert run.returncode == 0, run.stderr
    return run.stdout.strip()


@pytest.mark.parametrize(
    "module",
    [
        "omniduplex.engine.async_omni_engine",
        "omniduplex.entrypoints.async_omni",
        "omniduplex.entrypoints.omni",
    ],
)
def test_the_turn_based_stack_knows_nothing_of_sessions(module: str) -> None:
    assert loaded_by(IMPORT, module) == ""


def test_a_turn_that_runs_loads_nothing_of_sessions() -> None:
    assert loaded_by(ASK, "omniduplex/echo") == ""


@pytest.mark.local
@pytest.mark.timeout(180)
def test_nor_does_a_turn_of_the_embedded_model() -> None:
    assert loaded_by(ASK, "omniduplex/local") == ""


def test_the_check_would_see_them() -> None:
    assert "omniduplex.protocol.duplex" in loaded_by(IMPORT, "omniduplex.engine.duplex_omni_engine")
