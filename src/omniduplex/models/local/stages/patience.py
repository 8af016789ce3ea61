"""How long a silence may last before it ends a turn, by how complete the turn sounds."""

import math
from dataclasses import dataclass

from omniduplex.models.local.messages import EarSettings

# What the end-of-turn model says of whole sentences is mostly above the first; what it says of
# clauses that go on, below the second.
COMPLETE, UNSURE = 0.5, 0.25
# A silence that grows tells more: it is judged again when it is so much longer.
AGAIN = 1.3
# Over an answer a sound is assent, or an interruption and known for one soon: whoever falls
# silent for so long has said what there was to say.
OVERLAP_HOLD_MS = 400


@dataclass(slots=True)
class Patience:
    """The judgement of one silence at a time."""

    job: int | None = None
    """The judgement that is under way."""
    took_s: float | None = None
    """How long the newest one took that is there."""
    _again_from_ms: float = 0.0

    def wants_judgement(self, silence_ms: float) -> bool:
        """Whether a silence this long shall be judged."""
        return self.job is None and silence_ms >= self._again_from_ms

    def asks(self, job: int, silence_ms: float) -> None:
        """It is being judged, under this number."""
        self.job = job
        self._again_from_ms = silence_ms * AGAIN

    def takes(self, probability: float, took_s: float) -> None:
        """The turn sounds complete with this probability; once it does, that is enough."""
        self.job, self.took_s = None, took_s
        if probability >= COMPLETE:
            self._again_from_ms = math.inf

    def forget(self) -> int | None:
        """The silence is over; the job that nobody waits for any more."""
        job, self.job = self.job, None
        self.took_s = None
        self._again_from_ms = 0.0
        return job


def hold_ms(settings: EarSettings, probability: float) -> int:
    """Silence that ends a turn which sounds this complete, in ms.

    From unsure to complete it falls from the middle of the two to the shorter one.
    """
    patient, complete = settings.hold_ms, settings.complete_hold_ms
    if complete is None or probability < UNSURE:
        return patient
    doubt = max(0.0, COMPLETE - probability) / (COMPLETE - UNSURE)
    return complete + round((patient - complete) / 2 * doubt)
