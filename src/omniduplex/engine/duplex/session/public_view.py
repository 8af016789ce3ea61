"""The session object, as a client sees it at this moment."""

from __future__ import annotations

import msgspec

from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.response import Response
from omniduplex.protocol.duplex import DuplexSessionObject, PlaybackCursor, session_object


def public_object(core: SessionCore, active: Response | None) -> DuplexSessionObject:
    """Render the session with its active response."""
    latest = core.playback.latest
    shown = session_object(
        core.config,
        session_id=core.session_id,
        capabilities=core.capabilities,
        state=core.state,
        turn_state=core.turn_state,
        epoch=core.epoch,
        turn_id=core.turn_id,
        active_response_id=active.response_id if active else None,
        active_response_turn_id=active.turn_id if active else None,
        active_request_id=active.key if active else None,
        playback=latest.cursor() if latest else PlaybackCursor(),
    )
    if core.expires_at_unix is None:
        return shown
    return msgspec.structs.replace(shown, expires_at=core.expires_at_unix)
