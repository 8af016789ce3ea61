"""The options of a stage, read into the struct that says what there is."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from omniduplex.config.errors import ConfigError
from omniduplex.config.pipeline import StageConfig

T = TypeVar("T")


def read_options(stage: StageConfig, kind: type[T]) -> T:
    """The options of a stage as `kind`; raises `ConfigError`, which names what there is instead."""
    where = f"options of stage {stage.name!r}: "
    for key, known in _unknown(stage.options, inspect.type_info(kind)):
        raise ConfigError(f"{where}{key}: unknown key (there are: {', '.join(sorted(known))})")
    try:
        return msgspec.convert(stage.options, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{where}{error}") from error


def _unknown(raw: Any, kind: inspect.Type, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """Keys that a struct does not have, each by its whole path, and those that it does have."""
    struct = _struct_of(raw, kind)
    if struct is None:
        return
    fields = {field.encode_name: field.type for field in struct.fields}
    tag = [] if struct.tag_field is None else [struct.tag_field]
    for key, value in raw.items():
        if key in fields:
            yield from _unknown(value, fields[key], f"{path}{key}.")
        elif struct.forbid_unknown_fields and key not in tag:
            yield f"{path}{key}", [*fields, *tag]


def _struct_of(raw: Any, kind: inspect.Type) -> inspect.StructType | None:
    """The struct that a mapping is meant to be; None if it is none, or of an unknown tag."""
    if not isinstance(raw, dict):
        return None
    for one in kind.types if isinstance(kind, inspect.UnionType) else (kind,):
        if isinstance(one, inspect.StructType) and (
            one.tag_field is None or raw.get(one.tag_field) == one.tag
        ):
            return one
    return None
