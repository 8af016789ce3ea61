from __future__ import annotations

import io
import wave
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from omniduplex.audio.wav import write_wav
from omniduplex.entrypoints.cli.talk import load_speech, talk
from omniduplex.entrypoints.cli.talk_view import Answer, Line, LiveView, PlainView, view_for

ANSWER = Answer(
    status="completed",
    transcript="It is sunny.",
    audio_ms=1500,
    heard_ms=1500,
    latency_ms=640.4,
    file=Path("out/response_01.wav"),
)
SILENT = Answer(
    status="incomplete", transcript="", audio_ms=0, heard_ms=0, latency_ms=None, file=None
)


@pytest.fixture
def runner() -> CliRunner:
    return CliRunner()


@pytest.fixture
def app() -> typer.Typer:
    app = typer.Typer()
    app.command()(talk)
    return app


def test_any_recording_becomes_16_khz_mono(tmp_path: Path) -> None:
    with wave.open(str(tmp_path / "a.wav"), "wb") as writer:
        writer.setnchannels(2)
        writer.setsampwidth(3)
        writer.setframerate(44100)
        writer.writeframes(bytes(44100 * 6))

    assert len(load_speech(tmp_path / "a.wav")) == pytest.approx(32000, abs=4)


def test_a_file_that_is_no_recording_fails_in_one_line(
    runner: CliRunner, app: typer.Typer, tmp_path: Path
) -> None:
    (tmp_path / "a.wav").write_bytes(b"no wave file, whatever its name says")

    result = runner.invoke(app, [str(tmp_path / "a.wav"), "--out", str(tmp_path)])

    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("talk failed: ")
    assert line.endswith("is not a WAV of integer PCM: file does not start with RIFF id")


@pytest.mark.parametrize("content", [b"", b"RIFF"])
def test_a_file_that_is_cut_short_is_told_to_be(
    content: bytes, runner: CliRunner, app: typer.Typer, tmp_path: Path
) -> None:
    (tmp_path / "a.wav").write_bytes(content)

    result = runner.invoke(app, [str(tmp_path / "a.wav"), "--out", str(tmp_path)])

    assert result.exit_code == 1
    assert result.stderr.endswith("is not a WAV of integer PCM: it ends within its header\n")


def test_an_empty_recording_fails(runner: CliRunner, app: typer.Typer, tmp_path: Path) -> None:
    write_wav(tmp_path / "a.wav", b"", 16000)

    result = runner.invoke(app, [str(tmp_path / "a.wav"), "--out", str(tmp_path)])

    assert result.exit_code == 1
    assert "holds no audio" in result.stderr


def test_a_server_that_is_not_there_fails_in_one_line(
    runner: CliRunner, app: typer.Typer, tmp_path: Path
) -> None:
    write_wav(tmp_path / "a.wav", bytes(3200), 16000)
    # Port 9 of loopback discards, where anything listens at all.
    options = ["--url", "ws://127.0.0.1:9", "--out", str(tmp_path)]

    result = runner.invoke(app, [str(tmp_path / "a.wav"), *options])

    assert result.exit_code == 1
    (line,) = result.stderr.splitlines()
    assert line.startswith("talk failed: cannot connect to ws://127.0.0.1:9")


def test_a_pipe_gets_plain_lines() -> None:
    out = io.StringIO()
    view = view_for(Console(file=out, width=20))

    with view:
        view.state("listening")
        view.complete(Line("you", "What is the [bold]weather[/bold]?"))
        view.growing(Line("model", "It is"))
        view.complete(Line("model", "It is sunny.", "(640 ms)"))
        view.summary([ANSWER, SILENT])

    assert isinstance(view, PlainView)
    assert out.getvalue().splitlines() == [
        "[listening]",
        "you: What is the [bold]weather[/bold]?",
        "model: It is sunny. (640 ms)",
        "latency: last audible frame of the microphone → first audio received",
        "response 1: completed, latency 640 ms, audio 1.50 s, heard 1.50 s, out/response_01.wav",
        "response 2: incomplete, latency no audio, audio 0.00 s, heard 0.00 s, not written",
    ]


def test_a_terminal_shows_growing_words_and_a_table() -> None:
    out = io.StringIO()
    view = view_for(Console(file=out, width=100, force_terminal=True, color_system=None))
    line = Line("model", "It is")

    assert isinstance(view, LiveView)
    with view:
        view.state("speaking")
        view.growing(line)
        line.words += " sunny."
        view.growing(line)
    shown = out.getvalue()
    assert "It is sunny." in shown
    assert "speaking" in shown
    view.summary([ANSWER])
    assert "640 ms" in out.getvalue()
