"""The parts of tier 2 and 3 events: what the session says about itself inside them."""

from __future__ import annotations

from typing import Literal

import msgspec
from msgspec import UNSET, UnsetType

from omniduplex.protocol.duplex.session_view import PlaybackCursor
from omniduplex.protocol.realtime.items import AudioTextMark


class Reason(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The internal event behind a closure."""

    type: str = ""
    reason: str = ""


class AudioUrl(msgspec.Struct, frozen=True, kw_only=True):
    """A place of audio in a prompt message."""

    url: str = "native-duplex:input-audio"


class AudioUrlPart(msgspec.Struct, frozen=True, kw_only=True):
    """The audio of a committed turn, as a prompt part."""

    type: Literal["audio_url"] = "audio_url"
    audio_url: AudioUrl = AudioUrl()
    transcript: str | UnsetType = UNSET


class CommittedMessage(msgspec.Struct, frozen=True, kw_only=True):
    """The prompt message that a commit made."""

    role: Literal["user"] = "user"
    content: tuple[AudioUrlPart, ...] = (AudioUrlPart(),)


class CommitFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a commit did to the session."""

    type: Literal["input.committed"] = "input.committed"
    session_id: str
    turn_id: int
    epoch: int
    history_len: int
    message: CommittedMessage | UnsetType = UNSET
    realtime_item_id: str | UnsetType = UNSET
    empty: bool | UnsetType = UNSET
    is_speech: bool | UnsetType = UNSET
    no_response: bool | UnsetType = UNSET
    overlap_deferred: bool | UnsetType = UNSET
    overlap_ack: bool | UnsetType = UNSET
    response_create_deferred: bool | UnsetType = UNSET


class ItemFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What a change of an item did."""

    type: str
    item_id: str
    truncated: bool | UnsetType = UNSET


class ResponseRequestMetrics(msgspec.Struct, frozen=True, kw_only=True):
    """How soon a response came, by the server's clock: ms since what `measurement_origin` names.

    The first text, the first audio and the last audio; and how long all of its audio lasts.
    """

    source: str = "server_monotonic"
    measurement_origin: dict[str, str]
    ttft_ms: float | UnsetType = UNSET
    ttfp_ms: float | UnsetType = UNSET
    audio_generation_ms: float | UnsetType = UNSET
    audio_duration_ms: float


class RuntimeMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """What the deployment measured: by stage id, then by name (seconds, counts, or monotonic s)."""

    stage_metrics: dict[str, dict[str, float]]
    response_request_metrics: ResponseRequestMetrics | UnsetType = UNSET


class ResponseFacts(msgspec.Struct, frozen=True, kw_only=True):
    """The session's own view of a response; the duplex dialect renders it under `metadata`."""

    type: str
    session_id: str
    response_id: str | UnsetType = UNSET
    epoch: int
    turn_id: int | UnsetType = UNSET
    committed: bool | UnsetType = UNSET
    playback: PlaybackCursor | UnsetType = UNSET
    reason: str | UnsetType = UNSET
    model_listen: bool | UnsetType = UNSET
    omniduplex: RuntimeMetadata | UnsetType = UNSET


class SpeakMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Which epoch a speak decision belongs to."""

    session_id: str
    epoch: int
    model_speak: bool = True


class DeltaMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """Where an audio delta stands: cumulative ms of the response, and its text marks."""

    session_id: str
    epoch: int
    model_speak: bool = True
    end_of_turn: bool = False
    audio_duration_ms: int
    audio_text_marks: tuple[AudioTextMark, ...] = ()
    playback: PlaybackCursor


class FunctionCallFacts(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as the model gave it, whole or not."""

    type: Literal["function_call.done"] = "function_call.done"
    session_id: str
    epoch: int
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None


class PlaybackFacts(msgspec.Struct, frozen=True, kw_only=True):
    """What an acknowledgement did to the ledger and to history."""

    type: Literal["playback.acknowledged"] = "playback.acknowledged"
    session_id: str
    epoch: int
    item_id: str
    played_ms: int
    committed_ms: int
    truncate: bool = False
    playback: PlaybackCursor
    history_committed: bool


class OverlapMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """How an overlap was judged; times in ms.

    `overlap_ms`, or `overlap_speech_ms`, is the speech over the answer so far. `buffer_audio` says
    that the audio belongs to the user's next turn, `defer_runtime_append` that the model hears it
    only after the answer, `preserve_realtime_input` that an interruption keeps it.
    """

    duration_ms: float | UnsetType = UNSET
    overlap_ms: float | UnsetType = UNSET
    overlap_speech_ms: float | UnsetType = UNSET
    buffer_audio: bool | UnsetType = UNSET
    defer_runtime_append: bool | UnsetType = UNSET
    force_listen: bool | UnsetType = UNSET
    preserve_realtime_input: bool | UnsetType = UNSET
    cancel_reason: str | UnsetType = UNSET
