"""wss: the npm client dials nothing else (interop, MUST 3)."""

import asyncio
import json
import ssl
from pathlib import Path

import pytest
from tests.entrypoints.running import running
from tests.entrypoints.talk import TIMEOUT_S

# Not the client with threads: reading and writing of one SSLSocket at the same time can stall it.
from websockets.asyncio.client import connect
from websockets.exceptions import InvalidMessage

from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.entrypoints.openai.server import Certificate

PEM = Path(__file__).parent / "tls" / "localhost.pem"


async def first_event(url: str, trusted: ssl.SSLContext | None) -> str:
    async with asyncio.timeout(TIMEOUT_S), connect(url, ssl=trusted) as socket:
        return str(json.loads(await socket.recv())["type"])


def test_a_session_over_tls() -> None:
    trusted = ssl.create_default_context(cafile=PEM)
    with DuplexOmni("echo") as omni, running(create_app(omni), certificate=Certificate(PEM)) as it:
        url = it.base.replace("http://", "wss://") + "/v1/realtime"
        assert asyncio.run(first_event(url, trusted)) == "session.created"
        with pytest.raises(InvalidMessage):
            asyncio.run(first_event(url.replace("wss://", "ws://"), None))
