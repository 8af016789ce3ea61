"""The echo model, served for sessions or for turns."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import cast

import msgspec
from tests.entrypoints.running import running

from omniduplex.config.loader import load_pipeline
from omniduplex.config.pipeline import SessionMode
from omniduplex.entrypoints.cli.serve import build_app, load_omni


@contextmanager
def served_echo(mode: str) -> Iterator[str]:
    """Serve echo in this session mode during the block; gives the base URL."""
    pipeline = msgspec.structs.replace(
        load_pipeline("omniduplex/echo", None), session_mode=cast("SessionMode", mode)
    )
    with load_omni(pipeline) as omni, running(build_app(omni)) as server:
        yield server.base
