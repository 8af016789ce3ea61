"""What every server event has, known or not: a wire type and perhaps a place in the sequence."""

from __future__ import annotations

from msgspec import UNSET

from omniduplex.protocol.duplex import RealtimeEvent, UnknownEvent

ServerEvent = RealtimeEvent | UnknownEvent


def wire_type(event: ServerEvent) -> str:
    """The event's `type` on the wire."""
    if isinstance(event, UnknownEvent):
        return event.type
    return str(event.__struct_config__.tag)


def sequence_number(event: ServerEvent) -> int | None:
    """The event's `server_event_seq`, when it has one."""
    return None if event.server_event_seq is UNSET else event.server_event_seq
