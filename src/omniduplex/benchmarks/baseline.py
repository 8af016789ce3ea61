"""The least that a server can do: a bare WebSocket loop that answers each append with a delta.

`python -m omniduplex.benchmarks.baseline` serves it on a free loopback port and says which.
"""

from __future__ import annotations

import asyncio

import msgspec
import pybase64
import uvloop
from rich.console import Console
from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve

from omniduplex.benchmarks.frames import APPEND_BYTES, DELTA_BYTES, Frames
from omniduplex.protocol.duplex import AppendAudio, encode_command


class _Append(msgspec.Struct):
    type: str
    audio: str


class _Delta(msgspec.Struct):
    type: str
    delta: str


_decoder = msgspec.json.Decoder(_Append)
_encoder = msgspec.json.Encoder()


def answer(message: str | bytes) -> str:
    """Decode an append and its audio; encode a delta of as much audio at 24 kHz."""
    append = _decoder.decode(message)
    audio = pybase64.b64decode(append.audio, validate=True)
    pcm = (audio * 2)[: len(audio) * DELTA_BYTES // APPEND_BYTES]
    delta = _Delta("response.output_audio.delta", pybase64.b64encode_as_string(pcm))
    return _encoder.encode(delta).decode()


async def _talk(connection: ServerConnection) -> None:
    async for message in connection:
        await connection.send(answer(message))


async def serve_baseline() -> None:
    """Serve until cancelled."""
    async with serve(_talk, "127.0.0.1", 0, compression=None) as server:
        port = server.sockets[0].getsockname()[1]
        Console(stderr=True, soft_wrap=True).print(f"baseline ws://127.0.0.1:{port}")
        await server.serve_forever()


class BaselineCaller:
    """A caller of the baseline server."""

    def __init__(self, url: str, frames: Frames) -> None:
        self._url = url
        self._frames = frames

    async def run(self, offset_s: float) -> None:
        """Send and receive until cancelled."""
        text = encode_command(AppendAudio(audio=bytes(APPEND_BYTES)))
        async with connect(self._url, compression=None) as socket, asyncio.TaskGroup() as tasks:
            tasks.create_task(self._receive(socket), name="receive")
            await self._frames.send_paced(lambda: socket.send(text), offset_s)

    async def _receive(self, socket: ClientConnection) -> None:
        async for _ in socket:
            self._frames.received()


if __name__ == "__main__":
    uvloop.run(serve_baseline())
