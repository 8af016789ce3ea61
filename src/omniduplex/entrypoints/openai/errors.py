"""HTTP errors in the shape that OpenAI clients parse."""

from __future__ import annotations

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response

TOO_MANY = 429
# How a client is to go on: with a key (RFC 9110, section 11.6.1), or a little later.
HEADERS = {401: {"WWW-Authenticate": "Bearer"}, TOO_MANY: {"Retry-After": "1"}}
# Messages quote their requests, but never at length: a body may hold a name of many megabytes.
MAX_MESSAGE_CHARS = 400


class ApiError(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, as the OpenAI API says it."""

    message: str
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None


class ApiErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of every HTTP error under `/v1`."""

    error: ApiError


def error_response(
    status: int, message: str, code: str | None = None, *, param: str | None = None
) -> Response:
    """Render an error as a JSON response."""
    body = error_body(status, message, code, param=param)
    return Response(body, status, HEADERS.get(status), media_type="application/json")


def error_body(
    status: int, message: str, code: str | None = None, *, param: str | None = None
) -> bytes:
    """Render an error as JSON, of the type that goes with an HTTP status."""
    kind = "server_error" if status >= 500 else "invalid_request_error"
    kind = "rate_limit_error" if status == TOO_MANY else kind
    if len(message) > MAX_MESSAGE_CHARS:
        message = f"{message[:MAX_MESSAGE_CHARS]}…"
    error = ApiError(message=message, type=kind, param=param, code=code)
    return msgspec.json.encode(ApiErrorBody(error=error))


async def on_http_exception(_: Request, error: Exception) -> Response:
    """Render what the router refuses: an unknown path or method."""
    if not isinstance(error, HTTPException):
        raise error
    response = error_response(error.status_code, error.detail)
    response.headers.update(error.headers or {})
    return response
