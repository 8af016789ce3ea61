"""The spoken questions of these tests, and a microphone that says them in real time."""

from __future__ import annotations

import asyncio
import wave
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from omniduplex.audio.resample import StreamResampler

FOLDER = Path(__file__).parent / "speech"
RATE_HZ = 16_000
CHUNK_MS = 40


@dataclass(frozen=True)
class Recording:
    """What somebody says; `pcm` is 16 kHz mono PCM16."""

    name: str
    words: str
    pcm: bytes

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.wav"


def recording(name: str) -> Recording:
    with wave.open(str(FOLDER / f"{name}.wav")) as reader:
        assert (reader.getframerate(), reader.getnchannels(), reader.getsampwidth()) == (
            RATE_HZ,
            1,
            2,
        )
        pcm = reader.readframes(reader.getnframes())
    return Recording(name, (FOLDER / f"{name}.txt").read_text("utf-8").strip(), pcm)


def recordings() -> list[Recording]:
    return [recording(path.stem) for path in sorted(FOLDER.glob("*.wav"))]


class Microphone:
    """Speech when there is some, silence otherwise, a chunk whenever one has been spoken."""

    def __init__(
        self, append: Callable[[bytes], Awaitable[object]], rate_hz: int = RATE_HZ
    ) -> None:
        self._append = append
        self._rate_hz = rate_hz
        self._queued = b""

    def say(self, recording: Recording, pause_ms: int = 0) -> None:
        self._queued += bytes(2 * self._rate_hz * pause_ms // 1000)
        self._queued += StreamResampler(RATE_HZ, self._rate_hz).process(recording.pcm, last=True)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[Microphone]:
        streaming = asyncio.create_task(self._stream())
        try:
            yield self
        finally:
            streaming.cancel()
            with suppress(asyncio.CancelledError):
                await streaming

    async def _stream(self) -> None:
        size = 2 * self._rate_hz * CHUNK_MS // 1000
        now = asyncio.get_running_loop().time
        due = now()
        while True:
            # Nobody speaks faster to make up for a machine that stood still: what happens over
            # speech keeps the time that it has.
            due = max(due + CHUNK_MS / 1000, now())
            await asyncio.sleep(due - now())
            chunk, self._queued = self._queued[:size], self._queued[size:]
            await self._append(chunk.ljust(size, b"\0"))
