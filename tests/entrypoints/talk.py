"""A client for tests: plain JSON over the `websockets` package, nothing of ours."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection, connect
from websockets.typing import Subprotocol

TIMEOUT_S = 60.0


class Talk:
    """One connection; every read gives up after `TIMEOUT_S`."""

    socket: ClientConnection

    def __init__(self, base: str, path: str, **options: Any) -> None:
        url = base.replace("http", "ws", 1) + path
        # A queue that is full hides the server's close frame: a test that leaves events unread
        # would wait for it in vain.
        options = {"max_queue": None, "max_size": None, **options}
        self._connecting = connect(
            url,
            compression=None,
            open_timeout=TIMEOUT_S,
            close_timeout=TIMEOUT_S,
            ping_interval=None,  # who does not read does not hear the answer either
            **options,
        )

    def __enter__(self) -> Talk:
        self.socket = self._connecting.__enter__()
        return self

    def __exit__(self, *raised: Any) -> None:
        self._connecting.__exit__(*raised)

    def send(self, wire_type: str, **fields: Any) -> None:
        self.socket.send(json.dumps({"type": wire_type, **fields}))

    def recv(self) -> dict[str, Any]:
        event = json.loads(self.socket.recv(timeout=TIMEOUT_S))
        assert isinstance(event, dict)
        return event

    def until(self, wire_type: str) -> list[dict[str, Any]]:
        """Read up to and including the first event of this type."""
        events = [self.recv()]
        while events[-1]["type"] != wire_type:
            events.append(self.recv())
        return events

    def ends(self) -> tuple[list[dict[str, Any]], int, str]:
        """Read until the server closes: what came, the close code and its reason."""
        events: list[dict[str, Any]] = []
        try:
            while True:
                events.append(self.recv())
        except ConnectionClosed as closed:
            if closed.rcvd is None:
                raise
            return events, closed.rcvd.code, closed.rcvd.reason


def offer(*names: str) -> Sequence[Subprotocol]:
    """Name subprotocols as the client library wants them."""
    return [Subprotocol(name) for name in names]
