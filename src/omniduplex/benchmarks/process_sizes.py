"""How large a process is, as the kernel counts it (Linux)."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec

_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")


class Sizes(msgspec.Struct, frozen=True, kw_only=True):
    """What a process holds, without its children."""

    resident_bytes: int
    open_files: int
    threads: int


def sizes_of(pid: int) -> Sizes:
    """Look at a process (proc(5): `statm`, field 2, in pages)."""
    root = Path(f"/proc/{pid}")
    return Sizes(
        resident_bytes=int((root / "statm").read_text("ascii").split()[1]) * _PAGE_BYTES,
        open_files=len(os.listdir(root / "fd")),
        threads=len(os.listdir(root / "task")),
    )
