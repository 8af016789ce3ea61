"""Talk with a model by microphone and loudspeaker; interrupt it by talking.

    pip install sounddevice
    python examples/microphone_client.py --url ws://127.0.0.1:8000

Wear headphones: a microphone that hears the answer interrupts it. On a machine without a
microphone, `--wav QUESTION.wav` stands in for it (mono PCM16, 16 kHz), and nothing sounds.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from abc import ABC, abstractmethod
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from omniduplex.clients import (
    DuplexClient,
    DuplexClientError,
    RealTimePlayer,
    ServerEvent,
    SessionConfig,
    bytes_for_ms,
    read_pcm16_wav,
)
from omniduplex.clients.clock import MonotonicClock
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioFormat,
    ErrorEvent,
    OutputCleared,
    ResponseDone,
    TranscriptDelta,
    TranscriptionCompleted,
    TurnDetectionPatch,
)

MICROPHONE = AudioFormat(rate_hz=16_000)
LOUDSPEAKER = AudioFormat(rate_hz=24_000)
BLOCK_MS = 40
CONFIG = SessionConfig(
    input_audio=MICROPHONE,
    output_audio=LOUDSPEAKER,
    turn_detection=TurnDetectionPatch(type="server_vad"),
)


class Sound(ABC):
    """Where the user's voice comes from, and where the answer goes."""

    @abstractmethod
    async def hear(self) -> bytes:
        """The next block of the microphone, once it has been spoken."""

    @abstractmethod
    def play(self, pcm: bytes) -> None:
        """Queue audio for the loudspeaker."""

    @abstractmethod
    def silence(self) -> None:
        """Forget what is queued."""


class Device(Sound):
    """The machine's own microphone and loudspeaker, by sounddevice."""

    def __init__(self, sounddevice: Any) -> None:
        self._heard: asyncio.Queue[bytes] = asyncio.Queue()
        self._queued = bytearray()
        loop = asyncio.get_running_loop()

        # The device calls these two in a thread of its own.
        def take(block: Any, *_: Any) -> None:
            loop.call_soon_threadsafe(self._heard.put_nowait, bytes(block))

        def fill(block: Any, *_: Any) -> None:
            pcm = bytes(self._queued[: len(block)])
            del self._queued[: len(pcm)]
            block[:] = pcm.ljust(len(block), b"\0")

        self._streams = [
            sounddevice.RawInputStream(
                samplerate=MICROPHONE.rate_hz,
                channels=1,
                dtype="int16",
                blocksize=MICROPHONE.rate_hz * BLOCK_MS // 1000,
                callback=take,
            ),
            sounddevice.RawOutputStream(
                samplerate=LOUDSPEAKER.rate_hz, channels=1, dtype="int16", callback=fill
            ),
        ]
        for stream in self._streams:
            stream.start()

    async def hear(self) -> bytes:
        return await self._heard.get()

    def play(self, pcm: bytes) -> None:
        self._queued += pcm

    def silence(self) -> None:
        self._queued.clear()


class Recording(Sound):
    """A recorded question, then silence; the loudspeaker is off."""

    def __init__(self, pcm: bytes) -> None:
        self._clock = MonotonicClock()
        self._due = self._clock.now()
        self._pcm = pcm

    async def hear(self) -> bytes:
        self._due += BLOCK_MS / 1000
        await self._clock.sleep_until(self._due)
        size = bytes_for_ms(MICROPHONE, BLOCK_MS)
        block, self._pcm = self._pcm[:size], self._pcm[size:]
        return block.ljust(size, b"\0")

    def play(self, pcm: bytes) -> None:
        """Nobody listens."""

    def silence(self) -> None:
        """It is silent."""


def show(event: ServerEvent, sound: Sound) -> None:
    """Play what sounds, print what was said."""
    match event:
        case AudioDelta():
            sound.play(event.delta)
        case OutputCleared():
            sound.silence()
        case TranscriptionCompleted():
            print(f"you:   {event.transcript.strip()}\nmodel: ", end="", flush=True)
        case TranscriptDelta():
            print(event.delta, end="", flush=True)
        case ResponseDone():
            if event.response.status == "cancelled":
                sound.silence()
            print(f"  [{event.response.status}]", flush=True)
        case ErrorEvent():
            print(f"error: {event.error.code}: {event.error.message}", file=sys.stderr)


async def talk(url: str, model: str, wav: Path | None) -> None:
    """Talk until the session ends, or with a recording until its question has been answered."""
    question = read_pcm16_wav(wav) if wav is not None else None
    async with DuplexClient(url, model=model, config=CONFIG) as client:
        sound = Recording(question) if question is not None else Device(find_sounddevice())
        player = RealTimePlayer(client, clock=MonotonicClock())
        events = client.events()

        async def speak() -> None:
            while True:
                await client.append_audio(await sound.hear())

        async with asyncio.TaskGroup() as tasks:
            helpers = [tasks.create_task(speak()), tasks.create_task(player.run())]
            async for event in events:
                player.feed(event)
                show(event, sound)
                if question is not None and isinstance(event, ResponseDone):
                    break
            for helper in helpers:
                helper.cancel()


def find_sounddevice() -> Any:
    """The module, or an end with a word about how to get it."""
    if find_spec("sounddevice") is None:
        sys.exit(
            "no sound: this needs the package sounddevice (pip install sounddevice) and PortAudio;"
            " --wav QUESTION.wav stands in for a microphone"
        )
    try:
        return import_module("sounddevice")
    except OSError as error:  # the package is there, its PortAudio library is not
        sys.exit(f"no sound: {error}; --wav QUESTION.wav stands in for a microphone")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--url", default="ws://127.0.0.1:8000", help="a server, ws://host:port")
    parser.add_argument("--model", default="omniduplex/local")
    parser.add_argument("--wav", type=Path, help="a recorded question in a microphone's stead")
    options = parser.parse_args()
    if options.wav is None:
        find_sounddevice()
    try:
        asyncio.run(talk(options.url, options.model, options.wav))
    except* (DuplexClientError, OSError, ValueError) as failures:
        sys.exit("\n".join(f"{type(error).__name__}: {error}" for error in failures.exceptions))
    except* KeyboardInterrupt:
        print()


if __name__ == "__main__":
    main()
