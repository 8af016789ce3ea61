"""The echo stage: an ear that measures loudness, a mouth that plays tones, the audio as clock."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence

import msgspec
import numpy as np

from omniduplex.audio import pcm
from omniduplex.models.echo.ear import Ear
from omniduplex.models.echo.messages import (
    INPUT_RATE_HZ,
    UNIT_MS,
    Answer,
    AnswerEnd,
    AnswerPart,
    ClearTurn,
    CommitTurn,
    EchoOptions,
    ForceListen,
    FromStage,
    HearItem,
    Listen,
    Listening,
    StopAnswer,
    ToolCall,
    ToStage,
    TurnCommitted,
    TurnHeard,
    WatchSpeech,
)
from omniduplex.stages.messages import StageAbort, StageInput, StageMessage, StageOutput
from omniduplex.stages.model import Emit, StageModel

OUTPUT_RATE_HZ = 24000
UNIT_BYTES = pcm.byte_count(UNIT_MS, INPUT_RATE_HZ)

_MIN_ANSWER_MS = 240
_MAX_ANSWER_MS = 10_000
_MS_PER_WORD = 400
_BASE_TONE_HZ = 440
_TONE_STEP_HZ = 20
_TONES = 20
_AMPLITUDE = 0.3
# Every tone is a multiple of 20 Hz, so that after 5 units (400 ms) its phase is back at zero.
_TONE_UNITS = 5

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(ToStage)


class Session:
    """What the stage keeps for one listening request."""

    def __init__(self, early_words: bool = False) -> None:
        self.ear = Ear(early_words)
        self.rest = b""
        self.rest_forced = False
        self.heard_any = False
        self.owes_answer = False
        """A turn ended that the model wants to answer by itself."""
        self.answers: dict[str, deque[StageOutput]] = {}
        """Paced answers under way, by the request or, if self-started, the key."""
        self.self_started = 0
        self.calls = 0

    def take_units(self, audio: bytes, force_listen: bool) -> Iterator[tuple[bytes, bool]]:
        """The whole units there are now; one is forced when any of its audio is."""
        audio = self.rest + audio if self.rest else audio
        forced = self.rest_forced or force_listen
        whole = len(audio) - len(audio) % UNIT_BYTES
        for offset in range(0, whole, UNIT_BYTES):
            yield audio[offset : offset + UNIT_BYTES], forced
            forced = force_listen
        self.rest = audio[whole:]
        self.rest_forced = bool(self.rest) and forced

    def drop_rest(self) -> bytes:
        """Take the audio that is short of a unit."""
        rest, self.rest, self.rest_forced = self.rest, b"", False
        return rest


class EchoStage(StageModel):
    """Hears 80 ms units, tells turns by their loudness, answers them with a tone and words."""

    Options = EchoOptions
    sleepless = True
    options: EchoOptions

    def __init__(self, options: EchoOptions, emit: Emit) -> None:
        super().__init__(options, emit)
        self._tones: list[list[bytes]] = []
        self._sessions: dict[str, Session] = {}

    def load(self) -> None:
        """Compute the units of all tones."""
        self._tones = [_tone(_BASE_TONE_HZ + index * _TONE_STEP_HZ) for index in range(_TONES)]

    def step(self, batch: Sequence[StageMessage]) -> None:
        """Hear, answer, obey; what needs a session that is gone ends in an error."""
        for message in batch:
            if isinstance(message, StageAbort):
                self._abort(message.request_ids)
                continue
            order = _decoder.decode(message.data) if message.data else None
            if isinstance(order, Listen):
                self._session(message.request_id).ear.settings = order
                continue
            owner = order.listening if isinstance(order, Answer) else message.request_id
            session = self._sessions.get(owner)
            if session is None:
                error = f"no session listens under {owner}"
                self.emit(StageOutput(message.request_id, message.epoch, error=error))
            else:
                self._serve(session, message, order)

    def _session(self, request_id: str) -> Session:
        session = Session(self.options.early_words)
        return self._sessions.setdefault(request_id, session)

    def close(self) -> None:
        """Forget all sessions."""
        self._sessions.clear()

    def _abort(self, request_ids: Sequence[str]) -> None:
        for request_id in request_ids:
            self._sessions.pop(request_id, None)
            for session in self._sessions.values():
                session.answers.pop(request_id, None)

    def _serve(self, session: Session, message: StageInput, order: ToStage | None) -> None:
        match order:
            case None | ForceListen():
                for unit, forced in session.take_units(message.pcm, order is not None):
                    self._hear(session, message, unit, forced)
            case HearItem(item_id, content_index):
                self._hear_item(message, item_id, content_index)
            case CommitTurn():
                self._commit(session, message, order)
            case ClearTurn():
                session.ear.clear(session.drop_rest())
            case WatchSpeech(active):
                session.ear.watched = active
            case StopAnswer(key):
                session.answers.pop(key, None)
            case Answer():
                self._start(session, message, message.request_id, order)

    def _hear(self, session: Session, message: StageInput, unit: bytes, forced: bool) -> None:
        if not session.heard_any:
            session.heard_any = True
            self._tell(message, Listening())
        if session.answers:
            self._speak_on(session)
        for heard in session.ear.hear(unit, forced):
            self._tell(message, heard)
            session.owes_answer |= self.options.self_start and isinstance(heard, TurnHeard)
        if session.owes_answer and not forced:
            self._speak_if_free(session, message)

    def _commit(self, session: Session, message: StageInput, order: CommitTurn) -> None:
        forced = session.rest_forced
        turn = session.ear.commit(session.drop_rest(), forced)
        whole = session.ear.with_unknown(turn, order.turns_known)
        told = TurnCommitted(order.item_id, whole.transcript, whole.speech_ms / 1000)
        self._tell(message, told)
        if self.options.self_start and turn.transcript:
            session.owes_answer = True
            self._speak_if_free(session, message)

    def _hear_item(self, message: StageInput, item_id: str, content_index: int) -> None:
        ear, apart = Ear(), Session()
        for unit, _ in apart.take_units(message.pcm, False):
            ear.hear(unit, False)
        turn = ear.commit(apart.drop_rest(), False)
        heard = TurnCommitted(item_id, turn.transcript, turn.speech_ms / 1000, content_index)
        self._tell(message, heard)

    def _speak_if_free(self, session: Session, message: StageInput) -> None:
        """Begin the answer owed, unless an answer is still being spoken: there is one mouth."""
        if session.answers:
            return
        session.owes_answer = False
        session.self_started += 1
        key = f"native-{session.self_started}"
        words = len(session.ear.last_turn.transcript.split())
        self._tell(message, AnswerPart(key, opens=True))
        answer = Answer(key=key, listening=message.request_id, text="", input_tokens=words)
        self._start(session, message, key, answer)

    def _start(self, session: Session, message: StageInput, name: str, order: Answer) -> None:
        parts = self._answer(session, message, order)
        if self.options.paced:
            session.answers[name] = parts
            return
        for part in parts:
            self.emit(part)

    def _speak_on(self, session: Session) -> None:
        for name, parts in list(session.answers.items()):
            self.emit(parts.popleft())
            if not parts:
                del session.answers[name]

    def _answer(self, session: Session, message: StageInput, order: Answer) -> deque[StageOutput]:
        turn = session.ear.last_turn
        text = order.text if order.from_tool else order.text or turn.transcript
        words = text.split()
        calls = () if order.from_tool else _calls(text, order, session.calls + 1)
        if calls:
            session.calls += len(calls)
            end = AnswerEnd("stop", order.input_tokens, 0)
            return _call_parts(message, order.key, calls, end)
        was_heard = not order.from_tool and text == turn.transcript
        said = ["Tool" if order.from_tool else "You", "said", *words]
        kept = said[: order.max_words] or said[:1]
        ms = turn.speech_ms if was_heard else len(words) * _MS_PER_WORD
        units = _unit_count(ms) if order.speak and kept == said else len(kept)
        end = AnswerEnd("stop" if kept == said else "length", order.input_tokens, len(kept))
        tone = self._tones[len(words) % _TONES] if order.speak else [b""]
        return _parts(message, AnswerPart(order.key, end=end), _spread(kept, units), tone)

    def _tell(self, message: StageInput, event: FromStage) -> None:
        data = _encoder.encode(event)
        self.emit(StageOutput(message.request_id, message.epoch, data=data))


def _ms(samples: int) -> int:
    return samples * 1000 // INPUT_RATE_HZ


def _tone(hz: int) -> list[bytes]:
    unit = OUTPUT_RATE_HZ * UNIT_MS // 1000
    time_s = np.arange(unit * _TONE_UNITS) / OUTPUT_RATE_HZ
    wave = (_AMPLITUDE * np.sin(2 * np.pi * hz * time_s)).astype(np.float32)
    return [pcm.float32_to_int16(part) for part in np.split(wave, _TONE_UNITS)]


def _unit_count(ms: int) -> int:
    return -(-min(max(ms, _MIN_ANSWER_MS), _MAX_ANSWER_MS) // UNIT_MS)


def _spread(words: list[str], units: int) -> list[str]:
    """One word for each unit; the last one takes all that are left, so the text is whole."""
    texts = [f" {word}" if index else word for index, word in enumerate(words)]
    if len(texts) > units:
        texts[units - 1 :] = ["".join(texts[units - 1 :])]
    return texts + [""] * (units - len(texts))


def _parts(
    message: StageInput, last: AnswerPart, texts: list[str], sound: list[bytes]
) -> deque[StageOutput]:
    """One output for each text; `message` is final when the answer has a request of its own."""
    data = _encoder.encode(AnswerPart(last.key))
    parts = deque(
        StageOutput(
            message.request_id,
            message.epoch,
            pcm=sound[index % len(sound)],
            sample_rate_hz=OUTPUT_RATE_HZ,
            text=text,
            data=data,
        )
        for index, text in enumerate(texts)
    )
    parts[-1] = msgspec.structs.replace(
        parts[-1],
        data=_encoder.encode(last),
        finished=message.final,
        metrics={"units": float(len(texts))},
    )
    return parts


def _call_parts(
    message: StageInput, key: str, calls: Sequence[ToolCall], end: AnswerEnd
) -> deque[StageOutput]:
    """One output for each call; the last one ends the answer."""
    parts: deque[StageOutput] = deque()
    for index, call in enumerate(calls, 1):
        last = AnswerPart(key, call=call, end=end if index == len(calls) else None)
        parts += _parts(message, last, [""], [b""])
    for index, part in enumerate(parts, 1):
        is_last = index == len(parts)
        parts[index - 1] = msgspec.structs.replace(part, finished=message.final and is_last)
    return parts


def _calls(text: str, order: Answer, number: int) -> tuple[ToolCall, ...]:
    """What the text says to call, each with the words behind it; or what has to be called."""
    names = "|".join(re.escape(name) for name in order.tools)
    places = list(re.finditer(rf"\bcall ({names})(?![\w-])", text)) if names else []
    ends = [*(place.start() for place in places), len(text)][1:]
    asked = [
        (place[1], text[place.end() : end].strip()) for place, end in zip(places, ends, strict=True)
    ]
    if order.must_call is not None:
        asked = [one for one in asked if one[0] == order.must_call] or [(order.must_call, text)]
    return tuple(
        ToolCall(f"call_{index}", name, _arguments(words))
        for index, (name, words) in enumerate(asked, number)
    )


def _arguments(words: str) -> str:
    return msgspec.json.encode({"text": words} if words else {}).decode()
