"""Decisions on the wire: to keep listening, and what becomes of speech over an answer."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.overlap_policy import Verdict
from omniduplex.protocol.duplex import (
    ListenDecision,
    ListenResponse,
    OverlapDecision,
    OverlapMetadata,
    ResponseFacts,
)

MODEL_LISTENS = {"model_listen": True, "continuation_limit": False}
"""Whose decision it was, where the contract says so."""


class IdleSilence:
    """Silence that a client sends while nothing goes on: each stretch of it is told once.

    The contract (section 7.5) has an event for each append, which is a flood of them.
    """

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._told = False

    def heard(self) -> None:
        """An append of it came."""
        if not self._told:
            self._told = True
            tell_listening(self._core, "silence_or_noise")

    def over(self) -> None:
        """Something else came: silence after it is told again."""
        self._told = False


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
            response_id=ends,
            response=ListenResponse(id=ends or UNSET, metadata=facts),
        )
    )


def tell_overlap(
    core: SessionCore, verdict: Verdict, facts: OverlapMetadata, *, cancel_reason: str
) -> None:
    """Tell how speech over an answer was judged; and if that stops the answer, by which reason."""
    if verdict.action == "barge_in":
        facts = msgspec.structs.replace(facts, cancel_reason=cancel_reason)
    core.emit(
        OverlapDecision(
            session_id=core.session_id,
            epoch=core.epoch,
            policy=core.config.overlap_policy,
            action=verdict.action,
            reason=verdict.reason,
            metadata=facts,
        )
    )
