"""A client's change of its session: accepted whole, or it changes nothing."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.protocol.duplex import (
    DuplexError,
    DuplexSessionConfig,
    SessionPatch,
    apply_patch,
    named_voice,
)


def configure(core: SessionCore, patch: SessionPatch) -> None:
    """Merge the change and tell the model.

    Raises:
        DuplexError: for the first thing that cannot be; nothing has changed then.
    """
    if not core.config.knows_extensions:
        # Stock clients repeat their model's name; it names nothing here (interop, MUST 1).
        patch = msgspec.structs.replace(patch, model=UNSET)
    config = apply_patch(core.config, patch)
    _check_mutable(core, config)
    if core.playback.made_audio:
        config = _same_voice(core.config, config, patch)
    core.plugin.validate_config(config)
    core.config = config
    core.playback.policy = config.playback_commit_policy
    core.run(core.model.plan_update(core.fence, config))


def _check_mutable(core: SessionCore, config: DuplexSessionConfig) -> None:
    current = core.config
    if config.model != current.model:
        raise DuplexError(
            "model_update_unsupported", "the model of a session is fixed", param="session.model"
        )
    if config.ref_audio != current.ref_audio:
        raise DuplexError(
            "ref_audio_update_unsupported",
            "the voice sample of a session is fixed",
            param="session.ref_audio",
        )


def _same_voice(
    current: DuplexSessionConfig, config: DuplexSessionConfig, patch: SessionPatch
) -> DuplexSessionConfig:
    """The voice is fixed once it was heard; its client may repeat the name that it was shown."""
    if config.shown_voice != current.shown_voice:
        raise DuplexError(
            "voice_update_after_audio_unsupported",
            "the voice is fixed once the model has spoken",
            param=named_voice(patch)[0],
        )
    return msgspec.structs.replace(config, voice=current.voice)
