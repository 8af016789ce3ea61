import os
from pathlib import Path

import pytest


@pytest.fixture(scope="session")
def silero_path() -> Path:
    """The Silero VAD model among the assets; only CI may not do without it."""
    assets = os.environ.get("OMNIDUPLEX_ASSETS", "~/.cache/omniduplex/assets")
    path = Path(assets).expanduser() / "silero_vad.onnx"
    if not path.is_file():
        missing = f"{path} is missing: run `omniduplex pull`"
        if "CI" in os.environ:
            pytest.fail(missing)
        pytest.skip(missing)
    return path
