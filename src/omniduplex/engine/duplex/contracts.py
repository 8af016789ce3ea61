"""Identities of a session's work in the engine, and the port through which it reaches stages."""

from __future__ import annotations

import base64
from abc import ABC, abstractmethod

import msgspec

from omniduplex.engine.messages import AbortTurn, AddTurn
from omniduplex.stages.messages import StageInput


class DuplexFence(msgspec.Struct, frozen=True, gc=False):
    """Which epoch and turn of which session a piece of work belongs to."""

    session_id: str
    epoch: int
    turn_id: int

    def request_id(self, role: str) -> str:
        """The stage request id of this fence (design: session identity)."""
        session = base64.urlsafe_b64encode(self.session_id.encode()).decode().rstrip("=")
        return f"duplex-s.{session}.e.{self.epoch}.r.{role}"


class Submit(msgspec.Struct, frozen=True, gc=False):
    """Give this input to a stage."""

    stage_id: int
    message: StageInput


class Abort(msgspec.Struct, frozen=True, gc=False):
    """Forget these stage requests, on every stage."""

    request_ids: tuple[str, ...]


StageWork = Submit | Abort


class DuplexStagePort(ABC):
    """What a session may do with the stages; the orchestrator is the one that does it."""

    @abstractmethod
    def submit(self, session_id: str, work: Submit) -> None:
        """Queue an input; its request becomes the session's own.

        Raises:
            StageUnavailable: no live worker, or its queue is full.
        """

    @abstractmethod
    def abort(self, request_ids: tuple[str, ...]) -> None:
        """Drop requests on every stage; unknown ids are ignored."""

    @abstractmethod
    def release(self, session_id: str) -> None:
        """Drop whatever requests of a session are still open, on every stage.

        Raises what hinders it; then it is to be called again.
        """

    @abstractmethod
    def run_turn(self, message: AddTurn | AbortTurn) -> None:
        """Run a turn beside the session, or forget one; its parts come on the engine loop."""
