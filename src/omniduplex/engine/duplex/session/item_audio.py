"""Audio that a client puts into an item: converted, then recognised beside the stream."""

from __future__ import annotations

from omniduplex.audio.stream import InputDecoder
from omniduplex.engine.duplex.session.commit_fanout import unheard
from omniduplex.engine.duplex.session.core import INLINE_BYTES, SessionCore
from omniduplex.engine.duplex.session.effects import Prepare
from omniduplex.engine.duplex.session.inputs import AudioReady


class ItemAudio:
    """The audio of items on its way to its words; large pieces are converted off the loop."""

    def __init__(self, core: SessionCore) -> None:
        self._core = core
        self._converting: dict[int, tuple[str, int, int]] = {}

    def recognise(self, item_id: str, content_index: int, audio: bytes) -> None:
        """Find the words of a part; `audio` is in the session's input format."""
        core = self._core
        wanted = core.config.input_format
        decoder = InputDecoder(wanted.encoding, wanted.sample_rate_hz, core.plugin.input_rate_hz)

        def convert() -> bytes:
            return decoder.process(audio) + decoder.flush()

        core.history.await_transcript(item_id, content_index)
        if len(audio) > INLINE_BYTES:
            ticket = core.new_ticket()
            self._converting[ticket] = (item_id, content_index, len(audio))
            core.pending.held_bytes += len(audio)
            core.effects.append(Prepare(ticket, convert))
            return
        try:
            pcm = convert()
        except ValueError as error:
            self._fail(item_id, content_index, str(error))
        else:
            self._ask(item_id, content_index, pcm)

    def converted(self, ready: AudioReady) -> str | None:
        """Take a conversion's result; the item whose words will never be known because of it."""
        if ready.ticket not in self._converting:
            return None
        item_id, content_index, size = self._converting.pop(ready.ticket)
        self._core.pending.held_bytes -= size
        if not self._core.history.awaits(item_id, content_index):
            return None
        if ready.error is None:
            self._ask(item_id, content_index, ready.pcm)
            return None
        self._fail(item_id, content_index, ready.error)
        return item_id

    def _ask(self, item_id: str, content_index: int, pcm: bytes) -> None:
        core = self._core
        core.run(core.model.plan_recognise(core.fence, item_id, content_index, pcm))

    def _fail(self, item_id: str, content_index: int, message: str) -> None:
        self._core.history.transcript_failed(item_id, content_index)
        unheard(self._core, item_id, message, code="bad_audio", content_index=content_index)
