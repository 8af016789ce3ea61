"""One part of an assistant's message as it is told: it opens, grows word by word, and is done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from omniduplex.protocol.duplex import (
    AudioDone,
    ContentPart,
    ContentPartAdded,
    ContentPartDone,
    DuplexEvent,
    TextDelta,
    TextDone,
    TranscriptDelta,
    TranscriptDone,
)


@dataclass(slots=True)
class MessagePart:
    """Words that are spoken (`audio`) or only written (`text`); sound itself is its caller's."""

    response_id: str
    item_id: str
    output_index: int
    content_index: int
    kind: Literal["audio", "text"]
    emit: Callable[[DuplexEvent], None]
    words: str = ""
    opened: bool = False

    def open(self) -> None:
        """Tell that the part is there, without a word in it."""
        self.opened = True
        self._tell(ContentPartAdded, part=self._part(self.kind, ""))

    def say(self, words: str) -> None:
        """The next words."""
        self.words += words
        self._tell(TranscriptDelta if self.kind == "audio" else TextDelta, delta=words)

    def close(self, *, sounded: bool = False) -> None:
        """Tell that nothing more comes: neither sound, if some came (`sounded`), nor words."""
        if sounded:
            self._tell(AudioDone)
        if self.kind == "text":
            self._tell(TextDone, text=self.words)
        elif self.words:
            self._tell(TranscriptDone, transcript=self.words)
        self._tell(ContentPartDone, part=self._part(self.kind, self.words))

    def content(self, heard: str | None = None) -> ContentPart:
        """The part as its item has it: all words, or those that were `heard`."""
        return self._part(f"output_{self.kind}", self.words if heard is None else heard)

    def _tell(self, event: Callable[..., DuplexEvent], **fields: Any) -> None:
        self.emit(
            event(
                response_id=self.response_id,
                item_id=self.item_id,
                output_index=self.output_index,
                content_index=self.content_index,
                **fields,
            )
        )

    def _part(self, kind: str, words: str) -> ContentPart:
        if self.kind == "audio":
            return ContentPart(type=kind, transcript=words)
        return ContentPart(type=kind, text=words)
