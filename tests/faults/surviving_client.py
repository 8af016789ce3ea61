"""A client that comes back: plain JSON over the `websockets` package, resuming after each cut."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any

from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.sync.client import ClientConnection, connect

TIMEOUT_S = 60.0

Command = dict[str, Any]
Event = dict[str, Any]

TAKE_UP_DUPLEX: Command = {
    "type": "session.update",
    "session": {"extensions": ["duplex"], "turn_detection": None},
}


class Disconnected(Exception):  # noqa: N818 - reads as the state it reports
    """The connection broke; what was on its way is lost in both directions."""


class Refused(Exception):  # noqa: N818 - reads as the state it reports
    """The server does not let the session be resumed, with this code."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


class SurvivingClient:
    """One session over as many connections as it takes.

    It speaks the duplex dialect from its first event, or takes it up `late`, as a client of the
    OpenAI API.
    """

    def __init__(self, base: str, *, late: bool = False) -> None:
        self.events: list[Event] = []
        """Every event of the session, in order, each once."""
        self.resumes = 0
        self.session_id = ""
        self._late = late
        self._url = base.replace("http", "ws", 1)
        self._token = ""
        self._looked = 0
        self._connection = ExitStack()
        self._socket: ClientConnection

    @property
    def last(self) -> int:
        """The number of the last event that has arrived."""
        return int(self.events[-1]["server_event_seq"]) if self.events else 0

    def open(self) -> None:
        """Open a session; one whose beginning was lost is left to expire."""
        while not self.session_id:
            try:
                granting = self._begin()
                self.session_id, self._token = granting["session"]["id"], granting["resume_token"]
            except Disconnected:
                self.events.clear()

    def _begin(self) -> Event:
        """Have a session; the event that says what it is resumed with."""
        self._connect("/v1/realtime" if self._late else "/v1/duplex?model=m")
        if self._late:
            self._take()
            self._send([TAKE_UP_DUPLEX])
            while self._take()["type"] != "session.updated":
                pass
            return self.events[-1]
        return self._take()

    def close(self) -> None:
        """End the session and its connection."""
        while True:
            try:
                self._send([{"type": "session.close"}])
                self._wait("session.closed")
                break
            except Disconnected:
                try:
                    self.resume()
                except Disconnected:
                    continue
                except Refused as refused:
                    if refused.code != "session_resume_expired":
                        raise
                    break  # it is closed: only the goodbye was lost
        self.abandon()

    def abandon(self) -> None:
        """Leave the connection without a word."""
        self._connection.close()

    def step(
        self, commands: Sequence[Command], until: str, *, repeat: Sequence[Command] | None = None
    ) -> Event:
        """Send commands and wait for their answer, over as many connections as it takes.

        After a cut the server is asked whether it got them (their answer comes before that of a
        heartbeat). If not, `repeat`, or the commands themselves, are sent.
        """
        try:
            self._send(commands)
            return self._wait(until)
        except Disconnected:
            return self._come_back(commands if repeat is None else repeat, until)

    def _come_back(self, commands: Sequence[Command], until: str) -> Event:
        while True:
            try:
                self.resume()
                if commands:
                    self._send([{"type": "session.heartbeat"}])
                    while self._take()["type"] != "session.heartbeat_ack":
                        pass
                    if self._find(until) is None:
                        self._send(commands)
                return self._wait(until)
            except Disconnected:
                continue

    def resume(self) -> None:
        """Come back on a new connection."""
        self.abandon()
        self.resumes += 1
        self._connect("/v1/duplex?autostart=0")
        self._send(
            [
                {
                    "type": "session.resume",
                    "session_id": self.session_id,
                    "resume_token": self._token,
                    "last_received_server_event_seq": self.last,
                }
            ]
        )
        resumed = self._recv()
        if resumed["type"] == "error":
            raise Refused(resumed["error"]["code"])
        assert resumed["type"] == "session.resumed", resumed
        self._token = resumed["resume_token"]

    def _find(self, wire_type: str) -> int | None:
        """Where the first event of this type stands behind the answer of the last step."""
        for index in range(self._looked, len(self.events)):
            if self.events[index]["type"] == wire_type:
                return index
        return None

    def _wait(self, wire_type: str) -> Event:
        while (index := self._find(wire_type)) is None:
            self._take()
        self._looked = index + 1
        return self.events[index]

    def _take(self) -> Event:
        event = self._recv()
        self.events.append(event)
        return event

    def _connect(self, path: str) -> None:
        try:
            self._socket = self._connection.enter_context(
                connect(
                    self._url + path,
                    compression=None,
                    max_size=None,
                    open_timeout=TIMEOUT_S,
                    ping_interval=None,  # the frames on the wire are those of the conversation
                )
            )
        except (OSError, EOFError, InvalidHandshake) as error:
            raise Disconnected from error

    def _send(self, commands: Sequence[Command]) -> None:
        try:
            for command in commands:
                self._socket.send(json.dumps(command))
        except ConnectionClosed as error:
            raise Disconnected from error

    def _recv(self) -> Event:
        try:
            event = json.loads(self._socket.recv(timeout=TIMEOUT_S))
        except ConnectionClosed as error:
            raise Disconnected from error
        assert isinstance(event, dict)
        return event


def audio_of(events: Sequence[Event]) -> bytes:
    """All audio of a session's answers, in order."""
    return b"".join(
        base64.b64decode(event["delta"])
        for event in events
        if event["type"] == "response.output_audio.delta"
    )
