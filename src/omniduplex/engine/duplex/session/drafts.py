"""The answer that is begun in secret while the user may still go on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from omniduplex.engine.duplex.contracts import StageWork
from omniduplex.engine.duplex.model_events import ResponseEvent
from omniduplex.engine.duplex.session.core import SessionCore

Plan = Callable[[str, str], Sequence[StageWork] | None]
"""Asks the model, under a key, what it says to words that are not committed yet."""


@dataclass(slots=True)
class Draft:
    """What was begun, in answer to which words after which history, and what came of it so far."""

    key: str
    transcript: str
    history_version: int
    held: list[ResponseEvent] = field(default_factory=list)


class Drafts:
    """At most one draft at a time; nobody but the model knows of it until it is shown."""

    def __init__(self, core: SessionCore, plan: Plan) -> None:
        self._core = core
        self._plan = plan
        self._draft: Draft | None = None

    @property
    def begun(self) -> bool:
        """Whether there is a draft."""
        return self._draft is not None

    def begin(self, transcript: str) -> None:
        """The user may be done: begin the answer."""
        version = self._core.history.version
        if self._draft is not None:
            if (self._draft.transcript, self._draft.history_version) == (transcript, version):
                return
            self.drop()
        key = self._core.new_id("answer")
        works = self._plan(key, transcript)
        if works is not None:
            self._core.run(works)
            self._draft = Draft(key, transcript, version)

    def drop(self) -> None:
        """The user went on, or the answer is not wanted."""
        if self._draft is not None:
            draft, self._draft = self._draft, None
            self._core.run(self._core.model.plan_cancel(self._core.fence, draft.key))

    def hold(self, event: ResponseEvent) -> bool:
        """Keep what the model made for the draft; false if it is for something else."""
        if self._draft is None or event.key != self._draft.key:
            return False
        self._draft.held.append(event)
        return True

    def answering(self, transcript: str) -> Draft | None:
        """Give the draft away if it answers just the turn that was committed; else drop it."""
        draft = self._draft
        # The turn itself was added to the history after the draft was made: one change is due.
        fresh = (
            draft is not None
            and draft.transcript == transcript
            and draft.history_version + 1 == self._core.history.version
        )
        if not fresh:
            self.drop()
            return None
        self._draft = None
        return draft
