"""A half-duplex conversation: the client says when a turn ends and when it wants an answer."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec import UNSET, UnsetType, structs

from omniduplex.engine.conversation.response_options import read_options
from omniduplex.engine.turns import TurnChunk
from omniduplex.entrypoints.openai.turn_realtime.answer import RESPONSE_ERROR, Answer
from omniduplex.entrypoints.openai.turn_realtime.effects import (
    Ask,
    Effect,
    Emit,
    PartOfItem,
    Stop,
)
from omniduplex.entrypoints.openai.turn_realtime.items import TurnItems
from omniduplex.entrypoints.openai.turn_realtime.question import Question
from omniduplex.entrypoints.openai.turn_realtime.sound import ShownEvent
from omniduplex.protocol.duplex import (
    AppendAudio,
    CancelResponse,
    ClearInput,
    ClearOutputAudio,
    Commit,
    ConversationCreated,
    ConversationObject,
    CreateItem,
    CreateResponse,
    DeleteItem,
    DuplexCapabilities,
    DuplexCommand,
    DuplexError,
    DuplexSessionConfig,
    DuplexSessionObject,
    OutputCleared,
    PlaybackCursor,
    ResponseOptions,
    RetrieveItem,
    SessionCreated,
    SessionUpdated,
    TruncateItem,
    UpdateSession,
    apply_patch,
    error_event,
    named_turn_detection,
    session_object,
)

_CAPABILITIES = DuplexCapabilities(
    implementation_level="turn_based_duplex",
    supports_external_turn_signal=False,
    supports_barge_in=False,
    supports_playback_ack=False,
    supports_turn_commit_only=True,
    supports_audio_truncate=True,
    supports_text_only_turn=True,
)
_NO_OPTIONS = ResponseOptions()


class TurnConversation:
    """All state of one connection, without I/O: inputs come in, what is to be done comes out.

    `config` has no turn detection, and none can be switched on. With `transcribes` the words of
    sounds are found beside the answers, in the order of the sounds, of which no more than
    `max_pending_turns` may wait; else every answer hears the sounds again.
    """

    def __init__(
        self,
        config: DuplexSessionConfig,
        *,
        transcribes: bool,
        max_pending_turns: int,
        new_id: Callable[[str], str],
    ) -> None:
        self._config = config
        self._new_id = new_id
        self._session_id = new_id("sess")
        self._conversation_id = new_id("conv")
        self._effects: list[Effect] = []
        self._items = TurnItems(
            self._do, new_id, transcribes=transcribes, max_pending_turns=max_pending_turns
        )
        self._answer: Answer | None = None
        self._waiting: Question | None = None
        """What the answer was asked while the model was not: some words are to come."""
        items = self._items
        self._table: dict[type[Any], Callable[[Any], None]] = {
            UpdateSession: self._update,
            AppendAudio: items.append,
            Commit: lambda command: items.commit(command, self._config.input_format),
            ClearInput: lambda _: items.clear(),
            CreateItem: lambda command: items.create(command, self._config.input_format),
            RetrieveItem: items.retrieve,
            DeleteItem: self._delete,
            TruncateItem: items.truncate,
            CreateResponse: self._create_response,
            CancelResponse: self._cancel,
            ClearOutputAudio: self._clear_output,
        }

    @property
    def answering(self) -> str | None:
        """The response that is being made."""
        return self._answer.response_id if self._answer else None

    @property
    def idle_timeout_s(self) -> float:
        """How long a client may say nothing before it counts as gone."""
        return self._config.idle_timeout_s

    # -- inputs -----------------------------------------------------------------------------

    def open(self) -> list[Effect]:
        """What a client learns first."""
        self._emit(SessionCreated(session=self._public()))
        self._emit(ConversationCreated(conversation=ConversationObject(id=self._conversation_id)))
        return self._taken()

    def handle(self, command: DuplexCommand) -> list[Effect]:
        """Do what a client event asks for; a refusal is an event, too."""
        try:
            do = self._table.get(type(command))
            if do is None:
                name = command.__struct_config__.tag
                message = f"{name} belongs to duplex sessions; this connection takes turns"
                raise DuplexError("unsupported", message, param="type")
            do(command)
        except DuplexError as error:
            error.event_id = error.event_id or command.event_id
            return self.refuse(error)
        return self._taken()

    def refuse(self, error: DuplexError) -> list[Effect]:
        """Tell what is wrong with a client event."""
        self._emit(error_event(error))
        return self._taken()

    def take(self, response_id: str, chunk: TurnChunk) -> list[Effect]:
        """The next piece of a response; of one that is over it is dropped."""
        answer = self._answer
        if answer is None or answer.response_id != response_id:
            return []
        try:
            answer.take(chunk)
        except ValueError as error:
            return self.failed(response_id, str(error))
        if chunk.finished:
            self._answer = None
            answer.complete(whole=chunk.finish_reason != "length")
        return self._taken()

    def failed(self, response_id: str, message: str) -> list[Effect]:
        """A response cannot be finished."""
        if self._answer is not None and self._answer.response_id == response_id:
            self._fail(self._answer, message, RESPONSE_ERROR)
        return self._taken()

    def heard(self, part: PartOfItem, words: str) -> list[Effect]:
        """The words of a sound are known."""
        if self._items.heard(part, words):
            self._ask_if_all_is_heard()
        return self._taken()

    def unheard(
        self, part: PartOfItem, message: str, *, code: str = "transcription_failed"
    ) -> list[Effect]:
        """The words of a sound will never be known, and what was to answer them fails."""
        is_told = self._items.unheard(part, message, code)
        waiting = self._waiting
        if is_told and self._answer and waiting and waiting.awaits(part[0]):
            why = "the words to be answered could not be recognised"
            self._fail(self._answer, why, "transcription_failed")
        return self._taken()

    # -- the session ------------------------------------------------------------------------

    def _update(self, command: UpdateSession) -> None:
        # Stock clients repeat their model's name; it names nothing here.
        patch = structs.replace(command.session, model=UNSET)
        config = apply_patch(self._config, patch)
        if config.turn_detection is not None:
            message = "turns end by input_audio_buffer.commit here; turn_detection is null"
            param, _ = named_turn_detection(patch)
            raise DuplexError("unsupported_turn_detection", message, param=param)
        if self._items.buffered and config.input_format != self._config.input_format:
            message = "commit or clear the audio that is buffered in the old format first"
            raise DuplexError(
                "unsupported_audio_format", message, param="session.audio.input.format"
            )
        self._config = structs.replace(config, extensions=())
        self._emit(SessionUpdated(session=self._public()))

    def _public(self) -> DuplexSessionObject:
        return session_object(
            self._config,
            session_id=self._session_id,
            capabilities=_CAPABILITIES,
            state="open",
            turn_state="assistant_generating" if self._answer else "idle",
            epoch=0,
            turn_id=0,
            active_response_id=self.answering,
            active_response_turn_id=None,
            active_request_id=None,
            playback=PlaybackCursor(),
        )

    def _delete(self, command: DeleteItem) -> None:
        self._items.delete(command)
        self._ask_if_all_is_heard()

    # -- responses --------------------------------------------------------------------------

    def _create_response(self, command: CreateResponse) -> None:
        if self._answer is not None:
            message = f"response {self._answer.response_id} is active in this conversation"
            raise DuplexError("response_already_active", message)
        given = command.response
        options = _NO_OPTIONS if isinstance(given, UnsetType) else given
        if options.interruptible is not None:
            message = "speech interrupts no answer here; only response.cancel ends one early"
            raise DuplexError("unsupported", message, param="response.interruptible")
        reader = self._items.reader(self._config.input_format)
        wanted = read_options(options, self._config, reader)
        if not (wanted.instructions or wanted.input or len(self._items.history)):
            raise DuplexError("response_create_without_input", "there is nothing to answer")
        self._answer = Answer(
            response_id=self._new_id("resp"),
            conversation_id=self._conversation_id,
            wanted=wanted,
            history=self._items.history,
            new_id=self._new_id,
            emit=self._emit,
        )
        self._answer.open()
        history = self._items.history
        entries = history if wanted.input is None else wanted.input
        self._waiting = Question(entries, history)
        self._ask_if_all_is_heard()

    def _ask_if_all_is_heard(self) -> None:
        answer, question = self._answer, self._waiting
        if answer is None or question is None:
            return
        question.settle()
        if not question.is_heard:
            return
        self._waiting = None
        shared = question.shared
        sounds = {part: sound for part, sound in self._items.sounds.items() if part[0] in shared}
        self._do(Ask(answer.response_id, answer.wanted, question.items, sounds))

    def _cancel(self, command: CancelResponse) -> None:
        answer = self._answer
        if answer is None or command.response_id not in (None, answer.response_id):
            raise DuplexError(
                "response_not_active",
                "Cancellation failed: no such active response",
                param="response_id" if command.response_id else None,
            )
        self._stop(answer, "client_cancelled")

    def _clear_output(self, command: ClearOutputAudio) -> None:
        answer, named = self._answer, command.response_id or self.answering
        self._emit(OutputCleared(response_id=named))
        if answer is not None and named == answer.response_id:
            self._stop(answer, "output_audio_buffer_clear")

    def _stop(self, answer: Answer, reason: str) -> None:
        self._answer, self._waiting = None, None
        self._do(Stop(answer.response_id))
        answer.cancel(reason)

    def _fail(self, answer: Answer, message: str, code: str) -> None:
        self._answer, self._waiting = None, None
        self._do(Stop(answer.response_id))
        self._emit(error_event(DuplexError(code, message)))
        answer.fail(code)

    # -- effects ----------------------------------------------------------------------------

    def _do(self, effect: Effect) -> None:
        self._effects.append(effect)

    def _emit(self, event: ShownEvent) -> None:
        self._do(Emit(event))

    def _taken(self) -> list[Effect]:
        effects, self._effects = self._effects, []
        return effects
