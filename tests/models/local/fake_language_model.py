"""A language model that says what the test gave it."""

from collections.abc import Callable, Iterator, Sequence

from omniduplex.models.local.language_model import ChatDelta, ChatRequest, Finished, LanguageModel

DONE = Finished(finish_reason="stop", prompt_tokens=7, completion_tokens=5)


class FakeLanguageModel(LanguageModel):
    def __init__(self, *deltas: ChatDelta | Exception) -> None:
        self.deltas: Sequence[ChatDelta | Exception] = deltas
        self.requests: list[ChatRequest] = []
        self.read: list[ChatRequest] = []
        self.closed = False
        self.while_reading: Callable[[Callable[[], bool]], None] = lambda _: None
        self.before_delta: Callable[[int], None] = lambda _: None

    def stream(self, request: ChatRequest, cancelled: Callable[[], bool]) -> Iterator[ChatDelta]:
        self.requests.append(request)
        for index, delta in enumerate(self.deltas):
            self.before_delta(index)
            if isinstance(delta, Exception):
                raise delta
            if cancelled():
                yield Finished(finish_reason="cancelled")
                return
            yield delta

    def read_ahead(self, request: ChatRequest, cancelled: Callable[[], bool]) -> None:
        self.read.append(request)
        self.while_reading(cancelled)

    def close(self) -> None:
        self.closed = True
