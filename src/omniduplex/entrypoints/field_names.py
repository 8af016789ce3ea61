"""The names by which refusals tell callers in this process what was wrong."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from omniduplex.protocol.duplex import Dialect, DuplexError, duplex_param


@contextlib.contextmanager
def named_for(dialect: Dialect) -> Iterator[None]:
    """A refusal that comes out of the block names fields as its reader does."""
    try:
        yield
    except DuplexError as refused:
        if not dialect.is_openai:
            refused.param = duplex_param(refused.param)
        raise
