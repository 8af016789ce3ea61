"""On what a figure was measured."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import msgspec

PACKAGES = (
    "omniduplex",
    "msgspec",
    "numpy",
    "uvicorn",
    "uvloop",
    "websockets",
    "onnxruntime",
    "ctranslate2",
    "xllamacpp",
)


class Machine(msgspec.Struct, frozen=True, kw_only=True):
    """A machine, its software, and how busy it was; load averages over 1, 5 and 15 minutes."""

    cpu: str
    cores: int
    system: str
    python: str
    packages: dict[str, str]
    load_before: tuple[float, float, float]
    measured_at: str


def describe_machine() -> Machine:
    """This machine, now."""
    return Machine(
        cpu=_cpu_name(),
        cores=os.cpu_count() or 1,
        system=platform.platform(),
        python=platform.python_version(),
        packages={name: found for name in PACKAGES if (found := _version(name))},
        load_before=os.getloadavg(),
        measured_at=datetime.now(UTC).isoformat(timespec="seconds"),
    )


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:  # an extra that is not installed
        return None


def _cpu_name() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()
