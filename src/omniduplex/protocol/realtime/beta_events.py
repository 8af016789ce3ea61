"""The server events and objects that the API's beta spells or shapes otherwise than it does now."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from omniduplex.protocol.realtime import events as realtime
from omniduplex.protocol.realtime.events import RealtimeEvent, ResponseStatus, StatusDetails, Usage
from omniduplex.protocol.realtime.items import Item


class AudioDelta(realtime.AudioDelta, frozen=True, kw_only=True, tag="response.audio.delta"):
    """Audio of the answer, in the session's output format."""


class AudioDone(realtime.AudioDone, frozen=True, kw_only=True, tag="response.audio.done"):
    """No more audio in this part."""


class TranscriptDelta(
    realtime.TranscriptDelta, frozen=True, kw_only=True, tag="response.audio_transcript.delta"
):
    """Words of the audio."""


class TranscriptDone(
    realtime.TranscriptDone, frozen=True, kw_only=True, tag="response.audio_transcript.done"
):
    """The whole transcript of the part."""


class TextDelta(realtime.TextDelta, frozen=True, kw_only=True, tag="response.text.delta"):
    """Text of the answer, text modality."""


class TextDone(realtime.TextDone, frozen=True, kw_only=True, tag="response.text.done"):
    """The whole text of the part."""


class BetaSessionObject(msgspec.Struct, frozen=True, kw_only=True):
    """The flat session object."""

    id: str
    object: Literal["realtime.session"] = "realtime.session"
    model: str
    modalities: tuple[str, ...]
    instructions: str
    voice: str
    input_audio_format: str
    output_audio_format: str
    input_audio_transcription: dict[str, Any] | None = None
    input_audio_noise_reduction: dict[str, Any] | None = None
    turn_detection: dict[str, Any] | None = None
    tools: tuple[dict[str, Any], ...] = ()
    tool_choice: str | dict[str, Any] = "auto"
    temperature: float | None = None
    max_response_output_tokens: int | Literal["inf"] = "inf"
    speed: float | None = 1.0
    tracing: str | dict[str, Any] | None = None
    expires_at: int | UnsetType = UNSET


class SessionCreated(RealtimeEvent, frozen=True, kw_only=True, tag="session.created"):
    """The session is open."""

    session: BetaSessionObject


class SessionUpdated(RealtimeEvent, frozen=True, kw_only=True, tag="session.updated"):
    """The session as it stands after an accepted update."""

    session: BetaSessionObject


class BetaResponse(msgspec.Struct, frozen=True, kw_only=True):
    """A response object with its modalities under their old name."""

    id: str
    object: Literal["realtime.response"] = "realtime.response"
    status: ResponseStatus
    status_details: StatusDetails | None = None
    output: tuple[Item, ...] = ()
    modalities: tuple[str, ...] | UnsetType = UNSET
    conversation_id: str | None | UnsetType = UNSET
    metadata: dict[str, Any] | None = None
    usage: Usage | None = None


class ResponseCreated(RealtimeEvent, frozen=True, kw_only=True, tag="response.created"):
    """A response began."""

    response: BetaResponse


class ResponseDone(RealtimeEvent, frozen=True, kw_only=True, tag="response.done"):
    """A response ended."""

    response: BetaResponse
