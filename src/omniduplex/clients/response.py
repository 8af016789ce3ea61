"""One answer of the model as the client sees it, and which event belongs to which answer."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Literal

from omniduplex.clients.audio import delta_format, samples_of
from omniduplex.clients.errors import DuplexSessionClosedError
from omniduplex.clients.subscription import Subscription
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioFormat,
    ResponseCreated,
    ResponseDone,
    ResponseStatus,
)

Decision = Literal["speak", "listen"]


class ResponseHandle:
    """One answer, filled while it arrives.

    `decision` is None until the model has shown what it does; `status` tells the four ways to end
    apart and is "in_progress" until then. `response_id` is None for a listen decision that belongs
    to no response.
    """

    def __init__(self, response_id: str | None, expected: AudioFormat) -> None:
        self.response_id = response_id
        self.decision: Decision | None = None
        self.status: ResponseStatus = "in_progress"
        self.created_event: ResponseCreated | None = None
        self.done_event: ResponseDone | None = None
        self.audio_format = expected
        self._wire_format = expected
        self._transcript: list[str] = []
        self._text: list[str] = []
        self._audio: Subscription[bytes] = Subscription()
        self._played_samples = 0
        self._finished = asyncio.Event()
        self._failure: str | None = None

    @property
    def transcript(self) -> str:
        """The words of the audio so far."""
        return "".join(self._transcript)

    @property
    def text(self) -> str:
        """The text of the text modality so far."""
        return "".join(self._text)

    @property
    def played_ms(self) -> int:
        """Whole ms of audio that `audio()` has handed out."""
        return self._played_samples * 1000 // self.audio_format.sample_rate_hz

    @property
    def audio_chunks_lost(self) -> int:
        """Chunks that went by because nobody took them from `audio()` in time."""
        return self._audio.lost

    @property
    def finished(self) -> bool:
        """Whether nothing more of this answer will come."""
        return self._finished.is_set()

    async def audio(self) -> AsyncIterator[bytes]:
        """The samples in the session's output format, chunk by chunk, for one consumer.

        What comes as WAV is handed out as its PCM16; `audio_format` is that of the samples.

        Raises:
            DuplexSessionClosedError: the session broke off before the answer ended.
        """
        async for chunk in self._audio:
            self._played_samples += len(chunk) // self.audio_format.bytes_per_sample
            yield chunk

    async def wait(self, timeout_s: float | None = None) -> ResponseStatus:
        """How the answer ended, once it has.

        Raises:
            TimeoutError: it has not within `timeout_s`.
            DuplexSessionClosedError: the session ended before the answer did.
        """
        async with asyncio.timeout(timeout_s):
            await self._finished.wait()
        if self._failure is not None:
            raise DuplexSessionClosedError(self._failure)
        return self.status

    def add_audio(self, delta: AudioDelta) -> None:
        """Take audio in."""
        self._wire_format = delta_format(delta, self._wire_format)
        samples, self.audio_format = samples_of(delta.delta, self._wire_format)
        self._audio.push(samples)

    def add_transcript(self, delta: str) -> None:
        """Take words of the audio in."""
        self._transcript.append(delta)

    def add_text(self, delta: str) -> None:
        """Take text in."""
        self._text.append(delta)

    def finish(self, decision: Decision, status: ResponseStatus) -> None:
        """The answer is complete; a decision already made stays."""
        self.decision = self.decision or decision
        self.status = status
        self._audio.end()
        self._finished.set()

    def break_off(self, reason: str) -> None:
        """The session ended first."""
        if self.finished:
            return
        self.status = "incomplete"
        self._failure = reason
        self._audio.end(reason)
        self._finished.set()
