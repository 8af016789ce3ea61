"""What must be true of any session's events, whatever happened: read from the events alone."""

from __future__ import annotations

from dataclasses import dataclass, field

from msgspec import UNSET

from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioDone,
    ContentPartAdded,
    ContentPartDone,
    DuplexEvent,
    InputCommitted,
    ItemAdded,
    ItemCreated,
    ItemDeleted,
    ItemDone,
    OutputCleared,
    OutputItemAdded,
    OutputItemDone,
    OutputStarted,
    OutputStopped,
    OverlapDecision,
    PlaybackAcknowledged,
    PlaybackCursor,
    RateLimitsUpdated,
    ResponseCreated,
    ResponseDone,
    SessionClosed,
    SessionExpired,
    SpeakDecision,
    TextDelta,
    TranscriptDelta,
    TranscriptDone,
)

OfResponse = (
    OutputItemAdded
    | OutputItemDone
    | ContentPartAdded
    | ContentPartDone
    | SpeakDecision
    | AudioDelta
    | AudioDone
    | TranscriptDelta
    | TranscriptDone
    | TextDelta
)


@dataclass
class _Answer:
    in_conversation: bool
    open_items: set[int] = field(default_factory=set)
    open_parts: set[tuple[str, int]] = field(default_factory=set)
    audio_ms: int = 0
    spoke: bool = False


class ContractWatcher:
    """Fed every event in order, it raises at the first that breaks the wire contract."""

    def __init__(self) -> None:
        self._answers: dict[str, _Answer] = {}
        self._endings: set[str] = set()
        self._order: list[str] = []
        self._in_progress: set[str] = set()
        self._epoch = 0
        self._closed = False
        self._playing: str | None = None
        self._previous: DuplexEvent | None = None

    @property
    def active(self) -> list[str]:
        """Responses created and not ended."""
        return list(self._answers)

    @property
    def order(self) -> list[str]:
        """Item ids, as a client would list them."""
        return self._order

    def watch(self, events: list[DuplexEvent]) -> None:
        """Take events in order."""
        for event in events:
            self._take(event)

    def given_up(self, response_id: str) -> None:
        """The client will read of a whole answer that it has failed, for want of room."""
        if response_id == self._playing:
            self._playing = None
        message = f"item_{response_id}"
        if message in self._order:
            self._order.remove(message)

    def _take(self, event: DuplexEvent) -> None:
        assert not self._closed, f"{type(event).__name__} after the closing event"
        self._check_pairs(event)
        self._check_epoch(event)
        match event:
            case SessionClosed() | SessionExpired():
                self._closed = True
            case ResponseCreated():
                self._created(event)
            case ResponseDone():
                self._done(event)
            case OverlapDecision():
                assert event.metadata is not UNSET
                is_told = event.metadata.cancel_reason is not UNSET
                assert is_told == (event.action == "barge_in"), "an interruption has its reason"
            case PlaybackAcknowledged():
                _check_cursor(event.event.playback)
            case OutputStarted() | OutputStopped() | OutputCleared():
                self._of_loudspeaker(event)
            case _ if isinstance(event, OfResponse):
                self._of_response(event)
            case _:
                self._of_conversation(event)
        self._previous = event

    def _check_pairs(self, event: DuplexEvent) -> None:
        """Some events only ever come right behind another."""
        before = self._previous
        if isinstance(before, ItemAdded):
            assert isinstance(event, ItemCreated)
            assert (event.item, event.previous_item_id) == (before.item, before.previous_item_id)
        if isinstance(before, AudioDelta):
            assert isinstance(event, TranscriptDelta)
            assert event.response_id == before.response_id
        if isinstance(before, ResponseDone):
            assert isinstance(event, RateLimitsUpdated)
        assert isinstance(event, RateLimitsUpdated) == isinstance(before, ResponseDone)

    def _check_epoch(self, event: DuplexEvent) -> None:
        epoch = getattr(event, "epoch", None)
        if isinstance(event, AudioDelta) and event.metadata:
            epoch = event.metadata.epoch
        if isinstance(event, ResponseCreated | ResponseDone) and event.response.facts:
            epoch = event.response.facts.epoch
        if epoch is not None:
            assert epoch >= self._epoch, "the epoch fell"
            self._epoch = epoch

    def _of_loudspeaker(self, event: OutputStarted | OutputStopped | OutputCleared) -> None:
        """One response plays at a time; what has stopped plays no more.

        What is stopped while it is made is not heard of again, but in the OpenAI dialect.
        """
        match event:
            case OutputStarted():
                assert self._playing is None, "two responses play at a time"
                assert event.response_id in self._answers
                self._playing = event.response_id
            case OutputStopped():
                assert event.response_id == self._playing, "what does not play cannot stop"
                assert event.response_id not in self._answers, "more of it may come"
                self._playing = None
            case OutputCleared() if event.response_id == self._playing:
                self._playing = None

    # -- responses --------------------------------------------------------------------------

    def _created(self, event: ResponseCreated) -> None:
        in_conversation = event.response.conversation_id is not None
        others = any(answer.in_conversation for answer in self._answers.values())
        assert not (in_conversation and others), "two answers at a time in the conversation"
        assert event.response_id not in self._endings, "a response id used again"
        assert event.response.status == "in_progress"
        assert event.response.output == ()
        self._answers[event.response_id] = _Answer(in_conversation)

    def _done(self, event: ResponseDone) -> None:
        answer = self._answers.pop(event.response_id)
        self._endings.add(event.response_id)
        assert not answer.open_items
        assert not answer.open_parts
        assert event.response.status != "in_progress"
        details = event.response.status_details
        assert (details is None) == (event.response.status == "completed")
        if event.response.status in ("cancelled", "failed") and event.response_id == self._playing:
            self._playing = None
        message = f"item_{event.response_id}"
        if event.response.facts and not event.response.facts.committed and message in self._order:
            # A failed answer leaves the conversation without a word, as does an endless one.
            self._order.remove(message)
        if event.response.facts and event.response.facts.playback:
            _check_cursor(event.response.facts.playback)

    def _of_response(self, event: OfResponse) -> None:
        answer = self._answers[event.response_id]
        match event:
            case OutputItemAdded():
                assert event.output_index not in answer.open_items
                answer.open_items.add(event.output_index)
            case OutputItemDone():
                assert event.item.status != "in_progress"
                answer.open_items.remove(event.output_index)
            case ContentPartAdded():
                part = event.item_id, event.content_index
                assert part not in answer.open_parts
                assert event.output_index in answer.open_items
                answer.open_parts.add(part)
            case ContentPartDone():
                answer.open_parts.remove((event.item_id, event.content_index))
            case _:
                assert (event.item_id, event.content_index) in answer.open_parts
                self._of_audio(answer, event)

    def _of_audio(self, answer: _Answer, event: OfResponse) -> None:
        if isinstance(event, SpeakDecision):
            assert not answer.spoke
            answer.spoke = True
        if isinstance(event, AudioDelta):
            assert answer.spoke
            assert event.metadata
            assert event.metadata.audio_duration_ms >= answer.audio_ms
            answer.audio_ms = event.metadata.audio_duration_ms
            _check_cursor(event.metadata.playback)

    # -- items ------------------------------------------------------------------------------

    def _of_conversation(self, event: DuplexEvent) -> None:
        match event:
            case ItemAdded():
                self._item_added(event)
            case ItemDone():
                self._item_done(event)
            case ItemDeleted():
                self._order.remove(event.item_id)
            case InputCommitted():
                if event.item_id in self._order:  # the OpenAI dialect announces it later
                    assert event.previous_item_id == self._before(event.item_id)

    def _item_added(self, event: ItemAdded) -> None:
        item_id = event.item.id
        assert item_id not in self._order, "an item id used twice"
        previous = event.previous_item_id
        index = 0 if previous is None else self._order.index(previous) + 1
        self._order.insert(index, item_id)
        self._in_progress.add(item_id)

    def _item_done(self, event: ItemDone) -> None:
        assert event.item.status != "in_progress"
        assert event.previous_item_id == self._before(event.item.id)
        self._in_progress.remove(event.item.id)

    def _before(self, item_id: str) -> str | None:
        index = self._order.index(item_id)
        return self._order[index - 1] if index else None


def _check_cursor(cursor: PlaybackCursor) -> None:
    assert 0 <= cursor.played_ms <= cursor.sent_ms <= cursor.generated_ms
    assert 0 <= cursor.committed_ms <= cursor.generated_ms
