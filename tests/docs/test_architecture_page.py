"""docs/architecture.md speaks of what is there."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src/omniduplex"
PAGE = (ROOT / "docs/architecture.md").read_text(encoding="utf-8")
# Names in code font or pictures that are not ours.
FOREIGN = {"OpenAI", "WebSocket"}


def test_every_class_that_is_named_exists() -> None:
    code = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    classes = set(re.findall(r"^class (\w+)", code, re.MULTILINE))

    named = set(re.findall(r"\b[A-Z][a-z]+(?:[A-Z][a-z]*)+\b", PAGE)) - FOREIGN

    assert len(named) > 30
    assert named - classes == set()


def test_every_part_of_the_session_exists() -> None:
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \|", PAGE, re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"\w+", row)}
    modules = {path.stem for path in (SOURCE / "engine/duplex/session").glob("*.py")}

    assert "core" in named
    assert named - modules == set()


def test_every_package_of_the_house_is_described() -> None:
    house = PAGE.split("```text\n", 1)[1].split("```", 1)[0]
    described = {line.split()[0] for line in house.splitlines()}

    assert described == {path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists()}
