"""Every error code a client can meet, with its class and whether trying again can help."""

from __future__ import annotations

from typing import NamedTuple

from omniduplex.protocol.realtime.errors import ErrorClass


class ErrorKind(NamedTuple):
    """What a code means to a client."""

    error_class: ErrorClass
    retryable: bool = False


_INVALID = ErrorKind("invalid_request_error")
_INVALID_RETRY = ErrorKind("invalid_request_error", retryable=True)
_SERVER = ErrorKind("server_error")
_SERVER_RETRY = ErrorKind("server_error", retryable=True)
_RATE = ErrorKind("rate_limit_error", retryable=True)

ERROR_KINDS: dict[str, ErrorKind] = {
    # the envelope
    "invalid_json": _INVALID,
    "event_too_large": _INVALID,
    "unknown_event": _INVALID,
    "bad_event": _INVALID,
    "config_timeout": _INVALID_RETRY,
    # the session
    "session_closed": _INVALID,
    "unknown_session": _INVALID,
    "invalid_session_config": _INVALID,
    "invalid_duplex_runtime_config": _INVALID,
    "unsupported_audio_format": _INVALID,
    "unsupported_turn_detection": _INVALID,
    "model_update_unsupported": _INVALID,
    "voice_update_after_audio_unsupported": _INVALID,
    "voice_update_unsupported": _INVALID,
    "ref_audio_required": _INVALID,
    "ref_audio_update_unsupported": _INVALID,
    "unsupported_ref_audio_path": _INVALID,
    "instructions_update_unsupported": _INVALID,
    "persona_update_unsupported": _INVALID,
    "sliding_window_update_unsupported": _INVALID,
    "session_update_aborted": _SERVER_RETRY,
    "session_exists": _INVALID,
    "resource_exhausted": _RATE,
    # resume
    "invalid_session_resume": _INVALID,
    "session_resume_expired": _INVALID,
    "unsupported_session_resume": _INVALID,
    "invalid_resume_token": _INVALID,
    "session_resume_conflict": _INVALID,
    "runtime_resume_failed": _SERVER_RETRY,
    "invalid_event_ack": _INVALID,
    # input
    "bad_audio": _INVALID,
    "input_audio_buffer_empty": _INVALID,
    "input_backpressure": _RATE,
    "commit_aborted": _SERVER_RETRY,
    "server_vad_unavailable": _SERVER,
    "invalid_video_frames": _INVALID,
    "invalid_input_modality": _INVALID,
    "invalid_image": _INVALID,
    "native_text_append_unsupported": _INVALID,
    # items
    "missing_item_id": _INVALID,
    "item_not_found": _INVALID,
    "item_create_duplicate_item_id": _INVALID,
    "invalid_function_call_output": _INVALID,
    "function_response_backlog": _INVALID_RETRY,
    # responses
    "response_already_active": _INVALID_RETRY,
    "response_not_active": _INVALID,
    "response_create_without_input": _INVALID,
    "text_only_turn_unsupported": _INVALID,
    "unsupported_native_response_options": _INVALID,
    "barge_in_unsupported": _INVALID,
    "unsupported": _INVALID,
    # playback
    "playback_item_mismatch": _INVALID,
    "playback_item_not_found": _INVALID,
    "playback_ack_too_late": _INVALID,
    # the server's own faults
    "output_backpressure": _RATE,
    "runtime_append_failed": _SERVER,
    "runtime_append_task_failed": _SERVER,
    "runtime_signal_failed": _SERVER,
    "runtime_abort_failed": _SERVER,
    "runtime_touch_failed": _SERVER,
    "runtime_data_plane_stream_failed": _SERVER,
    "runtime_data_plane_text_without_audio": _SERVER,
    "engine_error": _SERVER,
    "internal_error": _SERVER,
    "realtime_input_failed": _SERVER,
}

# The OpenAI dialect knows some conditions by other names (interop MUST 10).
OPENAI_CODES: dict[str, str] = {
    "response_not_active": "response_cancel_not_active",
    "response_already_active": "conversation_already_has_active_response",
    "input_audio_buffer_empty": "input_audio_buffer_commit_empty",
}


class DuplexError(Exception):
    """A refusal that a client can see: one code of the table, a message, what it concerns."""

    def __init__(
        self, code: str, message: str, *, param: str | None = None, event_id: str | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.param = param
        self.event_id = event_id

    @property
    def kind(self) -> ErrorKind:
        """Class and retryability of this code."""
        return ERROR_KINDS[self.code]
