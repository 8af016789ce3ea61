"""A chat completions endpoint that says what its script says, and keeps what it was asked."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class ChatEndpoint:
    """Answers at `base_url`: a question by `opening`, all that follow in a conversation by `reply`.

    The opening never ends by itself: once it is told, the line stays open until the caller hangs
    up, as with a model that has more to say.
    """

    opening: str
    reply: str
    base_url: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)

    def prompt_ending(self, words: str) -> list[dict[str, Any]]:
        """The messages of the last request whose last message has these words."""
        prompts: list[list[dict[str, Any]]] = [request["messages"] for request in self.requests]
        return [prompt for prompt in prompts if prompt[-1]["content"] == words][-1]


@contextmanager
def chat_endpoint(opening: str, reply: str) -> Iterator[ChatEndpoint]:
    endpoint = ChatEndpoint(opening, reply)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            endpoint.requests.append(request)
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.end_headers()
            in_conversation = any(m["role"] == "assistant" for m in request["messages"])
            self._tell(endpoint.reply if in_conversation else endpoint.opening)
            if in_conversation:
                self._send({"delta": {}, "finish_reason": "stop"})
                self.wfile.write(b"data: [DONE]\n\n")
            else:
                self.connection.recv(1)

        def _tell(self, text: str) -> None:
            for word in text.split(" "):
                self._send({"delta": {"content": f"{word} "}, "finish_reason": None})

        def _send(self, choice: dict[str, Any]) -> None:
            chunk = {"choices": [{"index": 0, **choice}]}
            self.wfile.write(f"data: {json.dumps(chunk)}\n\n".encode())

        def handle(self) -> None:
            try:
                super().handle()
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the caller hung up

        def log_message(self, format: str, *args: Any) -> None:
            """Say nothing: the test reads `requests`."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        endpoint.base_url = f"http://127.0.0.1:{server.server_port}/v1"
        serving = threading.Thread(target=server.serve_forever, name="chat endpoint")
        serving.start()
        try:
            yield endpoint
        finally:
            server.shutdown()
            serving.join()
