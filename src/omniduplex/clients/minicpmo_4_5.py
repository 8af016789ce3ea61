"""The session that MiniCPM-o 4.5 wants: it decides when to speak, in a voice that it is given."""

from __future__ import annotations

from typing import Any

from omniduplex.clients.config import SessionConfig


def create_duplex_session_config(
    *, ref_audio: str | None = None, **overrides: Any
) -> SessionConfig:
    """The preset, with named fields of `SessionConfig` replaced and `extra_body` merged.

    `ref_audio` is the voice to speak in, as a data URL; the model refuses a session without one.
    """
    extra_body = {"force_listen_count": 0, **overrides.pop("extra_body", {})}
    fields: dict[str, Any] = {
        "overlap_policy": "listen_only",
        "playback_commit_policy": "ack_only",
        **overrides,
    }
    return SessionConfig(ref_audio=ref_audio, extra_body=extra_body, **fields)
