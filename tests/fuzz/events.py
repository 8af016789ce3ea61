"""Fuzz of what arrives over sockets: events of either side, a resume's credential, stage frames."""

from __future__ import annotations

import base64
import io
import random
import struct

import msgspec
from tests.protocol.duplex.test_codec_fuzz import any_message, outcome

from omniduplex.entrypoints.duplex.credential import ResumeCredential
from omniduplex.entrypoints.duplex.journal import EventJournal, JournalGap
from omniduplex.protocol.duplex import (
    ERROR_KINDS,
    AppendAudio,
    DuplexCommand,
    DuplexError,
    ResumeSession,
    decode_command,
    decode_event,
    encode_command,
)
from omniduplex.stages.messages import StageOutput
from omniduplex.stages.transport import LENGTH, MAX_FRAME_BYTES, FrameDecoder, FrameError

EVENTS_SENT, EVENTS_KEPT = 4, 3
EVENT_BYTES = 10

_read_output = msgspec.msgpack.Decoder(StageOutput).decode
_write = msgspec.msgpack.Encoder().encode


class ByteDice(random.Random):
    """Chance that is read from bytes: a small change of them is a small change of the outcome."""

    def __init__(self, data: bytes) -> None:
        super().__init__(0)
        self._rest = io.BytesIO(data)

    def random(self) -> float:
        """A number in [0, 1); 0 once the bytes are used up."""
        return int.from_bytes(self._rest.read(2), "little") / 65536

    def getrandbits(self, k: int, /) -> int:
        """`k` bits; zeros once the bytes are used up."""
        return int.from_bytes(self._rest.read((k + 7) // 8), "little") % (1 << k)


def client_event(data: bytes) -> None:
    """A frame is a command, which can be said again, or a named refusal."""
    _judge(outcome(data))
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        return
    _judge(outcome(text))


def client_event_by_grammar(data: bytes) -> None:
    """So is one that looks like an event."""
    _judge(outcome(any_message(ByteDice(data))))


def _judge(result: DuplexCommand | DuplexError) -> None:
    if isinstance(result, DuplexError):
        assert result.code in ERROR_KINDS
        assert len(result.message) < 400
    else:
        assert decode_command(encode_command(result)) == result


def append_payload(data: bytes) -> None:
    """The text of an append's audio gives the bytes it stands for, or is refused as bad audio."""
    text = data.decode("latin-1")
    event = {"type": "input_audio_buffer.append", "audio": text}
    result = outcome(msgspec.json.encode(event))
    if isinstance(result, DuplexError):
        assert result.code == "bad_audio"
    else:
        assert isinstance(result, AppendAudio)
        assert result.audio == base64.b64decode(text, validate=True)


def server_event(data: bytes) -> None:
    """What a server sends is an event to its client, or a named refusal."""
    try:
        decode_event(data)
    except DuplexError as error:
        assert error.code in ("invalid_json", "bad_event")


def resume(data: bytes) -> None:
    """A resume opens a session by its newest token alone, and replays no future."""
    whole = b'{"type":"session.resume","session_id":"s",%b}'
    for raw in (
        data,
        whole % b'"resume_token":"%b","last_received_server_event_seq":0' % data,
        whole % b'"resume_token":"t","last_received_server_event_seq":%b' % data,
    ):
        command = outcome(raw)
        if isinstance(command, ResumeSession):
            _present(command)
            _replay_behind(command.last_received_server_event_seq)


def _present(command: ResumeSession) -> None:
    credential = ResumeCredential(bytes)
    token = credential.issue()
    is_newest = command.resume_token == token
    assert credential.opens(command.resume_token, is_free=True) == is_newest


def _replay_behind(seq: int) -> None:
    journal = EventJournal(max_bytes=EVENTS_KEPT * EVENT_BYTES, ttl_s=60)
    for number in range(1, EVENTS_SENT + 1):
        journal.record(number, f"event {number:4}", 0)
    try:
        replay = journal.replay_after(seq, 0)
    except DuplexError as refused:
        assert refused.code == "session_resume_conflict"
        assert seq > EVENTS_SENT
    except JournalGap:
        assert seq < EVENTS_SENT - EVENTS_KEPT
    else:
        assert [int(text[5:]) for text in replay] == list(range(seq + 1, EVENTS_SENT + 1))


def stage_frames(data: bytes) -> None:
    """A stream of frames is cut as it was put together, however it arrives."""
    whole, sliced = FrameDecoder(), FrameDecoder()
    payloads, is_refused = [], False
    try:
        for payload in whole.feed(data):
            payloads.append(payload)
            _read_again(payload)
    except FrameError:
        is_refused = True
    sent = sum(LENGTH.size + len(payload) for payload in payloads)
    rest = data[sent:]
    announced = struct.unpack_from(">I", rest)[0] if len(rest) >= LENGTH.size else 0
    assert is_refused == (announced > MAX_FRAME_BYTES)
    assert is_refused or whole.pending == len(rest)
    cut = data[0] % len(data) if data else 0
    assert [*sliced.feed(data[: min(cut, sent)]), *sliced.feed(data[min(cut, sent) : sent])] == (
        payloads
    )


def _read_again(payload: bytes) -> None:
    try:
        output = _read_output(payload)
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return
    said = _write(output)
    assert _write(_read_output(said)) == said
