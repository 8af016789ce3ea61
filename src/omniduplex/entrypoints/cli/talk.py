"""`omniduplex talk`: hold a spoken conversation from WAV files."""

from __future__ import annotations

import asyncio
import wave
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from omniduplex.config.default_model import DEFAULT_MODEL

if TYPE_CHECKING:
    from rich.console import Console

    from omniduplex.clients import DuplexClientBase, SessionConfig
    from omniduplex.entrypoints.cli.talk_view import Answer

INPUT_RATE_HZ = 16000


def talk(
    question: Annotated[
        Path, typer.Argument(help="A WAV with the question.", exists=True, dir_okay=False)
    ],
    url: Annotated[
        str | None,
        typer.Option(help="A server, ws://host:port; none: the model runs in this process."),
    ] = None,
    model: Annotated[str, typer.Option(help="The model to talk with.")] = DEFAULT_MODEL,
    out: Annotated[Path, typer.Option(help="Where the answers' WAVs go.")] = Path("out"),
    interrupt: Annotated[
        Path | None,
        typer.Option(help="A WAV that talks over the first answer.", exists=True, dir_okay=False),
    ] = None,
    instructions: Annotated[str | None, typer.Option(help="How the model shall behave.")] = None,
    api_key: Annotated[
        str | None,
        typer.Option(
            help="The server's key; better given by the environment.",
            envvar="OMNIDUPLEX_API_KEY",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Ask a recorded question, hear the answer, and talk over it."""
    from rich.console import Console

    from omniduplex.clients import DuplexClient, DuplexClientError
    from omniduplex.clients.local import create_duplex_session_config
    from omniduplex.config.errors import ConfigError
    from omniduplex.entrypoints.cli.talk_view import view_for
    from omniduplex.models.local.asset_sources import AssetError
    from omniduplex.protocol.duplex import DuplexError
    from omniduplex.stages.errors import StageStartError

    console = Console()
    engine_errors = (DuplexError, ConfigError, AssetError, StageStartError)
    known = (DuplexClientError, *engine_errors, OSError, ValueError)
    try:
        speech = load_speech(question)
        follow_up = load_speech(interrupt) if interrupt else b""
        out.mkdir(parents=True, exist_ok=True)
        config = create_duplex_session_config(instructions=instructions)
        client = DuplexClient(url, model=model, config=config, api_key=api_key) if url else None
        connecting = _opened(client) if client else _engine_client(model, config, console)
        answers = asyncio.run(_talk(connecting, speech, follow_up, out, console))
    except known as error:
        Console(stderr=True).print(
            f"talk failed: {error}", style="red", markup=False, soft_wrap=True
        )
        raise typer.Exit(1) from None
    view_for(console).summary(answers)


def load_speech(path: Path) -> bytes:
    """Any integer PCM WAV, as mono int16 at 16 kHz.

    Raises:
        ValueError: the file is no such WAV, or holds no sample.
        OSError: the file cannot be read.
    """
    from omniduplex.audio.resample import StreamResampler
    from omniduplex.audio.wav import read_wav

    try:
        pcm, rate_hz = read_wav(path)
    except (wave.Error, EOFError) as error:
        raise ValueError(f"{path} is not a WAV of integer PCM: {error}") from None
    if not pcm:
        raise ValueError(f"{path} holds no audio")
    return StreamResampler(rate_hz, INPUT_RATE_HZ).process(pcm, last=True)


async def _talk(
    connecting: AbstractAsyncContextManager[DuplexClientBase],
    speech: bytes,
    follow_up: bytes,
    out: Path,
    console: Console,
) -> list[Answer]:
    from omniduplex.clients import MonotonicClock
    from omniduplex.entrypoints.cli.conversation import Conversation
    from omniduplex.entrypoints.cli.talk_view import view_for

    async with connecting as client:
        with view_for(console) as view:
            conversation = Conversation(client, view, out=out, clock=MonotonicClock())
            return await conversation.hold(speech, follow_up)


@asynccontextmanager
async def _opened(client: DuplexClientBase) -> AsyncIterator[DuplexClientBase]:
    async with client:
        yield client


@asynccontextmanager
async def _engine_client(
    model: str, config: SessionConfig, console: Console
) -> AsyncIterator[DuplexClientBase]:
    """A client of an engine that lives as long as the conversation."""
    from omniduplex.clients import InlineDuplexClient
    from omniduplex.entrypoints.duplex_omni import DuplexOmni

    with console.status(f"loading {model}"):
        # Loading takes seconds and blocks; the spinner has its own thread, the loop does not.
        omni = await asyncio.to_thread(DuplexOmni, model=model)
    try:
        async with InlineDuplexClient(omni, model=model, config=config) as client:
            yield client
    finally:
        await asyncio.to_thread(omni.shutdown)
