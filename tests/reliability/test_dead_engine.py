from __future__ import annotations

import json
from urllib.error import HTTPError
from urllib.request import urlopen

import pytest
from tests.entrypoints.running import running
from tests.entrypoints.talk import Talk

from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app

pytestmark = pytest.mark.e2e

TIMEOUT_S = 60.0


def test_a_server_whose_engine_has_ended_says_so_and_stops() -> None:
    omni = DuplexOmni("omniduplex/echo")
    with omni, running(create_app(omni)) as server:
        with Talk(server.base, "/v1/duplex?model=m") as talk:
            talk.until("session.updated")
            omni.shutdown()
            (closed,), code, reason = talk.ends()
        with pytest.raises(HTTPError) as unhealthy:
            urlopen(f"{server.base}/health", timeout=TIMEOUT_S)
        with unhealthy.value as answer:
            assert (answer.status, json.load(answer)) == (503, {"status": "dead"})
        with Talk(server.base, "/v1/realtime") as late:
            (failure,), late_code, _ = late.ends()
        server.signal()
        assert server.ended()

    assert (closed["type"], code, reason) == ("session.closed", 1001, "shutdown")
    assert (failure["error"]["code"], late_code) == ("internal_error", 1011)
