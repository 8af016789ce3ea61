"""How long a server waits for clients, whatever protocol they speak."""

from __future__ import annotations

SEND_TIMEOUT_S = 30.0
"""A client that reads nothing for this long while we write is gone."""
