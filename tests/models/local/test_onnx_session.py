"""ONNX models give the same results on every CPU, and no thread of theirs waits by spinning."""

from __future__ import annotations

from pathlib import Path

import pytest

from omniduplex.models.local.onnx_session import open_session

pytestmark = pytest.mark.local


def test_int8_models_are_exact_without_vnni_and_idle_threads_sleep(smart_turn: Path) -> None:
    options = open_session(smart_turn, 1).get_session_options()

    # What they do shows on a machine without VNNI, or on one that is full: the runtime's own names.
    assert options.get_session_config_entry("session.x64quantprecision") == "1"
    assert options.get_session_config_entry("session.intra_op.allow_spinning") == "0"
