from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from tests.models.local.fake_language_model import DONE, FakeLanguageModel
from tests.models.local.manual_executor import ManualExecutor

from omniduplex.engine.prompts import PromptMessage, ResponsePrompt
from omniduplex.engine.turns import TurnToolCall
from omniduplex.models.local import messages
from omniduplex.models.local.language_model import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    Finished,
    LanguageModelError,
    NamedTool,
    TextDelta,
    ToolCall,
)
from omniduplex.models.local.messages import AnswerEnded, AnswerText, ToolCalled, decode_from_listen
from omniduplex.models.local.stages.answers import Answers, chat_request
from omniduplex.stages.messages import StageOutput

HELLO = ResponsePrompt(instructions=None, messages=(PromptMessage(role="user", text="Hello?"),))
SILENT = msgspec.structs.replace(HELLO, speak=False)
TIMER = {"type": "function", "name": "set_timer", "description": "Sets it.", "parameters": {"a": 1}}


class Desk:
    """Answers from a scripted model, on a clock that moves one second with every look."""

    def __init__(self, *deltas: ChatDelta | Exception) -> None:
        self.model = FakeLanguageModel(*deltas)
        self.pool = ManualExecutor()
        self.out: list[StageOutput] = []
        ticks: Iterator[int] = iter(range(1000))
        self.answers = Answers(
            self.model,
            self.pool,
            self.out.append,
            lambda: float(next(ticks)),
            instructions="Be brief.",
            temperature=0.5,
        )

    def ask(self, prompt: ResponsePrompt = HELLO) -> None:
        self.answers.start("request", 3, prompt)
        self.pool.run()

    @property
    def texts(self) -> list[str]:
        return [output.text for output in self.out if output.text]


def text_deltas(text: str) -> list[ChatDelta]:
    return [TextDelta(text[i : i + 3]) for i in range(0, len(text), 3)]


def test_an_answer_comes_clause_by_clause_and_ends_with_its_tokens() -> None:
    text = "Paris is the capital of France. It is a large city, and it lies on the Seine."
    desk = Desk(*text_deltas(text), DONE)
    desk.ask()

    assert len(desk.texts) >= 2
    assert "".join(desk.texts) == text
    *clauses, end = desk.out
    assert all(decode_from_listen(output.data) == AnswerText() for output in clauses)
    assert not any(output.finished for output in clauses)
    assert decode_from_listen(end.data) == AnswerEnded("stop", 7, 5)
    assert end.finished
    assert {(output.request_id, output.epoch) for output in desk.out} == {("request", 3)}


def test_what_the_next_prompt_begins_with_is_read_when_an_answer_is_written() -> None:
    desk = Desk(*text_deltas("It is Paris."), DONE)
    ended_before: list[bool] = []
    desk.model.while_reading = lambda _: ended_before.append(desk.out[-1].finished)
    desk.ask()

    (ahead,) = desk.model.read
    (asked,) = desk.model.requests
    assert ahead.messages == (
        *asked.messages,
        ChatMessage(role="assistant", content="It is Paris."),
    )
    assert ended_before == [True]


def test_the_beginning_of_prompts_to_come_is_read_while_nothing_is_asked() -> None:
    desk = Desk(DONE)
    desk.answers.expect(ResponsePrompt(instructions="Be kind.", messages=(), tools=(TIMER,)))
    desk.pool.run()
    (ahead,) = desk.model.read
    assert ahead.messages == (ChatMessage(role="system", content="Be kind."),)
    assert [tool.name for tool in ahead.tools] == ["set_timer"]

    desk.answers.start("request", 3, HELLO)
    desk.answers.expect(HELLO)
    assert desk.model.read == [ahead]


def test_a_beginning_that_makes_no_prompt_is_not_an_answers_failure(
    caplog: pytest.LogCaptureFixture,
) -> None:
    desk = Desk(DONE)
    desk.answers.expect(ResponsePrompt(instructions=None, messages=(), tools=({"name": 3},)))
    desk.pool.run()
    assert desk.out == []
    assert "could not be read" in caplog.text


def test_reading_ahead_gives_way_to_an_answer() -> None:
    desk = Desk(*text_deltas("It is Paris."), DONE)
    seen: list[bool] = []

    def while_reading(cancelled: Callable[[], bool]) -> None:
        seen.append(cancelled())
        if len(seen) == 1:
            desk.answers.start("another", 3, HELLO)
            seen.append(cancelled())

    desk.model.while_reading = while_reading
    desk.ask()
    assert seen == [False, True, False]


def test_nothing_is_read_ahead_after_a_cancelled_answer_or_a_tool_call() -> None:
    desk = Desk(*text_deltas("It is Paris."), DONE)
    desk.model.before_delta = lambda index: desk.answers.abort(["request"]) if index == 2 else None
    desk.ask()
    assert desk.model.read == []

    caller = Desk(TextDelta("One moment. "), ToolCall(call_id="c", name="f", arguments="{}"), DONE)
    caller.ask()
    assert caller.model.read == []


def test_an_answer_is_whole_though_reading_ahead_fails(caplog: pytest.LogCaptureFixture) -> None:
    desk = Desk(*text_deltas("It is Paris."), DONE)

    def fail(_: Callable[[], bool]) -> None:
        raise LanguageModelError("full", "no room")

    desk.model.while_reading = fail
    desk.ask()
    assert desk.out[-1].finished
    assert "could not be read ahead" in caplog.text


def test_text_that_is_not_spoken_waits_for_no_clause() -> None:
    desk = Desk(TextDelta("Par"), TextDelta("is"), DONE)
    desk.ask(SILENT)
    assert desk.texts == ["Par", "is"]


def test_the_first_clause_tells_how_long_it_took() -> None:
    desk = Desk(*text_deltas("One two three. Four five six seven eight. "), DONE)
    desk.ask()

    first, *others = desk.out
    assert first.metrics == {
        messages.AT_PROMPT: 0.0,
        messages.FIRST_TOKEN: 1.0,
        messages.AT_FIRST_CLAUSE: 2.0,
        messages.FIRST_CLAUSE: 2.0,
    }
    assert [output.metrics for output in others] == [{}] * len(others)


def test_a_tool_call_comes_after_the_text_before_it() -> None:
    call = ToolCall(call_id="call_1", name="set_timer", arguments='{"minutes":10}')
    desk = Desk(TextDelta("One moment"), call, Finished(finish_reason="tool_calls"))
    desk.ask()

    assert [decode_from_listen(output.data) for output in desk.out] == [
        AnswerText(),
        ToolCalled("call_1", "set_timer", '{"minutes":10}'),
        AnswerEnded("stop"),
    ]
    assert desk.texts == ["One moment"]


def test_an_answer_cut_by_its_limit_says_so() -> None:
    desk = Desk(TextDelta("Well"), Finished(finish_reason="length"))
    desk.ask()
    assert decode_from_listen(desk.out[-1].data) == AnswerEnded("length")


def test_nothing_comes_out_after_an_abort() -> None:
    desk = Desk(*text_deltas("One two three. Four five six. Seven eight nine. "), DONE)

    def abort_after_first_clause(_: int) -> None:
        if desk.out:
            desk.answers.abort(["request"])

    desk.model.before_delta = abort_after_first_clause
    desk.ask()
    assert len(desk.out) == 1


def test_an_answer_aborted_before_its_turn_never_runs() -> None:
    desk = Desk(TextDelta("Hello."), DONE)
    desk.answers.start("request", 3, HELLO)
    desk.answers.abort(["request", "unknown"])
    assert desk.pool.run() == 0
    assert desk.model.requests == []


def test_close_stops_all_answers() -> None:
    desk = Desk(TextDelta("Hello."), DONE)
    desk.answers.start("one", 3, HELLO)
    desk.answers.start("two", 3, HELLO)
    desk.answers.close()
    assert desk.pool.run() == 0


@pytest.mark.parametrize(
    "error", [LanguageModelError("timeout", "no answer in time"), RuntimeError("no answer in time")]
)
def test_a_failing_model_fails_the_answer_and_not_the_next(error: Exception) -> None:
    desk = Desk(TextDelta("Hello."), error)
    desk.ask()
    (failed,) = desk.out
    assert "no answer in time" in failed.error

    desk.model.deltas = (TextDelta("Hello."), DONE)
    desk.ask()
    assert desk.texts == ["Hello."]


def test_a_prompt_becomes_a_chat_request() -> None:
    call = TurnToolCall(call_id="call_1", name="set_timer", arguments="{}")
    prompt = ResponsePrompt(
        instructions="Be a pirate.",
        messages=(
            PromptMessage(role="user", text="Set a timer"),
            PromptMessage(role="assistant", tool_calls=(call,)),
            PromptMessage(role="tool", text="done", tool_call_id="call_1"),
        ),
        temperature=0.1,
        max_tokens=20,
        tools=(TIMER, {"type": "function", "name": "bare"}),
        tool_choice="required",
    )
    request = chat_request(prompt, "Be brief.", 0.5)

    assert request.messages == (
        ChatMessage(role="system", content="Be a pirate."),
        ChatMessage(role="user", content="Set a timer"),
        ChatMessage(
            role="assistant",
            tool_calls=(ToolCall(call_id="call_1", name="set_timer", arguments="{}"),),
        ),
        ChatMessage(role="tool", content="done", tool_call_id="call_1"),
    )
    assert (request.temperature, request.max_tokens) == (0.1, 20)
    assert request.tool_choice == "required"
    timer, bare = request.tools
    assert (timer.name, timer.description) == ("set_timer", "Sets it.")
    assert msgspec.json.decode(timer.parameters) == {"a": 1}
    assert (bare.name, bare.description) == ("bare", "")


def test_the_stage_fills_in_what_the_session_left_open() -> None:
    request = chat_request(HELLO, "Be brief.", 0.5)
    assert request.messages[0] == ChatMessage(role="system", content="Be brief.")
    assert request.temperature == 0.5


def test_empty_instructions_are_the_clients_wish() -> None:
    request: ChatRequest = chat_request(
        msgspec.structs.replace(HELLO, instructions=""), "Be brief.", None
    )
    assert [message.role for message in request.messages] == ["user"]


def test_a_named_tool_is_demanded_by_name() -> None:
    choice = {"type": "function", "name": "set_timer"}
    request = chat_request(msgspec.structs.replace(HELLO, tool_choice=choice), "", None)
    assert request.tool_choice == NamedTool("set_timer")


@pytest.mark.parametrize("wrong", [{"tool_choice": "maybe"}, {"tools": ({"type": "function"},)}])
def test_tools_of_no_known_shape_fail_the_answer(wrong: dict[str, Any]) -> None:
    desk = Desk(TextDelta("Hello."), DONE)
    desk.ask(msgspec.structs.replace(HELLO, **wrong))
    (failed,) = desk.out
    assert failed.error
