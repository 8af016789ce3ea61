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


def beginnings(turns: range, budget: int, reserve: int = 0) -> list[ChatMessage]:
    """How the prompts of a growing conversation begin, each made in the knowledge of the others."""
    known: list[tuple[ChatMessage, ...]] = []
    for count in turns:
        known.insert(0, fit(conversation(count), budget, reserve=reserve, known=known))
    return [prompt[1] for prompt in reversed(known)]


@given(st.integers(300, 900))
def test_a_beginning_is_kept_until_half_the_budget_is_used_again(budget: int) -> None:
    first_turns = beginnings(range(60), budget)
    changes = sum(a != b for a, b in pairwise(first_turns))
    tokens = sum(estimate_tokens(message) for message in conversation(60))
    assert changes <= tokens / (budget / 2 - sum(map(estimate_tokens, turn(10)))) + 1


def test_a_conversation_that_loses_its_oldest_messages_keeps_its_beginning() -> None:
    messages = conversation(40)
    known: list[tuple[ChatMessage, ...]] = []
    for newest in range(30, 80, 2):
        window = (SYSTEM, *messages[1:][max(0, newest - 24) : newest])
        known.insert(0, fit(window, 400, known=known))
    changes = sum(a[1] != b[1] for a, b in pairwise(known))
    assert changes <= 6


@given(st.integers(0, 40), st.integers(0, 6))
def test_a_prompt_read_ahead_begins_like_the_one_that_follows(turns: int, heard: int) -> None:
    past = conversation(turns)[:-1]
    ahead = fit((*past, ChatMessage(role="user", content="")), 500, reserve=64)
    asked = ChatMessage(role="user", content="a question of some length " * 6)
    said = past[-1]
    cut = (*past[:-1], ChatMessage(role="assistant", content=(said.content or "")[: heard * 10]))
    for history in (past, cut) if turns else (past,):
        kept = fit((*history, asked), 500, known=[ahead])
        assert kept[: len(ahead) - 2] == ahead[: len(ahead) - 2]


def test_a_likeness_to_another_conversation_costs_no_turns() -> None:
    other = (SYSTEM, *turn(5), ChatMessage(role="user", content="well?"))
    assert fit(conversation(10), 600, known=[other]) == conversation(10)


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
