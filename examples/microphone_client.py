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
import threading
from collections import deque
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from omniduplex.clients import (
    AudioFormat,
    DuplexClient,
    DuplexClientError,
    MonotonicClock,
    PlaybackTracker,
    RealTimePlayer,
    ServerEvent,
    SessionConfig,
    bounded_drain,
    read_pcm16_wav,
)
from omniduplex.protocol.duplex import (
    ErrorEvent,
    ResponseDone,
    TranscriptDelta,
    TranscriptionCompleted,
    TurnDetectionPatch,
)

MICROPHONE = AudioFormat(sample_rate_hz=16_000)
LOUDSPEAKER = AudioFormat(sample_rate_hz=24_000)
BLOCK_MS = 40
CONFIG = SessionConfig(
    input_audio=MICROPHONE,
    output_audio=LOUDSPEAKER,
    turn_detection=TurnDetectionPatch(type="server_vad"),
)
# An interrupted answer fades within 60 ms; cut off at once, it would click.
CUT = bounded_drain(60, 20)


class Device:
    """The machine's own microphone and loudspeaker, by sounddevice.

    The device calls back in threads of its own: a lock guards what they share with us.
    """

    def __init__(self, sounddevice: Any) -> None:
        self._spoken: asyncio.Queue[bytes] = asyncio.Queue()
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._queued = bytearray()
        self._given_ms = self._heard_ms = 0.0
        # When each block will have sounded, by the device's clock, and how much that makes.
        self._sounding: deque[tuple[float, float]] = deque()
        microphone = sounddevice.RawInputStream(
            samplerate=MICROPHONE.sample_rate_hz,
            channels=1,
            dtype="int16",
            blocksize=MICROPHONE.sample_rate_hz * BLOCK_MS // 1000,
            callback=self._take,
        )
        self._loudspeaker = sounddevice.RawOutputStream(
            samplerate=LOUDSPEAKER.sample_rate_hz, channels=1, dtype="int16", callback=self._fill
        )
        self._streams = (microphone, self._loudspeaker)
        for stream in self._streams:
            stream.start()

    def close(self) -> None:
        """Let go of the device."""
        for stream in self._streams:
            stream.close()

    async def hear(self) -> bytes:
        """The next block of the microphone, once it has been spoken."""
        return await self._spoken.get()

    def play(self, pcm: bytes, _: AudioFormat) -> None:
        """Queue audio for the loudspeaker."""
        with self._lock:
            self._queued += pcm

    def position_ms(self) -> float:
        """How much of what was queued has sounded."""
        with self._lock:
            while self._sounding and self._sounding[0][0] <= self._loudspeaker.time:
                self._heard_ms = self._sounding.popleft()[1]
            return self._heard_ms

    def stop(self) -> float:
        """Fade out; where that will end, as a position."""
        with self._lock:
            self._queued[:] = CUT.tail(bytes(self._queued), rate_hz=LOUDSPEAKER.sample_rate_hz)
            return self._given_ms + LOUDSPEAKER.duration_ms(len(self._queued))

    def _take(self, block: Any, *_: Any) -> None:
        self._loop.call_soon_threadsafe(self._spoken.put_nowait, bytes(block))

    def _fill(self, block: Any, _: int, when: Any, __: Any) -> None:
        with self._lock:
            pcm = bytes(self._queued[: len(block)])
            del self._queued[: len(pcm)]
            if pcm:
                length_ms = LOUDSPEAKER.duration_ms(len(pcm))
                self._given_ms += length_ms
                sounded_at = when.outputBufferDacTime + length_ms / 1000
                self._sounding.append((sounded_at, self._given_ms))
        block[:] = pcm.ljust(len(block), b"\0")


class Recording:
    """A recorded question, then silence, in a microphone's stead."""

    def __init__(self, pcm: bytes) -> None:
        self._clock = MonotonicClock()
        self._due = self._clock.now()
        self._pcm = pcm

    async def hear(self) -> bytes:
        """The next block, once it has been spoken."""
        self._due += BLOCK_MS / 1000
        await self._clock.sleep_until(self._due)
        size = MICROPHONE.byte_count(BLOCK_MS)
        block, self._pcm = self._pcm[:size], self._pcm[size:]
        return block.ljust(size, b"\0")


def show(event: ServerEvent) -> None:
    """Print what was said."""
    match event:
        case TranscriptionCompleted():
            print(f"you:   {event.transcript.strip()}\nmodel: ", end="", flush=True)
        case TranscriptDelta():
            print(event.delta, end="", flush=True)
        case ResponseDone():
            print(f"  [{event.response.status}]", flush=True)
        case ErrorEvent():
            print(f"error: {event.error.code}: {event.error.message}", file=sys.stderr)


async def converse(
    client: DuplexClient, microphone: Device | Recording, player: PlaybackTracker
) -> None:
    """Talk until the session ends, or with a recording until its question has been answered."""
    events = client.events()

    async def speak() -> None:
        while True:
            await client.append_audio(await microphone.hear())

    async with asyncio.TaskGroup() as tasks:
        helpers = [tasks.create_task(speak()), tasks.create_task(player.run())]
        async for event in events:
            # It plays the audio, stops it at an interruption, and tells the server what was heard.
            player.feed(event)
            show(event)
            if isinstance(microphone, Recording) and isinstance(event, ResponseDone):
                break
        for helper in helpers:
            helper.cancel()


async def talk(url: str, model: str, wav: Path | None) -> None:
    question = read_pcm16_wav(wav) if wav is not None else None
    async with DuplexClient(url, model=model, config=CONFIG) as client:
        if question is not None:
            muted = RealTimePlayer(client, clock=MonotonicClock(), cut=CUT)
            await converse(client, Recording(question), muted)
            return
        device = Device(find_sounddevice())
        try:
            player = PlaybackTracker(
                client, play=device.play, position_ms=device.position_ms, stop=device.stop
            )
            await converse(client, device, player)
        finally:
            device.close()


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
