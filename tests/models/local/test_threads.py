"""Threads of heavy work give way."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from omniduplex.models.local.stages.threads import nice_pool


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a niceness per thread")
def test_heavy_threads_and_the_threads_they_start_give_way() -> None:
    def niceness() -> int:
        return os.getpriority(os.PRIO_PROCESS, threading.get_native_id())

    def niceness_of_a_child() -> int:
        with ThreadPoolExecutor(1) as child:
            return child.submit(niceness).result()

    mine = niceness()
    with nice_pool(1, 3, "heavy") as pool:
        assert pool.submit(niceness).result() == min(mine + 3, 19)
        assert pool.submit(niceness_of_a_child).result() == min(mine + 3, 19)
    assert niceness() == mine
