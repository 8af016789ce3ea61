"""Headless Chromium with a WAV for a microphone, and a server that says what a test scripts."""

from __future__ import annotations

import asyncio
import base64
import json
import shutil
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import uvicorn
from numpy.typing import NDArray
from playwright.sync_api import Browser, Page, expect, sync_playwright
from starlette.applications import Starlette
from starlette.datastructures import URL
from starlette.routing import WebSocketRoute
from starlette.websockets import WebSocket, WebSocketDisconnect

from omniduplex.audio.wav import write_wav
from omniduplex.entrypoints.openai.server import bind, server_config
from omniduplex.entrypoints.openai.talk_page import talk_page_routes

# For one step of the page, on a machine that does much more than that.
TIMEOUT_S = 60.0
MICROPHONE_RATE_HZ = 48000
OUTPUT_RATE_HZ = 24000
# Longer than anything takes that has to happen before an answer is over.
LONG_S = 60

# The second half keeps Chromium from calling home.
_FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--use-fake-device-for-media-stream",
    "--use-fake-ui-for-media-stream",
    "--autoplay-policy=no-user-gesture-required",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

Event = dict[str, Any]


def voice(seconds: float, rate_hz: int = MICROPHONE_RATE_HZ) -> NDArray[np.float32]:
    """A hum with many harmonics and four syllables a second: noise suppression lets it pass."""
    time_s = np.arange(int(seconds * rate_hz)) / rate_hz
    hum = sum(np.sin(2 * np.pi * 150 * n * time_s) / n for n in range(1, 13))
    syllables = np.sin(2 * np.pi * 2 * time_s) ** 2
    return (0.3 * hum * (0.3 + 0.7 * syllables)).astype(np.float32)


def silence(seconds: float) -> NDArray[np.float32]:
    return np.zeros(int(seconds * MICROPHONE_RATE_HZ), np.float32)


def write_microphone(path: Path, *parts: NDArray[np.float32]) -> Path:
    """Write what the microphone will hear; it starts over at the end."""
    pcm = np.rint(np.concatenate(parts) * 32767.0).clip(-32768.0, 32767.0).astype("<i2")
    write_wav(path, pcm.tobytes(), MICROPHONE_RATE_HZ)
    return path


@contextmanager
def chromium(microphone: Path) -> Iterator[Browser]:
    """A browser whose every microphone is this WAV."""
    expect.set_options(timeout=TIMEOUT_S * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=shutil.which("chromium"),
            args=[*_FLAGS, f"--use-file-for-fake-audio-capture={microphone}"],
        )
        yield browser
        browser.close()


@contextmanager
def talk_page(
    browser: Browser, base: str, *, without_media: bool = False, **context: Any
) -> Iterator[Page]:
    """The page, not started; leaving asserts that it complained about nothing.

    `without_media` is what a browser does to a page that is neither https nor local.
    """
    complaints: list[str] = []
    opened = browser.new_context(**context)
    page = opened.new_page()
    if without_media:
        page.add_init_script("delete Navigator.prototype.mediaDevices")
    page.set_default_timeout(TIMEOUT_S * 1000)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "console",
        lambda message: (
            complaints.append(message.text) if message.type in ("error", "warning") else None
        ),
    )
    page.on(
        "requestfailed",
        lambda request: complaints.append(request.url),
    )
    page.goto(base)
    yield page
    opened.close()
    assert complaints == []


class ScriptedServer:
    """Serves the page and plays the other end of its WebSocket as the test tells it to."""

    def __init__(self) -> None:
        self._received: list[Event] = []
        self._arrived = threading.Condition()
        self._socket: WebSocket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self.url: URL | None = None
        """Where the last connection came to."""
        self.session: Event = {}
        """What is told of the next session besides its id and its model."""
        self.created: Event = {}
        """What the next `session.created` has besides its session."""
        self.refusal: tuple[Event, ...] | None = None
        """Errors that sessions are refused with; None opens them."""
        self.cuts = False
        """Whether the connection breaks at the next event, without a close frame."""
        self.app = Starlette(
            routes=(
                *talk_page_routes(),
                WebSocketRoute("/v1/realtime", self._serve),
            )
        )

    def received(self, wire_type: str) -> list[Event]:
        """What came of this type so far."""
        with self._arrived:
            return [event for event in self._received if event["type"] == wire_type]

    def wait(
        self, wire_type: str, count: int = 1, *, where: Callable[[Event], bool] = lambda _: True
    ) -> list[Event]:
        """Wait until `count` such events have come in all; returns them."""

        def found() -> list[Event]:
            return [e for e in self._received if e["type"] == wire_type and where(e)]

        with self._arrived:
            came = self._arrived.wait_for(lambda: len(found()) >= count, TIMEOUT_S)
            assert came, f"{len(found())} of {count} {wire_type} came"
            return found()

    def send(self, wire_type: str, **fields: Any) -> None:
        """Send one event to the page."""
        text = json.dumps({"type": wire_type, **fields})
        self._run(lambda socket: socket.send_text(text))

    def hang_up(self, code: int) -> None:
        """Close the socket without a word."""
        self._run(lambda socket: socket.close(code))

    def _run(self, act: Callable[[WebSocket], Coroutine[Any, Any, None]]) -> None:
        assert self._loop is not None
        assert self._socket is not None
        asyncio.run_coroutine_threadsafe(act(self._socket), self._loop).result(TIMEOUT_S)

    def start_response(self, response_id: str) -> None:
        response = {"id": response_id, "status": "in_progress", "output": []}
        self.send("response.created", response_id=response_id, response=response)

    def speak(
        self, response_id: str, text: str, audio: NDArray[np.float32], *, end_ms: int
    ) -> None:
        """Send audio and its words; `end_ms` is the response's length with it."""
        part = {"response_id": response_id, "item_id": f"item_{response_id}", "content_index": 0}
        pcm = np.rint(audio * 32767).astype("<i2").tobytes()
        self.send(
            "response.output_audio.delta",
            **part,
            delta=base64.b64encode(pcm).decode(),
            format="pcm16",
            sample_rate_hz=OUTPUT_RATE_HZ,
            metadata={
                "audio_duration_ms": end_ms,
                "audio_text_marks": [],
            },
        )
        self.send("response.output_audio_transcript.delta", **part, delta=text)

    def answer(self, response_id: str, seconds: int) -> None:
        """Send an answer of so many seconds at once, one word for each, and leave it open."""
        self.start_response(response_id)
        sound = voice(1.0, OUTPUT_RATE_HZ)
        for second in range(seconds):
            self.speak(response_id, f" word{second}", sound, end_ms=1000 * (second + 1))

    def end_response(self, response_id: str, status: str = "completed") -> None:
        response = {"id": response_id, "status": status, "output": []}
        self.send("response.done", response_id=response_id, response=response)

    def user_says(self, item_id: str, text: str) -> None:
        """A whole turn of the user: speech, commit and words."""
        self.send("input_audio_buffer.speech_started", item_id=item_id, audio_start_ms=0)
        self.send("input_audio_buffer.speech_stopped", item_id=item_id, audio_end_ms=500)
        item = {"id": item_id, "type": "message", "role": "user", "content": []}
        self.send("conversation.item.added", item=item)
        self.send("input_audio_buffer.committed", item_id=item_id)
        self.send(
            "conversation.item.input_audio_transcription.completed",
            item_id=item_id,
            content_index=0,
            transcript=text,
        )

    async def _serve(self, socket: WebSocket) -> None:
        await socket.accept()
        self._socket, self._loop, self.url = socket, asyncio.get_running_loop(), socket.url
        try:
            while await self._answer(socket, json.loads(await socket.receive_text())):
                pass
        except WebSocketDisconnect:
            self._socket = None

    async def _answer(self, socket: WebSocket, event: Event) -> bool:
        """Take one event; false when it was the last one."""
        with self._arrived:
            self._received.append(event)
            self._arrived.notify_all()
        if self.cuts:
            self.cuts = False
            return False
        if event["type"] == "session.update" and self.refusal is not None:
            for error in self.refusal:
                await socket.send_json({"type": "error", "error": error})
            await socket.close(1008)
            return False
        if event["type"] == "session.update":
            session = {"id": "duplex-1", "model": "scripted/model", **self.session}
            created = {"type": "session.created", "session": session, **self.created}
            await socket.send_json(created)
        if event["type"] == "session.close":
            await socket.send_json({"type": "session.closed", "reason": "client_close"})
            await socket.close(1000, "client_close")
        return bool(event["type"] != "session.close")


@contextmanager
def scripted_server() -> Iterator[tuple[ScriptedServer, str]]:
    """A scripted server and its URL."""
    scripted = ScriptedServer()
    with serving(scripted.app) as base:
        yield scripted, base


@contextmanager
def serving(app: Starlette) -> Iterator[str]:
    """Serve an app on a free loopback port; gives its URL."""
    server = uvicorn.Server(server_config(app))
    with bind("127.0.0.1", 0) as listener:
        # Connections that come before the server does wait for it.
        listener.listen()
        thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
        thread.start()
        try:
            yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        finally:
            server.should_exit = True
            thread.join(TIMEOUT_S)
    assert not thread.is_alive()
