"""The facts that all parts of a session share, each in this one place, and its effect list."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from msgspec import UNSET

from omniduplex.config.pipeline import DuplexSessionRuntimeConfig
from omniduplex.engine.conversation.history import History
from omniduplex.engine.conversation.new_items import ItemReader
from omniduplex.engine.conversation.response_options import Wanted, read_options
from omniduplex.engine.duplex.contracts import DuplexFence, StageWork
from omniduplex.engine.duplex.pending_input import PendingInput
from omniduplex.engine.duplex.plugin import DuplexModelPlugin, DuplexModelSessionState
from omniduplex.engine.duplex.session.effects import Effect, Emit
from omniduplex.engine.duplex.session.idle_timeout import IdleTimeout
from omniduplex.engine.duplex.session.lease import DuplexLease
from omniduplex.engine.duplex.session.loudspeaker import Loudspeaker
from omniduplex.engine.duplex.session.playback_ledger import PlaybackLedger
from omniduplex.engine.turn_plugin import TurnPlugin
from omniduplex.protocol.duplex import (
    AckPlayback,
    CancelResponse,
    ClearOutputAudio,
    CloseSession,
    DuplexCapabilities,
    DuplexError,
    DuplexEvent,
    DuplexSessionConfig,
    Heartbeat,
    RateLimit,
    RateLimitsUpdated,
    RealtimeCommand,
    ResponseOptions,
    SessionState,
    TurnState,
    error_event,
)

INLINE_BYTES = 64 * 1024
"""Audio up to this size is converted on the loop: 1.3 s at 24 kHz, under half a millisecond."""

UNHINDERED = (AckPlayback, CancelResponse, ClearOutputAudio, CloseSession, Heartbeat)
"""What asks nothing of a stage, or only to stop, and that no more often than there are answers."""

NewId = Callable[[str], str]
"""Makes an id that was never used, from a prefix such as `item`."""


@dataclass(slots=True)
class SessionCore:
    """Identity, fence, configuration, ledgers; and the effects of the input being handled.

    `now` and `opened_at` are seconds of the session clock, which never goes back: the moment of the
    input being handled, and that of the open. `expires_at_unix` is wall-clock time for the client.
    `turns` answers without the session, where the model can.
    """

    session_id: str
    config: DuplexSessionConfig
    capabilities: DuplexCapabilities
    plugin: DuplexModelPlugin
    model: DuplexModelSessionState
    new_id: NewId
    limits: DuplexSessionRuntimeConfig
    opened_at: float
    expires_at_unix: int | None = None
    turns: TurnPlugin | None = None
    pending: PendingInput = field(default_factory=PendingInput)
    history: History = field(default_factory=History)
    playback: PlaybackLedger = field(init=False)
    loudspeaker: Loudspeaker = field(init=False)
    idle: IdleTimeout = field(default_factory=IdleTimeout)
    conversation_id: str = field(init=False)
    lease: DuplexLease = field(init=False)
    epoch: int = 0
    turn_id: int = 0
    state: SessionState = "open"
    turn_state: TurnState = "idle"
    now: float = 0.0
    effects: list[Effect] = field(default_factory=list)
    _tickets: int = 0

    def __post_init__(self) -> None:
        self.playback = PlaybackLedger(self.config.playback_commit_policy)
        self.loudspeaker = Loudspeaker(self.playback, self.emit)
        self.conversation_id = self.new_id("conv")
        self.lease = DuplexLease(self.opened_at, self.limits)

    @property
    def fence(self) -> DuplexFence:
        """The fence that new work is submitted under."""
        return DuplexFence(self.session_id, self.epoch, self.turn_id)

    def item_reader(self) -> ItemReader:
        """What reads a client's items now."""
        return ItemReader(
            history=self.history,
            new_id=self.new_id,
            input_format=self.config.input_format,
            takes_audio=self.plugin.recognises_items,
            takes_images=self.capabilities.supports_image_input,
        )

    def wanted(self, options: ResponseOptions) -> Wanted:
        """A response as its options and the session ask for it; raises as `read_options`."""
        refused = self.plugin.refused_options
        return read_options(options, self.config, self.item_reader(), refused=refused)

    def new_ticket(self) -> int:
        """A number for work off the loop, never given before."""
        self._tickets += 1
        return self._tickets

    def emit(self, event: DuplexEvent) -> None:
        """Show an event to the client."""
        self.effects.append(Emit(event))

    def emit_error(self, error: DuplexError) -> None:
        """Show a refusal or a failure to the client."""
        self.emit(error_event(error))

    def check_room(self, size: int) -> None:
        """Bound how much of a client's input waits, in bytes as they come.

        Raises:
            DuplexError: `input_backpressure`.
        """
        limit = self.limits.max_pending_input_bytes_per_session
        if size and self.pending.size_bytes + size > limit:
            raise DuplexError("input_backpressure", f"more than {limit} bytes of input wait")

    def check_pace(self, command: RealtimeCommand) -> None:
        """Bound how many inputs wait for the stages; what ends a session, or keeps it, may come.

        Raises:
            DuplexError: `input_backpressure`.
        """
        if self.pending.has_no_room_for(command) and not isinstance(command, UNHINDERED):
            waiting = self.pending.backlog.inputs
            raise DuplexError("input_backpressure", f"{waiting} inputs wait for the model already")

    def check_room_for_turn(self) -> None:
        """Bound how many turns wait for their words.

        Raises:
            DuplexError: `input_backpressure`.
        """
        limit = self.limits.max_pending_turns_per_session
        if len(self.history.pending) >= limit:
            message = f"more than {limit} turns wait to be heard"
            raise DuplexError("input_backpressure", message)

    def emit_rate_limits(self) -> None:
        """Show the one limit a client can run into: how many of its turns may wait to be heard."""
        limit = self.limits.max_pending_turns_per_session
        waiting = len(self.history.pending)
        self.emit(
            RateLimitsUpdated(
                rate_limits=(
                    RateLimit(
                        name="requests",
                        limit=limit,
                        remaining=max(0, limit - waiting),
                        reset_seconds=UNSET if waiting else 0.0,
                    ),
                )
            )
        )

    def run(self, works: Iterable[StageWork]) -> None:
        """Have stage work done."""
        self.effects.extend(works)
