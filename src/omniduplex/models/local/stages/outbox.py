"""What an ear tells and asks for, in the order in which it counts."""

from collections import deque

from omniduplex.models.local.messages import Heard
from omniduplex.models.local.stages.turns import Action, Drop, EndedTurn, Tell


class Outbox:
    """Asks go out at once; what is told waits behind an ended turn until its words are known."""

    def __init__(self) -> None:
        self._waiting: deque[Tell | EndedTurn] = deque()
        self._actions: list[Action] = []
        self._jobs = 0

    @property
    def empty(self) -> bool:
        """Whether nothing waits to be told."""
        return not self._waiting

    def new_job(self) -> int:
        """A number for a job."""
        self._jobs += 1
        return self._jobs

    def ask(self, action: Action) -> None:
        """Want something done."""
        self._actions.append(action)

    def drop(self, job: int | None) -> None:
        """Want a job done no more; None is none."""
        if job is not None:
            self._actions.append(Drop(job))

    def tell(self, heard: Heard, generation: int, metrics: dict[str, float] | None = None) -> None:
        """Let the session know."""
        self._waiting.append(Tell(heard, metrics or {}, generation))

    def end(self, turn: EndedTurn) -> None:
        """Let the session know of a turn's end, once its words are known."""
        self._waiting.append(turn)

    def flush(self) -> list[Action]:
        """All that need not wait for a turn's words."""
        actions, self._actions = self._actions, []
        while self._waiting:
            head = self._waiting[0]
            if isinstance(head, EndedTurn):
                if head.recognition.words is None:
                    break
                head = head.tell()
            self._waiting.popleft()
            actions.append(head)
        return actions
