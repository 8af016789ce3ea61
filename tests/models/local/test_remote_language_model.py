import socket
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import msgspec
import pytest

from omniduplex.models.local.language_model import (
    ChatDelta,
    ChatMessage,
    ChatRequest,
    Finished,
    LanguageModelError,
    TextDelta,
    ToolCall,
)
from omniduplex.models.local.remote_language_model import RemoteModel

HELLO = ChatRequest(messages=(ChatMessage(role="user", content="Hello"),), max_tokens=9)


def text(piece: str) -> str:
    return msgspec.json.encode({"choices": [{"delta": {"content": piece}}]}).decode()


STOP = '{"choices":[{"delta":{},"finish_reason":"stop"}]}'
USAGE = '{"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":2}}'


class Endpoint:
    """A loopback chat completions endpoint that plays a script of events."""

    def __init__(self) -> None:
        self.status = 200
        self.body = b""
        self.events: list[str] = []
        self.content_type = "text/event-stream"
        self.stall = False
        self.requests: list[tuple[str, str | None, dict[str, object]]] = []
        self.peer_closed = threading.Event()
        endpoint = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                raw = self.rfile.read(int(self.headers["Content-Length"]))
                body = msgspec.json.decode(raw, type=dict[str, object])
                endpoint.requests.append((self.path, self.headers.get("Authorization"), body))
                if endpoint.status != 200:
                    self.send_response(endpoint.status)
                    self.send_header("Content-Length", str(len(endpoint.body)))
                    self.end_headers()
                    self.wfile.write(endpoint.body)
                    return
                self.send_response(200)
                self.send_header("Content-Type", endpoint.content_type)
                self.send_header("Connection", "close")
                self.end_headers()
                for event in endpoint.events:
                    self.wfile.write(f"data: {event}\n\n".encode())
                    self.wfile.flush()
                if endpoint.stall and self.connection.recv(1) == b"":
                    endpoint.peer_closed.set()
                self.close_connection = True

            def log_message(self, *args: object) -> None:
                return None

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1"


@pytest.fixture
def endpoint() -> Iterator[Endpoint]:
    endpoint = Endpoint()
    thread = threading.Thread(target=endpoint.server.serve_forever, args=(0.01,))
    thread.start()
    yield endpoint
    endpoint.server.shutdown()
    thread.join()
    endpoint.server.server_close()


@pytest.fixture
def model(endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch) -> Iterator[RemoteModel]:
    monkeypatch.setenv("TEST_KEY", "secret")
    model = RemoteModel(endpoint.url, "tiny", api_key_env="TEST_KEY")
    yield model
    model.close()


def answer(model: RemoteModel, cancelled: Callable[[], bool] = lambda: False) -> list[ChatDelta]:
    return list(model.stream(HELLO, cancelled))


def failure(model: RemoteModel) -> LanguageModelError:
    with pytest.raises(LanguageModelError) as error:
        answer(model)
    return error.value


def test_answer_is_streamed(model: RemoteModel, endpoint: Endpoint) -> None:
    endpoint.events = [text("Hi"), text(" there"), STOP, USAGE, "[DONE]"]

    assert answer(model) == [
        TextDelta("Hi"),
        TextDelta(" there"),
        Finished(finish_reason="stop", prompt_tokens=5, completion_tokens=2),
    ]
    path, authorization, body = endpoint.requests[0]
    assert (path, authorization) == ("/v1/chat/completions", "Bearer secret")
    assert (body["model"], body["max_tokens"], body["stream"]) == ("tiny", 9, True)
    assert body["messages"] == [{"role": "user", "content": "Hello"}]


def test_without_a_key_no_authorization_is_sent(
    endpoint: Endpoint, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TEST_KEY", raising=False)
    endpoint.events = [STOP, "[DONE]"]
    model = RemoteModel(endpoint.url + "/", "tiny", api_key_env="TEST_KEY")
    answer(model)
    model.close()

    assert endpoint.requests[0][:2] == ("/v1/chat/completions", None)


def test_tool_call_is_assembled_from_its_pieces(model: RemoteModel, endpoint: Endpoint) -> None:
    def part(function: dict[str, str], **fields: str) -> str:
        call = {"index": 0, "function": function, **fields}
        return msgspec.json.encode({"choices": [{"delta": {"tool_calls": [call]}}]}).decode()

    endpoint.events = [
        part({"name": "weather", "arguments": '{"ci'}, id="c1"),
        part({"arguments": 'ty":"Paris"}'}),
        '{"choices":[{"delta":{},"finish_reason":"tool_calls"}]}',
        "[DONE]",
    ]
    assert answer(model) == [
        ToolCall(call_id="c1", name="weather", arguments='{"city":"Paris"}'),
        Finished(finish_reason="tool_calls"),
    ]


def test_cancel_closes_the_connection_while_the_server_is_silent(
    model: RemoteModel, endpoint: Endpoint
) -> None:
    endpoint.events = [text("Hi")]
    endpoint.stall = True
    cancelled = threading.Event()
    stream = model.stream(HELLO, cancelled.is_set)

    assert next(stream) == TextDelta("Hi")
    cancelled.set()
    assert list(stream) == [Finished(finish_reason="cancelled")]
    assert endpoint.peer_closed.wait(60)


def test_answer_that_breaks_off_is_an_error(model: RemoteModel, endpoint: Endpoint) -> None:
    endpoint.events = [text("Hi")]
    assert failure(model).code == "stream_ended"


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, "authentication_failed"),
        (404, "model_not_found"),
        (429, "rate_limit_exceeded"),
        (500, "http_500"),
    ],
)
def test_refusals_have_a_code_and_the_servers_words(
    model: RemoteModel, endpoint: Endpoint, status: int, code: str
) -> None:
    endpoint.status = status
    endpoint.body = b'{"error":{"message":"not you","type":"whatever"}}'
    error = failure(model)

    assert error.code == code
    assert error.message == f"HTTP {status}: not you"


def test_refusal_that_is_not_json_is_quoted(model: RemoteModel, endpoint: Endpoint) -> None:
    endpoint.status = 502
    endpoint.body = b"<html>bad gateway</html>"
    assert failure(model).message == "HTTP 502: <html>bad gateway</html>"


def test_nonsense_in_the_stream_is_a_bad_response(model: RemoteModel, endpoint: Endpoint) -> None:
    endpoint.events = ["{not json"]
    assert failure(model).code == "bad_response"
    endpoint.content_type = "text/html"
    assert failure(model).code == "bad_response"


def test_nobody_there_is_a_failed_connection() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        model = RemoteModel(f"http://127.0.0.1:{unused.getsockname()[1]}/v1", "tiny")
        assert failure(model).code == "connection_failed"
        model.close()


def test_silence_longer_than_allowed_is_a_timeout(endpoint: Endpoint) -> None:
    endpoint.stall = True
    model = RemoteModel(endpoint.url, "tiny", read_timeout_s=0.05)
    assert failure(model).code == "timeout"
    model.close()
