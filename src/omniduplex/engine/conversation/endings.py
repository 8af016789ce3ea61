"""How a response can end, and how its ending reads on the wire."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UnsetType

from omniduplex.protocol.duplex import (
    ItemStatus,
    ResponseDone,
    StatusDetails,
    StatusError,
    failure_kind,
)

BACKPRESSURE = "output_backpressure"
"""The reader is too slow (wire contract, section 10)."""

Ending = Literal["completed", "cancelled", "failed", "incomplete"]


def status_details(ending: Ending, reason: str | None) -> StatusDetails | None:
    """Why a response ended so; a failure's reason is an error code."""
    if ending == "completed":
        return None
    if ending == "failed":
        return failure_details(reason or "internal_error")
    return StatusDetails(type=ending, reason=reason or ending)


def failure_details(code: str) -> StatusDetails:
    """Why a response failed; its message was in an error before."""
    error = StatusError(type=failure_kind(code).error_class, code=code)
    return StatusDetails(type="failed", reason=code, error=error)


def failed_ending(done: ResponseDone, code: str) -> ResponseDone:
    """The same ending, output and all, of a response that could not be delivered after all."""
    response = msgspec.structs.replace(
        done.response, status="failed", status_details=failure_details(code)
    )
    if not isinstance(response.facts, UnsetType):
        facts = msgspec.structs.replace(response.facts, committed=False, reason=code)
        response = msgspec.structs.replace(response, facts=facts)
    return msgspec.structs.replace(done, response=response)


def item_status(ending: Ending) -> ItemStatus:
    """How the message of a response that ended so stands."""
    match ending:
        case "completed":
            return "completed"
        case "cancelled":
            return "cancelled"
        case _:
            return "incomplete"
