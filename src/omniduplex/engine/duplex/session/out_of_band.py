"""Responses beside the conversation: several at a time, each made by a turn without the session."""

from __future__ import annotations

from collections.abc import Set

from omniduplex.engine.conversation.endings import Ending
from omniduplex.engine.conversation.response_options import out_of_band_options
from omniduplex.engine.duplex.model_events import FunctionCall, ResponseAudio
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.effects import DropQueuedAudio, StartTurn
from omniduplex.engine.duplex.session.inputs import TurnPart
from omniduplex.engine.duplex.session.prompts import build_prompt, words_to_come
from omniduplex.engine.duplex.session.response import Response
from omniduplex.engine.messages import AbortTurn
from omniduplex.engine.prompts import answer_request
from omniduplex.engine.turn_plugin import Turn
from omniduplex.engine.turns import TurnChunk, TurnFailure, TurnRefused
from omniduplex.protocol.duplex import (
    CancelResponse,
    ClearOutputAudio,
    CreateResponse,
    DuplexError,
    OutputCleared,
    RealtimeCommand,
    Usage,
)

CLOSED = "session_closed"
"""Why what is still under way ends with its session."""


class OutOfBand:
    """Responses asked for with `conversation: none`, by the turns that make them.

    They read the conversation, and that is all: it does not wait for them, and neither what the
    user says nor an answer to it stops them.
    """

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._responses: dict[str, Response] = {}

    @property
    def response_ids(self) -> tuple[str, ...]:
        """Those under way, oldest first."""
        return tuple(response.response_id for response in self._responses.values())

    # -- starting ---------------------------------------------------------------------------

    def create(self, command: CreateResponse) -> bool:
        """Answer beside the conversation; false if nobody asks for that, or the model cannot.

        Raises:
            DuplexError: `too_many_responses`, or what the options ask is refused.
        """
        core, options = self._core, out_of_band_options(command)
        if core.turns is None or options is None:
            return False
        limit = core.limits.max_out_of_band_responses_per_session
        if len(self._responses) >= limit:
            message = f"{limit} responses are under way beside the conversation"
            raise DuplexError("too_many_responses", message, param="response.conversation")
        wanted = core.wanted(options)
        response = Response(
            core=core,
            response_id=core.new_id("resp"),
            key=core.new_id("turn"),
            wanted=wanted,
            out_of_band=True,
            awaited=words_to_come(wanted, core.history),
        )
        if not response.awaited:
            self._ask(response)
        self._responses[response.key] = response
        response.open()
        return True

    def _ask(self, response: Response) -> None:
        """Have the model answer; raises `unsupported` if it does not take the request."""
        self._core.effects.append(StartTurn(response.key, self._turn(response)))

    def _turn(self, response: Response) -> Turn:
        core = self._core
        assert core.turns is not None  # or there would be no response to ask for
        prompt = build_prompt(
            response.wanted,
            core.history,
            core.playback,
            with_images=core.capabilities.supports_image_input,
        )
        try:
            return core.turns.create_turn(response.key, answer_request(prompt))
        except TurnRefused as refused:
            raise DuplexError("unsupported", refused.message, param="response") from None

    def not_awaited(self, item_id: str) -> None:
        """The words of a user item are known, or it is gone: ask what waited for them."""
        for response in tuple(self._responses.values()):
            if item_id not in response.awaited:
                continue
            response.awaited.remove(item_id)
            if response.awaited:
                continue
            try:
                self._ask(response)
            except DuplexError as error:
                self._fail(response, error)

    def unheard(self, item_id: str, error: DuplexError) -> None:
        """The words of a user item will never be known: what waited for them fails."""
        for response in tuple(self._responses.values()):
            if item_id in response.awaited:
                self._fail(response, error)

    # -- the model's output -----------------------------------------------------------------

    def take(self, made: TurnPart) -> None:
        """Show what a turn made; of one whose response is over it is stale."""
        response = self._responses.get(made.turn_id)
        if response is None:
            return
        if isinstance(made.part, TurnFailure):
            error = DuplexError("runtime_data_plane_stream_failed", made.part.reason)
            self._fail(response, error)
            return
        try:
            self._show(response, made.part)
        except ValueError as error:
            broken = DuplexError("runtime_data_plane_stream_failed", f"{error}")
            self._fail(response, broken)

    def _show(self, response: Response, chunk: TurnChunk) -> None:
        if chunk.pcm and chunk.sample_rate_hz <= 0:
            raise ValueError("the model made sound and did not say at which rate")
        if chunk.pcm or (chunk.text and chunk.sample_rate_hz):
            rate_hz = chunk.sample_rate_hz
            response.add_audio(ResponseAudio(response.key, chunk.pcm, rate_hz, chunk.text))
        else:
            response.add_text(chunk.text)
        for call in chunk.tool_calls:
            response.add_function_call(
                FunctionCall(response.key, call.call_id, call.name, call.arguments)
            )
        if chunk.usage is not None:
            response.usage = Usage.of_text(chunk.usage.input_tokens, chunk.usage.output_tokens)
        if chunk.finish_reason == "length":
            self._end(response, "incomplete", "max_output_tokens")
        elif chunk.finished:
            self._end(response, "completed")

    # -- the end ----------------------------------------------------------------------------

    def stops(self, command: RealtimeCommand) -> bool:
        """Stop the response that a command names; false if that is none of these."""
        if not isinstance(command, (CancelResponse, ClearOutputAudio)):
            return False
        response = self._named(command.response_id)
        if response is None:
            return False
        if isinstance(command, CancelResponse):
            self._stop(response, "cancelled", "client_cancelled")
        else:
            self._core.emit(OutputCleared(response_id=response.response_id))
            self._stop(response, "cancelled", "output_audio_buffer_clear")
        return True

    def give_up(self, code: str, unannounced: Set[str]) -> None:
        """What is under way cannot be delivered; of the `unannounced` the client never heard."""
        for response in tuple(self._responses.values()):
            if response.response_id in unannounced:
                del self._responses[response.key]
                self._core.effects.append(AbortTurn(response.key))
            else:
                self._stop(response, "failed", code)

    def lose(self, response_id: str, code: str) -> bool:
        """A response cannot be delivered; false if it is none of those under way."""
        response = self._named(response_id)
        if response is None:
            return False
        self._stop(response, "failed", code)
        return True

    def close(self) -> None:
        """The session ends."""
        for response in tuple(self._responses.values()):
            self._stop(response, "cancelled", CLOSED)

    def _named(self, response_id: str | None) -> Response | None:
        under_way = self._responses.values()
        return next((one for one in under_way if one.response_id == response_id), None)

    def _fail(self, response: Response, error: DuplexError) -> None:
        self._core.emit_error(error)
        self._stop(response, "failed", error.code)

    def _stop(self, response: Response, ending: Ending, reason: str) -> None:
        """End what is not whole: nothing more of it is made, or heard."""
        self._core.effects.append(AbortTurn(response.key))
        self._core.effects.append(DropQueuedAudio(response.response_id))
        self._end(response, ending, reason)

    def _end(self, response: Response, ending: Ending, reason: str | None = None) -> None:
        del self._responses[response.key]
        response.finish(ending, reason)
