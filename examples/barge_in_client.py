"""Ask a question, talk over the answer, and write one WAV per response.

    python examples/barge_in_client.py --url ws://127.0.0.1:8000 --model omniduplex/local \\
        --question-wav question.wav --interrupt-wav follow_up.wav --output-dir duplex_out

The WAVs are mono PCM16 at 16 kHz. `--inline` runs the model in this process, without a server.
`--preset` is the shape of the session that the model wants; MiniCPM-o's needs `--ref-audio`, the
voice to speak in. The flow is drawn in barge_in_client_flow.md.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from msgspec import structs

from omniduplex.clients import (
    AudioFormat,
    DuplexClient,
    DuplexClientBase,
    DuplexClientError,
    InlineDuplexClient,
    MonotonicClock,
    RealTimePlayer,
    ResponseHandle,
    SessionConfig,
    Subscription,
    echo,
    local,
    minicpmo_4_5,
    personaplex,
    read_pcm16_wav,
    reference_audio_data_url,
    write_pcm16_wav,
)
from omniduplex.protocol.duplex import ClearOutputAudio, OutputCleared

CHUNK_MS = 40
PATIENCE_S = 60.0
MICROPHONE = AudioFormat(sample_rate_hz=16_000)
PRESETS = {
    "local": local.create_duplex_session_config,
    "echo": echo.create_duplex_session_config,
    "minicpmo_4_5": minicpmo_4_5.create_duplex_session_config,
    "personaplex": personaplex.create_duplex_session_config,
}


class Microphone:
    """Never stops: sends queued speech in real time, and silence when there is none."""

    def __init__(self, client: DuplexClientBase) -> None:
        self._client = client
        self._clock = MonotonicClock()
        self._queued = b""
        self._quiet = asyncio.Event()

    async def say(self, speech: bytes) -> None:
        """Return when everything has been said."""
        self._queued += speech
        self._quiet.clear()
        await self._quiet.wait()

    async def run(self) -> None:
        """Send until cancelled."""
        size = self._client.config.input_audio.byte_count(CHUNK_MS)
        due = self._clock.now()
        while True:
            due += CHUNK_MS / 1000
            await self._clock.sleep_until(due)
            chunk, self._queued = self._queued[:size], self._queued[size:]
            await self._client.append_audio(chunk.ljust(size, b"\0"))
            if not self._queued:
                self._quiet.set()


@dataclass
class Answer:
    """One response: its handle, and the audio that has come."""

    handle: ResponseHandle
    audio: bytearray = field(default_factory=bytearray)
    complete: bool = False

    @property
    def audio_ms(self) -> int:
        """Whole ms of the audio that has come."""
        return int(self.handle.audio_format.duration_ms(len(self.audio)))

    async def collect(self) -> None:
        """Take all of the audio."""
        async for chunk in self.handle.audio():
            self.audio += chunk
        self.complete = True

    def write(self, path: Path) -> None:
        """Write the audio as a WAV."""
        write_pcm16_wav(path, bytes(self.audio), self.handle.audio_format.sample_rate_hz)


class BargeIn:
    """A conversation of a question, an answer that is talked over, and the answer to that."""

    def __init__(self, client: DuplexClientBase, interrupt_after_ms: int) -> None:
        self._client = client
        self._interrupt_after_ms = interrupt_after_ms
        self._clock = MonotonicClock()
        self._microphone = Microphone(client)
        self._player = RealTimePlayer(client, clock=self._clock)

    async def hold(self, question: bytes, interruption: bytes, out: Path) -> None:
        """Raises DuplexClientError or TimeoutError when there is no answer."""
        answers = self._client.responses()
        helpers = (self._microphone.run(), self._play(), self._player.run())
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(helper) for helper in helpers]
            first = await self._ask(question, answers)
            collecting = tasks.create_task(first.collect())
            await self._heard(first, self._interrupt_after_ms)
            await self._stop(first)
            second = await self._ask(interruption, answers)
            await second.collect()
            await collecting
            await self._heard(second)
            for task in running:
                task.cancel()
        await self._player.report()
        for number, answer in enumerate((first, second), start=1):
            self._keep(answer, out / f"response_{number:02d}.wav")

    async def _ask(self, speech: bytes, answers: Subscription[ResponseHandle]) -> Answer:
        """Speak, end the turn, and wait for the answer to begin."""
        await self._microphone.say(speech)
        await self._client.commit(create_response=True)
        async with asyncio.timeout(PATIENCE_S):
            async for handle in answers:
                if handle.decision != "listen":
                    return Answer(handle)
        raise DuplexClientError("the session ended before the answer began")

    async def _heard(self, answer: Answer, ms: float = float("inf")) -> None:
        """Wait until so much of an answer has sounded, or all of it."""
        name = str(answer.handle.response_id)
        async with asyncio.timeout(PATIENCE_S):
            while self._player.played_ms(name) < ms:
                if answer.complete:
                    ms = min(ms, answer.audio_ms)
                await self._clock.sleep(CHUNK_MS / 1000)

    async def _stop(self, answer: Answer) -> None:
        """Stop the answer at the model, if it still speaks, and at the loudspeaker."""
        cleared = self._client.wait_for(OutputCleared, timeout_s=PATIENCE_S)
        await self._client.send(ClearOutputAudio(response_id=answer.handle.response_id))
        await cleared

    async def _play(self) -> None:
        async for event in self._client.events():
            self._player.feed(event)

    def _keep(self, answer: Answer, path: Path) -> None:
        answer.write(path)
        heard = self._player.played_ms(str(answer.handle.response_id))
        print(f"{path.name}: {answer.handle.status}, {heard} ms heard: {answer.handle.transcript}")


def session_config(preset: str, ref_audio: str | None) -> SessionConfig:
    """The preset's session, by a client that ends its turns itself and reports what was heard.

    Raises FileNotFoundError: there is no such voice sample.
    """
    config = PRESETS[preset](
        input_audio=MICROPHONE,
        turn_detection=None,
        overlap_policy="listen_only",
        playback_commit_policy="ack_only",
    )
    return structs.replace(config, ref_audio=reference_audio_data_url(ref_audio))


@asynccontextmanager
async def connected(
    url: str | None, model: str, config: SessionConfig
) -> AsyncIterator[DuplexClientBase]:
    """A session on a server, or without a URL on an engine in this process."""
    if url is not None:
        async with DuplexClient(url, model=model, config=config) as client:
            yield client
        return
    # Only --inline needs more than the client library.
    from omniduplex.config.errors import ConfigError
    from omniduplex.entrypoints.duplex_omni import DuplexOmni
    from omniduplex.stages.errors import StageStartError

    try:
        omni = await asyncio.to_thread(DuplexOmni, model)
    except (ConfigError, StageStartError) as error:
        raise DuplexClientError(f"the model did not start: {error}") from error
    try:
        async with InlineDuplexClient(omni, model=model, config=config) as inline:
            yield inline
    finally:
        await asyncio.to_thread(omni.shutdown)


async def converse(options: argparse.Namespace) -> None:
    question = read_pcm16_wav(options.question_wav)
    interruption = read_pcm16_wav(options.interrupt_wav)
    config = session_config(options.preset, options.ref_audio)
    options.output_dir.mkdir(parents=True, exist_ok=True)
    async with connected(options.url, options.model, config) as client:
        conversation = BargeIn(client, options.interrupt_after_ms)
        await conversation.hold(question, interruption, options.output_dir)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    where = parser.add_mutually_exclusive_group(required=True)
    where.add_argument("--url", help="a server, ws://host:port")
    where.add_argument("--inline", action="store_true", help="the model runs in this process")
    parser.add_argument("--model", default="omniduplex/local")
    parser.add_argument("--preset", choices=PRESETS, default="local")
    parser.add_argument("--ref-audio", help="a WAV of the voice to speak in")
    parser.add_argument("--question-wav", type=Path, required=True)
    parser.add_argument("--interrupt-wav", type=Path, required=True)
    parser.add_argument("--interrupt-after-ms", type=int, default=500)
    parser.add_argument("--output-dir", type=Path, default=Path("duplex_out"))
    try:
        asyncio.run(converse(parser.parse_args()))
    except* (DuplexClientError, OSError, TimeoutError, ValueError) as failures:
        sys.exit("\n".join(f"{type(error).__name__}: {error}" for error in failures.exceptions))


if __name__ == "__main__":
    main()
