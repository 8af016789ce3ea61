"""The real server on a thread of the test."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from unittest.mock import patch

from starlette.applications import Starlette

from omniduplex.entrypoints.duplex import serving
from omniduplex.entrypoints.openai.arrivals import Lobby
from omniduplex.entrypoints.openai.server import Certificate, TalkServer, bind, server_config

START_TIMEOUT_S = STOP_TIMEOUT_S = 60.0
# A busy machine may need more than the seconds in which a server sees its last connections off.
SEE_OFF_TIMEOUT_S = 20.0


class RunningServer:
    """A server in a thread, where no signal reaches it; `base` is its URL."""

    def __init__(self, base: str, server: TalkServer, thread: threading.Thread) -> None:
        self.base = base
        self._server = server
        self._thread = thread

    @property
    def connections(self) -> int:
        """TCP connections that it holds."""
        return len(self._server.server_state.connections)

    def signal(self) -> None:
        """Do what SIGTERM does."""
        self._server.handle_exit(signal.SIGTERM, None)

    def ended(self) -> bool:
        """Whether it ends by itself."""
        self._thread.join(STOP_TIMEOUT_S)
        return not self._thread.is_alive()


@contextmanager
def running(
    app: Starlette,
    *,
    drain_timeout_s: float = 0.0,
    certificate: Certificate | None = None,
    lobby: Lobby | None = None,
) -> Iterator[RunningServer]:
    """Serve an app on a free loopback port during the block."""
    ready = threading.Event()
    config = server_config(app, certificate, lobby=lobby)
    config.timeout_graceful_shutdown = int(SEE_OFF_TIMEOUT_S)
    server = TalkServer(config, app, ready.set, drain_timeout_s=drain_timeout_s)
    patient = patch.object(serving, "SEE_OFF_TIMEOUT_S", SEE_OFF_TIMEOUT_S)
    with patient, bind("127.0.0.1", 0) as listener:
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]}, name="server")
        thread.start()
        assert ready.wait(START_TIMEOUT_S)
        one = RunningServer(f"http://127.0.0.1:{listener.getsockname()[1]}", server, thread)
        try:
            yield one
        finally:
            one.signal()
            one.signal()
            assert one.ended()
