"""The code of the guide to the Python API runs as it stands, and what it names is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.duplex_session_handle import DuplexSessionHandle

GUIDE = Path(__file__).parents[2] / "docs" / "python.md"


def test_the_code_runs(capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)

    exec(compile(code, str(GUIDE), "exec"), {})

    assert capsys.readouterr().out == "completed True\n"


def test_every_public_name_of_a_session_is_in_the_guide() -> None:
    guide = GUIDE.read_text("utf-8")
    public = [name for name in vars(DuplexOmni) | vars(DuplexSessionHandle) if name[0] != "_"]

    assert "open_session" in public
    assert [name for name in public if not re.search(rf"\b{name}\b", guide)] == []
