"""Commands about items and about what was heard of them."""

from __future__ import annotations

import msgspec
from msgspec import UnsetType

from omniduplex.engine.conversation.history import HistoryEntry, answer_item_id, response_id_of
from omniduplex.engine.conversation.new_items import as_told, is_told_done
from omniduplex.engine.duplex.pending_input import input_bytes
from omniduplex.engine.duplex.session.commit_fanout import commit_item
from omniduplex.engine.duplex.session.core import SessionCore
from omniduplex.engine.duplex.session.inputs import AudioReady
from omniduplex.engine.duplex.session.item_audio import ItemAudio
from omniduplex.engine.duplex.session.playback_ledger import PlaybackRecord
from omniduplex.engine.duplex.session.prompts import heard_text
from omniduplex.protocol.duplex import (
    AckPlayback,
    ContentPart,
    CreateItem,
    DeleteItem,
    DuplexError,
    Item,
    ItemAdded,
    ItemCreated,
    ItemDeleted,
    ItemDone,
    ItemFacts,
    ItemRetrieved,
    ItemTruncated,
    PlaybackAcknowledged,
    PlaybackFacts,
    RetrieveItem,
    TruncateItem,
)


class Conversation:
    """The client's view of the history: create, retrieve, delete, truncate, acknowledge."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._audio = ItemAudio(core)

    # -- items ------------------------------------------------------------------------------

    def create(self, command: CreateItem) -> None:
        """Put a client's item into the history; what is said in it is recognised.

        Raises:
            DuplexError: as `ItemReader.read` and `History.add`; `input_backpressure`.
        """
        core = self._core
        new = core.item_reader().read(command.item, "item", among=core.history)
        # The OpenAI API keeps an item as it was sent.
        new, picture = new.apart() if core.config.knows_extensions else (new, None)
        for item in (new.item, picture):
            if item is not None and core.history.is_taken(item.id):
                message = f"the id {item.id!r} is taken"
                raise DuplexError("item_create_duplicate_item_id", message, param="item.id")
        if new.sounds:
            core.check_room(input_bytes(command))
            core.check_room_for_turn()
        previous = core.history.add(HistoryEntry(new.item), command.previous_item_id)
        if new.sounds:
            commit_item(core, as_told(new.item), previous)
            for index, audio in new.sounds.items():
                self._audio.recognise(new.item.id, index, audio)
        else:
            self._announce(as_told(new.item), previous)
        if picture is not None:
            self._announce(as_told(picture), core.history.add(HistoryEntry(picture), new.item.id))

    def _announce(self, item: Item, previous: str | None) -> None:
        self._core.emit(ItemAdded(item=item, previous_item_id=previous))
        self._core.emit(ItemCreated(item=item, previous_item_id=previous))
        if is_told_done(item):
            self._core.emit(ItemDone(item=item, previous_item_id=previous))

    def converted(self, ready: AudioReady) -> str | None:
        """The audio of an item is converted; its id if its words will never be known."""
        return self._audio.converted(ready)

    def retrieve(self, command: RetrieveItem) -> None:
        """Show an item as it stands; of an answer that was cut off, what was heard."""
        if _item_id(command.item_id) not in self._core.history:
            message = f"no item {command.item_id!r} in this conversation"
            raise DuplexError("item_retrieve_invalid_item_id", message, param="item_id")
        item = self._as_heard(self._core.history.get(command.item_id))
        self._core.emit(ItemRetrieved(item=as_told(item)))

    def _as_heard(self, entry: HistoryEntry) -> Item:
        item = entry.item
        record = self._core.playback.get(entry.response_id) if entry.response_id else None
        if record is None or isinstance(item.content, UnsetType):
            return item
        cut_off = record.cut_off
        if item.status == "in_progress":
            return msgspec.structs.replace(item, content=self._so_far(entry, cut_off=cut_off))
        if not cut_off:
            return item
        text = heard_text(entry, self._core.playback)
        parts = tuple(
            msgspec.structs.replace(part, transcript=text) if part.type == "output_audio" else part
            for part in item.content
        )
        return msgspec.structs.replace(item, content=parts)

    def _so_far(self, entry: HistoryEntry, *, cut_off: bool) -> tuple[ContentPart, ...]:
        """What an answer that is being made has said, or of one that was cut, what was heard."""
        spoken = entry.spoken
        if spoken is None:
            return ()
        return spoken.content(heard_text(entry, self._core.playback) if cut_off else spoken.text)

    def delete(self, command: DeleteItem) -> None:
        """Take an item out."""
        entry = self._core.history.get(_item_id(command.item_id))
        if entry.is_being_made:
            raise DuplexError("bad_event", "the item is still being made", param="item_id")
        self._core.history.remove(command.item_id)
        if entry.response_id is not None and entry.spoken is not None:
            self._core.playback.forget(entry.response_id)
        facts = ItemFacts(type="conversation.item.deleted", item_id=command.item_id)
        self._core.emit(ItemDeleted(item_id=command.item_id, event=facts))

    # -- what was heard ---------------------------------------------------------------------

    def truncate(self, command: TruncateItem) -> None:
        """Cut an answer at what was heard; a position past its end is its end."""
        entry = self._core.history.get(_item_id(command.item_id))
        record = self._audio_of(entry, command)
        if not command.audio_end_ms >= 0:
            raise DuplexError("bad_event", "audio_end_ms must be >= 0", param="audio_end_ms")
        cut = self._core.playback.truncate(record, command.audio_end_ms)
        self._core.history.touch()
        end_ms = int(record.cap_ms or 0)
        facts = ItemFacts(
            type="conversation.item.truncated", item_id=command.item_id, truncated=cut
        )
        self._core.emit(
            ItemTruncated(
                item_id=command.item_id,
                content_index=command.content_index,
                audio_end_ms=end_ms,
                event=facts,
            )
        )
        self._acknowledged(entry.item.id, record, truncate=True, committed=True)

    def _audio_of(self, entry: HistoryEntry, command: TruncateItem) -> PlaybackRecord:
        if not self._core.capabilities.supports_audio_truncate:
            raise DuplexError("unsupported", "this model's audio cannot be truncated")
        record = self._core.playback.get(entry.response_id) if entry.response_id else None
        if record is None or entry.spoken is None:
            raise DuplexError(
                "bad_event", "only an assistant's audio can be truncated", param="item_id"
            )
        parts = entry.item.content
        is_silent = parts and not any(part.type == "output_audio" for part in parts)
        if command.content_index != 0 or is_silent:
            raise DuplexError("bad_event", "no audio part there", param="content_index")
        return record

    def acknowledge(self, command: AckPlayback) -> None:
        """`playback.ack`: how far the user has heard an answer."""
        entry, record = self._acknowledged_entry(command)
        if not command.played_ms >= 0:
            raise DuplexError("bad_event", "played_ms must be >= 0", param="played_ms")
        if command.committed_ms is not None and not command.committed_ms >= 0:
            raise DuplexError("bad_event", "committed_ms must be >= 0", param="committed_ms")
        if command.truncate:
            heard = command.played_ms if command.committed_ms is None else command.committed_ms
            self._core.playback.truncate(record, heard)
            changed = True
        else:
            changed = self._core.playback.acknowledge(
                record, command.played_ms, command.committed_ms
            )
        if changed and entry is not None:
            self._core.history.touch()
        self._acknowledged(
            answer_item_id(record.response_id),
            record,
            truncate=command.truncate,
            committed=changed and entry is not None,
        )

    def _acknowledged_entry(
        self, command: AckPlayback
    ) -> tuple[HistoryEntry | None, PlaybackRecord]:
        response_id = command.response_id
        of_another = response_id is not None and command.item_id != answer_item_id(response_id)
        if of_another and command.item_id is not None:
            raise DuplexError(
                "playback_item_mismatch",
                f"item {command.item_id!r} is not of response {response_id!r}",
                param="item_id",
            )
        if response_id is None and command.item_id is not None:
            response_id = response_id_of(command.item_id)
        latest = self._core.playback.latest
        record = latest if response_id is None else self._core.playback.get(response_id)
        if record is None:
            param = "item_id" if command.response_id is None else "response_id"
            raise DuplexError(
                "playback_item_not_found", "no such answer in this conversation", param=param
            )
        item_id = answer_item_id(record.response_id)
        entry = self._core.history.get(item_id) if item_id in self._core.history else None
        return entry, record

    def _acknowledged(
        self, item_id: str, record: PlaybackRecord, *, truncate: bool, committed: bool
    ) -> None:
        cursor = record.cursor()
        facts = PlaybackFacts(
            session_id=self._core.session_id,
            epoch=self._core.epoch,
            item_id=item_id,
            played_ms=cursor.played_ms,
            committed_ms=cursor.committed_ms,
            truncate=truncate,
            playback=cursor,
            history_committed=committed,
        )
        self._core.emit(PlaybackAcknowledged(event=facts))


def _item_id(item_id: str) -> str:
    if not item_id:
        raise DuplexError("missing_item_id", "item_id is empty", param="item_id")
    return item_id
