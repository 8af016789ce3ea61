"""Hypothesis strategies for every wire struct, read off its field types."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import UNSET, inspect

TEXT = st.text(st.characters(codec="utf-8"), max_size=12)
INTS = st.integers(-(2**53), 2**53)
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | INTS | FLOATS | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=6,
)

_LEAVES: dict[type[inspect.Type], st.SearchStrategy[Any]] = {
    inspect.StrType: TEXT,
    inspect.IntType: INTS,
    inspect.FloatType: FLOATS,
    inspect.BoolType: st.booleans(),
    inspect.BytesType: st.binary(max_size=24),
    inspect.NoneType: st.none(),
    inspect.AnyType: JSON,
}


def instances(struct: type[msgspec.Struct]) -> st.SearchStrategy[Any]:
    """Return a strategy for instances of a struct, every optional field there or not."""
    return _of(inspect.type_info(struct))


def _of(kind: inspect.Type) -> st.SearchStrategy[Any]:
    leaf = _LEAVES.get(type(kind))
    return _BRANCHES[type(kind)](kind) if leaf is None else leaf


def _struct(kind: Any) -> st.SearchStrategy[Any]:
    fields = {field.name: _field(field) for field in kind.fields}
    return st.builds(kind.cls, **fields)


def _field(field: inspect.Field) -> st.SearchStrategy[Any]:
    value = _of(field.type)
    return value if field.required else value | st.just(_absent(field))


def _absent(field: inspect.Field) -> Any:
    """Return what the field holds when its key is not there."""
    if field.default is not msgspec.NODEFAULT:
        return field.default
    return UNSET if field.default_factory is msgspec.NODEFAULT else field.default_factory()


def _union(kind: Any) -> st.SearchStrategy[Any]:
    return st.one_of([_of(member) for member in kind.types])


def _dict(kind: Any) -> st.SearchStrategy[Any]:
    return st.dictionaries(_of(kind.key_type), _of(kind.value_type), max_size=3)


def _tuple(kind: Any) -> st.SearchStrategy[Any]:
    return st.lists(_of(kind.item_type), max_size=3).map(tuple)


def _literal(kind: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(kind.values)


_BRANCHES: dict[type[inspect.Type], Callable[[Any], st.SearchStrategy[Any]]] = {
    inspect.StructType: _struct,
    inspect.UnionType: _union,
    inspect.DictType: _dict,
    inspect.VarTupleType: _tuple,
    inspect.LiteralType: _literal,
}
