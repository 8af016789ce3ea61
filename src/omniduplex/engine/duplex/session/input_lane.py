"""Everything the user says: appends, turns, commits."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec

from omniduplex.audio.pcm import duration_ms
from omniduplex.engine.duplex.model_events import (
    UserSpeechProgress,
    UserSpeechStarted,
    UserTranscript,
    UserTranscriptFailed,
    UserTurnDraft,
    UserTurnEnded,
    UserTurnUnheard,
)
from omniduplex.engine.duplex.session.append_overlap import AppendOverlap, Given
from omniduplex.engine.duplex.session.commit_fanout import (
    CommittedTurn,
    commit_turn,
    transcribed,
    unheard,
)
from omniduplex.engine.duplex.session.continuation import Continuation
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.input_audio import InputAudio
from omniduplex.engine.duplex.session.inputs import AudioReady
from omniduplex.engine.duplex.session.listening import tell_listening
from omniduplex.engine.duplex.session.output_lane import OutputLane
from omniduplex.engine.duplex.session.overlap import Overlap
from omniduplex.engine.duplex.session.speech_hints import is_speech
from omniduplex.protocol.duplex import (
    AppendAudio,
    CancelResponse,
    Commit,
    DuplexError,
    InputCleared,
    InputCommit,
    RealtimeCommand,
    SpeechStarted,
    SpeechStopped,
    TimeoutTriggered,
)


@dataclass(slots=True)
class OpenTurn:
    """What is heard since the last commit or clear; `ignored_ms` of it are no part of the turn."""

    item_id: str | None = None
    started: bool = False
    buffered_ms: float = 0.0
    ignored_ms: float = 0.0
    speech: bool = False


class InputLane:
    """The open turn: what is heard of it, how it ends, and what that asks for."""

    def __init__(self, core: SessionCore, output: OutputLane, continuation: Continuation) -> None:
        self._core = core
        self._output = output
        self._continuation = continuation
        self._turn = OpenTurn()
        self._audio = InputAudio(core, self._heard)
        self._overlap = Overlap(core, output)
        self._appends = AppendOverlap(core, output)
        output.on_over = self._answer_over
        self.heard_ms = 0.0
        """Audio that was heard since the session began."""

    @property
    def speaking(self) -> bool:
        """Whether the user is in the middle of a turn that the ear noticed."""
        return self._turn.started

    @property
    def turn_is_open(self) -> bool:
        """Whether the model has speech whose end it is to hear."""
        return self._turn.speech and self._core.config.decides_turns

    @property
    def waits(self) -> bool:
        """Whether there is audio on its way to the model."""
        return self._audio.held.converting

    # -- audio in ---------------------------------------------------------------------------

    def hold(self, command: RealtimeCommand) -> bool:
        """Keep a command back if it has to wait for audio before it."""
        if isinstance(command, CancelResponse) and self._output.active is not None:
            self._audio.held.forgo_answers()
            return False
        return self._audio.held.hold(command)

    def release(self) -> RealtimeCommand | None:
        """The next command that was kept back and need not wait any more."""
        return self._audio.held.release()

    def append(self, command: AppendAudio) -> None:
        """Audio for the open turn."""
        if command.video_frames:
            raise DuplexError(
                "invalid_input_modality", "this model takes no video", param="video_frames"
            )
        wanted = self._audio.admit(command)
        self._appends.strikes_at_once(command, wanted.duration_ms(len(command.audio)))
        if command.audio:
            self._audio.convert(command, wanted)

    def converted(self, ready: AudioReady) -> None:
        """A large append is converted."""
        self._audio.converted(ready)

    def _heard(self, command: AppendAudio, pcm: bytes) -> None:
        self.heard_ms += self._length_ms(pcm)
        speech = is_speech(command, pcm, self._core.config.overlap_silence_rms)
        self._give(self._appends.take(command, pcm, speech=speech, runs=self._turn.started))

    def _give(self, given: Given) -> None:
        """Let the model hear what belongs to the open turn, and silence for what does not."""
        model, fence, turn = self._core.model, self._core.fence, self._turn
        self._continuation.fed()
        self._audio.free(given.free_bytes)
        if given.silence:
            turn.ignored_ms += self._length_ms(bytes(given.silence))
            self._core.run(model.plan_append(fence, bytes(given.silence)))
        if not given.pcm:
            return
        if turn.ignored_ms and not turn.buffered_ms and not self._core.config.decides_turns:
            self._core.run(model.plan_clear(fence))  # the turn begins here, not with that silence
        turn.buffered_ms += self._length_ms(given.pcm)
        turn.speech |= given.speech
        self._core.run(model.plan_append(fence, given.pcm, force_listen=given.force_listen))

    def _length_ms(self, pcm: bytes) -> float:
        return duration_ms(len(pcm), self._core.plugin.input_rate_hz)

    def _answer_over(self, completed: bool) -> None:
        """An answer ended: what was spoken over it is the next turn, or it is forgotten."""
        self._resolve(self._appends.answer_over(completed=completed))

    def settle(self) -> None:
        """Notice what became true by the clock, or by what a client reports, alone."""
        self._resolve(self._appends.settle())

    def _resolve(self, given: Given | None) -> None:
        if given is None:
            return
        self._give(given)
        if given.pcm:
            return
        if self._turn.started:
            self._turn.started = False
            item_id = self._item_id()
            self._core.emit(SpeechStopped(audio_end_ms=int(self.heard_ms), item_id=item_id))
        if not self._turn.buffered_ms:
            self._begin_turn()
            self._core.run(self._core.model.plan_clear(self._core.fence))

    # -- turns that end by listening --------------------------------------------------------

    def speech_started(self, event: UserSpeechStarted) -> None:
        """The user speaks: announce it first, then see what it does to an answer."""
        self._turn.speech = True
        if self._appends.protects_answer:
            self._announce(event)
            self._appends.protected()
            self._core.turn_state = "user_speaking"
        elif self._overlap.begins(event):
            self._announce(event)
            self._overlap.announced()
            self._core.turn_state = "user_speaking"

    def speech_goes_on(self, event: UserSpeechProgress) -> None:
        """The user speaks over an answer: by now it may be known to be an interruption."""
        start = self._overlap.goes_on(event)
        if start is not None:
            self._interrupted_by(start)

    def _interrupted_by(self, start: UserSpeechStarted) -> None:
        self._announce(start)
        self._overlap.strike()
        self._core.turn_state = "user_speaking"

    def _announce(self, start: UserSpeechStarted) -> None:
        self._turn.started = True
        self._core.emit(SpeechStarted(audio_start_ms=start.audio_start_ms, item_id=self._item_id()))

    def drafted(self, event: UserTurnDraft) -> None:
        """The user may be done."""
        if event.transcript and self._answers_turns:
            self._output.draft(event.transcript)

    def turn_ended(self, event: UserTurnEnded) -> None:
        """The user is done: commit the turn and answer it, unless it was none."""
        if self._overlap.withholds:
            start = self._overlap.ends(event)
            if start is None:
                self._begin_turn()
                self._output.drop_draft()
                return
            self._interrupted_by(start)
        turn = self._end_turn(event.audio_end_ms, event.transcript)
        reason = self._overlap.why_not_a_turn(event)
        if reason is None:
            self._seal(turn, wants_response=self._answers_turns)
            return
        self._output.drop_draft()
        self._nothing_to_answer()
        tell_listening(self._core, reason)

    def turn_unheard(self, event: UserTurnUnheard) -> None:
        """The user is done, but nobody knows what was said: there is nothing to answer."""
        self._overlap.forget()
        turn = self._end_turn(event.audio_end_ms, None)
        self._output.drop_draft()
        commit_turn(self._core, msgspec.structs.replace(turn, failure=event.message))
        self._nothing_to_answer()

    def _nothing_to_answer(self) -> None:
        """The user made a sound and is silent again; an answer that is being made goes on."""
        self._core.idle.heard(self._core.now)
        self._core.turn_state = "assistant_generating" if self._output.active else "idle"

    def _end_turn(self, audio_end_ms: int, transcript: str | None) -> CommittedTurn:
        """Begin a new turn; the one that the ear ended."""
        item_id = self._item_id()
        if self._turn.started:
            self._core.emit(SpeechStopped(audio_end_ms=audio_end_ms, item_id=item_id))
        audio_ms = self._begin_turn().buffered_ms
        return CommittedTurn(item_id=item_id, transcript=transcript, audio_ms=audio_ms)

    def _begin_turn(self) -> OpenTurn:
        """Begin a new turn; the one that is over."""
        turn, self._turn = self._turn, OpenTurn()
        self._audio.turn_over()
        return turn

    def time_out(self) -> None:
        """The user has been silent since the last answer: commit the silence, and answer it."""
        core = self._core
        since = core.now if core.idle.since is None else core.idle.since
        core.idle.over()
        start_ms = max(0.0, self.heard_ms - (core.now - since) * 1000)
        item_id = self._item_id()
        self._begin_turn()
        core.emit(
            TimeoutTriggered(
                audio_start_ms=int(start_ms), audio_end_ms=int(self.heard_ms), item_id=item_id
            )
        )
        silence = CommittedTurn(
            item_id=item_id,
            transcript="",
            audio_ms=self.heard_ms - start_ms,
            is_speech=False,
            silence_answered=True,
        )
        self._seal(silence, wants_response=True)

    @property
    def _answers_turns(self) -> bool:
        detection = self._core.config.turn_detection
        return self._core.config.auto_response if detection is None else detection.create_response

    def _item_id(self) -> str:
        if self._turn.item_id is None:
            self._turn.item_id = self._core.new_id("item")
            self._core.history.reserve(self._turn.item_id)
        return self._turn.item_id

    # -- turns that the client ends ---------------------------------------------------------

    def commit(self, command: Commit | InputCommit) -> None:
        """Seal the open turn."""
        if self._turn.speech or not self._core.config.decides_turns:
            self._end_stream()
        self._check_commit(command)
        if command.is_speech is False:
            self._appends.forget()
        sealed = self._appends.seal(alone=self._turn.buffered_ms <= 0)
        self._give(Given(sealed.pcm, speech=True))
        item_id = self._item_id()
        self._overlap.forget()
        if self._turn.started:
            self._core.emit(SpeechStopped(audio_end_ms=0, item_id=item_id))
        turn = self._begin_turn()
        if command.is_speech is False or not turn.speech:
            self._commit_silence(item_id, turn.buffered_ms, is_ack=sealed.is_ack)
            return
        works = self._core.model.plan_commit(self._core.fence, item_id)
        committed = CommittedTurn(
            item_id=item_id,
            transcript=None,
            audio_ms=turn.buffered_ms,
            overlap_deferred=sealed.is_deferred,
        )
        self._seal(committed, wants_response=self._wants_response(command))
        self._core.run(works)

    def _check_commit(self, command: Commit | InputCommit) -> None:
        turn = self._turn
        has_sound = turn.buffered_ms > 0 or turn.ignored_ms > 0 or self._appends.keeps
        there_is_some = turn.speech if self._core.config.decides_turns else has_sound
        if not there_is_some and command.is_speech is not False:
            raise DuplexError(
                "input_audio_buffer_empty",
                "input_audio_buffer.commit requires a non-empty input audio buffer.",
            )
        self._core.check_room_for_turn()

    def _commit_silence(self, item_id: str, audio_ms: float, *, is_ack: bool) -> None:
        """A turn without speech, or one that was but an acknowledgement of the answer."""
        self._core.run(self._core.model.plan_clear(self._core.fence))
        silent = CommittedTurn(
            item_id=item_id, transcript="", audio_ms=audio_ms, is_speech=False, overlap_ack=is_ack
        )
        self._seal(silent, wants_response=False)
        if not is_ack:
            tell_listening(self._core, "silence_or_noise")

    def _end_stream(self) -> None:
        """What the conversion still holds belongs to this turn."""
        given = self._appends.tail(self._audio.flush())
        self.heard_ms += self._length_ms(given.pcm)
        self._give(given)

    def _wants_response(self, command: Commit | InputCommit) -> bool:
        if command.response_create is not None:
            return command.response_create
        return self._core.config.auto_response

    def _seal(self, turn: CommittedTurn, *, wants_response: bool) -> None:
        """Commit the turn, then answer it if that is wanted."""
        deferred = wants_response and self._output.active is not None
        commit_turn(self._core, msgspec.structs.replace(turn, response_deferred=deferred))
        if wants_response:
            self._output.answer_turn(turn.transcript)

    def transcript_known(self, event: UserTranscript) -> None:
        """The words of committed audio; its item may have been deleted meanwhile."""
        item_id, index, history = event.item_id, event.content_index, self._core.history
        if not history.awaits(item_id, index):
            return
        history.transcript_arrived(item_id, event.transcript, index)
        transcribed(self._core, item_id, event.transcript, event.seconds, index)
        if item_id not in history.pending:
            self._output.not_awaited(item_id)

    def transcript_failed(self, event: UserTranscriptFailed) -> None:
        """Those words will never be known, nor be answered."""
        item_id, index = event.item_id, event.content_index
        if not self._core.history.awaits(item_id, index):
            return
        self._core.history.transcript_failed(item_id, index)
        unheard(self._core, item_id, event.message, content_index=index)
        self._output.unheard(item_id)

    # -- dropping input ---------------------------------------------------------------------

    def clear(self) -> None:
        """`input_audio_buffer.clear`: forget open audio; the clock goes on, so does an answer."""
        self._drop_open()
        self._core.emit(InputCleared())

    def interrupt(self) -> None:
        """`input.cancel` and `barge_in`: drop open input, stop the answer, advance the epoch."""
        self._drop_open()
        self._audio.held.forgo_answers()
        if not self._output.cancel("barge_in"):
            self._core.epoch += 1
            if self._output.cut_playback() is None:
                self._core.emit(InputCleared())

    def _drop_open(self) -> None:
        self._output.drop_draft()
        if not self._audio.drop_open():
            return  # all that is heard belongs to a commit that waits its turn
        self._begin_turn()
        self._overlap.forget()
        self._appends.forget()
        self._core.run(self._core.model.plan_clear(self._core.fence))
