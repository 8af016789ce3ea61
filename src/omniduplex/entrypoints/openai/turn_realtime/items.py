"""The items of a half-duplex conversation, and the buffered audio that is to become one."""

from __future__ import annotations

from collections.abc import Callable

from msgspec import structs

from omniduplex.engine.conversation.history import History, HistoryEntry
from omniduplex.engine.conversation.new_items import ItemReader, is_told_done
from omniduplex.entrypoints.openai.turn_realtime.effects import Effect, Emit, Hear, PartOfItem
from omniduplex.entrypoints.openai.turn_realtime.sound import ShownEvent, Sound
from omniduplex.protocol.duplex import (
    AppendAudio,
    AudioFormat,
    Commit,
    ContentPart,
    CreateItem,
    DeleteItem,
    DuplexError,
    DurationUsage,
    InputCleared,
    InputCommitted,
    Item,
    ItemAdded,
    ItemCreated,
    ItemDeleted,
    ItemDone,
    ItemRetrieved,
    ItemTruncated,
    RetrieveItem,
    TranscriptionCompleted,
    TranscriptionDelta,
    TranscriptionError,
    TranscriptionFailed,
    TruncateItem,
    error_kind,
)

# Wire contract, section 11: what may wait of a client's input, in bytes.
MAX_INPUT_BYTES = 16 * 1024 * 1024
MAX_KEPT_BYTES = 4 * MAX_INPUT_BYTES
"""Sounds whose words are not known, of all items together."""


class TurnItems:
    """Items in order, and the sounds in them whose words are not known.

    With `transcribes` their words are asked for, and no further sound is taken while
    `max_pending_turns` wait for theirs; else the sounds stay for the model to hear.
    Methods that a client's event calls raise DuplexError, and have changed nothing then.
    """

    def __init__(
        self,
        effects: Callable[[Effect], None],
        new_id: Callable[[str], str],
        *,
        transcribes: bool,
        max_pending_turns: int,
    ) -> None:
        self.history = History()
        self.sounds: dict[PartOfItem, Sound] = {}
        self._do = effects
        self._new_id = new_id
        self._transcribes = transcribes
        self._max_pending_turns = max_pending_turns
        self._waiting: list[PartOfItem] = []
        """Sounds whose words were asked for and did not come, of deleted items, too."""
        self._input = bytearray()

    @property
    def buffered(self) -> bool:
        """Whether there is audio that is not committed."""
        return bool(self._input)

    def reader(self, input_format: AudioFormat) -> ItemReader:
        """What reads a client's items, whose audio is in this format."""
        return ItemReader(
            history=self.history,
            new_id=self._new_id,
            input_format=input_format,
            takes_audio=True,
            takes_images=False,
        )

    def _emit(self, event: ShownEvent) -> None:
        self._do(Emit(event))

    # -- the input buffer -------------------------------------------------------------------

    def append(self, command: AppendAudio) -> None:
        """Buffer audio."""
        if command != AppendAudio(audio=command.audio, event_id=command.event_id):
            message = "an append holds audio in the session's input format, and nothing else"
            raise DuplexError("unsupported", message)
        if len(self._input) + len(command.audio) > MAX_INPUT_BYTES:
            message = f"more than {MAX_INPUT_BYTES} bytes of audio wait for a commit"
            raise DuplexError("input_backpressure", message, param="audio")
        self._input += command.audio

    def clear(self) -> None:
        """Drop the buffered audio."""
        self._input.clear()
        self._emit(InputCleared())

    def commit(self, command: Commit, audio_format: AudioFormat) -> None:
        """Make the buffered audio an item."""
        if command != Commit(event_id=command.event_id):
            raise DuplexError("unsupported", "a commit ends the turn, and has no options here")
        if not self._input:
            raise DuplexError("input_audio_buffer_empty", "there is no audio to commit")
        self._check_room_for_turn()
        if len(self._input) % audio_format.bytes_per_sample:
            self._input.clear()
            raise DuplexError("bad_audio", "the audio ended inside a sample; it was dropped")
        self._check_room(len(self._input))
        sound = Sound(bytes(self._input), audio_format)
        self._input.clear()
        part = ContentPart(type="input_audio", transcript=None)
        item = Item(id=self._new_id("item"), role="user", content=(part,))
        previous = self.history.add(HistoryEntry(item))
        self._emit(InputCommitted(item_id=item.id, previous_item_id=previous))
        self._announce(item, previous)
        self._hear((item.id, 0), sound)

    def _check_room(self, more: int) -> None:
        if sum(len(sound.data) for sound in self.sounds.values()) + more > MAX_KEPT_BYTES:
            message = f"more than {MAX_KEPT_BYTES} bytes of audio wait to be heard"
            raise DuplexError("input_backpressure", message)

    def _check_room_for_turn(self) -> None:
        if len(self._waiting) >= self._max_pending_turns:
            message = f"more than {self._max_pending_turns} turns wait to be heard"
            raise DuplexError("input_backpressure", message)

    def _announce(self, item: Item, previous: str | None) -> None:
        self._emit(ItemAdded(item=item, previous_item_id=previous))
        self._emit(ItemCreated(item=item, previous_item_id=previous))
        if is_told_done(item):
            self._emit(ItemDone(item=item, previous_item_id=previous))

    # -- words ------------------------------------------------------------------------------

    def _hear(self, part: PartOfItem, sound: Sound) -> None:
        self.sounds[part] = sound
        if self._transcribes:
            self.history.await_transcript(*part)
            self._waiting.append(part)
            self._do(Hear(part, sound))

    def _is_awaited(self, part: PartOfItem) -> bool:
        """Whether what has come of a sound, in the order of asking, is of use still."""
        if part in self._waiting:
            self._waiting.remove(part)
        # An id that is free again may name another item, whose words are still to come.
        return part not in self._waiting and self.history.awaits(*part)

    def heard(self, part: PartOfItem, words: str) -> bool:
        """The words of a sound are known; false when nobody waits for them any more."""
        item_id, index = part
        if not self._is_awaited(part):
            return False
        sound = self.sounds.pop(part)
        self.history.transcript_arrived(item_id, words, index)
        if words:
            self._emit(TranscriptionDelta(item_id=item_id, content_index=index, delta=words))
        self._emit(
            TranscriptionCompleted(
                item_id=item_id,
                content_index=index,
                transcript=words,
                usage=DurationUsage(seconds=round(sound.seconds, 3)),
            )
        )
        return True

    def unheard(self, part: PartOfItem, message: str, code: str) -> bool:
        """The words of a sound will never be known; false when nobody waits for them any more."""
        item_id, index = part
        if not self._is_awaited(part):
            return False
        del self.sounds[part]
        self.history.transcript_failed(item_id, index)
        kind = error_kind(code).error_class
        error = TranscriptionError(type=kind, code=code, message=message)
        self._emit(TranscriptionFailed(item_id=item_id, content_index=index, error=error))
        return True

    # -- items ------------------------------------------------------------------------------

    def create(self, command: CreateItem, audio_format: AudioFormat) -> None:
        """Put a client's item into the conversation; what is said in it is heard."""
        new = self.reader(audio_format).read(command.item, "item", among=self.history)
        if self.history.is_taken(new.item.id):
            message = f"the id {new.item.id!r} is taken"
            raise DuplexError("item_create_duplicate_item_id", message, param="item.id")
        if new.sounds:
            self._check_room_for_turn()
            self._check_room(sum(map(len, new.sounds.values())))
        previous = self.history.add(HistoryEntry(new.item), command.previous_item_id)
        self._announce(new.item, previous)
        for index, audio in new.sounds.items():
            self._hear((new.item.id, index), Sound(audio, audio_format))

    def retrieve(self, command: RetrieveItem) -> None:
        """Show an item as it stands."""
        if _named(command.item_id) not in self.history:
            message = f"no item {command.item_id!r} in this conversation"
            raise DuplexError("item_retrieve_invalid_item_id", message, param="item_id")
        entry = self.history.get(command.item_id)
        item, spoken = entry.item, entry.spoken
        if entry.is_being_made and spoken is not None:
            item = structs.replace(item, content=spoken.content(spoken.text))
        self._emit(ItemRetrieved(item=item))

    def delete(self, command: DeleteItem) -> None:
        """Take an item out, and its sounds."""
        self._settled(command.item_id)
        self.history.remove(command.item_id)
        for part in [part for part in self.sounds if part[0] == command.item_id]:
            del self.sounds[part]
        self._emit(ItemDeleted(item_id=command.item_id))

    def truncate(self, command: TruncateItem) -> None:
        """Cut an answer at what was heard; a position past its end is its end."""
        entry = self._settled(command.item_id)
        content = entry.item.content or ()
        if entry.spoken is None or not content or content[0].type != "output_audio":
            message = "only an assistant's audio can be truncated"
            raise DuplexError("bad_event", message, param="item_id")
        if command.content_index != 0:
            raise DuplexError("bad_event", "no audio part there", param="content_index")
        if not command.audio_end_ms >= 0:
            raise DuplexError("bad_event", "audio_end_ms must be >= 0", param="audio_end_ms")
        entry.spoken.cut(command.audio_end_ms)
        part = ContentPart(type="output_audio", transcript=entry.spoken.text)
        self.history.replace(structs.replace(entry.item, content=(part,)))
        heard_ms = int(entry.spoken.duration_ms)
        self._emit(ItemTruncated(item_id=command.item_id, audio_end_ms=heard_ms))

    def _settled(self, item_id: str) -> HistoryEntry:
        entry = self.history.get(_named(item_id))
        if entry.is_being_made:
            raise DuplexError("bad_event", "the item is still being made", param="item_id")
        return entry


def _named(item_id: str) -> str:
    if not item_id:
        raise DuplexError("missing_item_id", "item_id is empty", param="item_id")
    return item_id
