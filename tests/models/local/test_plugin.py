import pytest

from omniduplex.config.pipeline import PipelineConfig
from omniduplex.models.local.plugin import LocalDuplexPlugin
from omniduplex.models.local.session_state import LocalSessionState
from omniduplex.protocol.duplex import DuplexError, DuplexSessionConfig


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
    assert not can.supports_session_lease
    assert not can.supports_session_resume
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
