"""The routes of the talk page: one document, its files, and what it may load and run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Mount, Route
from starlette.staticfiles import StaticFiles

_WEB = Path(__file__).parent.parent / "web"
# The page needs nothing from elsewhere, and no other page needs it in a frame, where a click on
# it could be stolen together with the microphone (Content Security Policy Level 3).
POLICY = (
    "default-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'"
)


def talk_page_routes() -> Sequence[BaseRoute]:
    """Return the page at `/` and its files below `/static`."""

    async def talk_page(_: Request) -> Response:
        return FileResponse(_WEB / "index.html", headers={"Content-Security-Policy": POLICY})

    return Route("/", talk_page), Mount("/static", StaticFiles(directory=_WEB))
