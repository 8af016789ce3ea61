"""wss: the npm client dials nothing else (interop, MUST 3)."""

import json
import ssl
from pathlib import Path

import pytest
from tests.entrypoints.running import running
from websockets.exceptions import InvalidMessage
from websockets.sync.client import connect

from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.entrypoints.openai.server import Certificate

PEM = Path(__file__).parent / "tls" / "localhost.pem"


def test_a_session_over_tls() -> None:
    trusted = ssl.create_default_context(cafile=PEM)
    with DuplexOmni("echo") as omni, running(create_app(omni), certificate=Certificate(PEM)) as it:
        url = it.base.replace("http://", "wss://") + "/v1/realtime"
        with connect(url, ssl=trusted) as socket:
            assert json.loads(socket.recv())["type"] == "session.created"
        with pytest.raises(InvalidMessage):
            connect(url.replace("wss://", "ws://")).close()
