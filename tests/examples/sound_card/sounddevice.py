"""A sound card of two threads, as much of the package sounddevice as the example uses.

Its microphone says the samples in the file `SPOKEN`, then is silent; what its loudspeaker is given
goes to the file `SOUNDED`.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple


class Times(NamedTuple):
    outputBufferDacTime: float  # noqa: N815 - PortAudio's name


class _Stream:
    """Calls back once for every block's length, in a thread of its own."""

    def __init__(
        self,
        *,
        samplerate: int,
        channels: int,
        dtype: str,
        callback: Callable[[Any, int, Times, None], None],
        blocksize: int = 480,
    ) -> None:
        assert (channels, dtype) == (1, "int16")
        self._callback = callback
        self._samples = blocksize
        self._block_s = blocksize / samplerate
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    @property
    def time(self) -> float:
        return time.monotonic()

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._closed.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._closed.wait(self._block_s):
            self._pass_block(Times(self.time))

    def _pass_block(self, times: Times) -> None:
        raise NotImplementedError


class RawInputStream(_Stream):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._left = Path(os.environ["SPOKEN"]).read_bytes()

    def _pass_block(self, times: Times) -> None:
        size = 2 * self._samples
        block, self._left = self._left[:size], self._left[size:]
        self._callback(block.ljust(size, b"\0"), self._samples, times, None)


class RawOutputStream(_Stream):
    def _pass_block(self, times: Times) -> None:
        block = bytearray(2 * self._samples)
        self._callback(block, self._samples, times, None)
        with Path(os.environ["SOUNDED"]).open("ab") as file:
            file.write(block)
