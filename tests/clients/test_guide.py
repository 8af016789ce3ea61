"""What the guide to the client says in Python compiles, imports what is there, and measures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from omniduplex.clients.duplex import InlineDuplexClient
from omniduplex.clients.echo import create_duplex_session_config
from omniduplex.entrypoints.duplex_omni import DuplexOmni

GUIDE = Path(__file__).parents[2] / "docs" / "client.md"
BLOCKS = re.findall(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)
MODEL = "omniduplex/echo"


@pytest.mark.parametrize("block", BLOCKS)
def test_a_block_defines_what_it_shows(block: str) -> None:
    # Without its last line: the server and the recording that it would use are the reader's.
    code = block.removesuffix("asyncio.run(main())\n")

    exec(compile(code, str(GUIDE), "exec"), {})


@pytest.mark.anyio
async def test_the_measurement_measures() -> None:
    (block,) = (block for block in BLOCKS if "def measure" in block)
    names: dict[str, Any] = {}
    exec(compile(block, str(GUIDE), "exec"), names)
    config = create_duplex_session_config(auto_response=False)
    question = b"\x00\x20\x00\xe0" * 4000
    with DuplexOmni(MODEL) as omni:
        async with InlineDuplexClient(omni, model=MODEL, config=config) as client:
            summary = await names["measure"](client, question)

    metrics = summary["request_metrics"]
    assert 0 < metrics["ttfp_ms"] <= metrics["audio_generation_ms"]
    assert metrics["audio_duration_ms"] > 0
    assert metrics["measurement_origin"]["ttfp"] == "input_committed"
