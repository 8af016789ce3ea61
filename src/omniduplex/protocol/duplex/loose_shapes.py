"""The looser shapes in which clients say what they mean: nulls, whole floats, other names."""

from __future__ import annotations

import functools
import re
from typing import Any, Literal, get_args, get_origin

import msgspec

from omniduplex.protocol.duplex.errors import DuplexError

# JSON numbers above this are not exact integers in a double.
_MAX_EXACT_INT = 2**53
_NAME = re.compile(r"\w+")


@functools.cache
def field_kinds(struct: type[msgspec.Struct]) -> dict[str, Any]:
    """Return the types of a struct's fields by their names."""
    return {field.name: field.type for field in msgspec.structs.fields(struct)}


def loosened(value: Any, kind: Any) -> Any:
    """Return a decoded value with what its type would refuse and its client may well mean.

    A null counts as absent where its field has no null, at any depth, and 48.0 is 48: JSON has one
    kind of number, msgspec's `int` is stricter. What a client may shape as it likes stays.
    """
    if isinstance(value, dict):
        struct = next((one for one in _options(kind) if _is_struct(one)), None)
        return value if struct is None else _loose_object(value, field_kinds(struct))
    if isinstance(value, list):
        element = next(
            (get_args(one)[0] for one in _options(kind) if get_origin(one) is tuple), Any
        )
        return value if element is Any else [loosened(one, element) for one in value]
    if isinstance(value, float) and _is_counted(kind):
        return int(value) if value.is_integer() and abs(value) < _MAX_EXACT_INT else value
    return value


def as_spelt(refusal: DuplexError, spelt: dict[str, str]) -> DuplexError:
    """Name a refused field as its client did; `spelt` are the other names that it used."""
    name = _NAME.match(refusal.param or "")
    if name and refusal.param and name[0] in spelt:
        refusal.param = spelt[name[0]] + refusal.param[name.end() :]
    return refusal


def _loose_object(value: dict[str, Any], kinds: dict[str, Any]) -> dict[str, Any]:
    return {
        name: loosened(one, kinds.get(name, Any))
        for name, one in value.items()
        if one is not None or _takes_null(kinds.get(name, Any))
    }


def _options(kind: Any) -> tuple[Any, ...]:
    """Return what a type may be: the members of a union, or itself."""
    return (kind,) if get_origin(kind) in (None, tuple, dict, Literal) else get_args(kind)


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, msgspec.Struct)


def _takes_null(kind: Any) -> bool:
    return kind is Any or type(None) in _options(kind)


def _is_counted(kind: Any) -> bool:
    return any(one is int or get_origin(one) is Literal for one in _options(kind))
