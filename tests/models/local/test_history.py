from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from omniduplex.models.local.history import estimate_tokens, fit
from omniduplex.models.local.language_model import ChatMessage, ToolCall

SYSTEM = ChatMessage(role="system", content="Be kind.")


def turn(index: int) -> tuple[ChatMessage, ChatMessage]:
    return (
        ChatMessage(role="user", content=f"question {index} " * 5),
        ChatMessage(role="assistant", content=f"answer {index} " * 5),
    )


def conversation(turns: int) -> tuple[ChatMessage, ...]:
    talk = [message for index in range(turns) for message in turn(index)]
    return (SYSTEM, *talk, ChatMessage(role="user", content="and now?"))


def test_what_fits_is_left_alone() -> None:
    assert fit(conversation(3), 10_000) == conversation(3)


@given(st.integers(0, 60), st.integers(100, 600))
def test_result_fits_and_keeps_instructions_and_newest_message(turns: int, budget: int) -> None:
    messages = conversation(turns)
    kept = fit(messages, budget)

    assert sum(map(estimate_tokens, kept)) <= budget
    assert (kept[0], kept[-1]) == (SYSTEM, messages[-1])
    assert kept[1].role == "user"
    assert kept[1:] == messages[len(messages) - len(kept) + 1 :]


def test_beginning_stays_the_same_for_several_turns() -> None:
    beginnings = [fit(conversation(turns), 400)[1] for turns in range(10, 30)]
    changes = sum(a != b for a, b in pairwise(beginnings))
    assert changes <= 6


def test_tool_result_is_not_kept_without_its_call() -> None:
    call = ToolCall(call_id="c1", name="f", arguments="{}")
    messages = (
        ChatMessage(role="user", content="x" * 300),
        ChatMessage(role="assistant", tool_calls=(call,)),
        ChatMessage(role="tool", tool_call_id="c1", content="42"),
        ChatMessage(role="user", content="thanks"),
    )
    assert fit(messages, 60) == messages[-1:]


def test_last_message_stays_even_when_it_is_too_long() -> None:
    last = ChatMessage(role="user", content="x" * 3_000)
    assert fit((SYSTEM, *turn(0), last), 100) == (SYSTEM, last)
