"""Plays the client's side of a recorded conversation against a server, and records what comes."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, Protocol
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import msgspec
from msgspec import UNSET
from websockets.asyncio.client import connect as connect_websocket
from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidURI

from omniduplex.clients.clock import Clock
from omniduplex.clients.errors import DuplexConnectionError
from omniduplex.clients.recording import CloseFrame, Conversation, Entry, Header
from omniduplex.clients.replay_progress import Progress, chosen_id, message_type
from omniduplex.clients.websocket_transport import MAX_MESSAGE_BYTES, why_not

# RFC 6455, section 7.4.1: codes that tell of a connection's end and are never sent.
_UNSENDABLE = frozenset({1005, 1006, 1015})
_NORMAL_CLOSURE = 1000
# A user who talks may react to what was heard, but not for long: audio is time itself.
_AUDIO = "input_audio_buffer.append"
_AUDIO_WAIT_S = 0.5


class Socket(Protocol):
    """As much of a WebSocket connection as a replay needs."""

    async def send(self, message: str | bytes, /) -> None: ...

    async def recv(self) -> str | bytes: ...

    async def close(self, code: int = ..., reason: str = ...) -> None: ...


class Replayed(NamedTuple):
    """What came of a replay."""

    conversation: Conversation
    """The server's side, live."""
    vain_waits: tuple[str, ...]
    """What the client had seen in the recording before it went on, and did not see here."""


class Replay:
    """One replay of one recording; used once.

    A client event goes out at its recorded time divided by `speed`, but not before what the
    client had seen by then has happened again; each such wait ends after `wait_s` seconds, before
    audio after half a second. Ids of the server are those of the live one, matched by order of
    creation.
    """

    def __init__(
        self, recorded: Conversation, socket: Socket, clock: Clock, *, speed: float, wait_s: float
    ) -> None:
        self._recorded = recorded
        self._socket = socket
        self._clock = clock
        self._speed = speed
        self._wait_s = wait_s
        self._seen = Progress()
        self._live = Progress()
        self._excused: Counter[str] = Counter()
        self._excused_to_audio: Counter[str] = Counter()
        self._chosen: set[str] = set()
        self._entries: list[Entry] = []
        self._vain: list[str] = []
        self._changed = asyncio.Event()
        self._is_over = False
        self._started = clock.now()

    async def run(self) -> Replayed:
        """Play it to its end."""
        async with asyncio.TaskGroup() as tasks:
            reader = tasks.create_task(self._read(), name="replay read")
            await self._play()
            await self._close()
            await reader
        conversation = Conversation(self._recorded.header, tuple(self._entries))
        return Replayed(conversation, tuple(self._vain))

    async def _play(self) -> None:
        delay = 0.0
        for entry in self._recorded.entries:
            if entry.dir == "s2c":
                if entry.event is not UNSET:
                    self._seen.add(entry.event, self._chosen)
                continue
            if self._is_over or entry.close is not UNSET:
                return
            due = self._started + delay + entry.t / self._speed
            await self._clock.sleep_until(due)
            if await self._catch_up(entry):
                delay += self._clock.now() - due
            await self._send(entry)

    async def _send(self, entry: Entry) -> None:
        try:
            if entry.event is not UNSET:
                chosen = chosen_id(entry.event)
                if chosen is not None:
                    self._chosen.add(chosen)
                live = self._as_live(entry.event)
                await self._socket.send(msgspec.json.encode(live).decode())
            elif entry.text is not UNSET:
                await self._socket.send(entry.text)
            elif entry.binary is not UNSET:
                await self._socket.send(entry.binary)
        except ConnectionClosed:
            return  # the reader tells how it was closed

    async def _close(self) -> None:
        """Wait for the rest, then close as the client did, unless the server did."""
        await self._until(lambda: not self._lacks(), "the end")
        end = self._recorded.end
        if end is not None and end.dir == "s2c":
            await self._until(lambda: self._is_over, "the server's close frame")
        frame = CloseFrame(code=_NORMAL_CLOSURE) if end is None or end.close is UNSET else end.close
        code = _NORMAL_CLOSURE if frame.code in _UNSENDABLE else frame.code
        await self._socket.close(code, frame.reason)

    async def _read(self) -> None:
        try:
            while True:
                self._take(await self._socket.recv())
        except ConnectionClosed as closed:
            # Without our own frame first, it was the server that closed.
            if not closed.rcvd_then_sent and closed.sent is not None:
                return
            frame = closed.rcvd
            end = CloseFrame(
                code=1006 if frame is None else frame.code,
                reason="" if frame is None else frame.reason,
            )
            self._entries.append(Entry(t=self._now(), dir="s2c", close=end))
        finally:
            self._is_over = True
            self._changed.set()

    def _take(self, data: str | bytes) -> None:
        try:
            event = msgspec.json.decode(data, type=dict[str, Any])
        except (msgspec.DecodeError, UnicodeError):
            text = data if isinstance(data, str) else repr(data)
            self._entries.append(Entry(t=self._now(), dir="s2c", text=text))
            return
        self._entries.append(Entry(t=self._now(), dir="s2c", event=event))
        self._live.add(event, self._chosen)
        self._changed.set()

    def _now(self) -> float:
        return round(self._clock.now() - self._started, 6)

    # -- what the client had seen by then ---------------------------------------------------

    async def _catch_up(self, entry: Entry) -> bool:
        """Wait for what the client had seen; whether there was any waiting."""
        event = {} if entry.event is UNSET else entry.event
        name = message_type(event) or "a message"
        if name == _AUDIO:
            return await self._catch_up_audio()
        if not self._lacks() and not self._unborn(event):
            return False
        await self._until(lambda: not self._lacks() and not self._unborn(event), name)
        return True

    async def _catch_up_audio(self) -> bool:
        def lacks() -> Counter[str]:
            return self._lacks() - self._excused_to_audio

        if not lacks():
            return False
        if not await self._comes(lambda: not lacks(), min(_AUDIO_WAIT_S, self._wait_s)):
            self._excused_to_audio += lacks()
        return True

    async def _until(self, is_there: Callable[[], bool], about: str) -> None:
        if not await self._comes(is_there, self._wait_s):
            lacking = self._lacks()
            names = ", ".join(f"{count} {name}" for name, count in sorted(lacking.items()))
            self._vain.append(f"before {about}: {names or 'an id or an end'}")
            self._excused += lacking

    async def _comes(self, is_there: Callable[[], bool], wait_s: float) -> bool:
        """Wait until it is there, or nothing more can come; False when it took too long."""
        try:
            async with asyncio.timeout(wait_s):
                while not is_there() and not self._is_over:
                    self._changed.clear()
                    await self._changed.wait()
        except TimeoutError:
            return False
        return True

    def _lacks(self) -> Counter[str]:
        return self._live.lacks(self._seen.counts - self._excused)

    def _unborn(self, value: Any) -> bool:
        """Whether a value names a thing that the live server has not made yet."""
        return any(
            place is not None and self._live.name(*place) is None
            for place in map(self._seen.place, _texts(value))
        )

    def _as_live(self, event: dict[str, Any]) -> dict[str, Any]:
        live: dict[str, Any] = {name: self._live_value(value) for name, value in event.items()}
        if message_type(event) == "session.event_ack":
            sequence = event.get("server_event_seq")
            # As far behind as it was: what is beyond the recording's last event was wrong there.
            if isinstance(sequence, int) and 0 <= sequence <= self._seen.head:
                live["server_event_seq"] = min(sequence, self._live.head)
        return live

    def _live_value(self, value: Any) -> Any:
        if isinstance(value, dict):
            return {name: self._live_value(one) for name, one in value.items()}
        if isinstance(value, list):
            return [self._live_value(one) for one in value]
        place = self._seen.place(value) if isinstance(value, str) else None
        return value if place is None else self._live.name(*place) or value


async def replay(
    recorded: Conversation,
    url: str,
    clock: Clock,
    *,
    model: str | None = None,
    api_key: str | None = None,
    speed: float = 1.0,
    wait_s: float = 10.0,
    connect: Callable[[str, dict[str, str]], Awaitable[Socket]] | None = None,
) -> Replayed:
    """Play a recording against the server at a `ws://host:port` URL.

    Raises:
        DuplexConnectionError: there is no such server.
    """
    headers = {"Authorization": f"Bearer {api_key}"} if api_key else {}
    if recorded.header.beta:
        headers["OpenAI-Beta"] = "realtime=v1"
    target = replay_url(url, recorded.header, model)
    try:
        socket = await (connect or _connect)(target, headers)
    except (OSError, InvalidHandshake, InvalidURI) as error:
        raise DuplexConnectionError(f"cannot connect to {target}: {why_not(error)}") from error
    return await Replay(recorded, socket, clock, speed=speed, wait_s=wait_s).run()


def replay_url(url: str, header: Header, model: str | None) -> str:
    """The recording's path and query on another server, for another model if one is named."""
    server, path = urlsplit(url), urlsplit(header.url)
    query = dict(parse_qsl(path.query, keep_blank_values=True))
    if model is not None and "model" in query:
        query["model"] = model
    return urlunsplit((server.scheme, server.netloc, path.path, urlencode(query), ""))


async def _connect(url: str, headers: dict[str, str]) -> Socket:
    return await connect_websocket(
        url, additional_headers=headers, compression=None, max_size=MAX_MESSAGE_BYTES
    )


def _texts(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for one in value.values() for text in _texts(one)]
    if isinstance(value, list):
        return [text for one in value for text in _texts(one)]
    return [value] if isinstance(value, str) else []
