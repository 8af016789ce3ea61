"""The functions that a model may call, as a client names them for a session or one response."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from omniduplex.protocol.duplex.errors import DuplexError

# What each optional key of a function holds; null counts as absent.
_OPTIONAL: dict[str, tuple[type, str]] = {
    "description": (str, "a text"),
    "parameters": (dict, "an object"),
}


def read_tools(tools: Sequence[dict[str, Any]] | None, param: str) -> tuple[dict[str, Any], ...]:
    """Return tools as they came once each is a function; null is none at all.

    Raises:
        DuplexError: `unsupported` for an MCP server, `bad_event` for anything else.
    """
    for index, tool in enumerate(tools or ()):
        _check_function(tool, f"{param}[{index}]")
        for key, (kind, expected) in _OPTIONAL.items():
            if tool.get(key) is not None and not isinstance(tool[key], kind):
                message = f"The {key} of a tool is {expected}."
                raise DuplexError("bad_event", message, param=f"{param}[{index}].{key}")
    return tuple(tools or ())


def read_tool_choice(choice: str | dict[str, Any] | None, param: str) -> str | dict[str, Any]:
    """Return which tools a model may or must call; null is "auto".

    Raises:
        DuplexError: as `read_tools`, for a choice that is no word of ours and no function.
    """
    if isinstance(choice, str) and choice not in ("auto", "none", "required"):
        message = "A tool choice is auto, none, required or an object."
        raise DuplexError("bad_event", message, param=param)
    if isinstance(choice, dict):
        _check_function(choice, param)
    return "auto" if choice is None else choice


def _check_function(named: dict[str, Any], param: str) -> None:
    kind, name = named.get("type"), named.get("name")
    if kind == "mcp":
        message = "Tools of MCP servers are not called here."
        raise DuplexError("unsupported", message, param=f"{param}.type")
    if kind != "function":
        raise DuplexError("bad_event", "A tool is of type function.", param=f"{param}.type")
    if not isinstance(name, str) or not name:
        message = "A tool needs its name, a text that is not empty."
        raise DuplexError("bad_event", message, param=f"{param}.name")
