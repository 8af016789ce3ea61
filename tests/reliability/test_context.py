"""A session that was resumed is the same session, to the model too (B51)."""

from __future__ import annotations

import msgspec
import pytest
from tests.entrypoints.running import running
from tests.faults.resumable_echo import resumable_echo
from tests.faults.surviving_client import SurvivingClient
from tests.faults.test_cuts import answer

from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.duplex.contracts import DuplexFence, StageWork
from omniduplex.engine.prompts import ResponsePrompt
from omniduplex.entrypoints.duplex_omni import DuplexOmni
from omniduplex.entrypoints.openai.app import create_app
from omniduplex.models.echo.plugin import EchoDuplexPlugin
from omniduplex.models.echo.session_state import EchoSessionState
from omniduplex.protocol.duplex import DuplexSessionConfig

pytestmark = pytest.mark.e2e

TURNS = 10

prompts: list[ResponsePrompt] = []
"""What the model was asked, in order."""


class RememberingState(EchoSessionState):
    """Echo, which notes what it is asked."""

    def plan_response(
        self, fence: DuplexFence, key: str, prompt: ResponsePrompt
    ) -> tuple[StageWork, ...] | None:
        prompts.append(prompt)
        works = super().plan_response(fence, key, prompt)
        return None if works is None else tuple(works)


class RememberingPlugin(EchoDuplexPlugin):
    """Gives each session a state that notes what it is asked."""

    def create_session_state(
        self, session_id: str, config: DuplexSessionConfig
    ) -> RememberingState:
        return RememberingState(self._stage.stage_id, self._options)


@pytest.fixture
def pipeline() -> PipelineConfig:
    prompts.clear()
    plugin = f"{__name__}:{RememberingPlugin.__name__}"
    return msgspec.structs.replace(resumable_echo(max_sessions=1), duplex_plugin=plugin)


def test_b51_after_ten_resumes_the_model_is_asked_with_all_ten_turns(
    pipeline: PipelineConfig,
) -> None:
    settings = {"instructions": "be brief", "temperature": 0.7}
    with DuplexOmni(pipeline=pipeline) as omni, running(create_app(omni)) as server:
        client = SurvivingClient(server.base)
        client.open()
        client.step([], "session.updated")
        client.step([{"type": "session.update", "session": settings}], "session.updated")
        for turn in range(TURNS):
            text = {"type": "input_text", "text": f"this is turn {turn}"}
            item = {"id": f"item_{turn}", "type": "message", "role": "user", "content": [text]}
            create = {"type": "conversation.item.create", "item": item}
            client.step([create], "conversation.item.done")
            answer(client)
            client.resume()
        ask = [{"type": "session.update", "session": {}}]
        session = client.step(ask, "session.updated")["session"]
        client.close()

    said = [(message.role, message.text) for message in prompts[-1].messages]
    asked = [("user", f"this is turn {turn}") for turn in range(TURNS)]
    answered = [("assistant", f"You said this is turn {turn}") for turn in range(TURNS - 1)]
    assert len(prompts) == TURNS
    assert [one for one in said if one[0] == "user"] == asked
    assert [one for one in said if one[0] == "assistant"] == answered
    assert said[-1] == asked[-1]
    assert said[0] == asked[0] or said[0][0] == "system"
    assert {name: session[name] for name in settings} == settings
