"""`omniduplex talk` holds a spoken conversation, with a server and without one."""

from __future__ import annotations

import subprocess
import sys
import wave
from pathlib import Path

import pytest
from tests.e2e.hearing import understood
from tests.e2e.recordings import Recording, recording
from tests.e2e.server import Server

from omniduplex.models.local.asr import Recognizer

pytestmark = [pytest.mark.e2e, pytest.mark.local, pytest.mark.timeout(300)]

TIMEOUT_S = 200.0
QUESTION = recording("capital")


def talk(out: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [
            sys.executable,
            "-m",
            "omniduplex.entrypoints.cli.main",
            "talk",
            str(QUESTION.path),
            "--out",
            str(out),
            "--instructions",
            "Answer in one short sentence.",
            *options,
        ],
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )


def expect_answers(
    done: subprocess.CompletedProcess[str], out: Path, *questions: Recording
) -> None:
    """Each question was understood and answered aloud."""
    assert done.returncode == 0, done.stderr
    heard = [
        line.removeprefix("you: ") for line in done.stdout.splitlines() if line.startswith("you: ")
    ]
    assert len(heard) == len(questions)
    assert all(map(understood, (question.words for question in questions), heard)), heard
    assert " ms" in done.stdout
    assert sorted(path.name for path in out.iterdir()) == [
        f"response_{number:02}.wav" for number, _ in enumerate(questions, 1)
    ]
    for path in out.iterdir():
        with wave.open(str(path)) as answer:
            assert answer.getnframes() > answer.getframerate() // 10


def test_with_a_server(local_server: Server, tmp_path: Path) -> None:
    expect_answers(talk(tmp_path, "--url", local_server.url), tmp_path, QUESTION)


def test_talking_over_the_answer(local_server: Server, tmp_path: Path) -> None:
    interruption = recording("week")
    done = talk(tmp_path, "--url", local_server.url, "--interrupt", str(interruption.path))
    expect_answers(done, tmp_path, QUESTION, interruption)


def test_without_a_server(recognizer: Recognizer, tmp_path: Path) -> None:
    expect_answers(talk(tmp_path), tmp_path, QUESTION)
