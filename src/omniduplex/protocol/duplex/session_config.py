"""From what a client sends to what is in force: the defaults, and the transactional merge."""

from __future__ import annotations

from typing import Any

from msgspec import UNSET, structs

from omniduplex.protocol.duplex.config import (
    DEFAULT_IDLE_TIMEOUT_S,
    AudioFormat,
    Dialect,
    DuplexSessionConfig,
    Modality,
    OverlapPolicy,
    PlaybackCommitPolicy,
    TurnDetection,
)
from omniduplex.protocol.duplex.errors import DuplexError
from omniduplex.protocol.duplex.formats import patch_formats
from omniduplex.protocol.duplex.session_patch import (
    SessionPatch,
    first_given,
    input_patch,
    named_turn_detection,
    named_voice,
    output_patch,
)
from omniduplex.protocol.duplex.tools import read_tool_choice, read_tools
from omniduplex.protocol.duplex.turn_detection import (
    implied_overlap_policy,
    patch_turn_detection,
)

# Beyond what any model can say in one response; keeps the number printable everywhere.
_MAX_TOKENS = 2**31 - 1
# What the OpenAI API takes for speech; for sessions it has the lower part of it, up to 1.5.
MIN_SPEED, MAX_SPEED = 0.25, 4.0
_UNLIMITED = ("inf", "infinity", "unlimited")

_OVERLAP_POLICIES: dict[str, OverlapPolicy] = {
    "listen_only": "listen_only",
    "barge_in_on_speech": "barge_in_on_speech",
    "adaptive": "adaptive",
}
_COMMIT_POLICIES: dict[str, PlaybackCommitPolicy] = {
    "ack_only": "ack_only",
    "commit_all_on_done": "commit_all_on_done",
}
_MODALITIES: dict[str, Modality] = {"audio": "audio", "text": "text"}
# Fields that are stored as they come; the value is what null clears them to.
_STORED: dict[str, Any] = {
    "instructions": None,
    "ref_audio": None,
    "initial_user_text": None,
    "metadata": None,
    "include": None,
    "prompt": None,
    "tracing": None,
    "truncation": "auto",
    "reasoning": None,
    "parallel_tool_calls": None,
}
DUPLEX_EXTENSION = "duplex"
EXTENSIONS = (DUPLEX_EXTENSION,)
_OVERLAP_NUMBERS = ("overlap_short_ack_ms", "overlap_barge_in_ms", "overlap_silence_rms")


def default_config(model: str, dialect: Dialect) -> DuplexSessionConfig:
    """Return what holds for a session whose client says nothing."""
    if dialect.is_openai:
        return DuplexSessionConfig(
            model=model,
            dialect=dialect,
            modalities=("audio", "text") if dialect is Dialect.BETA else ("audio",),
            input_format=AudioFormat(sample_rate_hz=24000),
            turn_detection=TurnDetection(),
            overlap_policy="barge_in_on_speech",
        )
    return DuplexSessionConfig(model=model, dialect=dialect, extensions=EXTENSIONS)


def apply_patch(config: DuplexSessionConfig, patch: SessionPatch) -> DuplexSessionConfig:
    """Merge a client's changes: an absent key keeps its value, null clears it to the default.

    Raises:
        DuplexError: for the first thing that cannot be; `config` itself never changes.
    """
    if patch.type not in (UNSET, "realtime"):
        message = "Only sessions of type realtime are served."
        raise DuplexError("invalid_session_config", message, param="session.type")
    changes = _stored(config, patch)
    changes |= patch_formats(config, patch, default_config(config.model, config.dialect))
    changes |= _turn_taking(config, patch)
    changes |= _input_extras(config, patch)
    changes |= _output(config, patch)
    changes |= _limits(patch)
    changes |= _extra_body(config, patch)
    return structs.replace(config, **changes)


def _stored(config: DuplexSessionConfig, patch: SessionPatch) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for name, default in _STORED.items():
        value = getattr(patch, name)
        if value is not UNSET:
            changes[name] = default if value is None else value
    if patch.model:
        changes["model"] = patch.model
    if patch.tools is not UNSET:
        changes["tools"] = read_tools(patch.tools, "session.tools")
    if patch.tool_choice is not UNSET:
        changes["tool_choice"] = read_tool_choice(patch.tool_choice, "session.tool_choice")
    if isinstance(patch.extensions, tuple):
        # What is granted is granted for good; what we do not have is not echoed.
        asked = (*config.extensions, *patch.extensions)
        changes["extensions"] = tuple(name for name in EXTENSIONS if name in asked)
    if patch.idle_timeout_s is not UNSET:
        seconds = patch.idle_timeout_s or 0
        changes["idle_timeout_s"] = seconds if seconds > 0 else DEFAULT_IDLE_TIMEOUT_S
    return changes


def _turn_taking(config: DuplexSessionConfig, patch: SessionPatch) -> dict[str, Any]:
    param, given = named_turn_detection(patch)
    policy_param, named = _extension(patch, "overlap_policy", str)
    if given is UNSET and named is UNSET:
        return {}
    detection = config.turn_detection
    if given is not UNSET:
        detection = patch_turn_detection(detection, given, param)
    implied = implied_overlap_policy(detection)
    if implied == "barge_in_on_speech" and config.overlap_policy == "adaptive":
        implied = "adaptive"  # a finer way of being interrupted, which only its client asks for
    wanted = _OVERLAP_POLICIES.get(named, implied) if isinstance(named, str) else implied
    if (wanted == "listen_only") != (implied == "listen_only"):
        raise DuplexError(
            "unsupported_turn_detection",
            f"overlap_policy {wanted} does not go with this turn detection, which means {implied}.",
            param=policy_param if given is UNSET else param,
        )
    return {"turn_detection": detection, "overlap_policy": wanted}


def _input_extras(config: DuplexSessionConfig, patch: SessionPatch) -> dict[str, Any]:
    incoming = input_patch(patch)
    pairs = {
        "input_audio_transcription": (incoming.transcription, patch.input_audio_transcription),
        "input_audio_noise_reduction": (
            incoming.noise_reduction,
            patch.input_audio_noise_reduction,
        ),
    }
    changes: dict[str, Any] = {}
    for name, (nested, flat) in pairs.items():
        given = flat if nested is UNSET else nested
        if given is not UNSET:
            changes[name] = None if given is None else _merged(getattr(config, name), given)
    return changes


def _merged(current: dict[str, Any] | None, given: dict[str, Any]) -> dict[str, Any]:
    """Merge objects key by key; a null takes its key away."""
    merged = {**(current or {}), **given}
    return {name: value for name, value in merged.items() if value is not None}


def _output(config: DuplexSessionConfig, patch: SessionPatch) -> dict[str, Any]:
    outgoing = output_patch(patch)
    changes: dict[str, Any] = {}
    param, modalities = first_given(
        ("session.output_modalities", patch.output_modalities),
        ("session.modalities", patch.modalities),
    )
    if modalities is not UNSET:
        default = default_config(config.model, config.dialect).modalities
        changes["modalities"] = default if modalities is None else _modalities(modalities, param)
    param, voice = named_voice(patch)
    if voice is not UNSET:
        changes["voice"] = read_voice(voice, param)
    param, speed = first_given(
        ("session.audio.output.speed", outgoing.speed), ("session.speed", patch.speed)
    )
    if speed is not UNSET:
        changes["speed"] = read_speed(speed, param)
    return changes


def _modalities(names: tuple[str, ...], param: str) -> tuple[Modality, ...]:
    unknown = [name for name in names if name not in _MODALITIES]
    if unknown or not names:
        raise DuplexError("bad_event", "The modalities are audio, text or both.", param=param)
    return tuple(dict.fromkeys(_MODALITIES[name] for name in names))


def read_voice(voice: str | dict[str, Any] | None, param: str) -> str | None:
    """Return the name of a voice, which an object may hold. Raises DuplexError."""
    name = voice.get("id") if isinstance(voice, dict) else voice
    if (name is not None and not isinstance(name, str)) or (isinstance(voice, dict) and not name):
        raise DuplexError("bad_event", "A voice object needs a string `id`.", param=param)
    return name


def read_speed(speed: float | None, param: str) -> float | None:
    """Return how many times as fast as usual is spoken. Raises DuplexError beyond the API's."""
    if speed is not None and not MIN_SPEED <= speed <= MAX_SPEED:
        message = f"A speed is from {MIN_SPEED} to {MAX_SPEED}."
        raise DuplexError("bad_event", message, param=param)
    return speed


def _limits(patch: SessionPatch) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    param, tokens = first_given(
        ("session.max_output_tokens", patch.max_output_tokens),
        ("session.max_response_output_tokens", patch.max_response_output_tokens),
        ("session.max_tokens", patch.max_tokens),
    )
    if tokens is not UNSET:
        changes["max_output_tokens"] = read_max_tokens(tokens, param)
    if patch.temperature is not UNSET:
        if patch.temperature is not None and patch.temperature < 0:
            raise DuplexError(
                "bad_event", "A temperature is not below 0.", param="session.temperature"
            )
        changes["temperature"] = patch.temperature
    return changes


def read_max_tokens(tokens: int | str | None, param: str) -> int | None:
    """Return a limit of output tokens, None being no limit.

    Raises:
        DuplexError: `bad_event` for anything but a positive count or "inf".
    """
    if tokens is None or (isinstance(tokens, str) and tokens.lower() in _UNLIMITED):
        return None
    if isinstance(tokens, str) or not 0 < tokens <= _MAX_TOKENS:
        message = f'A limit is a count from 1 to {_MAX_TOKENS} or "inf".'
        raise DuplexError("bad_event", message, param=param)
    return tokens


def _extra_body(config: DuplexSessionConfig, patch: SessionPatch) -> dict[str, Any]:
    changes: dict[str, Any] = {}
    for name in _OVERLAP_NUMBERS:
        _, number = _extension(patch, name, int, float)
        if number is None:
            changes[name] = getattr(default_config(config.model, config.dialect), name)
        elif number is not UNSET:
            changes[name] = max(0.0, number)
    _, policy = _extension(patch, "playback_commit_policy", str)
    if policy is not UNSET:
        changes["playback_commit_policy"] = _COMMIT_POLICIES.get(policy, "commit_all_on_done")
    _, auto_response = _extension(patch, "auto_response", bool)
    if auto_response is not UNSET:
        changes["auto_response"] = bool(auto_response)
    if patch.extra_body is not UNSET:
        given = patch.extra_body
        if given is None:
            changes |= {"extra_body": {}, "auto_response": False}
        else:
            changes["extra_body"] = _merged(config.extra_body, given)
    return changes


def _extension(patch: SessionPatch, name: str, *types: type) -> tuple[str, Any]:
    """Return a duplex extension field, which `extra_body` may carry and then decides."""
    extra = patch.extra_body if isinstance(patch.extra_body, dict) else {}
    if name not in extra:
        return f"session.{name}", getattr(patch, name, UNSET)
    param, value = f"session.extra_body.{name}", extra[name]
    if value is not None and type(value) not in types:
        expected = " or ".join(kind.__name__ for kind in types)
        raise DuplexError("bad_event", f"{name} is {expected}.", param=param)
    return param, value
