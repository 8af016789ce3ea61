"""Everything the user says: appends, what the ear hears of them, commits."""

from __future__ import annotations

import msgspec

from omniduplex.engine.duplex.model_events import (
    UserAudioWaits,
    UserSpeechProgress,
    UserSpeechStarted,
    UserTurnDraft,
    UserTurnEnded,
    UserTurnUnheard,
)
from omniduplex.engine.duplex.session.append_overlap import AppendOverlap
from omniduplex.engine.duplex.session.client_commits import ClientCommits
from omniduplex.engine.duplex.session.commit_fanout import CommittedTurn, commit_turn
from omniduplex.engine.duplex.session.committed_turns import CommittedTurns
from omniduplex.engine.duplex.session.continuation import Continuation
from omniduplex.engine.duplex.session.core import INLINE_BYTES, SessionCore
from omniduplex.engine.duplex.session.input_audio import InputAudio
from omniduplex.engine.duplex.session.inputs import AudioReady
from omniduplex.engine.duplex.session.listening import IdleSilence, tell_listening
from omniduplex.engine.duplex.session.open_turn import Given, OpenTurn
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
    TimeoutTriggered,
)

# What clients say of lengths is added up; an hour is more than one event can hold.
MAX_APPEND_MS = 3_600_000


class InputLane:
    """The open turn: what is heard of it, how it ends, and what that asks for."""

    def __init__(self, core: SessionCore, output: OutputLane, continuation: Continuation) -> None:
        self._core = core
        self._output = output
        self._turn = OpenTurn(core, continuation)
        self._audio = InputAudio(core, self._heard)
        self._overlap = Overlap(core, output)
        self._appends = AppendOverlap(core, output)
        self.committed = CommittedTurns(core, output)
        self._silence = IdleSilence(core)
        self._commits = ClientCommits(core, self._turn, self._appends, self.committed)
        output.on_over = self._answer_over

    @property
    def heard_ms(self) -> float:
        """Audio that was heard since the session began."""
        return self._turn.clock.heard_ms

    @property
    def speaking(self) -> bool:
        """Whether the user is in the middle of a turn that the ear noticed."""
        return self._turn.heard.started

    @property
    def turn_is_open(self) -> bool:
        """Whether the model has speech whose end it is to hear."""
        return self._turn.heard.speech and self._core.config.decides_turns

    @property
    def waits(self) -> bool:
        """Whether there is audio on its way to the model."""
        return self._audio.held.converting

    # -- audio in ---------------------------------------------------------------------------

    def hold(self, command: RealtimeCommand) -> bool:
        """Keep a command back if it has to wait for audio before it.

        Raises:
            DuplexError: `input_backpressure` when too much waits already.
        """
        pending = self._core.pending
        if pending.backlog.inputs or pending.held_commands:  # a call less for a live stream
            self._core.check_pace(command)
        overtakes = isinstance(command, CancelResponse) and self._output.would_stop(command)
        if self.waits and overtakes:
            self._forgo_answers()
            return False
        return self._audio.hold(command)

    def release(self) -> RealtimeCommand | None:
        """The next command that was kept back and need not wait any more."""
        return self._audio.held.release()

    def append(self, command: AppendAudio) -> None:
        """Audio for the open turn."""
        if command.video_frames:
            raise DuplexError(
                "invalid_input_modality", "this model takes no video", param="video_frames"
            )
        if not 0 <= (command.duration_ms or 0) <= MAX_APPEND_MS:
            message = f"duration_ms is between 0 and {MAX_APPEND_MS}"
            raise DuplexError("bad_event", message, param="duration_ms")
        wanted = self._audio.admit(command)
        if not 0 < len(command.audio) <= INLINE_BYTES:  # else it is heard at once
            audio_ms = wanted.duration_ms(len(command.audio))
            command = self._appends.strikes_at_once(command, audio_ms)
        if command.audio:
            self._audio.convert(command, wanted)

    def converted(self, ready: AudioReady) -> None:
        """A large append is converted."""
        self._audio.converted(ready)

    def waits_with_model(self, event: UserAudioWaits) -> None:
        """The model has taken audio and is yet to hear it."""
        self._core.pending.unheard_bytes = self._turn.size_bytes(event.audio_ms)

    def _heard(self, command: AppendAudio, pcm: bytes) -> None:
        self._turn.clock.heard(self._turn.length_ms(len(pcm)))
        speech = is_speech(command, pcm, self._core.config.overlap_silence_rms)
        runs = self._turn.heard.started
        if speech or not self._nothing_goes_on:
            self._silence.over()
        else:
            self._silence.heard()
        self._give(self._appends.take(command, pcm, speech=speech, runs=runs))

    @property
    def _nothing_goes_on(self) -> bool:
        """Whether a client that ends turns itself has begun none, and hears no answer."""
        if self._core.config.decides_turns or self._turn.heard.speech:
            return False
        return self._core.turn_state == "idle" and not self._output.in_progress

    def _give(self, given: Given) -> None:
        self._audio.free(given.free_bytes)
        self._turn.give(given)

    def _answer_over(self, completed: bool) -> None:
        """An answer ended: what was spoken over it is the next turn, or it is forgotten."""
        self._silence.over()
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
        self._turn.fall_silent(int(self.heard_ms))
        if not self._turn.heard.buffered_ms:
            self._turn_over()
            self._core.run(self._core.model.plan_clear(self._core.fence))

    def _turn_over(self) -> float:
        """Begin a new turn; how many ms of the one before were heard."""
        self._audio.turn_over()
        return self._turn.over().buffered_ms

    # -- turns that the client ends ---------------------------------------------------------

    def commit(self, command: Commit | InputCommit) -> None:
        """Seal the open turn.

        Raises:
            DuplexError: `input_backpressure`, or as `ClientCommits.check`.
        """
        self._core.check_room_for_turn()
        # The rest of the sound may be all there is of the turn, so it comes before the check.
        if self._turn.heard.speech or not self._core.config.decides_turns:
            self._end_stream()
        self._commits.check(command)
        self._overlap.forget()
        self._audio.turn_over()
        self._commits.seal(command, heard_ms=int(self.heard_ms))

    def _end_stream(self) -> None:
        """What the conversion still holds belongs to this turn."""
        given = self._appends.tail(self._audio.flush())
        self._turn.clock.heard(self._turn.length_ms(len(given.pcm)))
        self._give(given)

    # -- turns that end by listening --------------------------------------------------------

    def speech_started(self, event: UserSpeechStarted) -> None:
        """The user speaks."""
        self._turn.heard.speech = True
        if self._overlap.begins(event):
            self._takes_floor(event)

    def _takes_floor(self, start: UserSpeechStarted) -> None:
        """Announce first that the user speaks, then see what it does to an answer."""
        self._turn.announce(self._turn.clock.began_at(start.audio_start_ms))
        self._overlap.announced()
        self._core.turn_state = "user_speaking"

    def speech_goes_on(self, event: UserSpeechProgress) -> None:
        """The user speaks over an answer: by now it may be known to be an interruption."""
        start = self._overlap.goes_on(event)
        if start is not None:
            self._takes_floor(start)

    def drafted(self, event: UserTurnDraft) -> None:
        """The user may be done."""
        if event.transcript and self._answers_turns:
            self._output.draft(event.transcript)

    def turn_ended(self, event: UserTurnEnded) -> None:
        """The user is done: commit the turn and answer it, unless it was none."""
        if self._overlap.withholds:
            start = self._overlap.ends(event)
            if start is None:
                self._turn_over()
                self._output.drop_draft()
                return
            self._takes_floor(start)
        turn = self._end_turn(event.audio_end_ms, event.transcript)
        reason = self._overlap.why_not_a_turn(event)
        if reason is None:
            self.committed.seal(turn, wants_response=self._answers_turns)
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
        item_id = self._turn.item_id
        self._turn.fall_silent(self._turn.clock.ended_at(audio_end_ms))
        return CommittedTurn(item_id=item_id, transcript=transcript, audio_ms=self._turn_over())

    def time_out(self) -> None:
        """The user has been silent since the last answer: commit the silence, and answer it."""
        core = self._core
        since = core.now if core.idle.since is None else core.idle.since
        core.idle.over()
        start_ms = max(0.0, self.heard_ms - (core.now - since) * 1000)
        item_id = self._turn.item_id
        self._turn_over()
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
        self.committed.seal(silence, wants_response=True)

    @property
    def _answers_turns(self) -> bool:
        detection = self._core.config.turn_detection
        return self._core.config.auto_response if detection is None else detection.create_response

    # -- dropping input ---------------------------------------------------------------------

    def clear(self) -> None:
        """`input_audio_buffer.clear`: forget open audio; the clock goes on, so does an answer."""
        self._drop_open()
        self._core.emit(InputCleared())

    def interrupt(self) -> None:
        """`input.cancel` and `barge_in`: drop open input, stop the answer, advance the epoch."""
        self._drop_open()
        self._forgo_answers()
        if not self._output.cancel("barge_in"):
            self._core.epoch += 1
            if self._output.cut_playback() is None:
                self._core.emit(InputCleared())

    def _forgo_answers(self) -> None:
        """What waits is not answered any more: who asked for an answer is told so."""
        active = self._output.active is not None
        code = "response_already_active" if active else "response_not_active"
        for asked in self._audio.held.forgo_answers():
            message = "it was cancelled before it could begin"
            self._core.emit_error(DuplexError(code, message, event_id=asked.event_id))

    def _drop_open(self) -> None:
        self._output.drop_draft()
        if not self._audio.drop_open():
            return  # all that is heard belongs to a commit that waits its turn
        if self.speaking:
            self._turn.fall_silent(int(self.heard_ms))
            self._nothing_to_answer()
        self._turn_over()
        self._overlap.forget()
        self._appends.forget()
        self._core.run(self._core.model.plan_clear(self._core.fence))
