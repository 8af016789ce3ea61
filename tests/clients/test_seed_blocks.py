"""The contract's own Python, block by block, runs with only the mapping below applied."""

from __future__ import annotations

import asyncio
import math
import struct
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.entrypoints.running import running

from omniduplex.clients.duplex import (
    DuplexClient,
    DuplexClientBase,
    InlineDuplexClient,
    audio_data_url,
    write_pcm16_wav,
)
from omniduplex.clients.minicpmo_4_5 import create_duplex_session_config
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.protocol.duplex import ResponseDone, SessionClosed

pytestmark = [pytest.mark.anyio, pytest.mark.e2e]

MODEL = "omniduplex/echo"
MAPPING = {
    # The import root.
    "vllm_omni.": "omniduplex.",
    # Commands and events are the protocol's: one vocabulary for wire, engine and clients.
    "omniduplex.engine.duplex.commands": "omniduplex.protocol.duplex",
    "omniduplex.engine.duplex.events": "omniduplex.protocol.duplex",
    # No model of ours runs code of a repository, so there is nothing to trust.
    "trust_remote_code=True": "deploy_config=deploy",
    # The model that is there, and where the test serves it.
    "openbmb/MiniCPM-o-4_5": MODEL,
    "ws://127.0.0.1:8099": "{url}",
}
# What stands for the reader's own code in a block is filled in by its test.
READER = "..."

OPEN = """
from vllm_omni.clients.duplex import DuplexClient, audio_data_url
from vllm_omni.clients.minicpmo_4_5 import create_duplex_session_config

config = create_duplex_session_config(ref_audio=audio_data_url(Path("reference_voice.wav")))
async with DuplexClient("ws://127.0.0.1:8099/v1/realtime", model="openbmb/MiniCPM-o-4_5", config=config) as client:
    print(client.session_id, client.session_info["capabilities"])
"""  # noqa: E501

STREAM = """
from vllm_omni.clients.duplex import read_pcm16_wav

question = read_pcm16_wav(Path("question_16k.wav"))
await client.stream_pcm(question, chunk_ms=100)      # paced 100 ms appends
await client.commit(create_response=False)           # the model decides listen/speak
"""

RESPONSES = """
async for response in client.responses():
    if response.decision == "listen":
        continue                                   # the model kept listening
    async for chunk in response.audio():           # decoded PCM16 at 24 kHz
        play(chunk)
        await client.ack_playback(response.played_ms, response_id=response.response_id)
    await response.wait()
    print(response.transcript, response.done_event.raw["response"]["status"])
    break
"""

INTERRUPT = """
await client.cancel_response()        # cancel the active response (epoch advances)
await client.clear_input()            # drop un-committed input audio
"""

MEASURE = """
from vllm_omni.clients.duplex import EventCollector

collector = EventCollector()
consume_task = asyncio.create_task(collector.consume(client))
commit_sent_at = time.monotonic()
await client.commit(create_response=False)
...
summary = collector.timing_summary(after_s=commit_sent_at, input_committed_at_s=commit_sent_at)
"""

PYTHON_API = """
from vllm_omni.engine.duplex.commands import AppendAudio, Commit
from vllm_omni.engine.duplex.events import AudioDelta, SessionClosed
from vllm_omni.entrypoints.duplex_omni import DuplexOmni

omni = DuplexOmni(model="openbmb/MiniCPM-o-4_5", trust_remote_code=True)
async with await omni.open_session({"modalities": ["audio", "text"], "ref_audio": ref_audio_data_url}) as session:
    async def consume():
        async for event in session.events():          # typed DuplexEvent objects
            if isinstance(event, AudioDelta):
                play(event.audio)
            elif isinstance(event, ResponseDone):
                break                                  # one turn is enough here
    task = asyncio.create_task(consume())
    await session.submit(AppendAudio(audio=pcm16_bytes, format="pcm16", sample_rate_hz=16000))
    await session.submit(Commit())
    await task
# leaving the block closes the session (the last event is SessionClosed)
"""  # noqa: E501

INLINE = """
from vllm_omni.clients.inline_duplex import InlineDuplexClient
from vllm_omni.clients.minicpmo_4_5 import create_duplex_session_config

config = create_duplex_session_config(ref_audio=audio_data_url(Path("reference_voice.wav")))
async with InlineDuplexClient(omni, model="openbmb/MiniCPM-o-4_5", config=config) as client:
    await client.stream_pcm(question)
    await client.commit()
    async for response in client.responses():
        ...
"""


def deployed(path: Path, options: str) -> Path:
    """Echo that takes a voice sample and, as a native model, answers without being asked."""
    path.write_text(
        "pipeline: echo\n"
        f"model: {MODEL}\n"
        "session_mode: duplex\n"
        "duplex_plugin: tests.clients.any_voice:AnyVoiceEcho\n"
        "stages:\n"
        "  - {stage_id: 0, name: echo, model_class: 'omniduplex.models.echo.stage:EchoStage',\n"
        f"     worker: inline, options: {{self_start: true, {options}}}}}\n",
        "utf-8",
    )
    return path


@pytest.fixture(scope="module")
def deploy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return deployed(tmp_path_factory.mktemp("deploy") / "echo.yaml", "paced: false")


@pytest.fixture
def halting(tmp_path: Path) -> Iterator[DuplexOmni]:
    """Speaks only while it hears, so its answer stands still when nobody talks."""
    with DuplexOmni(MODEL, deploy_config=deployed(tmp_path / "echo.yaml", "paced: true")) as omni:
        yield omni


@pytest.fixture(scope="module")
def omni(deploy: Path) -> Iterator[DuplexOmni]:
    with DuplexOmni(MODEL, deploy_config=deploy) as omni:
        yield omni


@pytest.fixture
def url(omni: DuplexOmni) -> Iterator[str]:
    with running(create_app(omni)) as server:
        yield server.base.replace("http", "ws")


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, deploy: Path) -> dict[str, Any]:
    """What the blocks take as given; `played` collects what they play."""
    monkeypatch.chdir(tmp_path)
    question = tone(400) + bytes(2 * 16 * 600)
    write_pcm16_wav(Path("reference_voice.wav"), tone(100), 16000)
    write_pcm16_wav(Path("question_16k.wav"), question, 16000)
    played: list[bytes] = []
    return {
        "Path": Path,
        "ResponseDone": ResponseDone,
        "asyncio": asyncio,
        "audio_data_url": audio_data_url,
        "deploy": deploy,
        "pcm16_bytes": question,
        "play": played.append,
        "played": played,
        "question": question,
        "ref_audio_data_url": audio_data_url(Path("reference_voice.wav")),
        "time": time,
    }


def tone(ms: int) -> bytes:
    count = 16 * ms
    return struct.pack(f"<{count}h", *(int(8000 * math.sin(n / 4)) for n in range(count)))


async def run(block: str, names: dict[str, Any], *, url: str = "", reader: str = "") -> None:
    """Run a block where `names` are known; what it assigns is known afterwards."""
    for theirs, ours in MAPPING.items():
        block = block.replace(theirs, ours)
    block = block.replace(READER, reader).replace("{url}", url)
    source = f"async def block():\n{textwrap.indent(block, '    ')}\n    return locals()\n"
    # A block may assign what it was given, so what is given are globals of its own.
    exec(compile(source, "block", "exec"), names)
    names |= await names.pop("block")()


def client_of(url: str) -> DuplexClient:
    config = create_duplex_session_config(ref_audio="data:audio/wav;base64,")
    return DuplexClient(url, model=MODEL, config=config)


async def answered(client: DuplexClientBase) -> None:
    """Return when the model has spoken and everybody has heard of it."""
    async for response in client.responses():
        if response.decision == "speak":
            await response.wait()
            await asyncio.sleep(0)
            return


async def test_open_a_session(
    names: dict[str, Any], url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    await run(OPEN, names, url=url)

    shown = capsys.readouterr().out
    assert shown.startswith("duplex-")
    assert "'supports_input_append': True" in shown


async def test_stream_and_consume_responses(
    names: dict[str, Any], url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with asyncio.timeout(60), client_of(url) as client:
        names["client"] = client
        await run(STREAM, names)
        await run(RESPONSES, names)

    assert capsys.readouterr().out.endswith(" completed\n")
    assert names["response"].transcript.startswith("You said")
    assert len(b"".join(names["played"])) // 48 == names["response"].played_ms > 0


async def test_interrupt(names: dict[str, Any], halting: DuplexOmni) -> None:
    async with asyncio.timeout(60), InlineDuplexClient(halting, model=MODEL) as client:
        names["client"] = client
        await client.append_audio(names["question"])
        async for speaking in client.responses():
            if speaking.decision == "speak":
                break
        cleared = client.wait_for("input_audio_buffer.cleared")
        await run(INTERRUPT, names)

        assert await speaking.wait() == "cancelled"
        await cleared


async def test_measure_latency(names: dict[str, Any], url: str) -> None:
    async with asyncio.timeout(60), client_of(url) as client:
        names["client"] = client
        names["answered"] = answered
        await client.append_audio(names["question"])
        await run(MEASURE, names, reader="await answered(client)")

    summary = names["summary"]
    assert summary["request_metrics"]["ttfp_ms"] > 0
    assert summary["audio_output"]["chunk_count"] > 0
    assert summary["stages"]["0"]["output_unit_count"] > 0
    await names["consume_task"]
    assert names["collector"].count("session.closed") == 1


async def test_python_api(names: dict[str, Any]) -> None:
    async with asyncio.timeout(60):
        await run(PYTHON_API, names)
    names["omni"].shutdown()

    assert b"".join(names["played"])
    last = [event async for event in names["session"].events()][-1]
    assert isinstance(last, SessionClosed)


async def test_inline(names: dict[str, Any], omni: DuplexOmni) -> None:
    async with asyncio.timeout(60):
        names["omni"] = omni
        reader = (
            "if response.decision == 'speak': assert await response.wait() == 'completed'; break"
        )
        await run(INLINE, names, reader=reader)

    assert names["response"].transcript.startswith("You said")
    assert isinstance(names["client"], InlineDuplexClient)
