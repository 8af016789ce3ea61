"""What one user of a stage has given it that its worker did not take yet."""

from __future__ import annotations

import sys


class Backlog:
    """The inputs of one session, or of all turn requests, that wait for workers.

    Everything here happens on the engine loop.
    """

    __slots__ = ("inputs", "most", "pcm_bytes")

    def __init__(self) -> None:
        self.inputs = 0
        self.pcm_bytes = 0
        self.most = sys.maxsize
        """How many may wait, as the strictest of the stages has it that were given some."""

    def given(self, pcm_bytes: int, most: int) -> None:
        """An input waits from now on, for a stage that lets so many wait."""
        self.inputs += 1
        self.pcm_bytes += pcm_bytes
        if most < self.most:
            self.most = most

    def taken(self, pcm_bytes: int) -> None:
        """An input waits no more: a worker took it, or is gone."""
        self.inputs -= 1
        self.pcm_bytes -= pcm_bytes
