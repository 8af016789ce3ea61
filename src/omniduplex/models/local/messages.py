"""What the plugin and the stages of the embedded model tell each other inside `data`."""

from __future__ import annotations

import msgspec

from omniduplex.engine.prompts import ResponsePrompt

# Names of what a turn or an answer is measured by. Durations are in seconds; the `at_` ones are
# readings of `time.monotonic`, which all processes of a machine share.
HOLD = "hold_s"
RECOGNITION = "asr_s"
END_OF_TURN = "eot_s"
FIRST_TOKEN = "llm_first_token_s"
FIRST_CLAUSE = "llm_first_clause_s"
FIRST_SPEECH = "tts_first_s"
AT_TURN_AUDIO = "at_turn_audio"
AT_TURN_END = "at_turn_end"
AT_PROMPT = "at_prompt"
AT_FIRST_CLAUSE = "at_first_clause"
AT_FIRST_CLAUSE_IN = "at_first_clause_in"
AT_FIRST_AUDIO_OUT = "at_first_audio_out"


class EarSettings(msgspec.Struct, frozen=True, array_like=True):
    """How an ear finds turns; times in ms of audio.

    Without `finds_turns` it keeps everything for the client's commits. `complete_hold_ms` is the
    silence that ends a turn that sounds complete; None: `hold_ms` ends every turn.
    """

    finds_turns: bool = True
    threshold: float = 0.5
    prefix_padding_ms: int = 300
    min_speech_duration_ms: int = 96
    hold_ms: int = 500
    complete_hold_ms: int | None = None


class ConfigureEar(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """Open the ear of this request, or change how it listens.

    With a `prompt`, the answers to come are made from prompts that begin like it.
    """

    settings: EarSettings
    prompt: ResponsePrompt | None = None


class CommitInput(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The client ended the turn: recognise what the ear holds, under this item id.

    `generation` counts the commits and clears up to this one; `turns_known` of the one before
    have reached the session, and what the ear ended after them belongs to this turn.
    """

    item_id: str
    generation: int = 0
    turns_known: int = 0


class ClearInput(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """Forget the audio of the open turn; `generation` as in `CommitInput`."""

    generation: int = 0


class StartAnswer(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """Write an answer; the request is the answer's own."""

    prompt: ResponsePrompt


class Transcribe(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """Recognise the audio beside this, 16 kHz and of any length; the request is its own."""


class WatchSpeech(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """Tell of speech while it goes on, or do so no more."""

    active: bool


ToListen = ConfigureEar | CommitInput | ClearInput | StartAnswer | Transcribe | WatchSpeech


class SpeechBegan(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The user began to speak, at this ms of the input clock, padding included."""

    audio_start_ms: int


class SpeechGrew(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """So much speech is in the open turn, so loud in dBFS; `transcript` None: not recognised yet.

    An empty transcript: recognised, and there are no words in it. `brightness_db` is the power of
    its sound from 1 to 4 kHz over that from 100 Hz to 1 kHz; `floor` and `tic` are as in `Kinds`,
    once they are known.
    """

    speech_ms: int
    level_dbfs: float
    transcript: str | None = None
    brightness_db: float | None = None
    floor: float | None = None
    tic: float | None = None


class TurnDrafted(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """The user paused after these words."""

    transcript: str


class SpeechWentOn(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The user went on after a draft."""


class TurnEnded(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The turn is over at this ms of the input clock; no words: nothing was said."""

    audio_end_ms: int
    transcript: str
    speech: SpeechGrew | None = None


class CommitHeard(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """The words of a committed turn, and the length of its audio in seconds."""

    item_id: str
    transcript: str
    seconds: float


class KeptListening(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """A unit of input went by in which nobody's turn was open."""


class TurnUnheard(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """The turn is over at this ms of the input clock; recognising its words failed."""

    audio_end_ms: int
    message: str


class CommitUnheard(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """Recognising the words of a committed turn failed."""

    item_id: str
    message: str


class AudioWaits(msgspec.Struct, frozen=True, array_like=True, tag=15):
    """The ear has so much audio, in ms, that it did not hear yet; told when it is a lot."""

    audio_ms: int


OfTurn = SpeechBegan | SpeechGrew | TurnDrafted | SpeechWentOn | TurnEnded | TurnUnheard
Heard = OfTurn | CommitHeard | CommitUnheard | KeptListening | AudioWaits


class Report(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """What an ear tells, and the commits and clears it had taken when that came to be."""

    generation: int
    heard: Heard


class AnswerText(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """The output's `text` is the next piece of the answer."""


class ToolCalled(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """The answer calls a function; `arguments` is a JSON text."""

    call_id: str
    name: str
    arguments: str


class AnswerEnded(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """The answer is written; `reason` is `stop` or `length`, token counts None when unknown."""

    reason: str
    prompt_tokens: int | None = None
    completion_tokens: int | None = None


class Transcribed(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """All words of a `Transcribe`."""

    transcript: str


class HowToSpeak(msgspec.Struct, frozen=True, array_like=True):
    """How a clause is spoken, so many times as fast as the voice was made."""

    speed: float = 1.0


FromListen = Report | AnswerText | ToolCalled | AnswerEnded | Transcribed

_encoder = msgspec.msgpack.Encoder()
_to_listen: msgspec.msgpack.Decoder[ToListen] = msgspec.msgpack.Decoder(ToListen)
_from_listen: msgspec.msgpack.Decoder[FromListen] = msgspec.msgpack.Decoder(FromListen)
_how_to_speak = msgspec.msgpack.Decoder(HowToSpeak).decode


def encode(message: ToListen | FromListen | HowToSpeak) -> bytes:
    """The bytes of a message for `StageInput.data` or `StageOutput.data`."""
    return _encoder.encode(message)


def decode_how_to_speak(data: bytes) -> HowToSpeak:
    """Read how a clause is spoken, nothing being as usual; raises msgspec.DecodeError."""
    return _how_to_speak(data) if data else HowToSpeak()


def decode_to_listen(data: bytes) -> ToListen:
    """Read what the plugin told the listening stage; raises msgspec.DecodeError."""
    return _to_listen.decode(data)


def decode_from_listen(data: bytes) -> FromListen:
    """Read what the listening stage told the plugin; raises msgspec.DecodeError."""
    return _from_listen.decode(data)
