"""Fuzz of longer texts: the body of a chat completion, deploy files, recorded conversations."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from omniduplex.clients.recording import RecordingError, read_conversation
from omniduplex.config.errors import ConfigError
from omniduplex.config.loader import load_pipeline
from omniduplex.entrypoints.openai.chat_request import ChatCompletionRequest, answer_request
from omniduplex.entrypoints.openai.turn_http import RequestRefused, parse_json

KEPT_ANSWERS = {"audio_1": "these were its words"}


def chat_body(data: bytes) -> None:
    """A body is a turn with all of its messages, or it is refused with a code."""
    try:
        request = parse_json(data, ChatCompletionRequest)
        turn = answer_request(request, KEPT_ANSWERS.get)
    except RequestRefused as refused:
        assert refused.code
        assert refused.status == 400
    else:
        assert len(turn.messages) == len(request.messages)


def deploy_file(data: bytes) -> None:
    """A deploy file is a deployment with stages, or the operator is told what is wrong."""
    with _file(data) as path:
        try:
            pipeline = load_pipeline("omniduplex/echo", path)
        except ConfigError as error:
            assert str(path) in str(error)
        else:
            assert pipeline.stages


def recording(data: bytes) -> None:
    """A recorded conversation is one, and can be written again, or a line of it is named."""
    with _file(data) as path:
        try:
            conversation = read_conversation(path)
        except RecordingError as error:
            assert str(path) in str(error)
        else:
            assert msgspec.json.encode(conversation.entries)


@contextmanager
def _file(data: bytes) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile() as file:
        file.write(data)
        file.flush()
        yield Path(file.name)
