"""A server that is asked to end says goodbye, leaves with code 0, and leaves nobody behind."""

from __future__ import annotations

import pytest
from tests.e2e.recordings import recording
from tests.e2e.server import ends, serve
from tests.entrypoints.talk import Talk

from omniduplex.models.local.asr import Recognizer

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(300)]


@pytest.mark.local
def test_the_embedded_model_ends_in_the_middle_of_an_answer(recognizer: Recognizer) -> None:
    with serve() as server, Talk(server.http, "/v1/realtime?duplex=1&model=any") as talk:
        family = server.family()
        talk.send(
            "conversation.item.create",
            item={
                "type": "message",
                "role": "user",
                "content": [{"type": "input_text", "text": recording("sky").words}],
            },
        )
        talk.send("response.create")
        talk.until("response.output_audio.delta")
        code = server.stop()
        events, closing, _ = talk.ends()

    assert code == 0
    assert len(family) >= 3, "the server and its two stages"
    assert [pid for pid in family if not ends(pid)] == []
    assert events[-1]["type"] == "session.closed"
    assert closing == 1001


def test_a_server_without_sessions_ends_too() -> None:
    with serve("omniduplex/echo") as server:
        family = server.family()
        assert server.stop() == 0
    assert [pid for pid in family if not ends(pid)] == []
