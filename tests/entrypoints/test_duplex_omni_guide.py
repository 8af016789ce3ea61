"""The code of the guide to the Python API runs as it stands, and what it names is there."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.duplex_session_handle import DuplexSessionHandle

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"


def block(number: int) -> dict[str, Any]:
    """The names of one of the guide's programs, after it ran."""
    blocks = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
    assert len(blocks) == 2
    names: dict[str, Any] = {}
    exec(compile(blocks[number], str(GUIDE), "exec"), names)
    return names


def test_the_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    block(0)

    assert capsys.readouterr().out == "completed True\n"


def test_a_session_can_be_left_and_come_back_to() -> None:
    away_and_back = block(1)["away_and_back"]

    async def leave_and_return(omni: DuplexOmni) -> int:
        async with await omni.open_session({}) as session:
            await away_and_back(omni, session)
            return session.lease_generation

    with DuplexOmni(model="omniduplex/echo") as omni:
        assert asyncio.run(leave_and_return(omni)) == 1


def test_every_public_name_of_a_session_is_in_the_guide() -> None:
    guide = GUIDE.read_text("utf-8")
    public = [name for name in vars(DuplexOmni) | vars(DuplexSessionHandle) if name[0] != "_"]

    assert "open_session" in public
    assert [name for name in public if not re.search(rf"\b{name}\b", guide)] == []
