from __future__ import annotations

import msgspec
import pytest

from omniduplex.benchmarks.share import StageTimes, own_share, stage_times

# A turn that ends at 10 s: the answer begins when it has ended.
AFTER_THE_END = StageTimes(
    at_turn_audio=9.9,
    at_turn_end=10.0,
    at_prompt=10.002,
    at_first_clause=10.2,
    at_first_clause_in=10.203,
    at_first_audio_out=10.5,
)
# The answer began in the pause and its audio came out after the turn had ended.
DRAFT = msgspec.structs.replace(AFTER_THE_END, at_prompt=9.7)
# Its audio was there before.
WAITING_DRAFT = msgspec.structs.replace(
    DRAFT, at_first_clause=9.8, at_first_clause_in=9.803, at_first_audio_out=9.95
)


def test_hops_around_the_models_are_ours_and_the_models_are_not() -> None:
    share = own_share(AFTER_THE_END, sent_at=9.895, received_at=10.504)
    assert share is not None
    assert share.audio_in_s == pytest.approx(0.005)
    assert share.between_stages_s == pytest.approx(0.002 + 0.003)
    assert share.audio_out_s == pytest.approx(0.004)
    assert share.total_s == pytest.approx(0.014)
    assert not share.drafted


def test_a_draft_costs_two_hops_between_stages_though_one_is_not_stamped() -> None:
    share = own_share(DRAFT, sent_at=9.895, received_at=10.504)
    assert share is not None
    assert share.between_stages_s == pytest.approx(2 * 0.003)
    assert share.drafted


def test_a_draft_that_waits_for_the_end_of_the_turn_costs_only_the_way_out_from_there() -> None:
    share = own_share(WAITING_DRAFT, sent_at=9.895, received_at=10.006)
    assert share is not None
    assert share.between_stages_s == 0
    assert share.audio_out_s == pytest.approx(0.006)
    assert share.total_s == pytest.approx(0.011)


@pytest.mark.parametrize("slower", ["recognition", "language model", "voice"])
def test_a_slower_model_changes_nothing(slower: str) -> None:
    order = ("recognition", "language model", "voice")
    late = {
        "at_turn_end": order.index(slower) <= 0,
        "at_prompt": order.index(slower) <= 0,
        "at_first_clause": order.index(slower) <= 1,
        "at_first_clause_in": order.index(slower) <= 1,
        "at_first_audio_out": True,
    }
    moved = {
        name: getattr(AFTER_THE_END, name) + (0.7 if is_late else 0.0)
        for name, is_late in late.items()
    }
    quick = own_share(AFTER_THE_END, sent_at=9.895, received_at=10.504)
    slow = own_share(
        msgspec.structs.replace(AFTER_THE_END, **moved), sent_at=9.895, received_at=11.204
    )
    assert quick is not None
    assert slow is not None
    assert slow.total_s == pytest.approx(quick.total_s)


@pytest.mark.parametrize("missing", [n for n in StageTimes.__struct_fields__ if n[:3] == "at_"])
def test_without_one_of_the_times_nothing_is_told(missing: str) -> None:
    times = msgspec.structs.replace(AFTER_THE_END, **{missing: None})
    assert own_share(times, sent_at=9.895, received_at=10.504) is None


def test_times_of_all_stages_are_read_from_the_metadata() -> None:
    stages = {"0": {"asr_s": 0.2, "at_prompt": 5.0, "units": 3.0}, "1": {"tts_first_s": 0.1}}
    metadata = {"type": "response.done", "omniduplex": {"stage_metrics": stages}}
    assert stage_times(metadata) == StageTimes(asr_s=0.2, at_prompt=5.0, tts_first_s=0.1)


def test_a_model_that_reports_nothing_leaves_all_open() -> None:
    assert stage_times(None) == StageTimes()
    assert stage_times({"topic": "weather"}) == StageTimes()
