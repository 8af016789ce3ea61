"""The code of the guide to turns runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

GUIDE = Path(__file__).parents[3] / "docs" / "turn.md"


def test_the_python_of_the_guide_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = GUIDE.read_text("utf-8")
    (deploy,) = re.findall(r"printf '(.*)\\n' > turn\.yaml", guide)
    (code,) = re.findall(r"```python\n(.*?)```", guide, re.DOTALL)
    (tmp_path / "turn.yaml").write_text(f"{deploy}\n", "utf-8")
    monkeypatch.chdir(tmp_path)

    exec(compile(code, str(GUIDE), "exec"), {})

    assert capsys.readouterr().out == "You said What is a duplex?"


@pytest.mark.e2e
def test_the_half_duplex_client_of_the_guide_runs(
    turn_base: str, capsys: pytest.CaptureFixture[str]
) -> None:
    guide = GUIDE.read_text("utf-8")
    (code,) = re.findall(r'```python title="half_duplex.py"\n(.*?)```', guide, re.DOTALL)

    exec(compile(code.replace("http://127.0.0.1:8000", turn_base), str(GUIDE), "exec"), {})

    assert capsys.readouterr().out == "You said"
