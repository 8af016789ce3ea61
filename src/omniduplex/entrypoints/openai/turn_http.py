"""What all turn routes share: bodies with a limit, clients that go away, errors, streams."""

from __future__ import annotations

import asyncio
import logging
import re
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import TypeVar

import msgspec
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Message, Receive, Scope, Send

from omniduplex.engine.async_omni_engine import StageFailed
from omniduplex.engine.turns import TurnChunk, TurnRefused
from omniduplex.entrypoints.openai.errors import TOO_MANY, error_response

# OpenAI takes files of 25 MB; in a JSON body their base64 is a third longer.
MAX_BODY_BYTES = 36 * 1024 * 1024
# What nginx logs for a client that did not wait; nobody reads it.
CLIENT_CLOSED_REQUEST = 499

_PATH = re.compile(r" - at `\$\.?(.*)`$")

T = TypeVar("T")
Struct = TypeVar("Struct", bound=msgspec.Struct)
Handler = Callable[[Request], Awaitable[Response]]

logger = logging.getLogger(__name__)


class RequestRefused(Exception):  # noqa: N818 - the answer to a request, not a fault
    """The server does not take a request; the client is told why, with this status."""

    def __init__(
        self, message: str, code: str, *, param: str | None = None, status: int = 400
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.param = param
        self.status = status


class ClientGone(Exception):  # noqa: N818 - reads as the state it reports
    """Nobody waits for the answer any more."""


def turn_endpoint(handler: Handler) -> Handler:
    """Answer a request by the handler, or with the error that it raises."""

    async def endpoint(request: Request) -> Response:
        try:
            return await handler(_limited(request))
        except RequestRefused as error:
            return error_response(error.status, error.message, error.code, param=error.param)
        except TurnRefused as error:
            status = TOO_MANY if error.code == "rate_limit_exceeded" else 400
            return error_response(status, error.message, error.code, param=error.param)
        except StageFailed as error:
            logger.error("a turn failed: %s", error)
            return error_response(500, str(error), "stage_failed")
        except ClientGone:
            return Response(status_code=CLIENT_CLOSED_REQUEST)

    return endpoint


def _limited(request: Request) -> Request:
    """The same request, whose body is refused once it is too long."""
    taken = 0

    async def receive() -> Message:
        nonlocal taken
        message = await request.receive()
        if message["type"] == "http.request":
            taken += len(message.get("body", b""))
            if taken > MAX_BODY_BYTES:
                limit = f"The body is longer than {MAX_BODY_BYTES} bytes."
                raise RequestRefused(limit, "request_too_large", status=413)
        return message

    return Request(request.scope, receive)


async def read_json(request: Request, kind: type[Struct]) -> Struct:
    """Read the body as `parse_json` does."""
    return parse_json(await request.body(), kind)


def parse_json(body: bytes, kind: type[Struct]) -> Struct:
    """Read JSON of this shape; unknown keys are ignored.

    Raises:
        RequestRefused: it is not.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except msgspec.ValidationError as error:
        message = str(error)
        found = _PATH.search(message)
        param = found[1] if found else None
        raise RequestRefused(_PATH.sub("", message), "invalid_value", param=param) from error
    except msgspec.DecodeError as error:
        raise RequestRefused(f"The body is not JSON: {error}", "invalid_json") from error


def check_model(asked: str, served: str) -> None:
    """Refuse a model that is not the one here."""
    if asked != served:
        message = f"The model {asked!r} does not exist."
        raise RequestRefused(message, "model_not_found", param="model", status=404)


async def while_connected(
    request: Request, chunks: AsyncGenerator[TurnChunk, None], work: Awaitable[T]
) -> T:
    """Await work on a turn as long as the client waits too; failed work ends the turn.

    The request's body must have been read.

    Raises:
        ClientGone: the client left, and the work was cancelled.
    """
    working = asyncio.ensure_future(work)
    leaving = asyncio.create_task(_disconnect(request), name="client-leaves")
    try:
        await asyncio.wait((working, leaving), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            raise ClientGone
        return working.result()
    except BaseException:
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        await chunks.aclose()
        raise
    finally:
        leaving.cancel()


async def _disconnect(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


class TurnStream(StreamingResponse):
    """A body that is written while its turn runs; whatever ends it ends the turn at once."""

    def __init__(
        self,
        chunks: AsyncGenerator[TurnChunk, None],
        body: AsyncGenerator[bytes, None],
        media_type: str,
    ) -> None:
        super().__init__(body, media_type=media_type)
        self._chunks = chunks
        self._body = body

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the body until it ends or the client leaves."""
        async with aclosing(self._chunks), aclosing(self._body):
            await super().__call__(scope, receive, send)
