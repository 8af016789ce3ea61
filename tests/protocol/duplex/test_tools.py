"""Which tools and choices of tools are taken, and how a refusal names what is wrong."""

from __future__ import annotations

from typing import Any

import pytest

from omniduplex.protocol.duplex import DuplexError, read_tool_choice, read_tools

F: dict[str, Any] = {"type": "function", "name": "f"}


@pytest.mark.parametrize(
    "tool",
    [
        F,
        {**F, "description": "what it does", "parameters": {"type": "object"}},
        {**F, "description": None, "parameters": None},
        {**F, "strict": True},
    ],
    ids=str,
)
def test_a_function_stays_as_it_came(tool: dict[str, Any]) -> None:
    assert read_tools([tool, F], "session.tools") == (tool, F)


def test_null_is_no_tool() -> None:
    assert read_tools(None, "session.tools") == ()


@pytest.mark.parametrize(
    ("tool", "code", "key"),
    [
        ({}, "bad_event", "type"),
        ({"name": "f"}, "bad_event", "type"),
        ({"type": "function"}, "bad_event", "name"),
        ({"type": "function", "name": ""}, "bad_event", "name"),
        ({"type": "function", "name": 7}, "bad_event", "name"),
        ({"type": "function", "function": {"name": "f"}}, "bad_event", "name"),
        ({"type": "mcp", "server_label": "x"}, "unsupported", "type"),
        ({**F, "description": 7}, "bad_event", "description"),
        ({**F, "parameters": "x"}, "bad_event", "parameters"),
        ({**F, "parameters": []}, "bad_event", "parameters"),
    ],
    ids=str,
)
def test_what_is_no_function_is_refused(tool: dict[str, Any], code: str, key: str) -> None:
    with pytest.raises(DuplexError) as refusal:
        read_tools([F, tool], "session.tools")
    assert (refusal.value.code, refusal.value.param) == (code, f"session.tools[1].{key}")


@pytest.mark.parametrize("choice", ["auto", "none", "required", F])
def test_a_choice_stays_as_it_came(choice: Any) -> None:
    assert read_tool_choice(choice, "response.tool_choice") == choice


@pytest.mark.parametrize(
    ("choice", "code", "param"),
    [
        ("any", "bad_event", "response.tool_choice"),
        ({}, "bad_event", "response.tool_choice.type"),
        ({"type": "function"}, "bad_event", "response.tool_choice.name"),
        ({"type": "function", "function": {"name": "f"}}, "bad_event", "response.tool_choice.name"),
        ({"type": "mcp", "server_label": "x"}, "unsupported", "response.tool_choice.type"),
    ],
    ids=str,
)
def test_a_choice_names_a_function(choice: Any, code: str, param: str) -> None:
    with pytest.raises(DuplexError) as refusal:
        read_tool_choice(choice, "response.tool_choice")
    assert (refusal.value.code, refusal.value.param) == (code, param)
