"""Everything about answers: starting, drafting, streaming, cancelling, playback."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from msgspec import UnsetType

from omniduplex.engine.conversation.endings import BACKPRESSURE
from omniduplex.engine.conversation.response_options import Wanted, out_of_band_options
from omniduplex.engine.duplex.contracts import StageWork
from omniduplex.engine.duplex.model_events import (
    FunctionCall,
    ResponseAudio,
    ResponseEnded,
    ResponseEvent,
    ResponseFailed,
    ResponseMetrics,
    ResponseText,
    Speak,
)
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.drafts import Drafts
from omniduplex.engine.duplex.session.inputs import OutputOverflow
from omniduplex.engine.duplex.session.listening import tell_listening
from omniduplex.engine.duplex.session.offers import check_there_is_speech
from omniduplex.engine.duplex.session.out_of_band import OutOfBand
from omniduplex.engine.duplex.session.playback_ledger import PlaybackRecord
from omniduplex.engine.duplex.session.playout import REPORT_LATE_S, Playout
from omniduplex.engine.duplex.session.prompts import build_prompt, words_to_come
from omniduplex.engine.duplex.session.response import Response
from omniduplex.protocol.duplex import (
    CancelResponse,
    ClearOutputAudio,
    CreateResponse,
    DuplexError,
    OutputCleared,
    ResponseOptions,
)

OnOver = Callable[[bool], None]
"""Takes whether the response was completed: neither cancelled nor failed."""
NO_OPTIONS = ResponseOptions()
SPEAKS_BY_ITSELF = "this model decides by itself when to speak; it takes no response"


class OutputLane:
    """The conversation's one active response, the draft of the next, the deferred wish for one.

    What is answered beside the conversation is `beside` it.
    """

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self.active: Response | None = None
        self.beside = OutOfBand(core)
        self.playout = Playout(core)
        self.on_over: OnOver = lambda completed: None
        """Told when a response is over, before another one starts, or its playback is cut."""
        self._drafts = Drafts(core, lambda key, words: self._plan(key, self._usual(), words))
        self._deferred: PlaybackRecord | None = None  # of the answer that the wish waits for

    # -- starting ---------------------------------------------------------------------------

    def create(self, command: CreateResponse) -> None:
        """`response.create`: answer now.

        Raises:
            DuplexError: `response_already_active`, or what the options ask is refused.
        """
        if self.beside.create(command):
            return
        options = NO_OPTIONS if isinstance(command.response, UnsetType) else command.response
        if self.active is not None:
            self._refuse_another(self.active, beside=out_of_band_options(command) is not None)
        response = self._core.wanted(options)
        check_there_is_speech(self._core, response)
        if not self.start(response):
            raise DuplexError("unsupported", SPEAKS_BY_ITSELF)

    def _refuse_another(self, active: Response, *, beside: bool) -> None:
        message = f"response {active.response_id} is active in this conversation"
        if not beside:
            raise DuplexError("response_already_active", message)
        message += "; this model does not answer beside it"
        raise DuplexError("response_already_active", message, param="response.conversation")

    def answer_turn(self, transcript: str | None) -> None:
        """A user turn was committed and wants an answer now, as does whoever waited for one.

        `transcript` is None while its words are being recognised: the response opens now and the
        model is asked when they are there.
        """
        self._deferred = None
        if transcript is None:
            self.drop_draft()
            usual = self._usual()
            self._await_transcripts(usual, words_to_come(usual, self._core.history))
        elif not self._promote(transcript):
            self.start(self._usual())

    def defer(self) -> None:
        """A user turn wants an answer after the one that is being made, or played."""
        self.drop_draft()
        self._deferred = self.active.record if self.active else self._core.playback.latest

    @property
    def deferred_until(self) -> float | None:
        """When (s) the wish for a response is granted though nobody reports: None, if never."""
        waits = self._deferred if self.active is None else None
        return None if waits is None else waits.finish_at + REPORT_LATE_S

    def settle(self) -> None:
        """Notice that the answer is played no more: the next begins, unless it was cut short."""
        awaited = self._deferred
        if awaited is None or self.active is not None or awaited is self.playout.reported:
            return
        if awaited.cut_short:
            self._deferred = None
        self._start_deferred()

    def _usual(self) -> Wanted:
        """A response that nobody asked anything special of."""
        return self._core.wanted(NO_OPTIONS)

    @property
    def in_progress(self) -> bool:
        """Whether an answer is being made, or played to a client that has to report it."""
        return self.active is not None or self.playout.reported is not None

    @property
    def interruptible(self) -> bool:
        """Whether speech may stop what is being said, or played."""
        record = self.active.record if self.active else self.playout.playing
        return record is None or record.interruptible

    @property
    def busy(self) -> bool:
        """Whether a response is active, or waits for something."""
        return self.active is not None or self._deferred is not None or self._drafts.begun

    def start(self, response: Wanted) -> bool:
        """Open a response and ask the model for it; false if the model speaks only by itself."""
        self.drop_draft()
        self._deferred = None
        if awaited := words_to_come(response, self._core.history):
            self._await_transcripts(response, awaited)
            return True
        key = self._core.new_id("answer")
        works = self._plan(key, response)
        if works is None:
            return False
        self._core.run(works)
        self._open(self._new_response(key, response))
        return True

    def _plan(
        self, key: str, response: Wanted, extra_user_text: str | None = None
    ) -> Sequence[StageWork] | None:
        prompt = build_prompt(
            response,
            self._core.history,
            self._core.playback,
            with_images=self._core.capabilities.supports_image_input,
            extra_user_text=extra_user_text,
        )
        return self._core.model.plan_response(self._core.fence, key, prompt)

    def _await_transcripts(self, wanted: Wanted, awaited: set[str]) -> None:
        response = self._new_response(self._core.new_id("answer"), wanted)
        response.awaited |= awaited
        self._open(response)

    def not_awaited(self, item_id: str) -> None:
        """The words of a committed turn are known, or it is gone: ask what waited for them."""
        self.beside.not_awaited(item_id)
        response = self.active
        if response is None or item_id not in response.awaited:
            return
        response.awaited.remove(item_id)
        if response.awaited:
            return
        works = self._plan(response.key, response.wanted)
        if works is None:
            self.fail(SPEAKS_BY_ITSELF, "unsupported")
        else:
            self._core.run(works)

    def unheard(self, item_id: str) -> None:
        """The words of a committed turn will never be known: what waited for them fails."""
        message = "the words to be answered could not be recognised"
        if self.active is not None and item_id in self.active.awaited:
            self.fail(message, "transcription_failed")
        self.beside.unheard(item_id, DuplexError("transcription_failed", message))

    def _new_response(self, key: str, response: Wanted) -> Response:
        return Response(
            core=self._core,
            response_id=self._core.new_id("resp"),
            key=key,
            wanted=response,
        )

    def _open(self, response: Response) -> None:
        self.active = response
        self._core.turn_state = "assistant_generating"
        response.open()

    # -- drafts -----------------------------------------------------------------------------

    def draft(self, transcript: str) -> None:
        """The user may be done: begin the answer in secret."""
        if self.active is None:
            self._drafts.begin(transcript)

    def drop_draft(self) -> None:
        """The user went on, or the answer is not wanted."""
        self._drafts.drop()

    def _promote(self, transcript: str) -> bool:
        """Show the draft as the answer if it answers just these words; else drop it."""
        draft = self._drafts.answering(transcript)
        if draft is None:
            return False
        self._open(self._new_response(draft.key, self._usual()))
        for event in draft.held:
            self.take(event)
        return True

    # -- the model's output -----------------------------------------------------------------

    def take(self, event: ResponseEvent) -> None:
        """Show what the model made; output of a response that is not active is stale."""
        if self._drafts.hold(event):
            return
        if isinstance(event, Speak):
            self._speak_by_itself(event)
            return
        response = self.active
        if response is None or response.key != event.key:
            return
        match event:
            case ResponseAudio():
                self._core.turn_state = "assistant_playing"
                response.add_audio(event)
            case ResponseText():
                response.add_text(event.text)
            case FunctionCall():
                response.add_function_call(event)
            case ResponseMetrics():
                response.metrics.setdefault(str(event.stage_id), {}).update(event.metrics)
            case ResponseEnded():
                response.usage = event.usage
                self._finish(response, event)
            case ResponseFailed():
                self.fail(event.message)

    def _speak_by_itself(self, event: Speak) -> None:
        """The model takes a turn of its own, which ends the one before (section 7.3)."""
        previous, self.active = self.active, None
        if previous is not None:
            previous.finish("completed")
            self.on_over(True)
        self._open(self._new_response(event.key, self._usual()))

    def _finish(self, response: Response, event: ResponseEnded) -> None:
        self.active = None
        self._core.turn_state = "idle"
        if event.reason == "length":
            response.finish("incomplete", "max_output_tokens")
        else:
            response.finish("completed")
        self.on_over(True)
        self._start_deferred()

    def _start_deferred(self) -> None:
        deferred, self._deferred = self._deferred, None
        if deferred is not None:
            self.start(self._usual())

    def end_at_limit(self) -> None:
        """The model was kept going for too long: nothing of what it says now is kept."""
        response = self.active
        if response is None:
            tell_listening(self._core, "continuation_limit")
            return
        self.active = None
        self._core.turn_state = "idle"
        self._core.run(self._core.model.plan_cancel(self._core.fence, response.key))
        tell_listening(self._core, "continuation_limit", ends=response.response_id)
        response.finish("completed", committed=False)
        self.playout.strike_out(response.response_id)
        self.on_over(True)
        self._start_deferred()

    def fail(self, message: str, code: str = "runtime_data_plane_stream_failed") -> None:
        """The active response cannot be finished; nothing of it stays in the history."""
        if self.active is not None:
            self._core.emit_error(DuplexError(code, message))
            self.end_failed(self.active, code)

    def end_failed(self, response: Response, code: str, *, announced: bool = True) -> None:
        """End the active response as failed, after the error was told."""
        self.active, self._deferred = None, None
        self._core.turn_state = "idle"
        if announced:
            self.playout.silence(response.response_id)
            response.finish("failed", code)
        self.playout.forget(response.response_id)
        self.on_over(False)

    def give_up(self, response: Response, code: str, *, announced: bool) -> None:
        """The active response cannot be delivered: the model shall stop with it."""
        self._core.run(self._core.model.plan_cancel(self._core.fence, response.key))
        self.end_failed(response, code, announced=announced)

    def overflowed(self, lost: OutputOverflow) -> None:
        """The client reads too slowly for its session: what is under way or found no room fails."""
        for ending in lost.endings:
            self.playout.undo(ending)
        active = self.active
        if active is not None:
            announced = active.response_id not in lost.unannounced
            self.give_up(active, BACKPRESSURE, announced=announced)
        self.beside.give_up(BACKPRESSURE, lost.unannounced)

    def lose(self, response_id: str, code: str) -> None:
        """The client did not read a response: it fails, or has failed on its way there."""
        if self.active is not None and self.active.response_id == response_id:
            self.give_up(self.active, code, announced=True)
        elif not self.beside.lose(response_id, code):
            if self._deferred is not None and self._deferred.response_id == response_id:
                self._deferred = None
            self.playout.silence(response_id)
            self.playout.forget(response_id)

    # -- stopping ---------------------------------------------------------------------------

    def cancel(self, reason: str, *, announce_clear: bool = False) -> bool:
        """Stop the active response; the epoch advances first. False when nothing was active."""
        self._deferred = None
        self.drop_draft()
        response, self.active = self.active, None
        if response is None:
            return False
        self._core.epoch += 1
        self._core.turn_state = "idle"
        self._core.playback.interrupt(response.record, self._core.now)
        self._core.run(self._core.model.plan_cancel(self._core.fence, response.key))
        self.playout.silence(response.response_id, announce=announce_clear)
        response.finish("cancelled", reason)
        self.on_over(False)
        return True

    def stop(self, reason: str) -> None:
        """The user interrupts what is being said, or played: the epoch advances for either."""
        if not self.cancel(reason) and self.playout.playing is not None:
            self._core.epoch += 1
            self.cut_playback()

    def cut_playback(self, response_id: str | None = None) -> PlaybackRecord | None:
        """Stop what is still played of an answer that is whole; None when nothing was."""
        record = self.playout.cut(response_id)
        if record is not None and record is self._core.playback.latest:
            self.on_over(False)
        return record

    def would_stop(self, command: CancelResponse | ClearOutputAudio) -> bool:
        """Whether the active response is what the command means."""
        return self.active is not None and command.response_id in (None, self.active.response_id)

    def cancel_command(self, command: CancelResponse) -> None:
        """`response.cancel`; buffered input stays.

        Raises:
            DuplexError: `response_not_active`.
        """
        if not self.would_stop(command):
            raise DuplexError(
                "response_not_active",
                "Cancellation failed: no such active response",
                param="response_id" if command.response_id else None,
            )
        self.cancel("client_cancelled")

    def clear_command(self, command: ClearOutputAudio) -> None:
        """`output_audio_buffer.clear`: stop what is made and forget what is not played."""
        if self.would_stop(command):
            self.cancel("output_audio_buffer_clear", announce_clear=True)
            return
        if self.cut_playback(command.response_id) is None:
            self._core.emit(OutputCleared(response_id=command.response_id))
