"""The right to take a session over: a token that its client holds and we only recognise."""

from __future__ import annotations

import base64
import hashlib
import hmac
from collections.abc import Callable

# 256 random bits (wire contract, section 6.2).
TOKEN_BYTES = 32

RandomBytes = Callable[[int], bytes]


class ResumeCredential:
    """The newest token of one session, and the one before it until its successor has arrived.

    A connection may break after a token was replaced and before its client knew. So the token
    that a resume presented opens the session once more, but only while no connection holds it
    and only until the client has acknowledged an event of the new connection.
    """

    def __init__(self, random_bytes: RandomBytes) -> None:
        self._random_bytes = random_bytes
        self._current = b""
        self._previous: bytes | None = None

    def issue(self, presented: str | None = None) -> str:
        """Make the session's next token, in place of the one that a resume presented."""
        token = base64.urlsafe_b64encode(self._random_bytes(TOKEN_BYTES)).rstrip(b"=").decode()
        self._current = _digest(token)
        self._previous = None if presented is None else _digest(presented)
        return token

    def arrived(self) -> None:
        """The client has its newest token: the one before is worth nothing."""
        self._previous = None

    def opens(self, token: str, *, is_free: bool) -> bool:
        """Whether a token opens the session, which no connection holds if it `is_free`."""
        presented = _digest(token)
        is_current = hmac.compare_digest(presented, self._current)
        is_previous = hmac.compare_digest(presented, self._previous or b"")
        return is_current or (is_free and is_previous)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode(errors="surrogatepass")).digest()
