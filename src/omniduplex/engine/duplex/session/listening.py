"""The listen decision on the wire."""

from __future__ import annotations

from msgspec import UNSET

from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.protocol.duplex import ListenDecision, ListenResponse, ResponseFacts

MODEL_LISTENS = {"model_listen": True, "continuation_limit": False}
"""Whose decision it was, where the contract says so."""


def tell_listening(core: SessionCore, reason: str, *, ends: str | None = None) -> None:
    """Tell that the model keeps listening, and why; and which response `ends` by that."""
    facts = ResponseFacts(
        type="response.listen",
        session_id=core.session_id,
        response_id=ends or UNSET,
        epoch=core.epoch,
        reason=reason,
        model_listen=MODEL_LISTENS.get(reason, UNSET),
    )
    core.emit(
        ListenDecision(
            session_id=core.session_id,
            epoch=core.epoch,
            response_id=ends or UNSET,
            response=ListenResponse(id=ends or UNSET, metadata=facts),
        )
    )
