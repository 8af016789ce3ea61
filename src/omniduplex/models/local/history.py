"""Fits a conversation into a context, dropping its oldest turns in steps that spare the cache."""

from collections.abc import Sequence

from omniduplex.models.local.language_model import ChatMessage

BYTES_PER_TOKEN = 3  # on the safe side of the 4 that English needs
MESSAGE_TOKENS = 8  # role and turn marks of a chat template


def estimate_tokens(message: ChatMessage) -> int:
    """Guess, rather high, how many tokens a message takes."""
    text = (message.content or "") + "".join(
        call.name + call.arguments for call in message.tool_calls
    )
    return MESSAGE_TOKENS + len(text.encode()) // BYTES_PER_TOKEN


def fit(messages: Sequence[ChatMessage], budget: int) -> tuple[ChatMessage, ...]:
    """Keep the leading system messages and the newest turns within `budget` tokens.

    What is dropped grows by half budgets at a time, so that the prompt's beginning stays as it
    was for many turns and the model's prompt cache stays good. The last message always stays.
    """
    lead = 0
    while lead < len(messages) - 1 and messages[lead].role == "system":
        lead += 1
    head, turns = messages[:lead], messages[lead:]
    room = max(budget - sum(map(estimate_tokens, head)), 1)
    excess = sum(map(estimate_tokens, turns)) - room
    if excess <= 0:
        return tuple(messages)
    step = max(room // 2, 1)
    to_drop = -(-excess // step) * step
    start = 0
    while to_drop > 0 and start < len(turns) - 1:
        to_drop -= estimate_tokens(turns[start])
        start += 1
    return (*head, *_from_a_question(turns[start:]))


def _from_a_question(turns: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """Begin at a user's turn: an answer without question, or a tool result alone, confuses."""
    for index, message in enumerate(turns):
        if message.role == "user":
            return turns[index:]
    return turns[-1:]
