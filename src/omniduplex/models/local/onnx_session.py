"""Opens ONNX models the way a shared CPU needs it: few threads, none spinning, the same results."""

from pathlib import Path
from typing import Any


def open_session(path: Path, threads: int) -> Any:
    """Load a model into an onnxruntime `InferenceSession` (untyped upstream)."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.inter_op_num_threads = 1
    # Idle workers would otherwise burn the cores that other stages compute on.
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # On x86 without VNNI int8 sums would overflow: smart-turn took a finished question for an
    # unfinished one, and the reverse (0.18 became 0.94), on a machine where nothing else differed.
    options.add_session_config_entry("session.x64quantprecision", "1")
    return onnxruntime.InferenceSession(
        str(path), sess_options=options, providers=["CPUExecutionProvider"]
    )
