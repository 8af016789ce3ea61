"""How a client's change of turn detection becomes the turn detection in force."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, structs

from omniduplex.protocol.duplex.config import OverlapPolicy, TurnDetection
from omniduplex.protocol.duplex.errors import DuplexError
from omniduplex.protocol.duplex.session_patch import TurnDetectionPatch

# A detector closes speech at threshold - 0.15, which must stay above zero (wire contract 8.3).
_LOWEST_THRESHOLD = 0.15
# One frame of the detector: nothing shorter can be told from a click.
_SHORTEST_SPEECH_MS = 32
# Ten minutes: far beyond any pause that still belongs to a turn.
_LONGEST_MS = 600_000

_SHARED_FIELDS = ("create_response", "interrupt_response")
_TYPE_FIELDS: dict[str, tuple[str, ...]] = {
    "server_vad": (
        "threshold",
        "prefix_padding_ms",
        "silence_duration_ms",
        "min_speech_duration_ms",
        "idle_timeout_ms",
    ),
    "semantic_vad": ("eagerness",),
}
_EAGERNESS = ("low", "medium", "high", "auto")


def patch_turn_detection(
    current: TurnDetection | None, patch: TurnDetectionPatch | bool | None, param: str
) -> TurnDetection | None:
    """Merge a change into the turn detection in force; null and false switch it off.

    Another type starts from that type's defaults, no type keeps the one in force.

    Raises:
        DuplexError: `unsupported_turn_detection` naming the field below `param`.
    """
    if patch is None or patch is False:
        return None
    if patch is True:
        raise _unsupported("`true` does not say which turn detection.", param)
    base = _base(current, patch, param)
    changes: dict[str, Any] = {}
    for name in structs.asdict(patch):
        value = getattr(patch, name)
        if name == "type" or value is UNSET:
            continue
        if value is None:
            changes[name] = getattr(TurnDetection(), name)
            continue
        if name not in _SHARED_FIELDS and name not in _TYPE_FIELDS[base.type]:
            raise _unsupported(f"{name} does not belong to {base.type}.", f"{param}.{name}")
        changes[name] = _READERS[name](value, f"{param}.{name}")
    return structs.replace(base, **changes)


def turn_detection_object(detection: TurnDetection | None) -> dict[str, Any] | None:
    """Render the turn detection in force: the keys of its type, and what it does to responses."""
    if detection is None:
        return None
    names = ("type", *_TYPE_FIELDS[detection.type], *_SHARED_FIELDS)
    values = {name: getattr(detection, name) for name in names}
    return {name: value for name, value in values.items() if value is not None}


def implied_overlap_policy(detection: TurnDetection | None) -> OverlapPolicy:
    """Return the overlap policy that goes with a turn detection."""
    interrupts = detection is not None and detection.interrupt_response
    return "barge_in_on_speech" if interrupts else "listen_only"


def _base(current: TurnDetection | None, patch: TurnDetectionPatch, param: str) -> TurnDetection:
    if patch.type is UNSET or patch.type is None:
        if current is None:
            raise _unsupported("Turn detection is off: a type is needed.", f"{param}.type")
        return current
    if current is not None and patch.type == current.type:
        return current
    if patch.type == "server_vad":
        return TurnDetection(type="server_vad")
    if patch.type == "semantic_vad":
        return TurnDetection(type="semantic_vad")
    raise _unsupported("The type is server_vad or semantic_vad.", f"{param}.type")


def _read_threshold(value: float, param: str) -> float:
    if not _LOWEST_THRESHOLD < value <= 1:
        raise _unsupported(f"A threshold is above {_LOWEST_THRESHOLD} and at most 1.", param)
    return value


def _read_ms(value: float, param: str) -> int:
    if not 0 <= value <= _LONGEST_MS:
        raise _unsupported(f"A time is from 0 to {_LONGEST_MS} ms.", param)
    return round(value)


def _read_speech_ms(value: float, param: str) -> int:
    return max(_SHORTEST_SPEECH_MS, _read_ms(value, param))


def _read_eagerness(value: str, param: str) -> str:
    if value not in _EAGERNESS:
        raise _unsupported(f"Eagerness is one of {', '.join(_EAGERNESS)}.", param)
    return value


def _read_bool(value: bool, _param: str) -> bool:
    return value


_READERS: dict[str, Callable[[Any, str], Any]] = {
    "threshold": _read_threshold,
    "prefix_padding_ms": _read_ms,
    "silence_duration_ms": _read_ms,
    "min_speech_duration_ms": _read_speech_ms,
    "idle_timeout_ms": _read_ms,
    "eagerness": _read_eagerness,
    "create_response": _read_bool,
    "interrupt_response": _read_bool,
}


def _unsupported(message: str, param: str) -> DuplexError:
    return DuplexError("unsupported_turn_detection", message, param=param)
