"""From an item as a client sends it to one that can stand in the conversation."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

import msgspec
from msgspec import UNSET

from omniduplex.engine.conversation.history import History, HistoryEntry, item_size
from omniduplex.protocol.duplex import AudioFormat, ContentPart, DuplexError, Item, ItemInput

ROLE_PARTS = {
    "user": {"input_text", "input_audio", "input_image", "text"},
    "assistant": {"output_text", "output_audio", "text", "audio"},
    "system": {"input_text", "text"},
}
TEXT_PARTS = {"input_text", "output_text", "text"}
# The beta's names of parts stand for the API's, which alone are told (interop MUST 19).
PART_NAMES = {
    "user": {"text": "input_text"},
    "assistant": {"text": "output_text", "audio": "output_audio"},
    "system": {"text": "input_text"},
}

# An item is told three times, all of which must fit into what may wait for a slow reader, and a
# frame of 1 MiB ends a stock client's connection (interop MUST 5): bytes as they are on the wire.
MAX_ITEM_BYTES = 512 * 1024
# They are told again with many an event.
MAX_NAME_CHARS = 512
MAX_CONVERSATION_CHARS = 16 * 1024 * 1024

_encode = msgspec.json.Encoder().encode

# Wire contract, section 7.6.
MAX_IMAGES = 8
MAX_IMAGE_CHARS = 4 * 1024 * 1024
_IMAGE = re.compile(r"data:image/(?:jpeg|jpg|png);base64,[A-Za-z0-9+/]+={0,2}\Z")


@dataclass(frozen=True, slots=True)
class NewItem:
    """An item without its audio, and that audio by the index of its part, in the input format."""

    item: Item
    sounds: dict[int, bytes] = field(default_factory=dict)

    def apart(self) -> tuple[NewItem, Item | None]:
        """What is said, and an item `<id>_image` of what is shown beside it (section 7.6)."""
        parts = list(enumerate(self.item.content or ()))
        said = [(index, part) for index, part in parts if part.type != "input_image"]
        if not self.sounds or len(said) == len(parts):
            return self, None
        shown = tuple(part for _, part in parts if part.type == "input_image")
        places = {index: place for place, (index, _) in enumerate(said)}
        alone = NewItem(
            msgspec.structs.replace(self.item, content=tuple(part for _, part in said)),
            {places[index]: audio for index, audio in self.sounds.items()},
        )
        return alone, msgspec.structs.replace(self.item, id=f"{self.item.id}_image", content=shown)


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemReader:
    """Checks items against the conversation that they come into and what its model takes.

    `new_id` makes an id that was never used from a prefix such as `item`.
    """

    history: History
    new_id: Callable[[str], str]
    input_format: AudioFormat
    takes_audio: bool
    takes_images: bool

    def read(
        self, given: ItemInput, where: str, *, among: Iterable[HistoryEntry] | None
    ) -> NewItem:
        """Read one item; `where` it stands in its event, `among` which its call must be found.

        Raises:
            DuplexError: `bad_event`, `bad_audio`, `unsupported`, `invalid_image`,
                `input_backpressure`, `invalid_function_call_output`, by the field's name.
        """
        _check_names(given, where)
        new = self._read(given, where, among)
        if given.status is not None:
            item = msgspec.structs.replace(new.item, status=given.status)
            new = NewItem(item, new.sounds)
        if len(_encode(as_told(new.item))) > MAX_ITEM_BYTES:
            message = f"an item has at most {MAX_ITEM_BYTES} bytes of JSON beside its images"
            raise DuplexError("bad_event", message, param=where)
        if self.history.chars + item_size(new.item) > MAX_CONVERSATION_CHARS:
            message = f"a conversation holds at most {MAX_CONVERSATION_CHARS} characters"
            raise DuplexError("input_backpressure", message, param=where)
        return new

    def _read(self, given: ItemInput, where: str, among: Iterable[HistoryEntry] | None) -> NewItem:
        item_id = given.id or self.new_id("item")
        match given.type:
            case "message":
                return self._message(item_id, given, where)
            case "function_call_output":
                return NewItem(_function_output(item_id, given, where, among))
            case "function_call":
                return NewItem(_function_call(item_id, given, where))
            case "item_reference":
                message = "an item_reference stands in response.input alone"
                raise DuplexError("bad_event", message, param=f"{where}.type")

    def _message(self, item_id: str, given: ItemInput, where: str) -> NewItem:
        parts: list[ContentPart] = []
        sounds: dict[int, bytes] = {}
        for index, part in enumerate(given.content):
            at = f"{where}.content[{index}]"
            if part.type not in ROLE_PARTS[given.role]:
                raise DuplexError(
                    "bad_event", f"{given.role} messages hold no {part.type!r}", param=f"{at}.type"
                )
            if part.type == "input_audio":
                sound = self._sound(part, at)
                if sound:
                    sounds[index] = sound
                    part = ContentPart(type="input_audio", transcript=None)
            elif part.type == "input_image":
                self._check_image(part, at)
            elif part.type in TEXT_PARTS and part.text is UNSET:
                raise DuplexError("bad_event", "a text part needs its text", param=f"{at}.text")
            name = PART_NAMES[given.role].get(part.type, part.type)
            parts.append(msgspec.structs.replace(part, type=name, audio=UNSET))
        self._check_images(given, where)
        return NewItem(Item(id=item_id, role=given.role, content=tuple(parts)), sounds)

    def _sound(self, part: ContentPart, at: str) -> bytes:
        """The audio of a part whose words are to be found; none if they are given."""
        if isinstance(part.transcript, str):
            return b""
        if part.audio is UNSET:
            message = "audio in an item needs its bytes or a transcript"
            raise DuplexError("bad_event", message, param=f"{at}.audio")
        if not self.takes_audio:
            message = "this model takes audio by input_audio_buffer.append alone"
            raise DuplexError("unsupported", message, param=f"{at}.audio")
        if not part.audio or len(part.audio) % self.input_format.bytes_per_sample:
            message = "the audio is empty, or ends inside a sample of the input format"
            raise DuplexError("bad_audio", message, param=f"{at}.audio")
        return part.audio

    def _check_image(self, part: ContentPart, at: str) -> None:
        if not self.takes_images:
            raise DuplexError("unsupported", "this model takes no images", param=f"{at}.type")
        url = part.image_url
        if url is UNSET or (len(url) <= MAX_IMAGE_CHARS and not _IMAGE.match(url)):
            message = "an image is a data URL of a JPEG or PNG, in base64"
            raise DuplexError("invalid_image", message, param=f"{at}.image_url")

    def _check_images(self, given: ItemInput, where: str) -> None:
        urls = _images(given.content)
        if not urls:
            return
        for entry in self.history:
            urls += _images(entry.item.content or ())
        if len(urls) > MAX_IMAGES or sum(map(len, urls)) > MAX_IMAGE_CHARS:
            message = f"a conversation has at most {MAX_IMAGES} images of 4 MiB in all"
            raise DuplexError("input_backpressure", message, param=f"{where}.content")


def as_told(item: Item) -> Item:
    """The item as events show it: without the data of its images if it is too long with them."""
    parts = item.content or ()
    if not _images(parts) or len(_encode(item)) <= MAX_ITEM_BYTES:
        return item
    bare = tuple(msgspec.structs.replace(part, image_url=UNSET) for part in parts)
    return msgspec.structs.replace(item, content=bare)


def is_told_done(item: Item) -> bool:
    """Whether a client's item is told as done: a model's words if they are whole (section 7.6)."""
    return item.role not in ("assistant", "system") or item.status == "completed"


def _check_names(given: ItemInput, where: str) -> None:
    for field_name in ("id", "name", "call_id"):
        if len(getattr(given, field_name) or "") > MAX_NAME_CHARS:
            message = f"{field_name} has at most {MAX_NAME_CHARS} characters"
            raise DuplexError("bad_event", message, param=f"{where}.{field_name}")


def _images(parts: Iterable[ContentPart]) -> list[str]:
    return [part.image_url for part in parts if part.image_url is not UNSET]


def _function_output(
    item_id: str, given: ItemInput, where: str, among: Iterable[HistoryEntry] | None
) -> Item:
    code = "invalid_function_call_output"
    if given.output is None:
        raise DuplexError(code, "output must be a string", param=f"{where}.output")
    if not given.call_id:
        raise DuplexError(code, "the output names no call", param=f"{where}.call_id")
    if among is not None:
        kinds = {entry.item.type for entry in among if entry.item.call_id == given.call_id}
        if "function_call" not in kinds:
            message = f"no function call {given.call_id!r} in this conversation"
            raise DuplexError(code, message, param=f"{where}.call_id")
        if "function_call_output" in kinds:
            message = f"function call {given.call_id!r} has its output already"
            raise DuplexError(code, message, param=f"{where}.call_id")
    return Item(id=item_id, type="function_call_output", call_id=given.call_id, output=given.output)


def _function_call(item_id: str, given: ItemInput, where: str) -> Item:
    for name in ("name", "call_id"):
        if not getattr(given, name):
            message = "a function_call needs name and call_id"
            raise DuplexError("bad_event", message, param=f"{where}.{name}")
    return Item(
        id=item_id,
        type="function_call",
        name=given.name or "",
        call_id=given.call_id or "",
        arguments=given.arguments or "{}",
    )
