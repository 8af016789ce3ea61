"""Threads that give way: heavy work runs nicer than the thread that listens."""

import os
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

MAX_NICENESS = 19


def nice_pool(workers: int, niceness: int, name: str) -> ThreadPoolExecutor:
    """Make a pool whose threads, and all threads they start, add `niceness` to the caller's."""
    return ThreadPoolExecutor(
        workers, thread_name_prefix=name, initializer=raise_niceness, initargs=(niceness,)
    )


def raise_niceness(by: int) -> None:
    """Raise the niceness of the calling thread; only Linux has one per thread."""
    if sys.platform == "linux" and by > 0:
        thread = threading.get_native_id()
        now = os.getpriority(os.PRIO_PROCESS, thread)
        os.setpriority(os.PRIO_PROCESS, thread, min(now + by, MAX_NICENESS))
