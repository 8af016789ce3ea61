"""The listen decision on the wire."""

from __future__ import annotations

from msgspec import UNSET

from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.protocol.duplex import ListenDecision, ListenResponse, ResponseFacts


def tell_listening(core: SessionCore, reason: str) -> None:
    """Tell that the model keeps listening, and why."""
    facts = ResponseFacts(
        type="response.listen",
        session_id=core.session_id,
        epoch=core.epoch,
        reason=reason,
        model_listen=reason == "model_listen" or UNSET,
    )
    core.emit(
        ListenDecision(
            session_id=core.session_id,
            epoch=core.epoch,
            response=ListenResponse(metadata=facts),
        )
    )
