"""How a model is deployed: its stages, its limits, and the deploy file that sets them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

PositiveInt = Annotated[int, Meta(gt=0)]
PositiveSeconds = Annotated[float, Meta(gt=0)]
Text = Annotated[str, Meta(min_length=1)]
ObjectPath = Annotated[str, Meta(pattern=r"^[\w.]+:\w+$")]
SessionMode = Literal["turn", "duplex"]


class StageConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One stage: which class runs it, where, and what the class is told."""

    stage_id: Annotated[int, Meta(ge=0)]
    name: Text
    model_class: ObjectPath
    """Dotted path `package.module:Class` of a `StageModel`."""
    worker: Literal["process", "thread", "inline"] = "process"
    """Inline steps on the engine loop: only for models whose step takes microseconds."""
    replicas: PositiveInt = 1
    nice: Annotated[int, Meta(ge=0, le=19)] = 0
    """Niceness that the worker process adds to its own (0 to 19)."""
    max_queue: PositiveInt = 1024
    """Inputs of one session, or of all turn requests, that may wait for its stages at once."""
    hang_timeout_s: Annotated[float, Meta(ge=0)] = 5.0
    """How long the worker may take for what it was given before it counts as dead; 0: for ever."""
    options: dict[str, Any] = {}
    """The fields of the class's own `Options` struct."""


class DuplexSessionRuntimeConfig(
    msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True
):
    """Limits of the sessions of one deployment (wire contract, section 6.7)."""

    max_sessions: PositiveInt = 1
    idle_ttl_s: PositiveSeconds | None = 300.0
    disconnect_grace_s: PositiveSeconds = 30.0
    reaper_interval_s: PositiveSeconds = 5.0
    resume_replay_ttl_s: PositiveSeconds = 60.0
    resume_replay_max_bytes_per_session: PositiveInt = 8 * 1024 * 1024
    max_pending_input_bytes_per_session: PositiveInt = 16 * 1024 * 1024
    max_pending_turns_per_session: PositiveInt = 4
    max_out_of_band_responses_per_session: PositiveInt = 4
    """Responses beside the conversation (`conversation: none`) that may be under way at once."""
    max_pending_output_bytes_per_session: PositiveInt = 2 * 1024 * 1024
    max_pending_output_events_per_session: PositiveInt = 512
    output_overflow: Literal["close_session", "fail_response"] = "close_session"
    """What a reader that is too slow loses: its session, or only the response it did not read."""
    max_session_s: PositiveSeconds | None = None
    """The longest life of a session; None: as long as its client likes."""
    expiry_warning_s: PositiveSeconds = 10.0
    """How long before a session ends by itself its client is told."""


class PipelineConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A deployed model: its stages in order of flow, and the plugins that speak with them."""

    name: Text
    model: Text
    """The name clients see, such as `omniduplex/local`."""
    stages: tuple[StageConfig, ...]
    duplex_plugin: ObjectPath | None = None
    """Dotted path `package.module:Class` of a `DuplexModelPlugin`."""
    turn_plugin: ObjectPath | None = None
    """Dotted path `package.module:Class` of a `TurnPlugin`."""
    session_mode: SessionMode = "duplex"
    duplex_session: DuplexSessionRuntimeConfig = DuplexSessionRuntimeConfig()
    max_turns: PositiveInt = 8
    """Turn requests that may run at the same time."""
