from __future__ import annotations

from tests.entrypoints.conftest import serve_app

__all__ = ["serve_app"]
