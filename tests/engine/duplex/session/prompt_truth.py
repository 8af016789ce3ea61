"""What was said in a session, learned from its events, to judge the model's prompts by."""

from __future__ import annotations

from omniduplex.engine.prompts import ResponsePrompt
from omniduplex.protocol.duplex import DuplexEvent, ItemDone, TextDelta, TranscriptDelta


class PromptTruth:
    """Every assistant message of a prompt must be a prefix of words that were shown."""

    def __init__(self) -> None:
        self._spoken: dict[str, str] = {}
        self._written: dict[str, str] = {}

    def watch(self, events: list[DuplexEvent]) -> None:
        """Take events in order."""
        for event in events:
            match event:
                case TranscriptDelta():
                    said = self._spoken.get(event.item_id, "")
                    self._spoken[event.item_id] = said + event.delta
                case TextDelta():
                    said = self._written.get(event.item_id, "")
                    self._written[event.item_id] = said + event.delta
                case ItemDone() if event.item.id not in self._written:
                    texts = (part.text for part in event.item.content or ())
                    self._written[event.item.id] = " ".join(text for text in texts if text)
                case _:
                    pass

    def check(self, prompt: ResponsePrompt) -> None:
        """Raise if the prompt has an assistant say what it did not."""
        for message in prompt.messages:
            if message.role == "assistant" and not message.tool_calls:
                assert any(
                    self._is_known(item_id, message.text)
                    for item_id in self._spoken.keys() | self._written.keys()
                ), message.text

    def _is_known(self, item_id: str, text: str) -> bool:
        """A prefix of what was spoken, then all that was written."""
        written = self._written.get(item_id, "")
        heard = text.removesuffix(written).rstrip() if text.endswith(written) else None
        return heard is not None and self._spoken.get(item_id, "").startswith(heard)
