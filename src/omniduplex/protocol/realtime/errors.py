"""The three classes of error that the OpenAI Realtime API knows."""

from __future__ import annotations

from typing import Literal

ErrorClass = Literal["invalid_request_error", "server_error", "rate_limit_error"]
