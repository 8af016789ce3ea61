"""One target under libFuzzer, which keeps what reaches new code (`atheris`, extra `fuzz`)."""

from __future__ import annotations

import sys

import atheris

# What is imported in this block is what coverage is measured of.
with atheris.instrument_imports(include=["omniduplex", "wave"]):
    from tests.fuzz.targets import TARGETS

if __name__ == "__main__":
    atheris.Setup([sys.argv[0], *sys.argv[2:]], TARGETS[sys.argv[1]].run)
    atheris.Fuzz()
