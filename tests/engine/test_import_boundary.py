"""Who serves turns alone loads nothing of sessions."""

import subprocess
import sys

import pytest

PROGRAM = """
import importlib, sys
importlib.import_module(sys.argv[1])
print(*sorted(name for name in sys.modules if "duplex" in name.removeprefix("omniduplex")
              or name.startswith("omniduplex.protocol")))
"""


def loaded_by(module: str) -> str:
    run = subprocess.run(
        [sys.executable, "-c", PROGRAM, module], capture_output=True, text=True, check=True
    )
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
    assert loaded_by(module) == ""


def test_the_check_would_see_them() -> None:
    assert "omniduplex.protocol.duplex" in loaded_by("omniduplex.engine.duplex_omni_engine")
