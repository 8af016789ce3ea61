"""The README's code runs as it stands, but for the server's address."""

from __future__ import annotations

import re
import shutil
import wave
from pathlib import Path

import pytest
from tests.e2e.server import Server

pytestmark = [pytest.mark.e2e, pytest.mark.local, pytest.mark.timeout(300)]

ROOT = Path(__file__).parents[2]
SPOKEN = Path("tests/e2e/speech/week.wav")


@pytest.fixture
def snippets(
    local_server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[str, ...]:
    """The README's Python, in a folder that has what it names."""
    (tmp_path / SPOKEN).parent.mkdir(parents=True)
    shutil.copy(ROOT / SPOKEN, tmp_path / SPOKEN)
    monkeypatch.chdir(tmp_path)
    readme = (ROOT / "README.md").read_text("utf-8")
    found = re.findall(r"```python\n(.*?)```", readme, re.DOTALL)
    return tuple(code.replace("127.0.0.1:8000", local_server.address) for code in found)


def run(code: str) -> None:
    exec(compile(code, "README.md", "exec"), {})


def test_a_question_is_asked_through_the_openai_package(
    snippets: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    ask, make_wav, _ = snippets
    run(make_wav)
    run(ask)
    assert capsys.readouterr().out.strip()


def test_a_question_is_asked_through_our_client(
    snippets: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    run(snippets[2])
    status, _, words = capsys.readouterr().out.partition(" ")
    assert status in ("completed", "incomplete")
    assert words.strip()
    with wave.open("answer.wav") as answer:
        assert (answer.getframerate(), answer.getnchannels()) == (24_000, 1)
        assert answer.getnframes() > 24_000 // 10
