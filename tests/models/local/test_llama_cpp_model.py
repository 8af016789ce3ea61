import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from omniduplex.models.local.chat_wire import Chunk, ChunkReader
from omniduplex.models.local.language_model import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    Finished,
    LanguageModelError,
    TextDelta,
)
from omniduplex.models.local.llama_cpp_model import LlamaCppModel

pytestmark = pytest.mark.local

CONTEXT = 512


@pytest.fixture(scope="module")
def model(smollm2: Path) -> Iterator[LlamaCppModel]:
    model = LlamaCppModel(smollm2, context=CONTEXT)
    yield model
    model.close()


def ask(*contents: str, **settings: int) -> ChatRequest:
    roles = ("user", "assistant") * len(contents)
    messages = [
        ChatMessage(role="user" if role == "user" else "assistant", content=content)
        for role, content in zip(roles, contents, strict=False)
    ]
    return msgspec.structs.replace(ChatRequest(messages=tuple(messages)), **settings)


def never() -> bool:
    return False


def end_of(deltas: list[ChatDelta]) -> Finished:
    last = deltas[-1]
    assert isinstance(last, Finished)
    return last


def test_answer_is_text_and_an_end_with_counts(model: LlamaCppModel) -> None:
    deltas = list(model.stream(ask("Tell me about the days of the week."), never))
    end = end_of(deltas)

    assert all(isinstance(delta, TextDelta) for delta in deltas[:-1])
    assert len(deltas) > 1
    assert end.prompt_tokens is not None
    assert end.prompt_tokens > 20  # the default instructions are part of it
    assert end.completion_tokens is not None
    assert 0 < end.completion_tokens <= 96


def test_length_limit_is_kept(model: LlamaCppModel) -> None:
    end = end_of(list(model.stream(ask("Tell me a long story.", max_tokens=5), never)))
    assert end.finish_reason in ("length", "stop")
    assert end.completion_tokens is not None
    assert end.completion_tokens <= 5


def test_cancel_ends_the_answer_within_a_token(model: LlamaCppModel) -> None:
    cancelled = threading.Event()
    deltas = []
    for delta in model.stream(ask("Tell me a long story.", max_tokens=400), cancelled.is_set):
        deltas.append(delta)
        if len(deltas) == 3:
            cancelled.set()

    assert end_of(deltas).finish_reason == "cancelled"
    assert len(deltas) == 4


def test_the_next_caller_gets_an_answer_after_a_cancelled_one(model: LlamaCppModel) -> None:
    abandoned = model.stream(ask("Tell me a long story.", max_tokens=400), never)
    next(abandoned)
    abandoned.close()

    end = end_of(list(model.stream(ask("Say yes.", max_tokens=3), never)))
    assert end.finish_reason in ("length", "stop")


def test_callers_beyond_the_slots_wait_their_turn(model: LlamaCppModel) -> None:
    ends: list[Finished] = []

    def call() -> None:
        ends.append(end_of(list(model.stream(ask("Hello!", max_tokens=8), never))))

    threads = [threading.Thread(target=call) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [end.finish_reason in ("length", "stop") for end in ends] == [True] * 3


def test_caller_in_line_can_be_cancelled(model: LlamaCppModel) -> None:
    talking = model.stream(ask("Tell me a long story.", max_tokens=400), never)
    next(talking)
    assert list(model.stream(ask("Hello!"), lambda: True)) == [Finished(finish_reason="cancelled")]
    talking.close()


@pytest.mark.parametrize("word", ["word ", "猫🐈"])
def test_long_conversation_is_made_to_fit(model: LlamaCppModel, word: str) -> None:
    turns = [word * 40] * 20
    end = end_of(list(model.stream(ask(*turns, "What is two plus two?", max_tokens=4), never)))

    assert end.prompt_tokens is not None
    assert end.prompt_tokens <= CONTEXT


def test_message_beyond_the_context_is_refused(model: LlamaCppModel) -> None:
    with pytest.raises(LanguageModelError) as error:
        list(model.stream(ask("word " * 2_000), never))
    assert error.value.code == "context_length_exceeded"


@pytest.fixture
def tokens_read(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many tokens of its prompt each answer had to read, as the running counts say."""
    counts: list[int] = []
    read = ChunkReader.read

    def count(reader: ChunkReader, chunk: Chunk) -> Iterator[ChatDelta]:
        if chunk.timings:
            counts.append(chunk.timings.prompt_n)
        return read(reader, chunk)

    monkeypatch.setattr(ChunkReader, "read", count)
    return counts


def test_what_is_read_ahead_is_not_read_again(smollm2: Path, tokens_read: list[int]) -> None:
    model = LlamaCppModel(smollm2, context=CONTEXT, n_parallel=2)
    told = ("Why is the sky blue?", "It is blue " + "and bright " * 40)
    model.read_ahead(ask(*told), never)
    whole = tokens_read[-1]
    list(model.stream(ask(*told, "And at night?", max_tokens=1), never))
    model.close()

    assert whole > 100
    assert tokens_read[-1] < 30


def test_a_prompt_after_a_cancelled_one_finds_what_that_one_read(
    smollm2: Path, tokens_read: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    # However slow the machine is, the cancelled one leaves first.
    monkeypatch.setattr("omniduplex.models.local.llama_cpp_model.LEAVE_S", 30.0)
    model = LlamaCppModel(smollm2, context=CONTEXT, n_parallel=2)
    told = ("Why is the sky blue?", "It is blue " + "and bright " * 40)
    draft = model.stream(ask(*told, "And at"), never)
    next(draft)
    draft.close()
    list(model.stream(ask(*told, "And at night?", max_tokens=1), never))
    model.close()

    assert max(tokens_read) > 100
    assert tokens_read[-1] < 30


def test_reading_ahead_can_be_cancelled(model: LlamaCppModel, tokens_read: list[int]) -> None:
    model.read_ahead(ask("Sing!", "La " * 200), lambda: True)
    assert tokens_read == []
