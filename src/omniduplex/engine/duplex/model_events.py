"""What a model tells its session: the plugin projects raw stage outputs into these.

Events about the user come from the model's own ear or from server VAD alike, so that the session
need not know which one listens. Events of a response carry the `key` under which the response was
asked for (`plan_response`) or announced by the model itself (`Speak`); a key that is not the
active response's is stale and dropped.
"""

from __future__ import annotations

import msgspec

from omniduplex.engine.duplex.contracts import StageWork
from omniduplex.protocol.duplex import Usage


class UserAudioWaits(msgspec.Struct, frozen=True, gc=False):
    """The model has taken so much audio of the user that it did not hear yet.

    For a model that takes audio faster than it hears it: so much of it counts as pending input
    from now on, until it says something else; 0 at last. Where that is less than some seconds, it
    need not be told.
    """

    audio_ms: float


class UserSpeechStarted(msgspec.Struct, frozen=True, gc=False):
    """The user began to speak; ms on the session's input clock, padding included."""

    audio_start_ms: int


class UserSpeechProgress(msgspec.Struct, frozen=True, gc=False):
    """The user goes on speaking over an answer (see `plan_overlap`).

    `speech_ms` of speech so far in this utterance, its level in dBFS (RMS of what is speech), and
    what was recognised of it so far; None while nothing was. `brightness_db` is its power from 1
    to 4 kHz over that below 1 kHz: far voices are dull. By its sound alone, it takes the floor with
    the probability `floor`, and is no word but a tic with that of `tic`.
    """

    speech_ms: float
    level_dbfs: float
    transcript: str | None = None
    brightness_db: float | None = None
    floor: float | None = None
    tic: float | None = None


class UserTurnDraft(msgspec.Struct, frozen=True, gc=False):
    """The user fell silent and may be done: `transcript` is what was said so far.

    The session may begin an answer in secret; `UserSpeechResumed` or a `UserTurnEnded` with other
    words throws it away.
    """

    transcript: str


class UserSpeechResumed(msgspec.Struct, frozen=True, gc=False):
    """The user went on after a draft."""


class UserTurnEnded(msgspec.Struct, frozen=True, gc=False):
    """The user's turn is over; an empty transcript means that no words were heard.

    `speech` is what an ear that can tell knows of its sound.
    """

    audio_end_ms: int
    transcript: str
    speech: UserSpeechProgress | None = None


class UserTurnUnheard(msgspec.Struct, frozen=True, gc=False):
    """The user's turn is over, but recognition failed: that there were words is all that is known.

    `message` says what failed.
    """

    audio_end_ms: int
    message: str


class UserTranscript(msgspec.Struct, frozen=True, gc=False):
    """The words of audio that the client committed or put into an item.

    Names it as `plan_commit` or `plan_recognise` did.
    """

    item_id: str
    transcript: str
    seconds: float = 0.0
    content_index: int = 0


class UserTranscriptFailed(msgspec.Struct, frozen=True, gc=False):
    """Instead of a `UserTranscript`: the words cannot be recognised; `message` says what failed."""

    item_id: str
    message: str
    content_index: int = 0


class Listen(msgspec.Struct, frozen=True, gc=False):
    """The model decided to keep listening."""

    reason: str = "model_listen"


class Speak(msgspec.Struct, frozen=True, gc=False):
    """The model decided by itself to speak: opens a response under `key`."""

    key: str


class ResponseText(msgspec.Struct, frozen=True, gc=False):
    """Text of a response that is not spoken (text modality)."""

    key: str
    text: str


class ResponseAudio(msgspec.Struct, frozen=True, gc=False):
    """Audio of a response, int16 mono at `sample_rate_hz`, and the words spoken in it."""

    key: str
    pcm: bytes
    sample_rate_hz: int
    text: str = ""


class FunctionCall(msgspec.Struct, frozen=True, gc=False):
    """A whole tool call of a response; `arguments` is a JSON text."""

    key: str
    call_id: str
    name: str
    arguments: str


class ResponseMetrics(msgspec.Struct, frozen=True, gc=False):
    """What a stage measured for a response."""

    key: str
    stage_id: int
    metrics: dict[str, float]


class ResponseEnded(msgspec.Struct, frozen=True, gc=False):
    """The response is whole; reason is `stop` or `length`."""

    key: str
    reason: str = "stop"
    usage: Usage | None = None


class ResponseFailed(msgspec.Struct, frozen=True, gc=False):
    """The model could not finish the response."""

    key: str
    message: str


ResponseEvent = (
    Speak
    | ResponseText
    | ResponseAudio
    | FunctionCall
    | ResponseMetrics
    | ResponseEnded
    | ResponseFailed
)
ModelEvent = (
    UserSpeechStarted
    | UserSpeechProgress
    | UserTurnDraft
    | UserSpeechResumed
    | UserTurnEnded
    | UserTurnUnheard
    | UserTranscript
    | UserTranscriptFailed
    | Listen
    | ResponseEvent
)
Projected = ModelEvent | UserAudioWaits | StageWork
