"""A voice agent with tools: it answers, calls a tool, reads the result and goes on.

    python examples/tool_agent.py --url ws://127.0.0.1:8000 --model omniduplex/echo \\
        "call calculate 6 * 7"

Any model that calls tools will do. Echo calls the one that the text names, with the words behind
it, and needs no weights. To give the agent another tool, write a function and add it to `TOOLS`.
"""

from __future__ import annotations

import argparse
import ast
import asyncio
import json
import operator
import sys
from collections.abc import Callable
from datetime import datetime
from zoneinfo import ZoneInfo

from omniduplex.clients import DuplexClient, DuplexClientError, SessionConfig
from omniduplex.protocol.duplex import (
    ContentPart,
    ItemInput,
    ResponseDone,
    SessionPatch,
    SessionUpdated,
)

# A model that never stops calling tools is stopped.
MAX_STEPS = 8
PATIENCE_S = 60.0
OPERATORS: dict[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def calculate(text: str) -> str:
    """Work out an expression of numbers, + - * / and brackets."""
    return f"{_value(ast.parse(text, mode='eval').body):g}"


def local_time(text: str) -> str:
    """Tell the time in an IANA time zone, Europe/Paris for one."""
    return f"{datetime.now(ZoneInfo(text)):%H:%M}"


TOOLS: dict[str, Callable[[str], str]] = {"calculate": calculate, "local_time": local_time}


def _value(node: ast.expr) -> float:
    match node:
        case ast.Constant(value=int() | float() as number):
            return float(number)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner)
        case ast.BinOp(left=left, op=kind, right=right) if type(kind) in OPERATORS:
            return OPERATORS[type(kind)](_value(left), _value(right))
    raise ValueError("only numbers, + - * / and brackets")


def describe(name: str, tool: Callable[[str], str]) -> dict[str, object]:
    """A tool as the model is told of it; each takes one text."""
    return {
        "type": "function",
        "name": name,
        "description": tool.__doc__,
        "parameters": {
            "type": "object",
            "properties": {"text": {"type": "string"}},
            "required": ["text"],
        },
    }


def run_tool(name: str, arguments: str) -> str:
    """What the model is told of a call, be it that it went wrong: it may do better."""
    try:
        return TOOLS[name](json.loads(arguments)["text"])
    except (ArithmeticError, KeyError, OSError, SyntaxError, TypeError, ValueError) as error:
        return f"error: {error}"


class Agent:
    """Answers a text, through as many tool calls as the model wants."""

    def __init__(self, client: DuplexClient) -> None:
        self._client = client

    async def prepare(self) -> None:
        """Tell the session of the tools."""
        tools = tuple(describe(name, tool) for name, tool in TOOLS.items())
        updated = self._client.wait_for(SessionUpdated, timeout_s=PATIENCE_S)
        await self._client.update_session(SessionPatch(tools=tools))
        await updated

    async def answer(self, text: str) -> str:
        """The model's last words.

        Raises:
            DuplexClientError: the session failed, or the model called tools without end.
        """
        words = ContentPart(type="input_text", text=text)
        await self._client.create_item(ItemInput(role="user", content=(words,)))
        for _ in range(MAX_STEPS):
            done = await self._next_response()
            calls = [item for item in done.response.output if item.type == "function_call"]
            if not calls:
                return _spoken(done)
            for call in calls:
                output = run_tool(str(call.name), str(call.arguments))
                print(f"{call.name}({call.arguments}) -> {output}")
                await self._client.create_item(
                    ItemInput(type="function_call_output", call_id=str(call.call_id), output=output)
                )
        raise DuplexClientError(f"no answer after {MAX_STEPS} steps")

    async def _next_response(self) -> ResponseDone:
        done = self._client.wait_for(ResponseDone, timeout_s=PATIENCE_S)
        await self._client.create_response()
        return await done


def _spoken(done: ResponseDone) -> str:
    parts = [part for item in done.response.output for part in item.content or ()]
    return " ".join(text for part in parts if (text := part.transcript or part.text))


async def run(url: str, model: str, text: str) -> None:
    async with DuplexClient(url, model=model, config=SessionConfig()) as client:
        agent = Agent(client)
        await agent.prepare()
        print(await agent.answer(text))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--url", default="ws://127.0.0.1:8000", help="a server, ws://host:port")
    parser.add_argument("--model", default="omniduplex/echo")
    parser.add_argument("text", help="what to ask")
    options = parser.parse_args()
    try:
        asyncio.run(run(options.url, options.model, options.text))
    except (DuplexClientError, OSError, TimeoutError) as error:
        sys.exit(f"{type(error).__name__}: {error}")


if __name__ == "__main__":
    main()
