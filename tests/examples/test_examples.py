"""Every example as a person runs it, against echo."""

from __future__ import annotations

import math
import os
import signal
import struct
import subprocess
import sys
from collections.abc import Iterator
from importlib import resources
from importlib.util import find_spec
from pathlib import Path
from threading import Thread

import pytest
from tests.e2e.server import Server, serve
from websockets.sync.server import ServerConnection
from websockets.sync.server import serve as websocket_server

from omniduplex.clients import read_pcm16_wav, write_pcm16_wav

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(180)]

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
SOUND_CARD = Path(__file__).with_name("sound_card")
ECHO = "omniduplex/echo"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(ECHO) as served:
        yield served


@pytest.fixture(scope="module")
def paced_server() -> Iterator[Server]:
    """An echo that speaks in real time, so that an answer can be cut off at the model."""
    paced = resources.files("omniduplex.benchmarks") / "paced_echo.yaml"
    with (
        resources.as_file(paced) as deploy,
        serve(ECHO, "--deploy-config", str(deploy)) as served,
    ):
        yield served


def tone(path: Path, hz: int, seconds: float, rate_hz: int = 16_000) -> Path:
    samples = (
        round(9000 * math.sin(2 * math.pi * hz * n / rate_hz))
        for n in range(int(seconds * rate_hz))
    )
    write_pcm16_wav(path, b"".join(struct.pack("<h", sample) for sample in samples), rate_hz)
    return path


def run(
    name: str, *arguments: str | Path, environment: dict[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(EXAMPLES / name), *map(str, arguments)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        timeout=150,
        check=False,
        env={**os.environ, **(environment or {})},
    )


def refusal(name: str, *arguments: str | Path, environment: dict[str, str] | None = None) -> str:
    """What an example says that cannot go on: no more than why."""
    done = run(name, *arguments, environment=environment)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    return done.stderr


def succeed(name: str, *arguments: str | Path) -> str:
    done = run(name, *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout


def barge_in(folder: Path, *where: str, preset: str = "echo") -> list[str]:
    """Talk over an answer of five seconds after 300 ms; what is told of the two answers."""
    told = succeed(
        "barge_in_client.py",
        *where,
        *(
            "--model",
            ECHO,
            "--preset",
            preset,
            "--interrupt-after-ms",
            "300",
            "--output-dir",
            folder / "out",
        ),
        *("--question-wav", tone(folder / "question.wav", 440, 5.0)),
        *("--interrupt-wav", tone(folder / "interrupt.wav", 880, 0.4)),
    )
    return told.splitlines()


def heard_ms(line: str) -> int:
    return int(line.split(" ms heard")[0].rsplit(" ", 1)[1])


def seconds_of(path: Path) -> float:
    return len(read_pcm16_wav(path, 24_000)) / 2 / 24_000


def test_an_answer_is_cut_off_at_the_model_and_the_interruption_is_answered(
    tmp_path: Path, paced_server: Server
) -> None:
    first, second = barge_in(tmp_path, "--url", paced_server.url)
    assert first.startswith("response_01.wav: cancelled")
    assert heard_ms(first) >= 300
    assert second.startswith("response_02.wav: completed")
    assert "tone 880 Hz" in second
    assert seconds_of(tmp_path / "out" / "response_01.wav") >= 0.3
    assert seconds_of(tmp_path / "out" / "response_02.wav") * 1000 == heard_ms(second)


@pytest.mark.parametrize("preset", ["echo", "local", "minicpmo_4_5"])
def test_an_answer_that_is_all_there_is_cut_off_at_the_loudspeaker_inline(
    tmp_path: Path, preset: str
) -> None:
    first, second = barge_in(tmp_path, "--inline", preset=preset)
    assert first.startswith("response_01.wav: completed")
    assert "tone 440 Hz" in first
    assert 300 <= heard_ms(first) < 5000
    assert "tone 880 Hz" in second
    # Echo answers all that was committed: the question, and the silence up to the commit.
    assert seconds_of(tmp_path / "out" / "response_01.wav") > 4.9


def test_a_wav_of_another_rate_is_told_in_a_line(tmp_path: Path) -> None:
    wrong = tone(tmp_path / "wrong.wav", 440, 0.1, 8000)
    told = refusal(
        "barge_in_client.py",
        *("--url", "ws://127.0.0.1:9", "--question-wav", wrong, "--interrupt-wav", wrong),
    )
    assert "16000 Hz, 1 channel, 16 bit is needed" in told


def test_a_voice_sample_that_is_not_there_is_told_in_a_line(tmp_path: Path) -> None:
    question = tone(tmp_path / "question.wav", 440, 0.1)
    told = refusal(
        "barge_in_client.py",
        *("--url", "ws://127.0.0.1:9", "--preset", "minicpmo_4_5", "--ref-audio", "nobody.wav"),
        *("--question-wav", question, "--interrupt-wav", question),
    )
    assert "FileNotFoundError" in told
    assert "nobody.wav" in told


def test_a_model_that_does_not_start_inline_is_told_in_a_line(tmp_path: Path) -> None:
    question = tone(tmp_path / "question.wav", 440, 0.1)
    told = refusal(
        "barge_in_client.py",
        *("--inline", "--model", "nobody/nothing", "--output-dir", tmp_path / "out"),
        *("--question-wav", question, "--interrupt-wav", question),
    )
    assert "nobody/nothing" in told


def test_a_recording_stands_in_for_the_microphone(tmp_path: Path, server: Server) -> None:
    question = tone(tmp_path / "question.wav", 440, 0.8)
    told = succeed("microphone_client.py", "--url", server.url, "--model", ECHO, "--wav", question)
    assert "you:   tone 440 Hz 0.8 s" in told
    assert "You said tone 440 Hz 0.8 s  [completed]" in told


@pytest.fixture
def ctrl_c() -> Iterator[None]:
    """Programs started meanwhile take SIGINT, even if this one was started in the background."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("ctrl_c")
def test_a_sound_card_is_spoken_to_and_speaks(tmp_path: Path, server: Server) -> None:
    spoken, sounded = tmp_path / "spoken", tmp_path / "sounded"
    spoken.write_bytes(read_pcm16_wav(tone(tmp_path / "question.wav", 440, 0.8)))
    sounded.touch()
    cards = {"PYTHONPATH": str(SOUND_CARD), "SPOKEN": str(spoken), "SOUNDED": str(sounded)}
    command = [sys.executable, str(EXAMPLES / "microphone_client.py"), "--url", server.url]
    with subprocess.Popen(
        [*command, "--model", ECHO],
        env={**os.environ, **cards},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as talking:
        try:
            assert talking.stdout is not None
            answered = next(line for line in talking.stdout if "[completed]" in line)
            while not sounded.read_bytes().strip(b"\0"):
                with pytest.raises(subprocess.TimeoutExpired):
                    talking.wait(timeout=0.05)
            talking.send_signal(signal.SIGINT)
            _, complaints = talking.communicate(timeout=30)
        finally:
            talking.kill()
    assert (talking.returncode, complaints) == (0, "")
    assert "You said tone 440 Hz 0.8 s" in answered


def test_a_machine_without_portaudio_is_told_so(tmp_path: Path) -> None:
    # A module of that name that ends at its import is what a missing PortAudio looks like.
    (tmp_path / "sounddevice.py").write_text('raise OSError("PortAudio library not found")\n')
    told = refusal("microphone_client.py", environment={"PYTHONPATH": str(tmp_path)})
    assert "no sound: PortAudio library not found" in told
    assert "--wav" in told


@pytest.mark.skipif(find_spec("sounddevice") is not None, reason="sounddevice is installed")
def test_a_machine_without_the_package_is_told_how_to_get_it() -> None:
    told = refusal("microphone_client.py")
    assert "pip install sounddevice" in told


def test_a_raw_websocket_is_enough(tmp_path: Path, server: Server) -> None:
    question = tone(tmp_path / "question.wav", 660, 1.0, 24_000)
    told = succeed("raw_websocket.py", server.url, ECHO, question, tmp_path / "answer.wav")
    assert told == "You said tone 660 Hz 1.0 s\n"
    assert seconds_of(tmp_path / "answer.wav") == pytest.approx(1.0, abs=0.1)


def test_the_raw_client_says_why_it_was_turned_away(tmp_path: Path) -> None:
    def turn_away(socket: ServerConnection) -> None:
        socket.send('{"type": "error", "error": {"message": "all slots are taken"}}')
        socket.close(1008)

    question = tone(tmp_path / "question.wav", 660, 10.0, 24_000)
    with websocket_server(turn_away, "127.0.0.1", 0) as server:
        serving = Thread(target=server.serve_forever)
        serving.start()
        url = f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        done = run("raw_websocket.py", url, ECHO, question, tmp_path / "answer.wav")
        server.shutdown()
        serving.join()

    assert (done.returncode, done.stderr) == (1, "all slots are taken\n")


@pytest.mark.parametrize("arguments", [(), ("--help",), ("ws://127.0.0.1:9", ECHO, "question.wav")])
def test_the_raw_client_says_what_it_wants(arguments: tuple[str, ...]) -> None:
    told = refusal("raw_websocket.py", *arguments)
    assert "raw_websocket.py URL MODEL QUESTION.wav (24 kHz) ANSWER.wav" in told


def test_the_raw_client_is_short_and_needs_only_websockets() -> None:
    source = (EXAMPLES / "raw_websocket.py").read_text()
    assert len(source.splitlines()) <= 40
    assert "omniduplex" not in source


def test_the_agent_calls_its_tools_and_answers(server: Server) -> None:
    asked = "call calculate (2 + 4) * 7 call local_time UTC"
    told = succeed("tool_agent.py", "--url", server.url, "--model", ECHO, asked).splitlines()
    assert told[0] == 'calculate({"text":"(2 + 4) * 7"}) -> 42'
    assert told[1].startswith('local_time({"text":"UTC"}) -> ')
    assert told[2].startswith("Tool said ")


def test_a_tool_that_fails_is_told_to_the_model(server: Server) -> None:
    told = succeed("tool_agent.py", "--url", server.url, "--model", ECHO, "call calculate 1 / 0")
    assert told.splitlines()[-1] == "Tool said error: float division by zero"


def test_without_a_server_the_agent_ends_in_a_line() -> None:
    told = refusal("tool_agent.py", "--url", "ws://127.0.0.1:9", "call calculate 1")
    assert "DuplexConnectionError" in told
