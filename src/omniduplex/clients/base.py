"""What a client can do with a session, whatever carries it."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Coroutine, Iterator, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar, overload

import msgspec

from omniduplex.clients.audio import strip_data_url
from omniduplex.clients.clock import Clock
from omniduplex.clients.config import SessionConfig
from omniduplex.clients.errors import DuplexProtocolError, DuplexSessionClosedError
from omniduplex.clients.events import ServerEvent, wire_type
from omniduplex.clients.link import SessionLink
from omniduplex.clients.reconnect import SessionResumer
from omniduplex.clients.response import ResponseHandle
from omniduplex.clients.subscription import Subscription
from omniduplex.clients.transport import Message, Transport
from omniduplex.clients.units import MODEL_UNIT_MS
from omniduplex.protocol.duplex import (
    AckPlayback,
    AppendAudio,
    CancelResponse,
    ClearInput,
    CloseSession,
    Commit,
    CreateItem,
    CreateResponse,
    DuplexSessionObject,
    ErrorEvent,
    ItemInput,
    RealtimeCommand,
    RealtimeEvent,
    ResponseOptions,
    SessionPatch,
    UpdateSession,
)

E = TypeVar("E", bound=RealtimeEvent)


class DuplexClientBase:
    """One session: an async context manager that opens it on entry and closes it on exit.

    Every method that sends returns when the command is on its way, with the command's event id
    where one command was sent; a refusal comes back as an `ErrorEvent` with that id. They raise
    DuplexSessionClosedError when the session is over and DuplexConnectionError when its connection
    breaks and is not replaced.
    """

    def __init__(
        self,
        transport: Transport,
        *,
        model: str,
        config: SessionConfig,
        handshake_timeout_s: float,
        heartbeat_interval_s: float | None,
        clock: Clock,
        resumer: SessionResumer | None = None,
    ) -> None:
        self.model = model
        self.config = config
        self._handshake_timeout_s = handshake_timeout_s
        self._clock = clock
        self._link = SessionLink(
            transport,
            clock=clock,
            output=config.output_audio,
            heartbeat_interval_s=heartbeat_interval_s,
            resumer=resumer,
        )
        self._session: DuplexSessionObject | None = None
        self._event_ids = (f"evt_{n}" for n in itertools.count(1))
        self._appended_bytes = 0

    @property
    def session_info(self) -> DuplexSessionObject:
        """The session as it was described when this client entered it.

        Raises:
            DuplexSessionClosedError: it was never opened.
        """
        if self._session is None:
            raise DuplexSessionClosedError(self._link.end_reason)
        return self._session

    @property
    def session_id(self) -> str:
        """The id that the server gave the session."""
        return self.session_info.id

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def open(self) -> None:
        """Connect and open the session.

        Raises:
            DuplexClientError: it was opened before.
            DuplexConnectionError: no connection, or no session in time.
            DuplexProtocolError: the server refused.
        """
        created = await self._link.open(
            self.config.to_session_payload(model=self.model),
            event_id=next(self._event_ids),
            timeout_s=self._handshake_timeout_s,
        )
        self._session = created.session

    async def close(self, *, timeout_s: float = 20.0) -> None:
        """End the session and wait for the server's goodbye; harmless when it is over."""
        goodbye = CloseSession(event_id=next(self._event_ids))
        await self._link.close(goodbye, timeout_s=timeout_s)

    async def send(self, command: Message) -> str:
        """Send any command, or a wire message; it gets an event id unless it has one."""
        if isinstance(command, RealtimeCommand):
            if command.event_id is None:
                command = msgspec.structs.replace(command, event_id=next(self._event_ids))
            event_id = command.event_id
        else:
            event_id = command.get("event_id") or next(self._event_ids)
            command = {**command, "event_id": event_id}
        await self._link.send(command)
        return str(event_id)

    async def append_audio(
        self, audio: bytes, *, is_speech: bool | None = None, video_frames: Sequence[str] = ()
    ) -> str:
        """Send one chunk in the session's input format.

        `video_frames` are base64 JPEG or PNG texts or data URLs, for the append that closes a
        model unit.
        """
        audio_format = self.config.input_audio
        self._appended_bytes += len(audio)
        return await self.send(
            AppendAudio(
                audio=audio,
                format=audio_format.encoding,
                sample_rate_hz=audio_format.sample_rate_hz,
                duration_ms=round(audio_format.duration_ms(len(audio))),
                audio_end_ms=round(self._appended_ms),
                is_speech=is_speech,
                video_frames=tuple(strip_data_url(frame) for frame in video_frames),
            )
        )

    async def stream_pcm(
        self,
        pcm: bytes,
        *,
        chunk_ms: float = 200,
        realtime: bool = True,
        is_speech: bool | None = None,
        video_frames: Sequence[str] = (),
        stacked_video_frames: Sequence[str] = (),
    ) -> int:
        """Send audio as a microphone would, and return how many camera frames went with it.

        A chunk is sent when its last sample has been spoken, so this takes as long as the audio
        lasts; `realtime=False` sends at once. Each model unit that ends meanwhile takes the next of
        `video_frames` and the next of `stacked_video_frames`.

        Raises:
            ValueError: `chunk_ms` is less than a sample.
        """
        size = self.config.input_audio.byte_count(chunk_ms)
        if size <= 0:
            raise ValueError(f"chunk_ms={chunk_ms:g} is less than one sample")
        started_at = self._clock.now()
        frames = _paired(video_frames, stacked_video_frames)
        sent = 0
        for start in range(0, len(pcm), size):
            chunk = pcm[start : start + size]
            riding = next(frames, ()) if self._closes_model_unit(len(chunk)) else ()
            if realtime:
                spoken_ms = self.config.input_audio.duration_ms(start + len(chunk))
                await self._clock.sleep_until(started_at + spoken_ms / 1000)
            await self.append_audio(chunk, is_speech=is_speech, video_frames=riding)
            sent += len(riding)
        return sent

    async def commit(self, *, final: bool = True, create_response: bool | None = None) -> str:
        """Seal the buffered audio into a user item; None leaves the answer to the session."""
        return await self.send(Commit(final=final, response_create=create_response))

    async def cancel_response(self, response_id: str | None = None) -> str:
        """Stop the active answer, or the named one if it is the active one."""
        return await self.send(CancelResponse(response_id=response_id))

    async def clear_input(self) -> str:
        """Drop the audio that is not committed."""
        return await self.send(ClearInput())

    async def ack_playback(
        self,
        played_ms: float,
        *,
        response_id: str | None = None,
        item_id: str | None = None,
        committed_ms: float | None = None,
        truncate: bool = False,
    ) -> str:
        """Report how far an answer was heard, in ms from its beginning.

        `truncate` says that it will not be heard any further.
        """
        played = int(played_ms)
        return await self.send(
            AckPlayback(
                played_ms=played,
                committed_ms=played if committed_ms is None else int(committed_ms),
                response_id=response_id,
                item_id=item_id,
                truncate=truncate,
            )
        )

    async def update_session(self, patch: SessionPatch) -> str:
        """Change the session; `session.updated` shows the result."""
        return await self.send(UpdateSession(session=patch))

    async def create_response(self, options: ResponseOptions | None = None) -> str:
        """Ask for an answer now."""
        if options is None:
            return await self.send(CreateResponse())
        return await self.send(CreateResponse(response=options))

    async def create_item(self, item: ItemInput, *, previous_item_id: str | None = None) -> str:
        """Put an item into the conversation: at the end, or after another one."""
        return await self.send(CreateItem(item=item, previous_item_id=previous_item_id))

    def events(self) -> Subscription[ServerEvent]:
        """Every event from now on."""
        return self._link.events()

    def __aiter__(self) -> Subscription[ServerEvent]:
        return self.events()

    def responses(self) -> Subscription[ResponseHandle]:
        """One handle per answer: first those under way or done that nobody took, then new ones."""
        return self._link.responses()

    @overload
    def wait_for(
        self, *types: type[E], timeout_s: float | None = None
    ) -> Coroutine[Any, Any, E]: ...

    @overload
    def wait_for(
        self, *types: str, timeout_s: float | None = None
    ) -> Coroutine[Any, Any, ServerEvent]: ...

    def wait_for(
        self, *types: type[RealtimeEvent] | str, timeout_s: float | None = None
    ) -> Coroutine[Any, Any, Any]:
        """Await the next event of these classes or wire types, counted from this call.

        Raises:
            DuplexProtocolError: an error event came first, and none was asked for.
            DuplexSessionClosedError: the session ended first.
            TimeoutError: nothing came within `timeout_s`.
        """
        return _next_of(self._link, self.events(), types, timeout_s)

    @property
    def _appended_ms(self) -> float:
        return self.config.input_audio.duration_ms(self._appended_bytes)

    def _closes_model_unit(self, byte_count: int) -> bool:
        before = self._appended_ms
        after = before + self.config.input_audio.duration_ms(byte_count)
        return int(after // MODEL_UNIT_MS) > int(before // MODEL_UNIT_MS)


def _paired(main: Sequence[str], stacked: Sequence[str]) -> Iterator[tuple[str, ...]]:
    for pair in itertools.zip_longest(main, stacked):
        yield tuple(frame for frame in pair if frame is not None)


async def _next_of(
    link: SessionLink,
    events: Subscription[ServerEvent],
    types: tuple[type[RealtimeEvent] | str, ...],
    timeout_s: float | None,
) -> ServerEvent:
    async with asyncio.timeout(timeout_s):
        async for event in events:
            if type(event) in types or wire_type(event) in types:
                return event
            if isinstance(event, ErrorEvent):
                raise DuplexProtocolError.from_event(event)
    raise DuplexSessionClosedError(link.end_reason)
