"""What the official models think of what we send: every event of theirs, judged strictly."""

from __future__ import annotations

from typing import Annotated, Any, get_args

import pydantic
from openai.types.realtime.realtime_server_event import RealtimeServerEvent


def _kinds(union: Any) -> set[str]:
    kinds: set[str] = set()
    for member in get_args(union):
        if isinstance(member, type) and issubclass(member, pydantic.BaseModel):
            kinds |= set(get_args(member.model_fields["type"].annotation))
        else:
            kinds |= _kinds(member)
    return kinds


OFFICIAL = _kinds(RealtimeServerEvent)
_judge = pydantic.TypeAdapter[Any](
    Annotated[RealtimeServerEvent, pydantic.Field(discriminator="type")]
)


def complaints(event: dict[str, Any]) -> list[str]:
    """Why a server event is not as the official package describes it."""
    if event["type"] not in OFFICIAL:
        return [f"{event['type']} is no official event"]
    try:
        _judge.validate_python(event)
    except pydantic.ValidationError as error:
        return [f"{event['type']}: {e['loc']}: {e['msg']}" for e in error.errors()]
    return []
