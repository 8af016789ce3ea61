"""HTTP errors in the shape that OpenAI clients parse."""

from __future__ import annotations

import msgspec
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response


class ApiError(msgspec.Struct, frozen=True, kw_only=True):
    """What went wrong, as the OpenAI API says it."""

    message: str
    type: str = "invalid_request_error"
    param: str | None = None
    code: str | None = None


class ApiErrorBody(msgspec.Struct, frozen=True, kw_only=True):
    """The body of every HTTP error under `/v1`."""

    error: ApiError


def error_response(status: int, message: str, code: str | None = None) -> Response:
    """Render an error as a JSON response."""
    body = ApiErrorBody(error=ApiError(message=message, code=code))
    return Response(msgspec.json.encode(body), status, media_type="application/json")


async def on_http_exception(_: Request, error: Exception) -> Response:
    """Render what the router refuses: an unknown path or method."""
    if not isinstance(error, HTTPException):
        raise error
    response = error_response(error.status_code, error.detail)
    response.headers.update(error.headers or {})
    return response
