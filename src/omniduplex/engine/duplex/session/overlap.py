"""Speech over an answer as an ear tells of it: kept from the client until it is judged.

The judge is `overlap_policy`; `append_overlap` asks it of what a client appends.
"""

from __future__ import annotations

import msgspec

from omniduplex.engine.duplex.model_events import (
    UserSpeechProgress,
    UserSpeechStarted,
    UserTurnEnded,
)
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.listening import tell_overlap
from omniduplex.engine.duplex.session.output_lane import OutputLane
from omniduplex.engine.duplex.session.overlap_policy import (
    UNINTERRUPTIBLE,
    OverlapView,
    Verdict,
    judge,
    why_not_a_turn,
)
from omniduplex.protocol.duplex import OverlapMetadata

CANCEL_REASON = "turn_detected"
USUAL_LEVEL_WEIGHT = 0.3
"""How much one turn moves the user's usual level: the last few count."""
NO_VERDICT = Verdict("listen", "")
NOTHING_HEARD = UserSpeechProgress(0.0, 0.0)


class UsualLevel:
    """How loud this user speaks to us, dBFS: an average over turns, of what is speech in them."""

    def __init__(self) -> None:
        self.dbfs: float | None = None

    def heard(self, dbfs: float) -> None:
        """A turn that is meant for us was this loud."""
        if self.dbfs is None:
            self.dbfs = dbfs
        else:
            self.dbfs += USUAL_LEVEL_WEIGHT * (dbfs - self.dbfs)


class Overlap:
    """The judgement of one utterance at a time.

    Under `adaptive` an utterance over an answer is withheld from the client until it is known to
    be a turn: to stock clients `speech_started` means that they fall silent.
    """

    def __init__(self, core: SessionCore, output: OutputLane) -> None:
        self._core = core
        self._output = output
        self._withheld: UserSpeechStarted | None = None
        self._progress = NOTHING_HEARD
        self._verdict = NO_VERDICT
        self._usual_level = UsualLevel()
        self._insists = False

    @property
    def withholds(self) -> bool:
        """Whether an utterance is being judged that the client does not know of."""
        return self._withheld is not None

    def begins(self, start: UserSpeechStarted) -> bool:
        """The user starts to speak; true when that may be announced at once."""
        self._verdict = NO_VERDICT
        self._progress = NOTHING_HEARD
        if not self._judges_in_secret:
            return True
        self._withheld = start
        self._core.run(self._core.model.plan_overlap(self._core.fence, active=True))
        return False

    def announced(self) -> None:
        """The client knows that the user speaks: an answer that this interrupts ends now."""
        verdict = self._verdict
        if self._core.config.overlap_policy != "adaptive":
            verdict = judge(self._view())
            if self._output.in_progress or verdict.reason == UNINTERRUPTIBLE:
                self._tell(verdict)
        if verdict.action == "barge_in":
            self._output.stop(CANCEL_REASON)

    def goes_on(self, progress: UserSpeechProgress) -> UserSpeechStarted | None:
        """The utterance goes on; the start to announce, if it is an interruption by now."""
        if self._withheld is None:
            return None
        if progress.transcript is None:  # nothing new; an empty one means that no words were heard
            progress = msgspec.structs.replace(progress, transcript=self._progress.transcript)
        self._progress = progress
        if not self._judges_in_secret:
            return self._release()
        verdict = judge(self._view())
        self._tell(verdict)
        return self._release() if verdict.action == "barge_in" else None

    def ends(self, event: UserTurnEnded) -> UserSpeechStarted | None:
        """The utterance is over: the start to announce if it was a turn, None if it was not.

        Once the answer has been heard to its end, whatever was said is a turn: a `yes` may be
        the reply. What was said over an answer that may not be interrupted is known only here.
        """
        if self._withheld is None:
            return None
        if not self._judges_in_secret and event.transcript:
            return self._release()
        self._take(event)
        verdict = judge(self._view(ended=True))
        self._tell(verdict)
        start = self._release()
        return start if verdict.is_turn else None

    def why_not_a_turn(self, event: UserTurnEnded) -> str | None:
        """Why what the user said, and the client knows of, wants no answer; None if it does.

        Who is too far away to be meant, and says more, is meant after all: there was no turn
        before to tell how loud this user is.
        """
        self._take(event)
        view = self._view(ended=True)
        reason = why_not_a_turn(view)
        if reason == "non_directed_speech" and view.usual_level_dbfs is None and self._insists:
            reason = None
        self._insists = reason == "non_directed_speech"
        if reason is None:
            if view.level_dbfs is not None:
                self._usual_level.heard(view.level_dbfs)
        elif view.policy == "adaptive":
            self._tell(Verdict("drop", reason))
        return reason

    def _take(self, event: UserTurnEnded) -> None:
        """The words are final, and so is the sound if the ear can tell."""
        self._progress = msgspec.structs.replace(
            event.speech or self._progress, transcript=event.transcript
        )

    def forget(self) -> None:
        """Open input is dropped: there is nothing to judge any more."""
        self._release()

    def _release(self) -> UserSpeechStarted | None:
        start, self._withheld = self._withheld, None
        if start is not None:
            self._core.run(self._core.model.plan_overlap(self._core.fence, active=False))
        return start

    @property
    def _judges_in_secret(self) -> bool:
        """Whether speech may be no turn, so that its client is not to hear of it yet."""
        answers = self._output.active is not None or self._output.playout.playing is not None
        return answers and self._core.config.overlap_policy == "adaptive"

    def _view(self, *, ended: bool = False) -> OverlapView:
        config, progress = self._core.config, self._progress
        return OverlapView(
            policy=config.overlap_policy,
            supports_barge_in=self._core.capabilities.supports_barge_in,
            interruptible=self._output.interruptible,
            short_ack_ms=config.overlap_short_ack_ms,
            barge_in_ms=config.overlap_barge_in_ms,
            speech_ms=progress.speech_ms,
            transcript=progress.transcript,
            level_dbfs=progress.level_dbfs if progress.speech_ms else None,
            brightness_db=progress.brightness_db,
            floor=progress.floor,
            tic=progress.tic,
            usual_level_dbfs=self._usual_level.dbfs,
            ended=ended,
        )

    def _tell(self, verdict: Verdict) -> None:
        """Each new judgement once."""
        if verdict == self._verdict:
            return
        self._verdict = verdict
        facts = OverlapMetadata(overlap_speech_ms=self._progress.speech_ms)
        tell_overlap(self._core, verdict, facts, cancel_reason=CANCEL_REASON)
