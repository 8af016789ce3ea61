import asyncio
import functools
from collections.abc import Iterable

import pytest
from tests.e2e.hearing import may_be_spoken, understood
from tests.models.local.speech import at_16k

from omniduplex.config.loader import load_pipeline
from omniduplex.config.pipeline import PipelineConfig
from omniduplex.engine.duplex.contracts import Abort, DuplexFence, Submit
from omniduplex.engine.duplex.model_events import (
    ModelEvent,
    Projected,
    ResponseAudio,
    ResponseEnded,
    ResponseMetrics,
    UserTurnDraft,
    UserTurnEnded,
)
from omniduplex.engine.prompts import PromptMessage, ResponsePrompt
from omniduplex.models.local import messages
from omniduplex.models.local.plugin import LocalDuplexPlugin
from omniduplex.models.local.session_state import LocalSessionState
from omniduplex.models.local.voice import Voice
from omniduplex.protocol.duplex import DuplexError, DuplexSessionConfig
from omniduplex.stages.client import StageClient
from omniduplex.stages.factory import create_client
from omniduplex.stages.messages import StageOutput

QUESTION = "What is the capital of France?"


@pytest.fixture
def plugin() -> LocalDuplexPlugin:
    return LocalDuplexPlugin(PipelineConfig(name="local", model="omniduplex/local", stages=()))


def test_it_hears_16_khz(plugin: LocalDuplexPlugin) -> None:
    assert plugin.input_rate_hz == 16_000


def test_a_client_may_rely_on_all_but_lease_and_resume(plugin: LocalDuplexPlugin) -> None:
    can = plugin.capabilities(4)
    assert can.implementation_level == "model_native_duplex"
    assert can.supports_model_native_turn_policy
    assert can.supports_input_append
    assert can.supports_barge_in
    assert can.supports_client_commit
    assert can.supports_playback_ack
    assert can.supports_audio_truncate
    assert can.supports_text_only_turn
    assert can.supports_session_lease
    assert can.supports_session_resume
    assert not can.supports_image_input
    assert can.required_input_modalities == ("audio",)
    assert can.optional_input_modalities == ()
    assert can.chunk_period_ms == 1000


@pytest.mark.parametrize(("max_sessions", "several"), [(1, False), (4, True)])
def test_several_sessions_are_promised_only_if_admitted(
    plugin: LocalDuplexPlugin, max_sessions: int, several: bool
) -> None:
    assert plugin.capabilities(max_sessions).supports_multi_session is several


def test_any_voice_name_is_an_alias(plugin: LocalDuplexPlugin) -> None:
    config = DuplexSessionConfig(model="m", voice="alloy")
    plugin.validate_config(config)
    assert isinstance(plugin.create_session_state("s", config), LocalSessionState)


def test_a_voice_cannot_be_copied(plugin: LocalDuplexPlugin) -> None:
    with pytest.raises(DuplexError) as caught:
        plugin.validate_config(DuplexSessionConfig(model="m", ref_audio="data:audio/wav;base64,"))
    assert caught.value.code == "invalid_duplex_runtime_config"
    assert caught.value.param == "ref_audio"


class Conversation:
    """A session's state over the stages of the deploy file, without a session around it."""

    def __init__(self, plugin: LocalDuplexPlugin) -> None:
        self.config = DuplexSessionConfig(model="omniduplex/local", auto_response=True)
        self.state = plugin.create_session_state("s", self.config)
        self.stages: list[StageClient] = []
        self._events: asyncio.Queue[Projected] = asyncio.Queue()

    async def start(self, pipeline: PipelineConfig) -> None:
        for stage in pipeline.stages:
            client = create_client(stage)
            self.stages.append(client)
            await client.start(
                functools.partial(self._take, stage.stage_id),
                lambda reason: pytest.fail(reason),
            )

    def do(self, works: Iterable[Projected] | None) -> None:
        for work in works or ():
            if isinstance(work, Submit):
                self.stages[work.stage_id].submit(work.message)

    async def until(self, last: type[ModelEvent]) -> list[Projected]:
        events = [await self._events.get()]
        while not isinstance(events[-1], last):
            events.append(await self._events.get())
        return events

    async def stop(self) -> None:
        for client in self.stages:
            await client.stop()

    def _take(self, stage_id: int, output: StageOutput) -> None:
        for event in self.state.project(stage_id, output):
            if isinstance(event, Submit):
                self.do([event])
            elif not isinstance(event, Abort):
                self._events.put_nowait(event)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.local
@pytest.mark.anyio
async def test_a_spoken_question_is_answered_aloud(
    voice: Voice, whisper_base: object, smollm2: object, smart_turn: object
) -> None:
    pipeline = load_pipeline("local", None)
    talk = Conversation(LocalDuplexPlugin(pipeline))
    fence = DuplexFence("s", 0, 0)
    try:
        await talk.start(pipeline)
        talk.do(talk.state.plan_open(fence, talk.config))
        asked = at_16k(voice.say(QUESTION), voice.rate)
        talk.do(talk.state.plan_append(fence, asked + bytes(2 * 16 * 160)))
        draft = (await talk.until(UserTurnDraft))[-1]
        talk.do(talk.state.plan_append(fence, bytes(2 * 16 * 2000)))
        ended = (await talk.until(UserTurnEnded))[-1]
        assert isinstance(draft, UserTurnDraft)
        assert isinstance(ended, UserTurnEnded)
        assert understood(QUESTION, draft.transcript)
        assert understood(QUESTION, ended.transcript)

        question = PromptMessage(role="user", text=ended.transcript)
        prompt = ResponsePrompt(instructions=None, messages=(question,), temperature=0.0)
        talk.do(talk.state.plan_response(fence, "key", prompt))
        events = await talk.until(ResponseEnded)
    finally:
        await talk.stop()

    audio = [event for event in events if isinstance(event, ResponseAudio)]
    answer = "".join(event.text for event in audio)
    assert answer.strip()
    assert may_be_spoken(answer, b"".join(event.pcm for event in audio), voice.rate)
    measured = {
        name for event in events if isinstance(event, ResponseMetrics) for name in event.metrics
    }
    measured.add(messages.END_OF_TURN)  # on a busy machine its verdict comes after the words
    assert measured == {
        messages.HOLD,
        messages.RECOGNITION,
        messages.END_OF_TURN,
        messages.FIRST_TOKEN,
        messages.FIRST_CLAUSE,
        messages.FIRST_SPEECH,
        messages.AT_TURN_AUDIO,
        messages.AT_TURN_END,
        messages.AT_PROMPT,
        messages.AT_FIRST_CLAUSE,
        messages.AT_FIRST_CLAUSE_IN,
        messages.AT_FIRST_AUDIO_OUT,
    }
