"""Fits a conversation into a context, dropping its oldest turns in steps that spare the cache."""

from collections.abc import Iterable, Sequence
from itertools import accumulate

from omniduplex.models.local.language_model import ChatMessage

BYTES_PER_TOKEN = 3  # on the safe side of the 4 that English needs
MESSAGE_TOKENS = 8  # role and turn marks of a chat template


def estimate_tokens(message: ChatMessage) -> int:
    """Guess, rather high, how many tokens a message takes."""
    text = (message.content or "") + "".join(
        call.name + call.arguments for call in message.tool_calls
    )
    return MESSAGE_TOKENS + len(text.encode()) // BYTES_PER_TOKEN


def fit(
    messages: Sequence[ChatMessage],
    budget: int,
    *,
    reserve: int = 0,
    known: Iterable[Sequence[ChatMessage]] = (),
) -> tuple[ChatMessage, ...]:
    """Keep the leading system messages and the newest turns within `budget` tokens.

    `known` are prompts that the model has read, newest first: where one of them goes on in this
    conversation, the prompt begins as it did, so that only what is new is read. When that leaves
    less than `reserve` free, the newest turns of half the budget are kept. The last message
    always stays.
    """
    lead = 0
    while lead < len(messages) - 1 and messages[lead].role == "system":
        lead += 1
    head, turns = tuple(messages[:lead]), tuple(messages[lead:])
    room = max(budget - sum(map(estimate_tokens, head)), 1)
    left = _left_from(turns)
    for prompt in known:
        place = _continued_at(prompt, head, turns)
        if place is None or left[place.start] + reserve > room:
            continue
        # A trim leaves half the budget, less is read of it; yet a little is a likeness by chance.
        if place.start == 0 or left[place.start] - left[place.stop] >= room // 8:
            return (*head, *turns[place.start :])
    if left[0] + reserve <= room:
        return tuple(messages)
    newest = next((place for place, tokens in enumerate(left) if tokens <= room // 2), len(turns))
    return (*head, *_from_a_question(turns[min(newest, len(turns) - 1) :]))


def _left_from(turns: Sequence[ChatMessage]) -> list[int]:
    """Tokens from each place on to the end."""
    sums = accumulate(estimate_tokens(message) for message in reversed(turns))
    return [*reversed(list(sums)), 0]


def _continued_at(
    prompt: Sequence[ChatMessage], head: tuple[ChatMessage, ...], turns: tuple[ChatMessage, ...]
) -> range | None:
    """Which places of `turns` a prompt holds of which they are the continuation.

    Its last two messages may differ: a question that went on, an answer that was not heard out.
    """
    if tuple(prompt[: len(head)]) != head:
        return None
    before = tuple(prompt[len(head) :])
    wanted = max(len(before) - 2, 1)
    for start in range(len(turns)):
        if turns[start : start + wanted] == before[:wanted]:
            return range(start, start + wanted)
    return None


def _from_a_question(turns: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Begin at a user's turn: an answer without question, or a tool result alone, confuses."""
    for index, message in enumerate(turns):
        if message.role == "user":
            return turns[index:]
    return turns[-1:]
