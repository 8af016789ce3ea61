"""The sound of half-duplex conversations: as a client sends it, and as it gets it."""

from __future__ import annotations

import base64
import io

import pytest
from tests.entrypoints.turn.half_duplex import (
    DONE,
    MAX_PENDING_TURNS,
    OFFICIAL,
    RATE,
    HalfDuplex,
    sound,
    spoken,
)
from tests.entrypoints.turn.sounds import tone

from omniduplex.audio.wav import read_wav_file
from omniduplex.engine.turns import TurnAudio, TurnChunk, TurnMessage
from omniduplex.entrypoints.openai.turn_realtime.effects import Ask, Hear
from omniduplex.protocol.duplex import (
    AppendAudio,
    Commit,
    ContentPart,
    CreateResponse,
    DeleteItem,
    Dialect,
    ItemInput,
    ResponseOptions,
)

AUDIO_PART = {"type": "input_audio", "audio": base64.b64encode(sound(100)).decode()}


def test_committed_audio_is_heard_and_then_answered(talk: HalfDuplex) -> None:
    talk.send(AppendAudio(audio=sound(300)))
    talk.send(AppendAudio(audio=sound(200)))
    talk.send(Commit())
    talk.send(CreateResponse())
    assert talk.types() == [
        "input_audio_buffer.committed",
        "conversation.item.added",
        "conversation.item.done",
        "response.created",
    ]
    assert not talk.all(Ask)
    assert talk.last(Hear).sound.decoded() == TurnAudio(sound(500), RATE)

    talk.hears("good morning")
    delta, completed = talk.shown()
    assert delta["delta"] == completed["transcript"] == "good morning"
    assert completed["usage"] == {"type": "duration", "seconds": 0.5}
    assert talk.request().messages == (TurnMessage(role="user", content=("good morning",)),)


def test_sound_says_how_to_play_it(talk: HalfDuplex) -> None:
    talk.writes("hello")
    assert talk.asks().wanted.modalities == ("audio",)
    assert talk.request().speak
    talk.shown()
    talk.answers(spoken("good ", 100), spoken("day", 55), DONE)

    events = talk.shown()
    deltas = [event for event in events if event["type"] == "response.output_audio.delta"]
    assert [delta["audio_duration_ms"] for delta in deltas] == [100, 155]
    for delta in deltas:
        OFFICIAL.validate_python(delta)
        assert (delta["format"], delta["sample_rate_hz"], delta["channels"]) == ("pcm16", RATE, 1)
    words = [event for event in events if event["type"].endswith("transcript.delta")]
    assert [event["delta"] for event in words] == ["good ", "day"]
    assert sum(len(base64.b64decode(delta["delta"])) for delta in deltas) == len(sound(155))


def test_sound_comes_in_the_sessions_format(talk: HalfDuplex) -> None:
    ulaw = {"type": "realtime", "audio": {"output": {"format": {"type": "audio/pcmu"}}}}
    talk.send_json("session.update", session=ulaw)
    talk.writes("hello")
    talk.asks()
    talk.shown()
    talk.answers(spoken("good day", 200, 16_000), DONE)
    deltas = [event for event in talk.shown() if event["type"] == "response.output_audio.delta"]
    assert {(delta["format"], delta["sample_rate_hz"]) for delta in deltas} == {("g711_ulaw", 8000)}
    assert sum(len(base64.b64decode(delta["delta"])) for delta in deltas) == 1600
    assert deltas[-1]["audio_duration_ms"] == 200


def test_in_wav_each_delta_is_a_whole_file(talk: HalfDuplex) -> None:
    talk.writes("hello")
    talk.asks(output_audio_format="wav")
    talk.shown()
    talk.answers(spoken("good ", 100), spoken("day", 55), DONE)
    deltas = [event for event in talk.shown() if event["type"] == "response.output_audio.delta"]
    files = [read_wav_file(io.BytesIO(base64.b64decode(delta["delta"]))) for delta in deltas]
    assert files == [(sound(100), RATE), (sound(55), RATE)]
    assert {(delta["format"], delta["sample_rate_hz"]) for delta in deltas} == {("wav", RATE)}
    assert [delta["audio_duration_ms"] for delta in deltas] == [100, 155]


def test_sound_made_at_once_comes_in_frames_that_stock_clients_read(talk: HalfDuplex) -> None:
    """Interop, MUST 5."""
    talk.writes("hello")
    talk.asks()
    talk.shown()
    talk.answers(spoken("All of it.", 20_000), spoken(" Bye.", 100), DONE)
    events = talk.shown()
    deltas = [event for event in events if event["type"] == "response.output_audio.delta"]
    assert max(len(delta["delta"]) for delta in deltas) <= 512 * 1024
    sound_told = b"".join(base64.b64decode(delta["delta"]) for delta in deltas)
    assert sound_told == sound(20_000) + sound(100)
    assert [delta["audio_duration_ms"] for delta in deltas][-2:] == [20_000, 20_100]
    words = [event["delta"] for event in events if event["type"].endswith("transcript.delta")]
    assert words == ["", "", "All of it.", " Bye."]


def test_the_beta_has_its_own_names() -> None:
    talk = HalfDuplex(dialect=Dialect.BETA)
    talk.writes("hello")
    talk.asks()
    talk.shown()
    talk.answers(spoken("good day"), DONE)
    delta = talk.one("response.audio.delta")
    assert (delta["sample_rate_hz"], delta["audio_duration_ms"]) == (RATE, 100)


@pytest.mark.parametrize(
    ("chunks", "message"),
    [
        ((TurnChunk(text="x", pcm=sound(100)),), "without its sample rate"),
        ((spoken("x"), spoken("y", rate=16_000)), "changed from 24000 to 16000 Hz"),
        ((spoken("x"), TurnChunk(pcm=b"odd", sample_rate_hz=RATE)), ""),
    ],
)
def test_sound_that_cannot_be_played_fails_the_response(
    talk: HalfDuplex, chunks: tuple[TurnChunk, ...], message: str
) -> None:
    talk.writes("hello")
    ask = talk.asks()
    talk.answers(*chunks, DONE)

    events = talk.shown()
    (error,) = (event["error"] for event in events if event["type"] == "error")
    assert error["code"] == "response_error"
    assert message in error["message"]
    (done,) = (event["response"] for event in events if event["type"] == "response.done")
    assert done["status_details"] == {
        "type": "failed",
        "error": {"type": "server_error", "code": "response_error"},
    }
    assert talk.stopped == [ask.response_id]


def test_a_model_that_recognises_nothing_hears_the_sound_itself() -> None:
    talk = HalfDuplex(transcribes=False)
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    talk.asks()
    assert not talk.all(Hear)
    heard = (TurnAudio(sound(100), RATE),)
    assert talk.request().messages == (TurnMessage(role="user", content=heard),)


def test_words_that_will_never_be_known_fail_what_waits_for_them(talk: HalfDuplex) -> None:
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    talk.send(CreateResponse())
    talk.shown()
    talk.hears_nothing("the ear broke")

    failed, error, done, _ = talk.shown()
    assert failed["error"]["message"] == "the ear broke"
    assert error["error"]["code"] == "transcription_failed"
    assert done["response"]["status"] == "failed"
    talk.writes("hello")
    talk.asks()
    assert talk.request().messages == (TurnMessage(role="user", content=("hello",)),)


def test_what_is_said_after_the_question_is_no_part_of_it(talk: HalfDuplex) -> None:
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    asked = talk.last(Hear).part
    talk.send(CreateResponse())
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    later = talk.last(Hear).part
    talk.writes("later, too")

    talk.hears("good morning", asked)
    assert talk.request().messages == (TurnMessage(role="user", content=("good morning",)),)
    talk.hears_nothing("it is loud", later)
    assert talk.types()[-1] == "conversation.item.input_audio_transcription.failed"
    assert talk.conversation.answering


def test_what_cannot_be_heard_fails_only_what_asked_about_it(talk: HalfDuplex) -> None:
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    asked = talk.last(Hear).part
    talk.send(CreateResponse())
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    talk.hears_nothing("it is loud")
    assert talk.conversation.answering
    talk.hears("good morning", asked)
    assert talk.request().messages == (TurnMessage(role="user", content=("good morning",)),)


def test_an_input_of_its_own_waits_for_nothing_else(talk: HalfDuplex) -> None:
    talk.send(AppendAudio(audio=sound(100)))
    talk.send(Commit())
    said = talk.last(Hear).part[0]
    written = ItemInput(id=said, content=(ContentPart(type="input_text", text="aside"),))
    talk.asks(conversation="none", input=(written,))
    assert talk.request().messages == (TurnMessage(role="user", content=("aside",)),)
    talk.answers(DONE)

    named = ItemInput(type="item_reference", id=said)
    talk.send(CreateResponse(response=ResponseOptions(conversation="none", input=(named,))))
    assert len(talk.all(Ask)) == 1
    talk.hears("good morning")
    assert talk.request().messages == (TurnMessage(role="user", content=("good morning",)),)


def test_sound_inside_an_item_is_heard_too(talk: HalfDuplex) -> None:
    audio = base64.b64encode(sound(100)).decode()
    content = [{"type": "input_text", "text": "Listen:"}, {"type": "input_audio", "audio": audio}]
    item = {"type": "message", "role": "user", "content": content}
    talk.send_json("conversation.item.create", item=item)
    talk.hears("a bell")
    talk.asks()
    assert talk.request().messages == (TurnMessage(role="user", content=("Listen: a bell",)),)


def test_half_a_sample_is_no_audio(talk: HalfDuplex) -> None:
    talk.send(AppendAudio(audio=b"odd"))
    talk.send(Commit())
    assert talk.error()["code"] == "bad_audio"
    talk.send(AppendAudio(audio=tone(100)))
    talk.send(Commit())
    assert talk.types()[0] == "input_audio_buffer.committed"


def test_so_many_sounds_wait_to_be_heard_and_no_more(talk: HalfDuplex) -> None:
    said = []
    for _ in range(MAX_PENDING_TURNS):
        talk.send(AppendAudio(audio=sound(100)))
        talk.send(Commit())
        said.append(talk.last(Hear).part)
    talk.shown()
    talk.send(AppendAudio(audio=sound(300)))
    talk.send(Commit(event_id="one more"))
    error = talk.error()
    assert (error["code"], error["event_id"]) == ("input_backpressure", "one more")
    item = {"type": "message", "role": "user", "content": [AUDIO_PART]}
    talk.send_json("conversation.item.create", item=item)
    assert talk.error()["code"] == "input_backpressure"
    talk.writes("no sound")
    assert talk.types() == ["conversation.item.added", "conversation.item.done"]

    # What is deleted is still being heard.
    talk.send(DeleteItem(item_id=said[0][0]))
    talk.shown()
    talk.send(Commit())
    assert talk.error()["code"] == "input_backpressure"
    talk.hears("nobody reads this", said[0])
    assert talk.types() == []
    talk.send(Commit())
    assert talk.last(Hear).sound.decoded() == TurnAudio(sound(300), RATE)
    talk.hears_nothing("it is loud", said[1])
    talk.send_json("conversation.item.create", item=item)
    assert talk.last(Hear).sound.decoded() == TurnAudio(sound(100), RATE)


def test_a_model_that_hears_by_itself_has_no_turns_that_wait() -> None:
    talk = HalfDuplex(transcribes=False)
    for _ in range(2 * MAX_PENDING_TURNS):
        talk.send(AppendAudio(audio=sound(100)))
        talk.send(Commit())
    assert "error" not in talk.types()


def test_words_go_to_the_item_whose_sound_they_are_of(talk: HalfDuplex) -> None:
    item = {"id": "mine", "type": "message", "role": "user", "content": [AUDIO_PART]}
    talk.send_json("conversation.item.create", item=item)
    talk.send(DeleteItem(item_id="mine"))
    talk.send_json("conversation.item.create", item=item)
    talk.shown()
    talk.hears("of the deleted one")
    assert talk.types() == []
    talk.hears("of the one that is here")
    assert talk.shown()[-1]["transcript"] == "of the one that is here"
