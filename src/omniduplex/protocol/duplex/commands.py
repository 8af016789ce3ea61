"""The 21 client events: Tier 1 as it is, Tier 2 subclasses that add fields, Tier 3 our own.

One decoded command travels unchanged from the socket to the session.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from omniduplex.protocol.duplex.errors import CLIENT_CLOSE
from omniduplex.protocol.duplex.session_patch import SessionPatch
from omniduplex.protocol.realtime import commands as realtime
from omniduplex.protocol.realtime.commands import (
    CancelResponse,
    ClearInput,
    ClearOutputAudio,
    CreateItem,
    DeleteItem,
    RealtimeCommand,
    RetrieveItem,
    TruncateItem,
)

OverlapAction = Literal[
    "barge_in",
    "interrupt",
    "cancel",
    "listen",
    "continue",
    "continue_output",
    "ack",
    "drop",
    "ignore",
    "silence",
]


class UpdateSession(RealtimeCommand, frozen=True, kw_only=True, tag="session.update"):
    """Opens the session when it comes first; a deep merge afterwards."""

    session: SessionPatch


class VadHint(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A client's own voice activity verdict; a probability of 0.5 or more is speech."""

    is_speech: bool | None = None
    speech_probability: float | None = None
    probability: float | None = None
    silence_rms: float | None = None


class AppendAudio(realtime.AppendAudio, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Audio for the open utterance, with the client's hints about it.

    Times in ms, rates in Hz; `video_frames` are bare base64 JPEG or PNG texts that ride the
    append which closes a model unit.
    """

    format: str | dict[str, Any] | None = None
    sample_rate_hz: float | None = None
    is_speech: bool | None = None
    speech_probability: float | None = None
    vad: VadHint | None = None
    duration_ms: float | None = None
    audio_start_ms: float | None = None
    audio_end_ms: float | None = None
    overlap_action: OverlapAction | None = None
    overlap_silence_rms: float | None = None
    force_barge_in: bool = False
    force_listen: bool = False
    transcript: str | None = None
    video_frames: tuple[str, ...] = ()
    max_slice_nums: Literal[1] | None = None


class Commit(realtime.Commit, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Seal the buffered audio into a user item; `response_create` asks for an answer too."""

    final: bool = True
    response_create: bool | None = None
    is_speech: bool | None = None


class InputCommit(
    RealtimeCommand, frozen=True, kw_only=True, forbid_unknown_fields=True, tag="input.commit"
):
    """As `Commit`, but an answer is wanted unless it says otherwise."""

    final: bool = True
    response_create: bool = True
    is_speech: bool | None = None


class ResponseOptions(realtime.ResponseOptions, frozen=True, kw_only=True, omit_defaults=True):
    """What a response is asked to be; speech over one that is not `interruptible` waits."""

    interruptible: bool | None = None


class CreateResponse(realtime.CreateResponse, frozen=True, kw_only=True):
    """Ask the model to answer now; an answer may be said to its end whatever the user says.

    With `conversation: none` it answers beside the conversation, whatever is active there.
    """

    response: ResponseOptions | UnsetType = UNSET


class CancelInput(RealtimeCommand, frozen=True, kw_only=True, tag="input.cancel"):
    """Drop open input and stop the active response; the epoch advances."""


class AppendText(RealtimeCommand, frozen=True, kw_only=True, tag="input.text.append"):
    """Text beside the audio, for models that take it."""

    text: str


class BargeIn(RealtimeCommand, frozen=True, kw_only=True, tag="barge_in"):
    """The user interrupts: stop the active response, drop open input; the epoch advances."""


class SignalTurn(RealtimeCommand, frozen=True, kw_only=True, tag="turn.signal"):
    """A named turn signal; some names stand for other commands, whose fields are `payload`."""

    event: str
    payload: dict[str, Any] | UnsetType = UNSET


class AckPlayback(RealtimeCommand, frozen=True, kw_only=True, tag="playback.ack"):
    """How far the user has heard a response: cumulative ms of its audio."""

    played_ms: float
    committed_ms: float | None = None
    response_id: str | None = None
    item_id: str | None = None
    truncate: bool = False


class Heartbeat(RealtimeCommand, frozen=True, kw_only=True, tag="session.heartbeat"):
    """The client is alive."""


class EventAck(RealtimeCommand, frozen=True, kw_only=True, tag="session.event_ack"):
    """All events up to this sequence number have arrived."""

    server_event_seq: int


class CloseSession(RealtimeCommand, frozen=True, kw_only=True, tag="session.close"):
    """End the session."""

    reason: str = CLIENT_CLOSE


class ResumeSession(RealtimeCommand, frozen=True, kw_only=True, tag="session.resume"):
    """Take a detached session over; only as the first event of a connection."""

    session_id: str
    resume_token: str
    last_received_server_event_seq: int = 0


DuplexCommand = (
    UpdateSession
    | Heartbeat
    | EventAck
    | CloseSession
    | ResumeSession
    | AppendAudio
    | Commit
    | InputCommit
    | ClearInput
    | CancelInput
    | AppendText
    | CreateItem
    | RetrieveItem
    | DeleteItem
    | TruncateItem
    | CreateResponse
    | CancelResponse
    | ClearOutputAudio
    | BargeIn
    | SignalTurn
    | AckPlayback
)
