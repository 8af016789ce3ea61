import os
from pathlib import Path

import pytest

from omniduplex.models.local.asr import Recognizer
from omniduplex.models.local.assets import AssetMissing, asset_path
from omniduplex.models.local.voice import Voice


def asset(name: str) -> Path:
    """Where an asset is; without it the test is skipped, except in CI, where it must be there."""
    try:
        return asset_path(name)
    except AssetMissing as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def smollm2() -> Path:
    return asset("smollm2")


@pytest.fixture(scope="session")
def smart_turn() -> Path:
    return asset("smart_turn")


@pytest.fixture(scope="session")
def whisper_base() -> Path:
    return asset("whisper_base")


@pytest.fixture(scope="session")
def recognizer(whisper_base: Path) -> Recognizer:
    return Recognizer(whisper_base)


@pytest.fixture(scope="session")
def voice() -> Voice:
    import onnxruntime

    onnxruntime.set_seed(1)  # Piper draws its prosody from the runtime's random numbers
    folder = asset("piper_joe")
    return Voice(folder / "en_US-joe-medium.onnx", folder / "en_US-joe-medium.onnx.json")
