"""The guide to a new model shows code; this holds it to the files that the code is from."""

from __future__ import annotations

import re
import textwrap
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs/new_model.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r'```\w+ title="([^"]+)"\n(.*?)\n```', GUIDE, re.DOTALL)


def test_the_guide_shows_code_of_both_halves() -> None:
    files = {Path(path).name for path, _ in BLOCKS}

    assert {"messages.py", "stage.py", "session_state.py", "plugin.py", "echo.yaml"} <= files
    assert GUIDE.count("```python") + GUIDE.count("```yaml") == len(BLOCKS)


@pytest.mark.parametrize(("path", "code"), BLOCKS)
def test_a_code_block_of_the_guide_is_in_the_file_it_names(path: str, code: str) -> None:
    source = (ROOT / path).read_text(encoding="utf-8")
    method = textwrap.indent(code, "    ")

    assert f"\n{code}\n" in f"\n{source}" or f"\n{method}\n" in source
