from __future__ import annotations

import subprocess
import sys

import pytest
from websockets.sync.client import connect

from omniduplex.benchmarks.frames import APPEND_BYTES
from omniduplex.benchmarks.server_process import ServerStartError, serve
from omniduplex.protocol.duplex import AppendAudio, encode_command

BASELINE = [sys.executable, "-m", "omniduplex.benchmarks.baseline"]
PARENT_OF_A_BUSY_CHILD = """
import signal, subprocess, sys
child = "import time\\nwhile time.process_time() < 0.5: pass\\nprint(flush=True)\\ninput()"
with subprocess.Popen(
    [sys.executable, "-c", child], stdin=subprocess.PIPE, stdout=subprocess.PIPE
) as process:
    process.stdout.readline()
    print("baseline ws://127.0.0.1:9", file=sys.stderr, flush=True)
    signal.pause()  # the child ends with our end of its stdin
"""


@pytest.mark.e2e
def test_a_server_is_found_answers_and_is_gone_after_the_block() -> None:
    with serve(BASELINE) as server:
        with connect(server.url, compression=None) as socket:
            socket.send(encode_command(AppendAudio(audio=bytes(APPEND_BYTES))))
            assert "response.output_audio.delta" in str(socket.recv())
        assert server.cpu_seconds() > 0
        pid = server.pid
    alive = subprocess.run(["ps", "-p", str(pid)], capture_output=True, check=False)
    assert alive.returncode != 0


def test_the_time_of_children_counts() -> None:
    with serve([sys.executable, "-c", PARENT_OF_A_BUSY_CHILD]) as server:
        # The kernel tells whole ticks, user and system apart: some of the 0.5 s may be missing.
        assert server.cpu_seconds() >= 0.4


def test_a_server_that_dies_at_the_start_tells_why() -> None:
    code = "import sys; sys.exit('no weights here')"
    with pytest.raises(ServerStartError) as failure, serve([sys.executable, "-c", code]):
        pass
    assert failure.value.__notes__ == ["no weights here"]


def test_an_error_takes_along_what_the_server_logged_since_it_listened() -> None:
    code = """
import os, signal
os.write(2, b"loading\\nbaseline ws://127.0.0.1:9\\na connection failed\\n")
signal.pause()
"""
    with pytest.raises(RuntimeError) as failure, serve([sys.executable, "-c", code]) as server:
        raise RuntimeError(server.url)
    assert str(failure.value) == "ws://127.0.0.1:9"
    assert failure.value.__notes__ == ["a connection failed"]
