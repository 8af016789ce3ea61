"""What a client appends while an answer is under way: judged, kept back, or given on."""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from omniduplex.audio.pcm import duration_ms
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.kept_audio import KeptAudio
from omniduplex.engine.duplex.session.open_turn import Given
from omniduplex.engine.duplex.session.output_lane import OutputLane
from omniduplex.engine.duplex.session.overlap_table import (
    AppendVerdict,
    AppendView,
    judge_append,
)
from omniduplex.protocol.duplex import AppendAudio, OverlapDecision, OverlapMetadata

REPORT_LATE_S = 5.0
"""A client that reports nothing for so long after a player without pauses is done plays nothing."""
IGNORED = frozenset(("client_overlap_action", "client_force_listen"))
"""Why an append is not for us, by its client's word."""


class Sealed(msgspec.Struct, frozen=True):
    """What was kept of a turn that is committed now.

    `is_ack` says that it was no turn but an acknowledgement, `is_deferred` that it is to be
    answered after the answer it was spoken over.
    """

    pcm: bytes = b""
    words: tuple[str, ...] = ()
    is_ack: bool = False
    is_deferred: bool = False


class AppendOverlap:
    """Judges appends over the answer of the moment (wire contract, section 8.1).

    Where an ear ends turns, it judges speech by itself: there only what a client declares is
    judged here, and nothing is kept for later.
    """

    def __init__(self, core: SessionCore, output: OutputLane) -> None:
        self._core = core
        self._output = output
        self._kept = KeptAudio(core.plugin.input_rate_hz)
        self._overlap_ms = 0.0
        self._speaks = False
        self._told = ("", "")

    @property
    def in_progress(self) -> bool:
        """Whether an answer is being made, or played to a client that has to report it."""
        if self._output.active is not None:
            return True
        record = self._output.playout.playing
        if record is None or self._core.config.playback_commit_policy != "ack_only":
            return False
        return self._core.now < record.finish_at + REPORT_LATE_S

    # -- one append -------------------------------------------------------------------------

    def strikes_at_once(self, command: AppendAudio, audio_ms: float) -> None:
        """An append that its client declares an interruption need not be heard for that."""
        view = self._view(command, audio_ms, speech=True, runs=False)
        if view.asks_barge_in and self._judges(view):
            verdict = judge_append(view)
            if verdict.action == "barge_in":
                self._tell(view, verdict)
                self._output.stop("barge_in")

    def take(self, command: AppendAudio, pcm: bytes, *, speech: bool, runs: bool) -> Given:
        """Judge an append; `runs` says that an ear hears an utterance already."""
        audio_ms = duration_ms(len(pcm), self._core.plugin.input_rate_hz)
        view = self._view(command, audio_ms, speech=speech, runs=runs)
        if not self._judges(view):
            before = self._kept.lead_in()
            heard = before + pcm if speech else pcm
            words = _words(command)
            return Given(heard, speech=speech, words=words, force_listen=command.force_listen)
        verdict = self._fitted(judge_append(view))
        self._overlap_ms, self._speaks = verdict.overlap_ms, speech
        self._tell(view, verdict)
        if verdict.action == "barge_in":
            self._output.stop(_cancel_reason(view))
            kept, words = self._kept.take()
            return Given(
                kept + self._kept.lead_in() + pcm,
                speech=True,
                words=words + _words(command),
                force_listen=command.force_listen,
            )
        if not verdict.buffers:
            return self._not_kept(verdict, pcm, len(command.audio))
        if not verdict.defers:
            words = _words(command)
            return Given(pcm, speech=speech, words=words, force_listen=verdict.force_listen)
        self._kept.keep(pcm, len(command.audio), _words(command))
        return Given(silence=len(pcm))

    def _not_kept(self, verdict: AppendVerdict, pcm: bytes, wire_bytes: int) -> Given:
        if verdict.reason == "silence_or_noise":
            self._kept.heard_before(pcm)
        free_bytes = 0 if self._core.config.decides_turns else wire_bytes
        return Given(silence=len(pcm), free_bytes=free_bytes)

    def _fitted(self, verdict: AppendVerdict) -> AppendVerdict:
        """An ear that ends turns needs its clock: nothing is kept from it for later."""
        if not self._core.config.decides_turns or verdict.action == "barge_in":
            return verdict
        heard = verdict.buffers and verdict.reason not in IGNORED
        return msgspec.structs.replace(verdict, buffers=heard, defers=False)

    def _judges(self, view: AppendView) -> bool:
        config = self._core.config
        if not self.in_progress and not (view.asks_barge_in and self._output.playout.playing):
            return False
        if config.auto_response:
            interrupts = view.policy == "barge_in_on_speech" or view.asks_barge_in
            if not (view.supports_barge_in and interrupts):
                return False
        declared = view.asks_barge_in or view.force_listen or view.overlap_action is not None
        if config.turn_detection is not None:
            return declared or (view.onset is False and view.policy == "barge_in_on_speech")
        # Stock clients know nothing of overlaps: what they commit is a turn, however short.
        return declared or config.knows_extensions

    def _view(
        self, command: AppendAudio, audio_ms: float, *, speech: bool, runs: bool
    ) -> AppendView:
        config, offers = self._core.config, self._core.capabilities
        without_audio = "audio" not in offers.required_input_modalities
        return AppendView(
            policy=config.overlap_policy,
            supports_barge_in=offers.supports_barge_in,
            short_ack_ms=config.overlap_short_ack_ms,
            barge_in_ms=config.overlap_barge_in_ms,
            duration_ms=audio_ms if command.duration_ms is None else command.duration_ms,
            speech=speech,
            overlap_ms=self._overlap_ms,
            auto_response=config.auto_response,
            interruptible=self._output.interruptible,
            onset=False if runs and config.turn_detection is not None else None,
            vision=bool(command.video_frames) and without_audio,
            overlap_action=command.overlap_action,
            force_barge_in=command.force_barge_in,
            force_listen=command.force_listen,
            transcript=command.transcript,
        )

    def _tell(self, view: AppendView, verdict: AppendVerdict) -> None:
        """Each judgement of a client's append; where an ear judges too, each new one once."""
        told, self._told = self._told, (verdict.action, verdict.reason)
        if self._core.config.turn_detection is not None and told == self._told:
            return
        strikes = verdict.action == "barge_in"
        metadata = OverlapMetadata(
            duration_ms=view.duration_ms,
            overlap_ms=verdict.overlap_ms,
            overlap_speech_ms=verdict.overlap_ms,
            buffer_audio=verdict.buffers,
            defer_runtime_append=verdict.defers,
            force_listen=verdict.force_listen or UNSET,
            preserve_realtime_input=strikes or UNSET,
            cancel_reason=_cancel_reason(view) if strikes else UNSET,
        )
        self._core.emit(
            OverlapDecision(
                session_id=self._core.session_id,
                epoch=self._core.epoch,
                policy=self._core.config.overlap_policy,
                action=verdict.action,
                reason=verdict.reason,
                metadata=metadata,
            )
        )

    # -- what becomes of it -----------------------------------------------------------------

    @property
    def keeps(self) -> bool:
        """Whether there is audio that the model did not hear yet."""
        return bool(self._kept.pcm)

    def tail(self, pcm: bytes) -> Given:
        """The last that a conversion gives of the open turn belongs to what was kept of it."""
        if not self.keeps:
            return Given(pcm)
        self._kept.keep(pcm, 0)
        return Given()

    def seal(self, *, alone: bool) -> Sealed:
        """The turn is committed; `alone` says that there is nothing in it but what was kept."""
        overlap_ms, self._overlap_ms = self._overlap_ms, 0.0
        over_answer = overlap_ms > 0 and self.in_progress
        if over_answer and alone and self._is_ack(overlap_ms):
            self._kept.drop(goes_on=False)
            return Sealed(is_ack=True)
        deferred = over_answer and self._output.active is not None
        return Sealed(*self._kept.take(), is_deferred=deferred)

    def answer_over(self, *, completed: bool) -> Given | None:
        """The answer ended: what was kept is the next turn, or it was an acknowledgement.

        Only a completed answer can have been acknowledged: what stopped one was more than that.
        None when nothing was kept.
        """
        overlap_ms, self._overlap_ms = self._overlap_ms, 0.0
        self._told = ("", "")
        if not self.keeps:
            return None
        if completed and self._is_ack(overlap_ms):
            return Given(free_bytes=self._kept.drop(goes_on=self._speaks))
        pcm, words = self._kept.take()
        return Given(pcm, speech=True, words=words)

    def _is_ack(self, overlap_ms: float) -> bool:
        """Whether so little speech just acknowledges: an answer without sound yet has none."""
        record = self._core.playback.latest
        heard = record is not None and record.sent_ms > 0
        return heard and overlap_ms <= self._core.config.overlap_short_ack_ms

    def settle(self) -> Given | None:
        """Notice that an answer was played to its end; as `answer_over`."""
        if not self.keeps or self.in_progress:
            return None
        return self.answer_over(completed=True)

    def forget(self) -> None:
        """Open input is dropped."""
        self._overlap_ms = 0.0
        self._kept.drop(goes_on=False)


def _words(command: AppendAudio) -> tuple[str, ...]:
    words = (command.transcript or "").strip()
    return (words,) if words else ()


def _cancel_reason(view: AppendView) -> str:
    return "turn_detected" if view.onset else "barge_in"
