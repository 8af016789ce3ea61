"""A deployment that takes one turn at a time and tells when it is over, and who asks it."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager

from omniduplex.config.pipeline import PipelineConfig, StageConfig
from omniduplex.engine.turns import TurnChunk, TurnRequest
from omniduplex.entrypoints.async_omni import AsyncOmni
from omniduplex.stages.model import StageModel

MODEL = "words"
WAIT_S = 60
HEAD = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"


def one_turn_at_a_time(*models: type[StageModel]) -> PipelineConfig:
    """Stages in a row that pass a text on."""
    return PipelineConfig(
        name=MODEL,
        model=MODEL,
        stages=tuple(
            StageConfig(
                stage_id=index,
                name=model.__name__,
                model_class=f"{model.__module__}:{model.__name__}",
                worker="inline",
            )
            for index, model in enumerate(models)
        ),
        turn_plugin="tests.engine.stage_models:ForwardPlugin",
        session_mode="turn",
        max_turns=1,
    )


class WatchedOmni(AsyncOmni):
    """Tells when a turn has given its first chunk, and when one is over for its reader."""

    def __init__(self, pipeline: PipelineConfig) -> None:
        self.began = threading.Event()
        self.ended = threading.Event()
        super().__init__(pipeline=pipeline)

    async def generate(self, request: TurnRequest) -> AsyncGenerator[TurnChunk, None]:
        try:
            async with aclosing(super().generate(request)) as chunks:
                async for chunk in chunks:
                    self.began.set()
                    yield chunk
        finally:
            self.ended.set()


@contextmanager
def asking(base: str, text: str, *, stream: bool) -> Iterator[socket.socket]:
    """Somebody who asks, and of whom nothing more is seen but that the connection is open."""
    host, _, port = base.removeprefix("http://").partition(":")
    messages = [{"role": "user", "content": text}]
    body = json.dumps({"model": MODEL, "messages": messages, "stream": stream}).encode()
    with socket.create_connection((host, int(port))) as connection:
        connection.sendall(f"{HEAD}Content-Length: {len(body)}\r\n\r\n".encode() + body)
        yield connection
