"""What one append during an answer means: wire contract, section 8.2, the first row that matches.

A pure function over a frozen view: what a client says of its append comes first, then what it is by
its level; what is speech, and no more is known of it, is left to `overlap_policy`.
"""

from __future__ import annotations

import msgspec

from omniduplex.engine.duplex.session.overlap_policy import (
    UNINTERRUPTIBLE,
    OverlapView,
    Verdict,
    is_short_ack,
    judge,
    words,
)
from omniduplex.protocol.duplex import OverlapPolicy

BARGE_IN_ACTIONS = frozenset(("barge_in", "interrupt", "cancel"))
LISTEN_ACTIONS = frozenset(("listen", "continue", "continue_output", "ack"))
DROP_ACTIONS = frozenset(("drop", "ignore", "silence"))


class AppendView(msgspec.Struct, frozen=True, kw_only=True):
    """An append and the answer it falls into; times in ms.

    `overlap_ms` is the speech over this answer so far, without this append. `onset` is what voice
    activity detection says: an utterance begins here, runs already, or nobody listens (None).
    `vision` says that it brings frames to a model that takes them without audio.
    """

    policy: OverlapPolicy
    supports_barge_in: bool
    short_ack_ms: float
    barge_in_ms: float
    duration_ms: float
    speech: bool
    overlap_ms: float = 0.0
    auto_response: bool = False
    interruptible: bool = True
    onset: bool | None = None
    vision: bool = False
    overlap_action: str | None = None
    force_barge_in: bool = False
    force_listen: bool = False
    transcript: str | None = None

    @property
    def asks_barge_in(self) -> bool:
        """Whether the client says that this interrupts."""
        return self.force_barge_in or self.overlap_action in BARGE_IN_ACTIONS

    @property
    def overlap_with_this_ms(self) -> float:
        """The speech over this answer, this append included."""
        return self.overlap_ms + (self.duration_ms if self.speech else 0.0)


class AppendVerdict(Verdict, frozen=True, kw_only=True):
    """What to do with an append, and the contract's word for why.

    `buffers` keeps its audio for the user's turn, `defers` keeps it from the model until the answer
    is over. `overlap_ms` is the speech over the answer from now on.
    """

    overlap_ms: float
    buffers: bool = True
    defers: bool = False
    force_listen: bool = False


def judge_append(view: AppendView) -> AppendVerdict:
    """Say what an append is; an answer that may not be interrupted never is."""
    verdict = _by_client(view) or (_auto(view) if view.auto_response else _explicit(view))
    if verdict.action == "barge_in" and not view.interruptible:
        return _listen(view, UNINTERRUPTIBLE, buffers=view.speech)
    return verdict


def _by_client(view: AppendView) -> AppendVerdict | None:
    """Rows 1 to 5: the client decides."""
    if view.asks_barge_in and not view.supports_barge_in:
        return _listen(view, "barge_in_unsupported", buffers=view.speech)
    reason = "client_overlap_action"
    if view.overlap_action in BARGE_IN_ACTIONS:
        return _barge_in(view, reason)
    if view.overlap_action in LISTEN_ACTIONS:
        long_speech = view.speech and view.duration_ms > view.short_ack_ms
        keeps = view.overlap_action == "listen" and long_speech
        return _listen(view, reason, overlap_ms=0.0, buffers=keeps)
    if view.overlap_action in DROP_ACTIONS:
        return AppendVerdict(action="drop", reason=reason, overlap_ms=0.0, buffers=False)
    if view.force_barge_in:
        return _barge_in(view, "client_force_barge_in")
    return None


def _auto(view: AppendView) -> AppendVerdict:
    """Rows 6 and 7: the model hears everything, and answers by itself."""
    interrupts = view.speech and view.policy == "barge_in_on_speech" and view.onset is not False
    if interrupts:
        reason = "server_vad_speech_started" if view.onset else "barge_in_on_speech"
        return _barge_in(view, reason)
    return AppendVerdict(
        action="listen",
        reason="auto_response_continuous",
        overlap_ms=view.overlap_ms,
        force_listen=view.force_listen,
    )


def _explicit(view: AppendView) -> AppendVerdict:
    """Rows 8 to 11: what needs no policy."""
    if view.force_listen:
        reason = "client_force_listen"
        return _listen(view, reason, overlap_ms=0.0, buffers=view.speech, force_listen=True)
    if not view.speech:
        if view.vision:
            return _listen(view, "vision_follow", defers=False)
        return AppendVerdict(
            action="drop", reason="silence_or_noise", overlap_ms=view.overlap_ms, buffers=False
        )
    if view.transcript is not None and is_short_ack(words(view.transcript)):
        return _listen(view, "short_ack_transcript", overlap_ms=0.0, buffers=False)
    return _by_policy(view)


def _by_policy(view: AppendView) -> AppendVerdict:
    """Rows 12 to 18: speech like any that an ear tells of."""
    verdict = judge(
        OverlapView(
            policy=view.policy,
            supports_barge_in=view.supports_barge_in,
            short_ack_ms=view.short_ack_ms,
            barge_in_ms=view.barge_in_ms,
            speech_ms=view.overlap_with_this_ms,
            transcript=view.transcript or None,
            onset=view.onset,
        )
    )
    if verdict.action == "barge_in":
        return _barge_in(view, verdict.reason)
    runs = verdict.reason == "server_vad_utterance_active"
    return _listen(view, verdict.reason, defers=not runs, force_listen=runs)


def _barge_in(view: AppendView, reason: str) -> AppendVerdict:
    return AppendVerdict(action="barge_in", reason=reason, overlap_ms=view.overlap_with_this_ms)


def _listen(
    view: AppendView,
    reason: str,
    *,
    overlap_ms: float | None = None,
    buffers: bool = True,
    defers: bool = True,
    force_listen: bool = False,
) -> AppendVerdict:
    return AppendVerdict(
        action="listen",
        reason=reason,
        overlap_ms=view.overlap_with_this_ms if overlap_ms is None else overlap_ms,
        buffers=buffers,
        defers=defers,
        force_listen=force_listen,
    )
