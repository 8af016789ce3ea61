"""One open session in this process: a method for each command, and its events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, cast

import msgspec
from msgspec import UNSET

from omniduplex.engine.duplex.link import DuplexSessionLink
from omniduplex.engine.duplex.output_buffer import EndOfEvents
from omniduplex.engine.duplex_omni_engine import DuplexOmniEngine
from omniduplex.entrypoints.field_names import named_for
from omniduplex.protocol.duplex import (
    AckPlayback,
    AppendAudio,
    AppendText,
    BargeIn,
    CancelInput,
    CancelResponse,
    ClearInput,
    ClearOutputAudio,
    Commit,
    CreateItem,
    CreateResponse,
    DeleteItem,
    Dialect,
    DuplexCapabilities,
    DuplexCommand,
    DuplexError,
    DuplexEvent,
    DuplexSessionObject,
    EventAck,
    Heartbeat,
    ItemInput,
    ResponseOptions,
    ResumeSession,
    RetrieveItem,
    SessionClosed,
    SessionExpired,
    SessionPatch,
    TruncateItem,
    UpdateSession,
    decode_command,
    project,
)
from omniduplex.protocol.duplex.codec import check_command

_LAST = (SessionClosed, SessionExpired)
_OF_CONNECTIONS = (EventAck, ResumeSession)
# A reader that is there makes room in a millisecond; one that does not read is not waited for.
PATIENCE, PATIENCE_STEP_S = 200, 0.001


class DuplexSessionHandle:
    """One open session: a thin pipe that keeps no session state beyond its own end.

    Every method that sends returns when the command is on its way; a refusal comes back as an
    `ErrorEvent`. They raise DuplexError: `session_closed`, `input_backpressure` when too much is on
    its way, or what is wrong with a mapping that was given. As a context manager the handle closes
    the session on leaving.
    """

    def __init__(
        self,
        engine: DuplexOmniEngine,
        link: DuplexSessionLink,
        dialect: Dialect = Dialect.DUPLEX,
    ) -> None:
        self._engine = engine
        self._link = link
        self._dialect = dialect
        self._over = asyncio.Event()
        self.capabilities: DuplexCapabilities = engine.capabilities
        self.close_reason: str | None = None
        self.lease_generation = 0

    @property
    def session_id(self) -> str:
        """The id the server gave this session; never reused."""
        return self._link.session_id

    @property
    def closed(self) -> bool:
        """Whether the session's last event was taken, or `close` was called."""
        return self.close_reason is not None

    async def public_session(self) -> DuplexSessionObject:
        """The session's public object as it is now.

        Raises:
            DuplexError: `unknown_session` when the session is gone.
        """
        return await self._engine.describe_session(self.session_id)

    async def submit(self, command: DuplexCommand) -> None:
        """Send any command of a session; give it an `event_id` to know its refusal by.

        Waits a moment, but never longer, for a reader whom the commands would flood with events.

        Raises:
            TypeError: it is no command, or holds what no JSON can.
        """
        with named_for(self._dialect):
            command = check_command(command)
        if isinstance(command, _OF_CONNECTIONS):
            message = f"{command.__struct_config__.tag} is for connections: this session has none"
            raise DuplexError("bad_event", message, param="type", event_id=command.event_id)
        for _ in range(PATIENCE):
            if self.submit_now(command):
                return
            await asyncio.sleep(PATIENCE_STEP_S)
        self._send(command)

    def submit_now(self, command: DuplexCommand) -> bool:
        """Send a command that was decoded as `submit` does, unless that has to wait: then False."""
        if self._link.crowded and not self.closed:
            return False
        self._send(command)
        return True

    def _send(self, command: DuplexCommand) -> None:
        if self.closed:
            raise DuplexError("session_closed", "the session is closed", event_id=command.event_id)
        self._link.reserve(command)
        self._engine.submit_command(self.session_id, command)

    async def append_audio(
        self,
        pcm: bytes,
        *,
        format: str | None = None,
        sample_rate_hz: float | None = None,
        is_speech: bool | None = None,
        video_frames: Sequence[str] = (),
    ) -> None:
        """Send audio; None is the session's own input format, or its rate.

        `video_frames` are bare base64 texts of JPEG or PNG.
        """
        await self.submit(
            AppendAudio(
                audio=pcm,
                format=format,
                sample_rate_hz=sample_rate_hz,
                is_speech=is_speech,
                video_frames=tuple(video_frames),
            )
        )

    async def append_text(self, text: str) -> None:
        """Send text beside the audio."""
        await self.submit(AppendText(text=text))

    async def commit(self, *, final: bool = True, create_response: bool | None = None) -> None:
        """Seal the buffered audio into a user item; None leaves the answer to the session."""
        await self.submit(Commit(final=final, response_create=create_response))

    async def create_response(
        self, options: ResponseOptions | Mapping[str, Any] | None = None
    ) -> None:
        """Ask for an answer now; a mapping is the wire's `response` object."""
        if isinstance(options, Mapping):
            await self.submit(_read("response.create", response=options))
        else:
            await self.submit(CreateResponse(response=UNSET if options is None else options))

    async def cancel_response(self, response_id: str | None = None) -> None:
        """Stop the active answer, or the named one if it is the active one."""
        await self.submit(CancelResponse(response_id=response_id))

    async def cancel_input(self) -> None:
        """Drop open input and stop the active answer."""
        await self.submit(CancelInput())

    async def barge_in(self) -> None:
        """The user interrupts: stop the active answer, drop open input."""
        await self.submit(BargeIn())

    async def clear_input(self) -> None:
        """Drop the audio that is not committed."""
        await self.submit(ClearInput())

    async def clear_output_audio(self, response_id: str | None = None) -> None:
        """Forget output that is not played; stops the answer that makes it."""
        await self.submit(ClearOutputAudio(response_id=response_id))

    async def ack_playback(
        self,
        played_ms: float,
        *,
        response_id: str | None = None,
        item_id: str | None = None,
        committed_ms: float | None = None,
        truncate: bool = False,
    ) -> None:
        """Report how far an answer was heard, in ms from its beginning.

        `truncate` says that it will not be heard any further.
        """
        await self.submit(
            AckPlayback(
                played_ms=played_ms,
                committed_ms=committed_ms,
                response_id=response_id,
                item_id=item_id,
                truncate=truncate,
            )
        )

    async def signal_turn(self, event: str, payload: Mapping[str, Any] | None = None) -> None:
        """Send a named turn signal; some names stand for other commands."""
        await self.submit(_read("turn.signal", event=event, payload=payload or {}))

    async def update(self, session: SessionPatch | Mapping[str, Any]) -> None:
        """Change the session; a mapping is the wire's `session` object."""
        await self.submit(UpdateSession(session=read_session(session)))

    async def create_item(
        self, item: ItemInput | Mapping[str, Any], *, previous_item_id: str | None = None
    ) -> None:
        """Put an item into the conversation: at the end, or after another one."""
        if not isinstance(item, ItemInput):
            await self.submit(
                _read("conversation.item.create", item=item, previous_item_id=previous_item_id)
            )
        else:
            await self.submit(CreateItem(item=item, previous_item_id=previous_item_id))

    async def delete_item(self, item_id: str) -> None:
        """Take an item out of the conversation."""
        await self.submit(DeleteItem(item_id=item_id))

    async def truncate_item(
        self, item_id: str, audio_end_ms: float, *, content_index: int = 0
    ) -> None:
        """Cut an assistant item's audio at what the user heard, in ms."""
        await self.submit(
            TruncateItem(item_id=item_id, audio_end_ms=audio_end_ms, content_index=content_index)
        )

    async def retrieve_item(self, item_id: str) -> None:
        """Ask for an item as it stands."""
        await self.submit(RetrieveItem(item_id=item_id))

    async def heartbeat(self) -> None:
        """Keep an idle session; `HeartbeatAck` answers."""
        await self.submit(Heartbeat())

    async def events(self) -> AsyncIterator[DuplexEvent]:
        """The events as they come, for one consumer, until `SessionClosed` or `SessionExpired`.

        They are those of the duplex dialect, unless the session was opened with the configuration
        of another one: then they are neutral, for its connection to project.

        Raises:
            RuntimeError: another consumer is waiting.
        """
        while True:
            try:
                event = await self._link.output.get()
            except EndOfEvents:
                return
            if not self._link.output.deliverable(event):
                continue
            shown = self._seen(event)
            if shown is not None:
                yield shown

    def listen(self, eager: Callable[[], None] | None) -> None:
        """Call this first for events that come while `events` waits: it may `take` them."""
        self._link.output.listen(eager)

    def take(self) -> DuplexEvent | None:
        """The event that `events` would yield at once, or None; for the same one consumer."""
        while (event := self._link.output.take()) is not None:
            shown = self._seen(event)
            if shown is not None:
                return shown
        return None

    def _seen(self, event: DuplexEvent) -> DuplexEvent | None:
        if isinstance(event, _LAST):
            self._end(event.reason)
        return event if self._dialect.is_openai else _shown(event)

    def deliverable(self, event: DuplexEvent) -> bool:
        """Whether an event that `events` gave may still be shown: ask right before showing it.

        Audio of a response that was cancelled meanwhile may not.
        """
        return self._link.output.deliverable(event)

    async def close(self, reason: str = "client_close") -> None:
        """End the session; returns when it is over, and its slot free as `session.closed` says.

        Again is harmless.
        """
        try:
            await self._engine.close_session(self.session_id, reason)
        except DuplexError as refused:
            if refused.code != "unknown_session":
                raise
        if not self.closed:
            self._end(reason)

    async def wait_closed(self) -> str:
        """Why the session ended, once its last event was taken or `close` has returned."""
        await self._over.wait()
        return self.close_reason or ""

    async def __aenter__(self) -> DuplexSessionHandle:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    def _end(self, reason: str) -> None:
        self.close_reason = reason
        self._over.set()


def _shown(event: DuplexEvent) -> DuplexEvent | None:
    # The duplex dialect changes events, and hides some, but makes no other classes of them.
    return cast("DuplexEvent | None", project(event, Dialect.DUPLEX))


def read_session(session: SessionPatch | Mapping[str, Any]) -> SessionPatch:
    """A Realtime session object, read as the WebSocket handshake reads it.

    Raises:
        DuplexError: for what is wrong with it, as a server would answer.
        TypeError: it is something else, as the `SessionConfig` of a client.
    """
    if not isinstance(session, SessionPatch | Mapping):
        raise TypeError(
            "a session is a mapping as in session.update, or a SessionPatch, which "
            f"SessionConfig.to_session_payload gives, not {type(session).__name__}"
        )
    with named_for(Dialect.DUPLEX):
        if isinstance(session, SessionPatch):
            command = check_command(UpdateSession(session=session))
        else:
            command = _read("session.update", session=session)
    assert isinstance(command, UpdateSession)
    return command.session


def _read(wire_type: str, **fields: Any) -> DuplexCommand:
    return decode_command(msgspec.json.encode({"type": wire_type, **fields}))
