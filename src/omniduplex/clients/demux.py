"""Sorts the event stream into answers."""

from __future__ import annotations

from collections import OrderedDict, deque
from weakref import WeakKeyDictionary

from omniduplex.clients.events import ServerEvent
from omniduplex.clients.response import ResponseHandle
from omniduplex.clients.subscription import Subscription
from omniduplex.protocol.duplex import (
    AudioDelta,
    AudioFormat,
    ListenDecision,
    ResponseCreated,
    ResponseDone,
    SpeakDecision,
    TextDelta,
    TextDone,
    TranscriptDelta,
    TranscriptDone,
    UnknownEvent,
)

# Answers nobody has asked for yet: enough for a consumer that comes late, not a history.
_UNCLAIMED_LIMIT = 8
# Ids of answers that are over, so that a straggler does not start a new one.
_ENDED_LIMIT = 64


class ResponseDemux:
    """One handle per answer, announced once the model shows what it does.

    An answer that began before the first consumer asked waits for it; one that only listens
    does not.
    """

    def __init__(self, expected: AudioFormat) -> None:
        self._expected = expected
        self._live: dict[str, ResponseHandle] = {}
        self._ended: OrderedDict[str, ResponseHandle] = OrderedDict()
        self._announced: set[str] = set()
        self._unclaimed: deque[ResponseHandle] = deque(maxlen=_UNCLAIMED_LIMIT)
        # Those who came first hear first.
        self._consumers: WeakKeyDictionary[Subscription[ResponseHandle], None] = WeakKeyDictionary()
        self._over = False
        self._failure: str | None = None

    def subscribe(self) -> Subscription[ResponseHandle]:
        """Answers that wait for a consumer, then each new one."""
        consumer: Subscription[ResponseHandle] = Subscription()
        while self._unclaimed:
            consumer.push(self._unclaimed.popleft())
        if self._over:
            consumer.end(self._failure)
        self._consumers[consumer] = None
        return consumer

    def add(self, event: ServerEvent) -> None:
        """Give the event to its answer, if it belongs to one."""
        match event:
            case AudioDelta():
                self._audio(event)
            case TranscriptDelta():
                self._transcript(event)
            case TextDelta():
                self._add_text(event.response_id, event.delta)
            case UnknownEvent():
                self._foreign_text(event)
            case _:
                self._add_milestone(event)

    def _add_milestone(self, event: ServerEvent) -> None:
        match event:
            case ResponseCreated():
                self._created(event)
            case SpeakDecision():
                self._speak(event)
            case TranscriptDone():
                self._whole_transcript(event)
            case TextDone():
                self._whole_text(event)
            case ListenDecision():
                self._listen(event)
            case ResponseDone():
                self._done(event)
            case _:
                return

    def end(self, reason: str, *, failed: bool) -> None:
        """The session is over: open answers break off, consumers end."""
        for handle in self._live.values():
            handle.break_off(reason)
        self._live.clear()
        self._over = True
        self._failure = reason if failed else None
        for consumer in list(self._consumers):
            consumer.end(self._failure)

    def _handle(self, response_id: str) -> ResponseHandle | None:
        """The live answer of that name, made when it is new; None when it is over."""
        if response_id in self._ended:
            return None
        handle = self._live.get(response_id)
        if handle is None:
            handle = self._live[response_id] = ResponseHandle(response_id, self._expected)
        return handle

    def _announce(self, handle: ResponseHandle) -> None:
        if handle.response_id is not None:
            if handle.response_id in self._announced:
                return
            self._announced.add(handle.response_id)
        for consumer in list(self._consumers):
            consumer.push(handle)
        if not self._consumers and handle.decision != "listen":
            self._unclaimed.append(handle)

    def _retire(self, response_id: str, handle: ResponseHandle) -> None:
        self._announce(handle)
        self._live.pop(response_id, None)
        self._announced.discard(response_id)
        self._ended[response_id] = handle
        if len(self._ended) > _ENDED_LIMIT:
            self._ended.popitem(last=False)

    def _speaking(self, response_id: str) -> ResponseHandle | None:
        handle = self._handle(response_id)
        if handle is not None:
            handle.decision = "speak"
        return handle

    def _created(self, event: ResponseCreated) -> None:
        handle = self._handle(event.response_id)
        if handle is not None:
            handle.created_event = event

    def _speak(self, event: SpeakDecision) -> None:
        handle = self._speaking(event.response_id)
        if handle is not None:
            self._announce(handle)

    def _audio(self, event: AudioDelta) -> None:
        handle = self._speaking(event.response_id)
        if handle is not None:
            handle.add_audio(event)
            self._announce(handle)

    def _transcript(self, event: TranscriptDelta) -> None:
        handle = self._speaking(event.response_id)
        if handle is not None:
            handle.add_transcript(event.delta)
            self._announce(handle)

    def _whole_transcript(self, event: TranscriptDone) -> None:
        handle = self._handle(event.response_id)
        if handle is not None and not handle.transcript:
            handle.add_transcript(event.transcript)

    def _whole_text(self, event: TextDone) -> None:
        handle = self._handle(event.response_id)
        if handle is not None and not handle.text:
            handle.add_text(event.text)

    def _foreign_text(self, event: UnknownEvent) -> None:
        """The beta spelling of a text delta, from a server that knows no other."""
        if event.type != "response.text.delta":
            return
        response_id, delta = event.raw.get("response_id"), event.raw.get("delta")
        if isinstance(response_id, str) and isinstance(delta, str):
            self._add_text(response_id, delta)

    def _add_text(self, response_id: str, delta: str) -> None:
        handle = self._speaking(response_id)
        if handle is not None:
            handle.add_text(delta)
            self._announce(handle)

    def _listen(self, event: ListenDecision) -> None:
        if event.response_id is None:
            handle = ResponseHandle(None, self._expected)
            handle.finish("listen", "completed")
            self._announce(handle)
            return
        named = self._handle(event.response_id)
        if named is not None:
            named.finish("listen", "completed")
            self._retire(event.response_id, named)

    def _done(self, event: ResponseDone) -> None:
        # A listen decision ends its answer before `response.done` says how it ended.
        handle = self._ended.get(event.response_id) or self._handle(event.response_id)
        if handle is None or handle.done_event is not None:
            return
        handle.done_event = event
        handle.finish("speak", event.response.status)
        if event.response_id in self._live:
            self._retire(event.response_id, handle)
