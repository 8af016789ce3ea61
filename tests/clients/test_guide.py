"""What the guide to the client says in Python runs, for more than one model, and measures."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.e2e.server import Server, serve

from omniduplex.clients.duplex import InlineDuplexClient, write_pcm16_wav
from omniduplex.clients.echo import create_duplex_session_config
from omniduplex.entrypoints.duplex_omni import DuplexOmni

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs" / "client.md"
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
MODEL = "omniduplex/echo"


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_defines_what_it_shows(block: str) -> None:
    # Without its last line: the server and the recording that it would use are the reader's.
    code = block.removesuffix("asyncio.run(main())\n")

    exec(compile(code, str(GUIDE), "exec"), {})


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serve(MODEL) as served:
        yield served


@pytest.mark.e2e
@pytest.mark.timeout(180)
@pytest.mark.parametrize(
    ("page", "recording"),
    [(GUIDE, "question.wav"), (ROOT / "README.md", "tests/e2e/speech/week.wav")],
    ids=["guide", "readme"],
)
def test_a_model_that_first_decides_to_listen_is_heard_all_the_same(
    page: Path,
    recording: str,
    server: Server,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    blocks = re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    (block,) = (one for one in blocks if "read_pcm16_wav" in one)
    code = block.replace("ws://127.0.0.1:8000", server.url).replace("omniduplex/local", MODEL)
    monkeypatch.chdir(tmp_path)
    Path(recording).parent.mkdir(parents=True, exist_ok=True)
    write_pcm16_wav(Path(recording), bytes(16_000) + tone(seconds=0.8), 16_000)

    exec(compile(code, page.name, "exec"), {})

    assert capsys.readouterr().out.startswith("completed You said tone 440 Hz")


def tone(seconds: float) -> bytes:
    loudness = (math.sin(math.tau * 440 * n / 16_000) for n in range(round(16_000 * seconds)))
    return b"".join(struct.pack("<h", round(9000 * sample)) for sample in loudness)


@pytest.mark.anyio
async def test_the_measurement_measures() -> None:
    (block,) = (block for block in BLOCKS if "def measure" in block)
    names: dict[str, Any] = {}
    exec(compile(block, str(GUIDE), "exec"), names)
    config = create_duplex_session_config(auto_response=False)
    question = b"\x00\x20\x00\xe0" * 4000
    with DuplexOmni(MODEL) as omni:
        async with InlineDuplexClient(omni, model=MODEL, config=config) as client:
            summary = await names["measure"](client, question)

    metrics = summary["request_metrics"]
    assert 0 < metrics["ttfp_ms"] <= metrics["audio_generation_ms"]
    assert metrics["audio_duration_ms"] > 0
    assert metrics["measurement_origin"]["ttfp"] == "input_committed"
