"""The one authority over a duplex session: inputs in, effects out, no I/O and no clock inside."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from omniduplex.engine.conversation.endings import BACKPRESSURE
from omniduplex.engine.duplex.contracts import Abort, Submit
from omniduplex.engine.duplex.model_events import (
    Listen,
    ModelEvent,
    UserAudioWaits,
    UserSpeechProgress,
    UserSpeechResumed,
    UserSpeechStarted,
    UserTranscript,
    UserTranscriptFailed,
    UserTurnDraft,
    UserTurnEnded,
    UserTurnUnheard,
)
from omniduplex.engine.duplex.session.configuration import configure
from omniduplex.engine.duplex.session.continuation import Continuation
from omniduplex.engine.duplex.session.conversation import Conversation
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.effects import Effect, Ended
from omniduplex.engine.duplex.session.input_lane import InputLane
from omniduplex.engine.duplex.session.inputs import (
    AnswersGivenUp,
    AudioReady,
    CloseRequest,
    OutputOverflow,
    SessionInput,
    StageLost,
    StageResult,
    Tick,
    TimerFired,
    TurnPart,
)
from omniduplex.engine.duplex.session.listening import tell_listening
from omniduplex.engine.duplex.session.offers import check_offered
from omniduplex.engine.duplex.session.output_lane import OutputLane
from omniduplex.engine.duplex.session.public_view import public_object
from omniduplex.engine.duplex.session.timers import Timers
from omniduplex.protocol.duplex import (
    CLIENT_CLOSE,
    AckPlayback,
    AppendAudio,
    AppendText,
    BargeIn,
    CancelInput,
    CancelResponse,
    ClearInput,
    ClearOutputAudio,
    CloseSession,
    Commit,
    ContentPart,
    ConversationCreated,
    ConversationObject,
    CreateItem,
    CreateResponse,
    DeleteItem,
    DuplexError,
    DuplexSessionConfig,
    DuplexSessionObject,
    Heartbeat,
    HeartbeatAck,
    InputCommit,
    ItemInput,
    RealtimeCommand,
    Reason,
    RetrieveItem,
    SessionClosed,
    SessionCreated,
    SessionExpired,
    SessionExpiring,
    SessionUpdated,
    SignalTurn,
    TruncateItem,
    TurnEvent,
    TurnState,
    UpdateSession,
    close_reason,
    resolve_signal,
)

TOO_SLOW = "the client reads its events too slowly"
SIGNALLED_STATES: dict[str, TurnState] = {
    "user_started": "user_speaking",
    "user_committed": "user_committed",
    "assistant_started": "assistant_generating",
    "assistant_done": "idle",
}


class DuplexEngineSession:
    """A session: its core facts and the three parts that act on them.

    `handle` is the only way in. A refused command changes nothing and is answered with an error
    that names its `event_id`.
    """

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._output = OutputLane(core)
        continuation = Continuation(core)
        self._input = InputLane(core, self._output, continuation)
        self._conversation = Conversation(core)
        self._timers = Timers(core, self._input, self._output, continuation)
        self._reports = self._report_table()
        self._handlers = self._table()

    @property
    def session_id(self) -> str:
        """The id the server gave this session."""
        return self._core.session_id

    @property
    def epoch(self) -> int:
        """The interruption fence: advances with every cancel and every interruption."""
        return self._core.epoch

    @property
    def config(self) -> DuplexSessionConfig:
        """The configuration in force."""
        return self._core.config

    @property
    def heard_ms(self) -> float:
        """How much audio of the client was taken, in ms."""
        return self._input.heard_ms

    @property
    def closed(self) -> bool:
        """Whether the closing event was emitted."""
        return self._core.state == "closed"

    @property
    def active_response_id(self) -> str | None:
        """The response being made, if there is one."""
        return self._output.active.response_id if self._output.active else None

    @property
    def responses_under_way(self) -> tuple[str, ...]:
        """All responses being made, in the conversation and beside it."""
        beside = self._output.beside.response_ids
        return beside if self._output.active is None else (self._output.active.response_id, *beside)

    @property
    def _busy(self) -> bool:
        return bool(self.responses_under_way)

    @property
    def next_look_at(self) -> float | None:
        """When a `Tick` will find its end near, or here (s); None: never, as things are."""
        core = self._core
        return core.lease.next_look_at(core.config.idle_timeout_s, busy=self._busy)

    def detach(self, expected_generation: int, now: float) -> None:
        """The connection is gone, its client may come back; raises as `DuplexLease.detach`."""
        self._core.lease.detach(expected_generation, now)

    def resume(self, expected_generation: int, control_id: str, now: float) -> int:
        """A connection takes the session: the new generation; raises as `DuplexLease.resume`."""
        return self._core.lease.resume(expected_generation, control_id, now)

    def open(self, now: float) -> list[Effect]:
        """The first effects: the model listens, and the client learns of the session."""
        core = self._core
        core.now = now
        core.run(core.model.plan_open(core.fence, core.config))
        core.emit(SessionCreated(session=self.public_object()))
        core.emit(ConversationCreated(conversation=ConversationObject(id=core.conversation_id)))
        core.emit(SessionUpdated(session=self.public_object()))
        self._seed_first_turn()
        return self._taken()

    def _seed_first_turn(self) -> None:
        """`initial_user_text` is said before anything else (wire contract, section 3.1)."""
        text = self._core.config.initial_user_text
        if text:
            part = ContentPart(type="input_text", text=text)
            self._conversation.create(CreateItem(item=ItemInput(content=(part,))))

    def handle(self, item: SessionInput, now: float) -> list[Effect]:
        """Take one input at session time `now` (s) and say what is to be done, in order."""
        if self.closed:
            return []
        self._core.now = now
        self._timers.settle()
        self._reports.get(type(item), self._asked)(item)
        return self._taken()

    def _taken(self) -> list[Effect]:
        if not self.closed:
            self._timers.settle()
            self._timers.set()
        effects, self._core.effects = self._core.effects, []
        return effects

    # -- commands ---------------------------------------------------------------------------

    def _asked(self, command: RealtimeCommand) -> None:
        self._command(command)
        self._release()

    def _table(self) -> dict[type[RealtimeCommand], Callable[[Any], None]]:
        """Which part answers which command."""
        return {
            AppendAudio: self._input.append,
            Commit: self._input.commit,
            InputCommit: self._input.commit,
            ClearInput: lambda _: self._input.clear(),
            CancelInput: lambda _: self._input.interrupt(),
            BargeIn: lambda _: self._input.interrupt(),
            AppendText: self._refuse_text,
            CreateItem: self._conversation.create,
            RetrieveItem: self._conversation.retrieve,
            DeleteItem: self._delete,
            TruncateItem: self._conversation.truncate,
            AckPlayback: self._conversation.acknowledge,
            CreateResponse: self._output.create,
            CancelResponse: self._output.cancel_command,
            ClearOutputAudio: self._output.clear_command,
            UpdateSession: self._update,
            SignalTurn: self._signal,
            Heartbeat: lambda _: self._core.emit(HeartbeatAck(session_id=self.session_id)),
            CloseSession: self._close,
        }

    def _command(self, command: RealtimeCommand) -> None:
        self._core.lease.touch(self._core.now)
        try:
            if isinstance(command, SignalTurn):
                command = resolve_signal(command)
            check_offered(command, self._core.capabilities)
            if not (self._output.beside.stops(command) or self._input.hold(command)):
                self._handlers[type(command)](command)
        except DuplexError as error:
            error.event_id = command.event_id
            self._core.emit_error(error)

    def _release(self) -> None:
        """Handle the commands that need not wait for audio before them any more."""
        while (command := self._input.release()) is not None:
            self._command(command)

    def _converted(self, ready: AudioReady) -> None:
        self._input.converted(ready)
        item_id = self._conversation.converted(ready)
        if item_id is not None:
            self._output.unheard(item_id)
        self._release()

    def _delete(self, command: DeleteItem) -> None:
        self._conversation.delete(command)
        self._output.not_awaited(command.item_id)

    def _refuse_text(self, command: AppendText) -> None:
        raise DuplexError(
            "native_text_append_unsupported",
            "send text with conversation.item.create and response.create",
        )

    def _signal(self, command: SignalTurn) -> None:
        state = SIGNALLED_STATES.get(command.event)
        if state is None:
            raise DuplexError("bad_event", f"no turn signal {command.event!r}", param="event")
        self._core.turn_state = state
        self._core.emit(
            TurnEvent(
                session_id=self.session_id,
                event=command.event,
                turn_state=state,
                epoch=self.epoch,
            )
        )

    def _update(self, command: UpdateSession) -> None:
        configure(self._core, command.session)
        # It was begun under what held before.
        self._output.drop_draft()
        self._core.emit(SessionUpdated(session=self.public_object()))

    # -- what the runner reports ------------------------------------------------------------

    def _report_table(self) -> dict[type[SessionInput], Callable[[Any], None]]:
        return {
            StageResult: self._stage_result,
            StageLost: self._stage_lost,
            TurnPart: self._turn_part,
            AudioReady: self._converted,
            CloseRequest: self._close,
            Tick: lambda _: self._tick(),
            TimerFired: lambda _: self._timers.fired(),
            OutputOverflow: self._read_too_slowly,
            AnswersGivenUp: self._read_too_slowly,
        }

    def _turn_part(self, part: TurnPart) -> None:
        self._core.lease.touch(self._core.now)
        self._output.beside.take(part)

    def _stage_result(self, result: StageResult) -> None:
        """A stage's answer; a model that cannot go on with this session is a stage lost to it."""
        self._core.lease.touch(self._core.now)
        try:
            projections = self._core.model.project(result.stage_id, result.output)
        except DuplexError as error:
            self._stage_lost(StageLost(result.stage_id, error.message))
            return
        for projected in projections:
            if isinstance(projected, (Submit, Abort)):
                self._core.effects.append(projected)
            elif isinstance(projected, UserAudioWaits):
                self._input.waits_with_model(projected)
            else:
                self._model_event(projected)

    def _model_event(self, event: ModelEvent) -> None:
        match event:
            case UserSpeechStarted():
                self._input.speech_started(event)
            case UserSpeechProgress():
                self._input.speech_goes_on(event)
            case UserTurnDraft():
                self._input.drafted(event)
            case UserSpeechResumed():
                self._output.drop_draft()
            case UserTurnEnded():
                self._input.turn_ended(event)
            case UserTurnUnheard():
                self._input.turn_unheard(event)
            case UserTranscript():
                self._input.committed.transcript_known(event)
            case UserTranscriptFailed():
                self._input.committed.transcript_failed(event)
            case Listen():
                tell_listening(self._core, event.reason)
            case _:
                self._output.take(event)

    def _stage_lost(self, lost: StageLost) -> None:
        """A stage died under this session: its answer fails, then the session (section 7.8)."""
        if self._output.active is None:
            self._core.emit_error(DuplexError("runtime_data_plane_stream_failed", lost.message))
        self._output.fail(lost.message)
        self._close(CloseRequest(reason="request_cleanup", expired=True))

    def _tick(self) -> None:
        """Tell the client of each end that is near; end when one is here."""
        core = self._core
        for reason, at in core.lease.endings(core.config.idle_timeout_s, busy=self._busy):
            if core.now >= at:
                self._close(CloseRequest(reason=reason, expired=reason != "session_expired"))
                return
            if core.lease.warn_once(reason, at, core.now):
                left_ms = round((at - core.now) * 1000)
                core.emit(
                    SessionExpiring(session_id=self.session_id, reason=reason, time_left_ms=left_ms)
                )

    def _read_too_slowly(self, lost: OutputOverflow | AnswersGivenUp) -> None:
        """A slow reader loses its responses, and its session if that is not enough (section 10)."""
        self._core.emit_error(DuplexError(BACKPRESSURE, TOO_SLOW))
        if isinstance(lost, AnswersGivenUp):
            for response_id in lost.response_ids:
                self._output.lose(response_id, BACKPRESSURE)
            return
        self._output.overflowed(lost)
        self._close(CloseRequest(reason=BACKPRESSURE))

    def _close(self, request: CloseRequest | CloseSession) -> None:
        """Stop everything; the closing event is the last one."""
        core = self._core
        core.state = "closed"
        core.run(core.model.plan_close())
        self._output.beside.close()
        reason = close_reason(request.reason)
        if isinstance(request, CloseRequest) and request.failure is not None:
            core.emit_error(request.failure)
        if isinstance(request, CloseRequest) and request.expired:
            core.emit(SessionExpired(session_id=self.session_id, reason=reason))
        else:
            closed = SessionClosed(
                session_id=self.session_id,
                epoch=self.epoch,
                reason=reason,
                event=Reason(type="session.closed", reason=reason),
            )
            core.emit(closed)
        core.effects.append(Ended(CLIENT_CLOSE if isinstance(request, CloseSession) else reason))

    def public_object(self) -> DuplexSessionObject:
        """The session as its client sees it."""
        return public_object(self._core, self._output.active)
