"""Tier 1 server events of the two audio buffers: what is heard, and what is played."""

from __future__ import annotations

from omniduplex.protocol.realtime.events import RealtimeEvent


class SpeechStarted(
    RealtimeEvent, frozen=True, kw_only=True, tag="input_audio_buffer.speech_started"
):
    """The user began to speak; ms on the session's input clock, padding included."""

    audio_start_ms: int
    item_id: str


class SpeechStopped(
    RealtimeEvent, frozen=True, kw_only=True, tag="input_audio_buffer.speech_stopped"
):
    """The user stopped speaking; ms on the session's input clock.

    Of speech that a commit ended, the duplex dialect has 0.
    """

    audio_end_ms: int
    item_id: str


class InputCommitted(RealtimeEvent, frozen=True, kw_only=True, tag="input_audio_buffer.committed"):
    """The buffered audio became a user item."""

    item_id: str
    previous_item_id: str | None = None


class InputCleared(RealtimeEvent, frozen=True, kw_only=True, tag="input_audio_buffer.cleared"):
    """The audio that was not committed is gone."""


class TimeoutTriggered(
    RealtimeEvent, frozen=True, kw_only=True, tag="input_audio_buffer.timeout_triggered"
):
    """Nobody spoke for `idle_timeout_ms` after the last answer was heard; ms of the input clock.

    The silence is committed as `item_id`, and the model answers it.
    """

    audio_start_ms: int
    audio_end_ms: int
    item_id: str


class OutputStarted(RealtimeEvent, frozen=True, kw_only=True, tag="output_audio_buffer.started"):
    """The first audio of a response is on its way to the user."""

    response_id: str


class OutputStopped(RealtimeEvent, frozen=True, kw_only=True, tag="output_audio_buffer.stopped"):
    """The audio of a finished response has been played; what was cut off is cleared instead."""

    response_id: str


class OutputCleared(RealtimeEvent, frozen=True, kw_only=True, tag="output_audio_buffer.cleared"):
    """Output that was not played is gone."""

    response_id: str | None = None
