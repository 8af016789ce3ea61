"""The repository keeps its own word: what the README names exists, and nothing leaks in."""

import ast
import re
import subprocess
import tomllib
from importlib import import_module
from importlib.metadata import PackageNotFoundError, requires
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from omniduplex.config.default_model import DEFAULT_MODEL
from omniduplex.models.local.assets import load_manifest

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted((ROOT / "src" / "omniduplex").rglob("*.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("**/*.md")])

# A mirror or a folder that only one machine has: a clone elsewhere could not use it.
REGISTRY_HOST = re.compile(r"\b(pypi|pythonhosted|npmjs|debian)\.(org|com|net)\b")
ABSOLUTE_PATH = re.compile(r"(?<![\w.$~}])/(home|root|Users|work|workspace|opt)/\w+")


def make_words() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


def texts(module: Path) -> list[str]:
    """The texts that a module works with; its docstrings are none."""
    tree = ast.parse(module.read_text())
    statements = (node for node in ast.walk(tree) if isinstance(node, ast.Expr))
    told = {id(one.value) for one in statements if isinstance(one.value, ast.Constant)}
    return [
        node.value
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in told
    ]


def tracked_files() -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "-z"], cwd=ROOT, check=True, capture_output=True, text=True
    )
    return [ROOT / name for name in listing.stdout.split("\0") if name]


def code(page: Path) -> str:
    """The page's code: fenced blocks and spans."""
    text = page.read_text()
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    prose = re.sub(r"^```.*?^```", "", text, flags=re.MULTILINE | re.DOTALL)
    return "\n".join([*blocks, *re.findall(r"`([^`]+)`", prose)])


def requirement_closure(root: str, extras: set[str]) -> set[str]:
    """Names of everything that an install of `root` with `extras` brings."""
    todo, seen = [(root, frozenset(extras))], set()
    while todo:
        name, wanted = todo.pop()
        if (name, wanted) in seen:
            continue
        seen.add((name, wanted))
        try:
            lines = requires(name) or []
        except PackageNotFoundError:
            continue
        for requirement in map(Requirement, lines):
            marker = requirement.marker
            if marker is None or any(marker.evaluate({"extra": e}) for e in {"", *wanted}):
                todo.append((canonicalize_name(requirement.name), frozenset(requirement.extras)))
    return {name for name, _ in seen}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_make_word_a_page_names_is_in_the_makefile(page: Path) -> None:
    # In prose and in code comments "make the ..." is English: a command begins its line or quote.
    named = set(re.findall(r"(?:^|[`$&;(]|sudo )\s*make ([a-z]+)\b", code(page), re.MULTILINE))

    assert named <= make_words()


def test_the_readme_names_the_two_commands() -> None:
    assert {"make run", "make test"} <= set(re.findall(r"\bmake [a-z]+", code(ROOT / "README.md")))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_relative_link_leads_to_a_file(page: Path) -> None:
    targets = re.findall(r"\]\(([^)#]+)[^)]*\)", page.read_text())
    local = [target for target in targets if "://" not in target]

    assert [target for target in local if not (page.parent / target).exists()] == []


def test_the_readme_tells_the_licence_of_every_asset() -> None:
    rows = re.findall(
        r"^\| `(\S+)`.*\| ([^|]+) \|$", (ROOT / "README.md").read_text(), re.MULTILINE
    )

    assert dict(rows) == {asset.name: asset.licence for asset in load_manifest().assets}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_name_that_a_snippet_imports_from_us_is_there(page: Path) -> None:
    snippets = re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)
    imports = [
        (node.module, alias.name)
        for snippet in snippets
        for node in ast.walk(ast.parse(snippet))
        if isinstance(node, ast.ImportFrom) and node.module and node.level == 0
        for alias in node.names
        if node.module.split(".")[0] == "omniduplex"
    ]

    for module, name in imports:
        assert hasattr(import_module(module), name), f"{module} has no {name}"


def test_continuous_integration_runs_the_readmes_test_command() -> None:
    lines = (ROOT / ".ci" / "run").read_text().splitlines()
    commands = [line for line in lines if re.search(r"\b(make|pytest)\b", line) and line[0] != "#"]

    assert len(commands) == 1
    assert re.search(r"\bmake (--\S+ )*test\b", commands[0])


@pytest.mark.parametrize("script", [".ci/run", "scripts/install.sh", "scripts/chromium.sh"])
def test_scripts_are_executable_and_stop_at_the_first_failure(script: str) -> None:
    path = ROOT / script

    assert path.stat().st_mode & 0o111
    assert "\nset -euo pipefail\n" in path.read_text()


@pytest.mark.parametrize("pattern", [REGISTRY_HOST, ABSOLUTE_PATH], ids=["registry", "path"])
def test_no_tracked_file_depends_on_one_machine(pattern: re.Pattern[str]) -> None:
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in tracked_files()
        if path.is_file() and path.suffix != ".wav"
        for match in pattern.finditer(path.read_bytes().decode("utf-8", "ignore"))
    ]

    assert found == []


@pytest.mark.parametrize("path", MODULES, ids=lambda path: str(path.relative_to(ROOT / "src")))
def test_every_module_says_what_it_is(path: Path) -> None:
    tree = ast.parse(path.read_text())

    assert not tree.body or ast.get_docstring(tree)


def test_every_dependency_is_pinned() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    lines = [line for group in (project["dependencies"], *extras) for line in group]

    assert [line for line in lines if "==" not in line] == []


def test_no_install_brings_torch() -> None:
    names = requirement_closure("omniduplex", {"local", "dev"})

    assert {"onnxruntime", "numpy", "pydantic"} <= names
    assert "torch" not in names


def test_the_model_that_nobody_need_name_is_named_once() -> None:
    name = re.compile(rf"\b{DEFAULT_MODEL}\b")
    found = [text for module in MODULES for text in texts(module) if name.search(text)]
    assert found == [DEFAULT_MODEL]


def test_who_uses_the_package_gets_its_types() -> None:
    assert (ROOT / "src" / "omniduplex" / "py.typed").is_file()
