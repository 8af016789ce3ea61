"""The only shell around a session: feeds it inputs and does what its effects say."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future

import msgspec

from omniduplex.engine.duplex.contracts import Abort, DuplexStagePort, Submit
from omniduplex.engine.duplex.link import DuplexSessionLink
from omniduplex.engine.duplex.session.effects import (
    DropQueuedAudio,
    Effect,
    Emit,
    Ended,
    Prepare,
    SetTimer,
    StartTurn,
)
from omniduplex.engine.duplex.session.engine_session import DuplexEngineSession
from omniduplex.engine.duplex.session.inputs import (
    AnswersGivenUp,
    AudioReady,
    CloseRequest,
    OutputOverflow,
    SessionInput,
    StageLost,
    TimerFired,
    TurnPart,
)
from omniduplex.engine.duplex.session.observer import SessionObserver
from omniduplex.engine.messages import AbortTurn, AddTurn
from omniduplex.engine.turns import TurnChunk, TurnFailure
from omniduplex.protocol.duplex import (
    DuplexError,
    DuplexEvent,
    RealtimeCommand,
    Reason,
    ResponseCreated,
    ResponseDone,
    SessionClosed,
    SessionExpired,
    error_event,
)
from omniduplex.stages.errors import StageUnavailable
from omniduplex.stages.timers import CallLater, Timer
from omniduplex.telemetry.logging import session_context

logger = logging.getLogger(__name__)

CallSoon = Callable[[Callable[[], None]], object]


class DuplexSessionRunner:
    """Runs one session on the engine loop.

    Handling an input is synchronous and atomic, so the loop's own order of callbacks is the
    mailbox; only inputs that arise while one is being handled wait in `_queue`. `on_ended` gets
    the reason as the session is over, and says whether its slot is free by then.
    """

    def __init__(
        self,
        session: DuplexEngineSession,
        *,
        link: DuplexSessionLink,
        port: DuplexStagePort,
        executor: Executor,
        clock: Callable[[], float],
        call_soon: CallSoon,
        call_later: CallLater,
        on_ended: Callable[[str], bool],
        observer: SessionObserver,
    ) -> None:
        self._session = session
        self._link = link
        self._port = port
        self._executor = executor
        self._clock = clock
        self._call_soon = call_soon
        self._call_later = call_later
        self._timer: Timer | None = None
        self._on_ended = on_ended
        self._observer = observer
        # Not for effects: a stage's timers, made under it, would speak in the session's name.
        self._log_context = session_context(session)
        self._queue: deque[SessionInput] = deque()
        self._handling = False
        self._heard_ms = 0.0
        self._closing_event: SessionClosed | SessionExpired | None = None

    @property
    def session(self) -> DuplexEngineSession:
        """The session that this runner alone writes."""
        return self._session

    def start(self) -> None:
        """Open the session."""
        self._handling = True
        with self._log_context:
            effects = self._session.open(self._clock())
        self._execute(effects)
        self._drain()

    def post(self, item: SessionInput) -> None:
        """Handle an input now, or right after the one that is being handled."""
        self._queue.append(item)
        if not self._handling:
            self._handling = True
            self._drain()

    def _drain(self) -> None:
        # A reader that was woken by the first event would wait for this thread at once.
        self._link.output.begin_burst()
        try:
            while self._queue:
                item = self._queue.popleft()
                self._handle(item)
        finally:
            self._handling = False
            self._link.output.end_burst()

    def _handle(self, item: SessionInput) -> None:
        try:
            with self._log_context:
                effects = self._session.handle(item, self._clock())
            self._execute(effects)
            self._note_given_up()
        except Exception:
            self._fail(item)
        heard_ms = self._session.heard_ms
        if heard_ms != self._heard_ms:
            self._heard_ms = heard_ms
            self._observer.heard(heard_ms)

    def _fail(self, item: SessionInput) -> None:
        """A bug in handling an input ends this session and no other."""
        with self._log_context:
            logger.exception("the session failed on %s", type(item).__name__)
        failure = _failure(item)
        if self._session.closed:
            self._close_by_force(failure)
        else:
            self._queue.appendleft(CloseRequest(reason=failure.code, failure=failure))

    def _close_by_force(self, failure: DuplexError) -> None:
        """The session cannot even close: its client must be set free all the same."""
        reason = failure.code
        self._link.output.put(error_event(failure))
        closed = SessionClosed(
            session_id=self._session.session_id,
            epoch=self._session.epoch,
            reason=reason,
            event=Reason(type="session.closed", reason=reason),
        )
        self._closing_event = closed
        self._ended(reason)

    # -- effects ----------------------------------------------------------------------------

    def _execute(self, effects: list[Effect]) -> None:
        for index, effect in enumerate(effects):
            match effect:
                case Emit():
                    if not self._emit(effect.event):
                        self._overflow(effects[index:])
                        return
                case StartTurn():
                    self._start_turn(effect)
                case Abort() | AbortTurn():
                    self._stop(effect)
                case DropQueuedAudio():
                    self._link.output.cancel(effect.response_id)
                case Prepare():
                    self._prepare(effect)
                case SetTimer():
                    self._set_timer(effect.at)
                case Ended():
                    self._ended(effect.reason)
                case _:
                    self._submit(effect)

    def _emit(self, event: DuplexEvent) -> bool:
        """False when the buffer overflows now; what is lost after that is lost silently."""
        self._observer.saw(event, self._clock())
        if isinstance(event, (SessionClosed, SessionExpired)):
            self._closing_event = event
            return True
        before = self._link.output.overflowed
        return self._link.output.put(event) or before

    def _overflow(self, undone: list[Effect]) -> None:
        """The client reads too slowly: its responses fail, and its session.

        Of the batch that did not fit, stage work is still done; an ending that was not queued yet
        becomes a failure with its identity and output preserved. A batch that ends the session
        needs no more than what still finds room of it.
        """
        self._observer.overflowed()
        if isinstance(undone[-1], Ended):
            self._execute(undone[1:])
            return
        endings: list[ResponseDone] = []
        unannounced: set[str] = set()
        for effect in undone:
            match effect:
                case Emit(ResponseCreated() as created):
                    unannounced.add(created.response_id)
                case Emit(ResponseDone() as done) if done.response_id not in unannounced:
                    endings.append(done)
                case Emit():
                    continue  # lost
                case _:
                    self._execute([effect])
        self._queue.appendleft(
            OutputOverflow(endings=tuple(endings), unannounced=frozenset(unannounced))
        )

    def _note_given_up(self) -> None:
        """The client reads too slowly, and by its deployment loses answers, not its session."""
        given_up = self._link.output.take_given_up()
        if given_up and not self._link.output.overflowed:
            self._observer.overflowed()
            self._queue.appendleft(AnswersGivenUp(tuple(given_up)))

    def _submit(self, work: Submit) -> None:
        try:
            self._port.submit(self._session.session_id, work)
        except StageUnavailable as error:
            self._queue.append(StageLost(work.stage_id, str(error)))

    def _stop(self, work: Abort | AbortTurn) -> None:
        try:
            if isinstance(work, Abort):
                self._port.abort(work.request_ids)
            else:
                self._port.run_turn(work)
        except Exception:
            if not self._session.closed:
                raise
            # The end goes on: open requests are dropped before the slot is free, and a turn
            # beside the session ends by itself.
            logger.exception("session %s: its work could not be ended", self._session.session_id)

    def _start_turn(self, work: StartTurn) -> None:
        turn_id = work.turn_id

        def on_part(part: TurnChunk | TurnFailure) -> None:
            self.post(TurnPart(turn_id, part))

        self._port.run_turn(AddTurn(turn_id, work.turn, on_part))

    def _set_timer(self, at: float | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if at is not None:
            delay_s = max(0.0, at - self._clock())
            self._timer = self._call_later(delay_s, lambda: self.post(TimerFired()))

    def _prepare(self, work: Prepare) -> None:
        future = self._executor.submit(work.convert)
        future.add_done_callback(lambda done: self._call_soon(lambda: self._prepared(work, done)))

    def _prepared(self, work: Prepare, done: Future[bytes]) -> None:
        if done.cancelled():
            return  # the engine is shutting down
        error = done.exception()
        if error is None:
            self.post(AudioReady(work.ticket, done.result()))
        elif isinstance(error, ValueError):
            self.post(AudioReady(work.ticket, b"", error=str(error)))
        else:
            logger.error("converting audio failed", exc_info=error)
            failure = _failure(None)
            self.post(CloseRequest(reason=failure.code, failure=failure))

    def _ended(self, reason: str) -> None:
        self._queue.clear()
        self._set_timer(None)
        self._observer.ended(reason)
        is_free = self._on_ended(reason)
        closing = self._closing_event
        if isinstance(closing, SessionClosed) and not is_free:
            closing = msgspec.structs.replace(closing, slot_released=False)
        if closing is not None:
            # Told only now: whoever sees it may count on what it says of the slot.
            self._link.output.close(closing)


def _failure(cause: SessionInput | None) -> DuplexError:
    """What a client is told of a bug: which of its events met it, and no more."""
    event_id = cause.event_id if isinstance(cause, RealtimeCommand) else None
    message = "the server failed; the session is over"
    return DuplexError("internal_error", message, event_id=event_id)
