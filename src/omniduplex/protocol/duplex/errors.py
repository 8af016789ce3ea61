"""Every error code that is known to clients, and every way a connection ends."""

from __future__ import annotations

from typing import NamedTuple

from omniduplex.protocol.realtime.errors import ErrorClass


class ErrorKind(NamedTuple):
    """What a code means to a client."""

    error_class: ErrorClass
    retryable: bool
    meaning: str


class Ending(NamedTuple):
    """One way a connection ends: its close code (RFC 6455, section 7.4.1), its close reason."""

    close_code: int
    reason: str
    when: str


def _invalid(meaning: str, *, retryable: bool = False) -> ErrorKind:
    return ErrorKind("invalid_request_error", retryable, meaning)


def _server(meaning: str, *, retryable: bool = False) -> ErrorKind:
    return ErrorKind("server_error", retryable, meaning)


def _rate(meaning: str) -> ErrorKind:
    return ErrorKind("rate_limit_error", retryable=True, meaning=meaning)


ERROR_KINDS: dict[str, ErrorKind] = {
    # the envelope
    "invalid_json": _invalid("The message is not JSON."),
    "event_too_large": _invalid(
        "The message exceeds 15 MiB, or 256 KiB without media, or has too many values."
    ),
    "unknown_event": _invalid("There is no client event of this type."),
    "bad_event": _invalid("A field is missing, of the wrong type or out of its range."),
    "config_timeout": _invalid("No first event came in time; connect again.", retryable=True),
    # the session
    "session_closed": _invalid("The session is closing or closed and takes no more commands."),
    "unknown_session": _invalid("There is no session of this id."),
    "invalid_session_config": _invalid("The model cannot open a session with these settings."),
    "invalid_duplex_runtime_config": _invalid("The model refused one of its own settings."),
    "unsupported_audio_format": _invalid("The encoding or the rate is none that we convert."),
    "unsupported_turn_detection": _invalid("This kind or setting of turn detection is not there."),
    "model_update_unsupported": _invalid("An open session keeps its model."),
    "voice_update_after_audio_unsupported": _invalid("The model has spoken and keeps its voice."),
    "voice_update_unsupported": _invalid("This model keeps the voice it began with."),
    "ref_audio_required": _invalid("This model needs a voice sample (`ref_audio`) to speak."),
    "ref_audio_update_unsupported": _invalid("An open session keeps its voice sample."),
    "unsupported_ref_audio_path": _invalid("A voice sample is sent in full, not as a path or URL."),
    "instructions_update_unsupported": _invalid("This model keeps the instructions it began with."),
    "persona_update_unsupported": _invalid("This model keeps the persona it began with."),
    "sliding_window_update_unsupported": _invalid("This model keeps its window of context."),
    "session_update_aborted": _server(
        "The update stood behind audio that the model did not take.", retryable=True
    ),
    "session_exists": _invalid("A session of this id is open already."),
    "resource_exhausted": _rate(
        "The server has as many sessions, half-duplex conversations, or connections without a "
        "first event as it may have."
    ),
    "server_draining": _server(
        "The server stops and opens no session any more; connect to another.", retryable=True
    ),
    # resume
    "invalid_session_resume": _invalid("`session.resume` is malformed, or names no session."),
    "session_resume_expired": _invalid("The detached session is gone."),
    "unsupported_session_resume": _invalid(
        "This session cannot be resumed, or `session.resume` was not the first event."
    ),
    "invalid_resume_token": _invalid("The resume token is not the session's newest."),
    "session_resume_conflict": _invalid("Another connection is resuming this session."),
    "runtime_resume_failed": _server("The engine could not attach the session.", retryable=True),
    "invalid_event_ack": _invalid("The acknowledged sequence number was never sent."),
    # input
    "bad_audio": _invalid("The audio cannot be decoded: bad base64, or half a sample at its end."),
    "input_audio_buffer_empty": _invalid("There is no audio to commit."),
    "input_backpressure": _rate("More input is waiting than the session may hold; slow down."),
    "commit_aborted": _server(
        "The commit stood behind audio that the model did not take.", retryable=True
    ),
    "server_vad_unavailable": _server("The voice detector cannot run; it is off from now on."),
    "invalid_video_frames": _invalid("The frames are too many, too large, or not JPEG or PNG."),
    "invalid_input_modality": _invalid("This model does not take input of this kind."),
    "invalid_image": _invalid("The image cannot be read."),
    "native_text_append_unsupported": _invalid("This model takes no text beside the audio."),
    "transcription_failed": _server(
        "The words of a user item could not be recognised.", retryable=True
    ),
    # items
    "missing_item_id": _invalid("The event does not name an item."),
    "item_not_found": _invalid("There is no such item in the conversation."),
    "item_retrieve_invalid_item_id": _invalid(
        "There is no such item to retrieve; `item_not_found` in the duplex dialect."
    ),
    "item_create_duplicate_item_id": _invalid("An item of this id is there already."),
    "invalid_function_call_output": _invalid(
        "The output is no text, or its `call_id` is unknown or answered already."
    ),
    "function_response_backlog": _invalid("Too many tool outputs are waiting.", retryable=True),
    # responses
    "response_already_active": _invalid("Another response is active.", retryable=True),
    "response_not_active": _invalid("No such response is active."),
    "too_many_responses": _rate(
        "As many responses are under way beside the conversation as a session may have."
    ),
    "response_create_without_input": _invalid("There is nothing to answer."),
    "text_only_turn_unsupported": _invalid("This model answers speech, not text alone."),
    "unsupported_native_response_options": _invalid("This model cannot follow the named option."),
    "barge_in_unsupported": _invalid("This model cannot be interrupted by an event."),
    "unsupported": _invalid("The deployment does not offer this."),
    "response_error": _server("The turn that was to make the response failed (turn mode)."),
    # playback
    "playback_item_mismatch": _invalid("The item is not that of the named response."),
    "playback_item_not_found": _invalid("There is no such answer in the conversation."),
    "playback_ack_too_late": _invalid("The conversation has gone on; its history is settled."),
    # the server's own faults
    "output_backpressure": _rate(
        "The client read too slowly; it loses what was said, or its session."
    ),
    "runtime_append_failed": _server("The model did not take the audio."),
    "runtime_append_task_failed": _server("The work of handing audio to the model failed."),
    "runtime_signal_failed": _server("The model did not take a signal."),
    "runtime_abort_failed": _server("The model could not be stopped."),
    "runtime_touch_failed": _server("The model's hold on the session could not be renewed."),
    "runtime_data_plane_stream_failed": _server("A model stage failed or died."),
    "runtime_data_plane_text_without_audio": _server("The model wrote words and spoke none."),
    "engine_error": _server("The engine failed."),
    "internal_error": _server("The server failed in a way that it does not know."),
    "realtime_input_failed": _server("The server failed at an event; the session is over."),
}

# Nothing here says these: they are for plugins to say, and clients meet them at other servers.
SAID_ELSEWHERE = frozenset(
    {
        "voice_update_unsupported",
        "ref_audio_required",
        "unsupported_ref_audio_path",
        "instructions_update_unsupported",
        "persona_update_unsupported",
        "sliding_window_update_unsupported",
        "session_update_aborted",
        "session_exists",
        "commit_aborted",
        "server_vad_unavailable",
        "function_response_backlog",
        "playback_ack_too_late",
        "runtime_append_failed",
        "runtime_append_task_failed",
        "runtime_signal_failed",
        "runtime_abort_failed",
        "runtime_touch_failed",
        "runtime_data_plane_text_without_audio",
        "realtime_input_failed",
    }
)

_OTHERS = _invalid("A code of a model's plugin, or of another server.")


def error_kind(code: str) -> ErrorKind:
    """What a code means; one that is not in the table refuses a request (wire contract, 5.1)."""
    return ERROR_KINDS.get(code, _OTHERS)


def failure_kind(code: str) -> ErrorKind:
    """What a code means that failed a response; one not in the table is no fault of its client."""
    return ERROR_KINDS.get(code, ERROR_KINDS["internal_error"])


CLIENT_CLOSE = "client_close"
# RFC 6455, section 5.5: a control frame has 125 bytes, two of which are the close code.
_MAX_CLOSE_REASON_BYTES = 123

# What `session.closed` or `session.expired` gives as its reason comes back in the close frame.
ENDINGS: tuple[Ending, ...] = (
    Ending(
        1000, CLIENT_CLOSE, "The client sent `session.close`, or its `reason`, cut at 123 bytes."
    ),
    Ending(1000, "idle_ttl_expired", "The session was idle for too long (`session.expired`)."),
    Ending(1000, "session_expired", "The session reached its longest life (`session.closed`)."),
    Ending(1000, "request_cleanup", "A model stage failed or died (`session.expired`)."),
    Ending(1000, "output_backpressure", "The client read too slowly (`session.closed`)."),
    Ending(1000, "unsupported", "The URL asked for what is not served; an `error` came first."),
    Ending(1000, "session_replaced", "Another connection resumed the session."),
    Ending(1001, "shutdown", "The server stops (`session.closed`)."),
    Ending(1007, "none", "The client sent text that is not UTF-8."),
    Ending(1008, "the error's code", "No session was opened or resumed; an `error` came first."),
    Ending(1008, "journal_gap", "A resume would have a gap (`session.resync_required`)."),
    Ending(1009, "the sizes", "A frame is larger than the server takes (24 MiB)."),
    Ending(1011, "internal_error", "The server failed at the session; an `error` came first."),
)

# The OpenAI dialect knows some conditions by other names (interop MUST 10).
OPENAI_CODES: dict[str, str] = {
    "response_not_active": "response_cancel_not_active",
    "response_already_active": "conversation_already_has_active_response",
    "input_audio_buffer_empty": "input_audio_buffer_commit_empty",
}

# The contract has one name where the OpenAI API has two.
DUPLEX_CODES: dict[str, str] = {"item_retrieve_invalid_item_id": "item_not_found"}


def close_reason(text: str) -> str:
    """As much of a reason, which may be a client's own text, as a close frame has room for."""
    return text.encode(errors="replace")[:_MAX_CLOSE_REASON_BYTES].decode(errors="ignore")


def told(code: str, message: str, param: str | None) -> str:
    """Say a refusal in a line, for programs and their logs."""
    return f"{code}: {message}" if param is None else f"{code}: {message} ({param})"


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

    def __str__(self) -> str:
        return told(self.code, self.message, self.param)

    @property
    def kind(self) -> ErrorKind:
        """Class and retryability of this code."""
        return error_kind(self.code)
