"""A language model behind any OpenAI-compatible chat completions endpoint."""

import asyncio
import os
import threading
from collections.abc import Callable, Generator
from concurrent.futures import Future

import httpx2
import msgspec

from omniduplex.models.local.chat_wire import Chunk, ChunkReader, ErrorBody, WireError, request_body
from omniduplex.models.local.language_model import (
    ChatDelta,
    ChatRequest,
    LanguageModel,
    LanguageModelError,
)
from omniduplex.models.local.pump import pump

CONNECT_TIMEOUT_S = 10.0
END_OF_STREAM = "[DONE]"
STATUS_CODES = {
    400: "invalid_request",
    401: "authentication_failed",
    403: "authentication_failed",
    404: "model_not_found",
    429: "rate_limit_exceeded",
}


class RemoteModel(LanguageModel):
    """Streams from `base_url`/chat/completions; the key is read from the environment, if set.

    One event loop in a thread of its own keeps connections alive over requests and closes the
    connection of a cancelled one at once. `read_timeout_s` bounds the silence between two events.
    """

    def __init__(
        self,
        base_url: str,
        model: str,
        api_key_env: str = "OPENAI_API_KEY",
        read_timeout_s: float = 60.0,
    ) -> None:
        self._url = base_url.rstrip("/") + "/chat/completions"
        self._model = model
        key = os.environ.get(api_key_env)
        self._client = httpx2.AsyncClient(
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx2.Timeout(read_timeout_s, connect=CONNECT_TIMEOUT_S),
        )
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="remote-language-model", daemon=True
        )
        self._thread.start()

    def stream(
        self, request: ChatRequest, cancelled: Callable[[], bool]
    ) -> Generator[ChatDelta, None, None]:
        """Answer one request; see `LanguageModel.stream`."""
        body = request_body(request) | {"model": self._model}
        reader = ChunkReader()

        def start(emit: Callable[[Chunk], None]) -> Future[None]:
            return asyncio.run_coroutine_threadsafe(self._receive(body, emit), self._loop)

        for chunk in pump(start, cancelled):
            yield from reader.read(chunk)
        if cancelled():
            yield reader.cancelled()
        else:
            yield from reader.finish()

    async def _receive(self, body: dict[str, object], emit: Callable[[Chunk], None]) -> None:
        try:
            async with self._client.stream("POST", self._url, json=body) as response:
                if response.status_code != 200:
                    raise _refusal(response.status_code, await response.aread())
                async for event in httpx2.EventSource(response):
                    if event.data == END_OF_STREAM:
                        return
                    if event.data:
                        emit(msgspec.json.decode(event.data, type=Chunk))
        except httpx2.TimeoutException as error:
            raise LanguageModelError("timeout", f"{self._url} did not answer in time") from error
        except (httpx2.SSEError, msgspec.DecodeError) as error:
            raise LanguageModelError("bad_response", f"{self._url}: {error}") from error
        except httpx2.HTTPError as error:
            message = f"{self._url}: {str(error) or type(error).__name__}"
            raise LanguageModelError("connection_failed", message) from error

    def close(self) -> None:
        """Close the connections and end the thread."""
        asyncio.run_coroutine_threadsafe(self._client.aclose(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


def _refusal(status: int, body: bytes) -> LanguageModelError:
    try:
        error = msgspec.json.decode(body, type=ErrorBody).error
    except msgspec.DecodeError:
        error = WireError(message=body[:200].decode(errors="replace") or "no message")
    code = STATUS_CODES.get(status, f"http_{status}")
    return LanguageModelError(code, f"HTTP {status}: {error.message}")
