import os
from pathlib import Path
from typing import Any

import pytest
from tests.stages.support import Listener


@pytest.fixture(params=[False, True], ids=["asyncio", "uvloop"])
def anyio_backend(request: pytest.FixtureRequest) -> tuple[str, dict[str, Any]]:
    return "asyncio", {"use_uvloop": request.param}


@pytest.fixture
def listener() -> Listener:
    return Listener()


@pytest.fixture
def fifo(tmp_path: Path) -> Path:
    path = tmp_path / "go"
    os.mkfifo(path)
    return path
