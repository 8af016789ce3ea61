"""A chat completions endpoint whose model calls its tool once, then tells what the tool said.

Without a tool it has a story to tell, and is brief afterwards.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

# A dozen seconds: whoever talks over it has the time to, on a slow machine too.
STORY = (
    "Once upon a time there was a small village near the sea. The people there went fishing every "
    "morning before the sun came up. One day an old man found a golden box on the beach and took "
    "it home with him. Nobody in the village knew where the box had come from."
)


def _choice(request: dict[str, Any]) -> dict[str, Any]:
    """What the model says in one go."""
    last = request["messages"][-1]
    if last["role"] == "tool":
        return {"delta": {"content": f"They say {last['content']}."}, "finish_reason": "stop"}
    if request.get("tools"):
        name = request["tools"][0]["function"]["name"]
        function = {"name": name, "arguments": '{"text":"Paris"}'}
        call = {"index": 0, "id": "call_1", "type": "function", "function": function}
        return {"delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}
    has_spoken = any(message["role"] == "assistant" for message in request["messages"])
    said = "I have told it." if has_spoken else STORY
    return {"delta": {"content": said}, "finish_reason": "stop"}


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        chunk = json.dumps({"choices": [{"index": 0, **_choice(request)}]})
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"data: {chunk}\n\ndata: [DONE]\n\n".encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""


@contextmanager
def tool_endpoint() -> Iterator[str]:
    """Serve it on a free loopback port; gives its base URL."""
    with ThreadingHTTPServer(("127.0.0.1", 0), _Handler) as server:
        serving = threading.Thread(target=server.serve_forever, name="tool endpoint")
        serving.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}/v1"
        finally:
            server.shutdown()
            serving.join()
