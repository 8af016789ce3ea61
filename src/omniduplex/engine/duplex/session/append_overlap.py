"""What a client appends while an answer is under way: judged, kept from the model, or given on.

The judge is `overlap_table`, with `overlap_policy` behind it, which `overlap` asks for an ear.
"""

from __future__ import annotations

import msgspec
from msgspec import UNSET

from omniduplex.audio.pcm import duration_ms
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.kept_audio import KeptAudio
from omniduplex.engine.duplex.session.listening import tell_overlap
from omniduplex.engine.duplex.session.open_turn import Given
from omniduplex.engine.duplex.session.output_lane import OutputLane
from omniduplex.engine.duplex.session.overlap_table import (
    AppendVerdict,
    AppendView,
    judge_append,
)
from omniduplex.protocol.duplex import AppendAudio, OverlapMetadata

CANCEL_REASON = "barge_in"
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

    # -- one append -------------------------------------------------------------------------

    def strikes_at_once(self, command: AppendAudio, audio_ms: float) -> AppendAudio:
        """An append that its client declares an interruption need not be heard for that.

        What is left of it once it has interrupted is sound like any other.
        """
        view = self._view(command, audio_ms, speech=True)
        if not (view.asks_barge_in and self._judges(view, runs=False)):
            return command
        verdict = judge_append(view)
        if verdict.action != "barge_in":
            return command
        self._strike(view, verdict)
        return msgspec.structs.replace(command, overlap_action=None, force_barge_in=False)

    def take(self, command: AppendAudio, pcm: bytes, *, speech: bool, runs: bool) -> Given:
        """Judge an append; `runs` says that an ear hears an utterance already."""
        audio_ms = duration_ms(len(pcm), self._core.plugin.input_rate_hz)
        view = self._view(command, audio_ms, speech=speech)
        if not self._judges(view, runs=runs):
            return self._heard(command, pcm, speech=speech)
        verdict = self._fitted(judge_append(view))
        if verdict.action == "barge_in":
            self._strike(view, verdict)
            return self._heard(command, pcm, speech=speech)
        self._overlap_ms, self._speaks = verdict.overlap_ms, speech
        self._tell(view, verdict)
        if not verdict.buffers:
            return self._not_kept(verdict, pcm, len(command.audio))
        if not verdict.defers:
            words = _words(command)
            return Given(pcm, speech=speech, words=words, force_listen=verdict.force_listen)
        self._kept.keep(pcm, len(command.audio), _words(command))
        return Given(silence=len(pcm))

    def _strike(self, view: AppendView, verdict: AppendVerdict) -> None:
        """Stop the answer, which gives the model what was kept over it."""
        self._tell(view, verdict)
        self._output.stop(CANCEL_REASON)

    def _heard(self, command: AppendAudio, pcm: bytes, *, speech: bool) -> Given:
        """What nothing stands in the way of, behind what was heard right before it."""
        before = self._kept.lead_in()
        heard = before + pcm if speech else pcm
        words = _words(command)
        return Given(heard, speech=speech, words=words, force_listen=command.force_listen)

    def _not_kept(self, verdict: AppendVerdict, pcm: bytes, wire_bytes: int) -> Given:
        if verdict.reason == "silence_or_noise":
            self._kept.heard_before(pcm)
        free_bytes = 0 if self._core.config.decides_turns else wire_bytes
        return Given(silence=len(pcm), free_bytes=free_bytes)

    def _fitted(self, verdict: AppendVerdict) -> AppendVerdict:
        """An ear that ends turns hears all that is for us, and nothing later than it came."""
        if not self._core.config.decides_turns or verdict.action == "barge_in":
            return verdict
        heard = verdict.reason not in IGNORED
        return msgspec.structs.replace(verdict, buffers=heard, defers=False)

    def _judges(self, view: AppendView, *, runs: bool) -> bool:
        config = self._core.config
        if not self._output.in_progress and not (
            view.asks_barge_in and self._output.playout.playing
        ):
            return False
        if config.auto_response:
            interrupts = view.policy != "listen_only" or view.asks_barge_in
            if not (view.supports_barge_in and interrupts):
                return False
        declared = view.asks_barge_in or view.force_listen or view.overlap_action is not None
        if config.turn_detection is not None:
            goes_on = runs and view.speech
            return declared or (goes_on and view.policy == "barge_in_on_speech")
        # Stock clients know nothing of overlaps: what they commit is a turn, however short.
        return declared or config.knows_extensions

    def _view(self, command: AppendAudio, audio_ms: float, *, speech: bool) -> AppendView:
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
            # An ear tells of an onset itself (`Overlap`): no append is one.
            onset=None if config.turn_detection is None else False,
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
        facts = OverlapMetadata(
            duration_ms=view.duration_ms,
            overlap_ms=verdict.overlap_ms,
            overlap_speech_ms=verdict.overlap_ms,
            buffer_audio=verdict.buffers,
            defer_runtime_append=verdict.defers,
            force_listen=verdict.force_listen or UNSET,
            preserve_realtime_input=verdict.action == "barge_in" or UNSET,
        )
        tell_overlap(self._core, verdict, facts, cancel_reason=CANCEL_REASON)

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
        over_answer = overlap_ms > 0 and self._output.in_progress
        if over_answer and alone and self._is_ack(overlap_ms):
            self._kept.drop(goes_on=False)
            return Sealed(is_ack=True)
        return Sealed(*self._kept.take(), is_deferred=over_answer)

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
        """Notice that an answer is played no more, heard or cut short; as `answer_over`.

        Or that an ear listens from now on, which hears what was kept at once.
        """
        if not (self.keeps or self._overlap_ms):
            return None
        if self._output.in_progress:
            heard_now = self.keeps and self._core.config.decides_turns
            return self.answer_over(completed=False) if heard_now else None
        record = self._core.playback.latest
        return self.answer_over(completed=record is None or not record.cut_short)

    def forget(self) -> None:
        """Open input is dropped."""
        self._overlap_ms = 0.0
        self._kept.drop(goes_on=False)


def _words(command: AppendAudio) -> tuple[str, ...]:
    words = (command.transcript or "").strip()
    return (words,) if words else ()
