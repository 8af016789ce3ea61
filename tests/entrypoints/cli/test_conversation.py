"""A conversation with a peer in the test's hand, on a clock that jumps."""

from __future__ import annotations

import io
import math
import struct
from collections.abc import AsyncIterator
from pathlib import Path

import msgspec
import pytest
from rich.console import Console
from tests.clients.scripted import (
    MODEL,
    InlinePeer,
    JumpingClock,
    Peer,
    audio,
    created,
    done,
    words,
)

from omniduplex.audio.wav import read_wav
from omniduplex.clients import (
    DuplexClientError,
    DuplexProtocolError,
    InlineDuplexClient,
)
from omniduplex.clients.local import create_duplex_session_config
from omniduplex.entrypoints.cli.conversation import Conversation
from omniduplex.entrypoints.cli.talk_view import PlainView
from omniduplex.protocol.duplex import (
    AckPlayback,
    AppendAudio,
    DuplexCommand,
    DuplexError,
    DurationUsage,
    OutputCleared,
    ResponseStatus,
    SpeechStarted,
    SpeechStopped,
    TranscriptionCompleted,
    error_event,
)
from omniduplex.protocol.realtime.events import StatusDetails

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def tone(ms: int) -> bytes:
    count = 16 * ms
    return struct.pack(f"<{count}h", *(int(8000 * math.sin(n / 4)) for n in range(count)))


class Partner(Peer):
    """Answers 200 ms after the user's last sound, and stops when talked over.

    An answer is complete when it was generated, so only the last one has time to be, unless the
    partner writes ahead.
    """

    def __init__(self) -> None:
        super().__init__()
        self.turns = 1
        self.answer_ms = 3000
        self.ending: ResponseStatus = "completed"
        self.writes_ahead = False
        self.details: StatusDetails | None = None
        self._turn = 0
        self._quiet_ms = 0
        self._user_speaks = False
        self._speaking = ""

    def take(self, command: DuplexCommand) -> None:
        super().take(command)
        if isinstance(command, AppendAudio):
            self._hear(any(command.audio))

    def _hear(self, sound: bool) -> None:
        self._quiet_ms = 0 if sound else self._quiet_ms + 20
        if sound and not self._user_speaks:
            self._user_speaks = True
            self.emit(SpeechStarted(audio_start_ms=0, item_id="item_u"))
            if self._speaking and self.writes_ahead:
                self.emit(OutputCleared(response_id=self._speaking))
            elif self._speaking:
                self.emit(done(self._speaking, "cancelled"))
        elif self._user_speaks and self._quiet_ms == 200:
            self._answer()

    def _answer(self) -> None:
        self._user_speaks = False
        self._turn += 1
        name = f"resp_{self._turn}"
        self.emit(
            SpeechStopped(audio_end_ms=0, item_id="item_u"),
            TranscriptionCompleted(
                item_id="item_u", transcript=f" turn {self._turn}", usage=DurationUsage(seconds=1)
            ),
            created(name),
            audio(name, bytes(48 * self.answer_ms)),
            words(name, f"answer {self._turn}"),
        )
        if self.writes_ahead or self._turn == self.turns:
            ended = done(name, self.ending)
            response = msgspec.structs.replace(ended.response, status_details=self.details)
            self.emit(msgspec.structs.replace(ended, response=response))
        self._speaking = name


@pytest.fixture
async def partner(anyio_backend: str) -> Partner:
    return Partner()


@pytest.fixture
def printed() -> io.StringIO:
    return io.StringIO()


@pytest.fixture
async def conversation(
    partner: Partner, printed: io.StringIO, tmp_path: Path
) -> AsyncIterator[Conversation]:
    clock = JumpingClock()
    config = create_duplex_session_config()
    inline = InlineDuplexClient(InlinePeer(partner), model=MODEL, config=config, clock=clock)
    async with inline as client:
        view = PlainView(Console(file=printed, width=40))
        yield Conversation(client, view, out=tmp_path, clock=clock, patience_s=10)


async def test_a_question_is_asked_and_its_answer_heard_to_the_end(
    conversation: Conversation, printed: io.StringIO, tmp_path: Path
) -> None:
    (answer,) = await conversation.hold(tone(500))

    assert (answer.status, answer.transcript) == ("completed", "answer 1")
    assert (answer.audio_ms, answer.heard_ms) == (3000, 3000)
    assert answer.file == tmp_path / "response_01.wav"
    assert read_wav(answer.file) == (bytes(48 * 3000), 24000)
    lines = printed.getvalue().splitlines()
    assert [line.partition(" (")[0] for line in lines] == [
        "[listening]",
        "[listening: you speak]",
        "[thinking]",
        "you: turn 1",
        "[speaking]",
        "model: answer 1",
        "[listening]",
    ]
    assert "\x1b" not in printed.getvalue()


async def test_the_latency_counts_from_the_last_audible_frame(
    conversation: Conversation,
) -> None:
    (answer,) = await conversation.hold(tone(500) + bytes(32 * 100))

    # The partner answers when it has heard 200 ms of silence.
    assert answer.latency_ms == pytest.approx(200, abs=20)


async def test_a_follow_up_talks_over_the_first_answer(
    conversation: Conversation, partner: Partner, printed: io.StringIO
) -> None:
    partner.turns = 2

    first, second = await conversation.hold(tone(500), tone(300))

    assert (first.status, second.status) == ("cancelled", "completed")
    assert first.audio_ms == 3000
    assert 1000 <= first.heard_ms <= 1100
    assert second.heard_ms == 3000
    cut_off = [ack for ack in partner.sent(AckPlayback) if ack.truncate]
    assert [(ack.response_id, ack.played_ms) for ack in cut_off] == [("resp_1", first.heard_ms)]
    assert "[interrupted]" in printed.getvalue()


@pytest.mark.parametrize("ending", ["completed", "incomplete"])
async def test_an_answer_too_short_to_talk_over_is_followed(
    conversation: Conversation, partner: Partner, ending: ResponseStatus
) -> None:
    partner.turns, partner.writes_ahead = 2, True
    partner.answer_ms, partner.ending = 500, ending

    first, second = await conversation.hold(tone(500), tone(300))

    assert (first.status, second.status) == (ending, ending)
    assert (first.heard_ms, second.heard_ms) == (500, 500)


async def test_a_failed_answer_is_a_failure(conversation: Conversation, partner: Partner) -> None:
    partner.ending = "failed"

    with pytest.raises(DuplexProtocolError, match="answer 1 failed"):
        await conversation.hold(tone(500))


async def test_no_answer_is_a_failure(conversation: Conversation, partner: Partner) -> None:
    with pytest.raises(DuplexClientError, match="no answer within 10 s"):
        await conversation.hold(bytes(3200))


async def test_a_refusal_ends_the_conversation(
    conversation: Conversation, partner: Partner
) -> None:
    partner.emit(error_event(DuplexError("bad_audio", "odd bytes")))

    with pytest.raises(DuplexProtocolError, match="bad_audio: odd bytes"):
        await conversation.hold(tone(500))


async def test_a_whole_answer_that_was_not_heard_to_its_end_says_so(
    conversation: Conversation, partner: Partner
) -> None:
    partner.turns, partner.writes_ahead = 2, True

    first, second = await conversation.hold(tone(500), tone(300))

    assert (first.status, second.status) == ("completed (talked over)", "completed")
    assert 1000 <= first.heard_ms <= 1100


async def test_an_answer_that_is_not_whole_says_why(
    conversation: Conversation, partner: Partner
) -> None:
    partner.ending = "incomplete"
    partner.details = StatusDetails(type="incomplete", reason="max_output_tokens")

    (answer,) = await conversation.hold(tone(500))

    assert answer.status == "incomplete (max_output_tokens)"


async def test_a_late_report_of_playback_is_only_a_warning(
    conversation: Conversation, partner: Partner, printed: io.StringIO
) -> None:
    partner.emit(error_event(DuplexError("playback_ack_too_late", "gone")))

    (answer,) = await conversation.hold(tone(500))

    assert answer.status == "completed"
    assert "playback_ack_too_late: gone" in printed.getvalue()


async def test_a_session_that_breaks_off_is_a_failure(
    conversation: Conversation, partner: Partner
) -> None:
    partner.hang_up()

    with pytest.raises(DuplexClientError, match="over"):
        await conversation.hold(tone(500))
