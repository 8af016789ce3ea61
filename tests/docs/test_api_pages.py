"""The API pages show what the public doors have, as Python has it, and lead nowhere in vain."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest
from scripts.api_pages import API_PAGES, api_pages
from scripts.generate_docs import DOCS

from omniduplex.clients import duplex
from omniduplex.engine.turns import TurnRequest

PAGES = {name: render() for name, render in api_pages().items()}


def anchors(page: str) -> set[str]:
    """The anchors of a page's headings, as they are made for Markdown."""
    headings = re.findall(r"^#+ (.+)$", page, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_all_that_the_client_library_exports_is_there() -> None:
    headings = re.findall(r"^### `(\w+)`$", PAGES["api/clients.md"], re.MULTILINE)
    assert set(duplex.__all__) <= set(headings)


def test_all_that_a_turn_request_can_be_is_there() -> None:
    headings = re.findall(r"^### `(\w+)`$", PAGES["api/omni.md"], re.MULTILINE)
    assert {"Omni", "AsyncOmni", *(kind.__name__ for kind in TurnRequest.__args__)} <= set(headings)


@pytest.mark.parametrize("name", API_PAGES)
def test_signatures_are_python(name: str) -> None:
    blocks = re.findall(r"```py\n(.*?)\n```", PAGES[f"api/{name}"], re.DOTALL)
    functions = [block for block in blocks if re.search(r"^(async )?def ", block, re.MULTILINE)]
    assert functions
    for block in functions:
        ast.parse(f"{block}: ...")


def test_a_method_is_shown_with_its_types_its_defaults_and_what_it_raises() -> None:
    page = PAGES["api/duplex_omni.md"]
    shown = """#### `resume_session`

```py
async def resume_session(
    session_id: str,
    *,
    expected_lease_generation: int,
    control_id: str,
) -> int
```
"""
    assert shown in page
    assert "Raises:\n\n- `DuplexError`: `session_resume_conflict` when the lease is not" in page


def test_what_is_not_public_is_not_there() -> None:
    for page in PAGES.values():
        assert not re.search(r"^#+ `_", page, re.MULTILINE)
        assert not re.search(r"^\| `_", page, re.MULTILINE)


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_to_a_page_and_a_heading_of_it(name: str) -> None:
    folder = (DOCS / name).parent
    for link in re.findall(r"\]\(([^)]+)\)", PAGES[name]):
        target, _, anchor = link.partition("#")
        path = (folder / target).resolve()
        key = path.relative_to(DOCS).as_posix()
        page = PAGES[key] if key in PAGES else Path(path).read_text("utf-8")
        assert not anchor or anchor in anchors(page), link
