import msgspec
import pytest

from omniduplex.models.local.chat_wire import Chunk, ChunkReader, request_body
from omniduplex.models.local.language_model import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    ChatTool,
    Finished,
    LanguageModelError,
    NamedTool,
    TextDelta,
    ToolCall,
)


def read(*chunks: str) -> list[ChatDelta]:
    reader = ChunkReader()
    deltas = [d for raw in chunks for d in reader.read(msgspec.json.decode(raw, type=Chunk))]
    return [*deltas, *reader.finish()]


def test_text_comes_as_it_is_written_and_usage_at_the_end() -> None:
    assert read(
        '{"choices":[{"index":0,"delta":{"role":"assistant","content":null}}]}',
        '{"choices":[{"index":0,"delta":{"content":"Hi"}}],"model":"m"}',
        '{"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}',
        '{"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":1,"total_tokens":4}}',
    ) == [
        TextDelta("Hi"),
        Finished(finish_reason="stop", prompt_tokens=3, completion_tokens=1),
    ]


def test_tool_calls_are_put_together_by_index() -> None:
    def part(index: int, **fields: object) -> str:
        call = {"index": index, **fields}
        return msgspec.json.encode({"choices": [{"delta": {"tool_calls": [call]}}]}).decode()

    assert read(
        part(1, id="c2", function={"name": "time"}),
        part(0, id="c1", function={"name": "weather", "arguments": ""}),
        part(0, function={"arguments": '{"city":'}),
        part(0, function={"arguments": '"Paris"}'}),
        '{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}',
    ) == [
        ToolCall(call_id="c1", name="weather", arguments='{"city":"Paris"}'),
        ToolCall(call_id="c2", name="time", arguments="{}"),
        Finished(finish_reason="tool_calls"),
    ]


def test_stream_without_an_end_is_an_error() -> None:
    with pytest.raises(LanguageModelError) as error:
        read('{"choices":[{"delta":{"content":"Hi"}}]}')
    assert error.value.code == "stream_ended"


def test_error_in_the_stream_is_raised_with_its_type() -> None:
    with pytest.raises(LanguageModelError) as error:
        read('{"error":{"message":"no room","type":"overloaded","code":503}}')
    assert (error.value.code, error.value.message) == ("overloaded", "no room")


def test_body_has_the_chat_completions_shape() -> None:
    call = ToolCall(call_id="c1", name="weather", arguments='{"city":"Paris"}')
    schema = msgspec.Raw(b'{"type":"object"}')
    request = ChatRequest(
        messages=(
            ChatMessage(role="user", content="Weather?"),
            ChatMessage(role="assistant", tool_calls=(call,)),
            ChatMessage(role="tool", content="sunny", tool_call_id="c1"),
        ),
        temperature=0.5,
        max_tokens=10,
        tools=(ChatTool(name="weather", description="Looks out", parameters=schema),),
        tool_choice=NamedTool("weather"),
    )
    assert request_body(request) == {
        "messages": [
            {"role": "user", "content": "Weather?"},
            {
                "role": "assistant",
                "content": None,
                "tool_calls": [
                    {
                        "id": "c1",
                        "type": "function",
                        "function": {"name": "weather", "arguments": '{"city":"Paris"}'},
                    }
                ],
            },
            {"role": "tool", "content": "sunny", "tool_call_id": "c1"},
        ],
        "stream": True,
        "stream_options": {"include_usage": True},
        "temperature": 0.5,
        "max_tokens": 10,
        "tools": [
            {
                "type": "function",
                "function": {
                    "name": "weather",
                    "description": "Looks out",
                    "parameters": {"type": "object"},
                },
            }
        ],
        "tool_choice": {"type": "function", "function": {"name": "weather"}},
    }


def test_unset_choices_are_left_to_the_model() -> None:
    request = ChatRequest(messages=(ChatMessage(role="user", content="Hi"),))
    assert set(request_body(request)) == {"messages", "stream", "stream_options"}
