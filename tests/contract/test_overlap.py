"""Speech over an answer on the wire of the duplex dialect: wire contract, sections 7.2 and 8."""

from collections.abc import Iterator

import pytest
from tests.contract.caller import Caller, Event, call, types

STORY = "a story of seven words or eight"


@pytest.fixture
def paced(paced_base: str) -> Iterator[Caller]:
    """Its answers go on as long as it hears something."""
    with call(paced_base, "duplex") as caller:
        yield caller


def begin_an_answer(caller: Caller, **response: object) -> None:
    caller.writes(STORY)
    caller.send("response.create", response=response)
    caller.says(0.2, hz=0)
    caller.until("response.output_audio_transcript.delta")


def hear_out(caller: Caller) -> list[Event]:
    """Be silent until the answer is over."""
    caller.says(5.0, hz=0)
    return caller.until("rate_limits.updated")


def committed(caller: Caller, **commit: object) -> Event:
    caller.send("input_audio_buffer.commit", **commit)
    event = caller.until("input_audio_buffer.committed")[-1]["event"]
    assert isinstance(event, dict)
    return event


def test_a_decision_says_all_that_the_contract_names(paced: Caller) -> None:
    begin_an_answer(paced)
    paced.says(0.4)
    decision = paced.until("overlap.decision")[-1]
    assert (decision["policy"], decision["action"]) == ("listen_only", "listen")
    assert decision["reason"] == "policy_listen_only"
    assert decision["epoch"] == 0
    assert decision["metadata"] == {
        "duration_ms": 400,
        "overlap_ms": 400,
        "overlap_speech_ms": 400,
        "buffer_audio": True,
        "defer_runtime_append": True,
    }


def test_a_declared_interruption_says_what_it_does(paced: Caller) -> None:
    begin_an_answer(paced)
    paced.send("input_audio_buffer.append", audio=paced.sound(0.4), overlap_action="barge_in")
    events = paced.until("rate_limits.updated")
    decision = next(event for event in events if event["type"] == "overlap.decision")
    assert (decision["action"], decision["reason"]) == ("barge_in", "client_overlap_action")
    metadata = decision["metadata"]
    assert metadata["cancel_reason"] == "barge_in"
    assert metadata["preserve_realtime_input"] is True
    assert types(events).index("overlap.decision") < types(events).index("response.done")
    assert events[-2]["response"]["status_details"]["reason"] == "barge_in"


def test_a_turn_committed_over_an_answer_comes_after_it(paced: Caller) -> None:
    begin_an_answer(paced)
    paced.says(0.8)
    facts = committed(paced, response_create=True)
    assert facts["overlap_deferred"] is True
    assert facts["response_create_deferred"] is True
    events = hear_out(paced)
    assert events[-2]["response"]["status"] == "completed"
    events = hear_out(paced)
    spoken = next(event for event in events if event["type"] == "response.done")
    assert "tone" in str(spoken["response"]["output"])


def test_a_turn_committed_over_what_only_plays_comes_after_that(paced: Caller) -> None:
    paced.configure(extra_body={"playback_commit_policy": "ack_only"})
    paced.writes("so many words " * 40)  # which play on, however slow this machine is
    paced.send("response.create")
    paced.says(120.0, hz=0)
    done = paced.until("rate_limits.updated")[-2]["response"]
    assert done["status"] == "completed"
    paced.says(0.8)
    facts = committed(paced, response_create=True)
    assert facts["overlap_deferred"] is True
    assert facts["response_create_deferred"] is True
    events = paced.until("conversation.item.input_audio_transcription.completed")
    assert "response.created" not in types(events + paced.until_now())
    paced.send("playback.ack", response_id=done["id"], played_ms=1e6)
    assert "playback.acknowledged" in types(paced.until("response.created"))
    events = hear_out(paced)
    answer = next(event for event in events if event["type"] == "response.done")["response"]
    assert "tone" in str(answer["output"])


def test_a_short_commit_over_an_answer_is_an_acknowledgement(paced: Caller) -> None:
    begin_an_answer(paced)
    paced.says(0.3)
    facts = committed(paced, response_create=True)
    assert (facts["empty"], facts["overlap_ack"], facts["no_response"]) == (True, True, True)
    assert facts["is_speech"] is False
    hear_out(paced)
    assert "response.created" not in types(paced.until_now())


def test_speech_waits_for_an_answer_that_may_not_be_interrupted(paced: Caller) -> None:
    paced.configure(
        turn_detection={"type": "server_vad", "silence_duration_ms": 200},
        overlap_policy="barge_in_on_speech",
    )
    begin_an_answer(paced, interruptible=False)
    paced.says(0.5)
    paced.until("input_audio_buffer.speech_started")
    decision = paced.until("overlap.decision")[-1]
    assert (decision["action"], decision["reason"]) == ("listen", "response_uninterruptible")
    events = hear_out(paced)
    assert events[-2]["response"]["status"] == "completed"
    assert "output_audio_buffer.cleared" not in types(events)
    assert "response.created" in types(events) or paced.until("response.created")


def test_under_adaptive_it_waits_only_if_it_is_a_turn(paced: Caller) -> None:
    paced.configure(
        turn_detection={"type": "server_vad", "silence_duration_ms": 200},
        overlap_policy="adaptive",
    )
    begin_an_answer(paced, interruptible=False)
    paced.says(0.3)
    paced.says(0.5, hz=0)
    assert paced.until("overlap.decision")[-1]["reason"] == "short_ack"
    paced.says(0.24)
    until_answered(paced, 1200)
    paced.says(0.8)
    paced.says(0.4, hz=0)
    decided = [paced.until("overlap.decision")[-1]["reason"]]
    while decided[-1] in ("short_ack", "accumulating_overlap_speech"):
        decided.append(paced.until("overlap.decision")[-1]["reason"])
    events = hear_out(paced)
    done = events[-2]["response"]
    events += hear_out(paced)

    assert "response.created" in types(events)
    assert decided[-1] == "response_uninterruptible"
    assert done["status"] == "completed"
    assert types(events).count("input_audio_buffer.speech_started") == 1
    assert types(events).count("input_audio_buffer.committed") == 1


def until_answered(caller: Caller, ms: int) -> None:
    """Read on until the answer, which takes as long as what is heard meanwhile, is so long."""
    while True:
        delta = caller.until("response.output_audio.delta")[-1]
        if delta["metadata"]["audio_duration_ms"] >= ms:
            return
