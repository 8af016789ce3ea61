"""`make fuzz`: every target for some seconds, routes and events by the thousand, as JSON.

The corpus stays in `out/fuzz`, so that the next run goes on from where this one was.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import msgspec
from rich.console import Console
from tests.fuzz import corpus
from tests.fuzz.targets import TARGETS

OUT = Path("out/fuzz")
ROUTES, EVENTS = "routes", "events"
MAX_RSS_MB = 200
MAX_INPUT_BYTES = 4096
MAX_INPUT_S = 5
"""An input that takes longer is a finding."""
# The last lines of libFuzzer's log that are worth reading after a finding.
TOLD_LINES = 40

_COVERAGE = re.compile(r"cov: (\d+) ft: (\d+)")
_STATISTIC = re.compile(r"stat::(\w+):\s+(\d+)")


class Fuzzed(msgspec.Struct, frozen=True, kw_only=True):
    """What became of one target; `coverage` counts edges of our code that were reached."""

    target: str
    executions: int
    executions_per_s: int
    coverage: int
    features: int
    corpus: int
    peak_rss_mb: int
    findings: list[str]


def fuzz(name: str, seconds: int) -> Fuzzed:
    """Fuzz one target in a process of its own."""
    kept = OUT / "corpus" / name
    kept.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(TARGETS[name].seeds()):
        (kept / f"seed-{number:04}").write_bytes(seed)
    dictionary = OUT / "words.dict"
    dictionary.write_text("".join(f"{_quoted(word)}\n" for word in corpus.words()), "ascii")
    findings = OUT / f"finding-{name}-"
    command = (
        *(sys.executable, "-m", "tests.fuzz.guided", name, str(kept)),
        *(f"-max_total_time={seconds}", f"-rss_limit_mb={MAX_RSS_MB}", f"-timeout={MAX_INPUT_S}"),
        *(f"-max_len={MAX_INPUT_BYTES}", f"-dict={dictionary}", f"-artifact_prefix={findings}"),
        "-print_final_stats=1",
    )
    ended = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if ended.returncode:
        Console(stderr=True).print(
            "\n".join(ended.stderr.splitlines()[-TOLD_LINES:]), markup=False, highlight=False
        )
    found = [str(path) for path in OUT.glob(f"{findings.name}*")]
    statistics = {key: int(value) for key, value in _STATISTIC.findall(ended.stderr)}
    coverage, features = max((int(a), int(b)) for a, b in _COVERAGE.findall(ended.stderr))
    return Fuzzed(
        target=name,
        executions=statistics.get("number_of_executed_units", 0),
        executions_per_s=statistics.get("average_exec_per_sec", 0),
        coverage=coverage,
        features=features,
        corpus=sum(1 for _ in kept.iterdir()),
        peak_rss_mb=statistics.get("peak_rss_mb", 0),
        findings=found or ([f"ended with {ended.returncode}"] if ended.returncode else []),
    )


def _quoted(word: str) -> str:
    """A word as libFuzzer's dictionaries write it."""
    hexed = "".join(f"\\x{byte:02x}" for byte in word.encode("utf-8", "surrogatepass"))
    return f'"{hexed}"'


class Report(msgspec.Struct, kw_only=True):
    """What was done, and what became of it."""

    targets: list[Fuzzed] = []
    routes: dict[str, object] = {}
    """By the session mode of the server."""
    events: object = None


def main() -> int:
    """Do the parts that `FUZZ` names, or all of them; 1 when a target has a finding.

    Routes and events that are answered wrongly end it by an exception.
    """
    parts = os.environ.get("FUZZ", "").split() or [*TARGETS, ROUTES, EVENTS]
    console, report = Console(), Report()
    # The kernel counts the peak of this process as its children's: what is large comes last.
    for name in sorted(TARGETS.keys() & parts):
        fuzzed = fuzz(name, _number("FUZZ_SECONDS", 60))
        report.targets.append(fuzzed)
        _show(console, fuzzed)
    if ROUTES in parts:
        _probe_routes(report, _number("FUZZ_EXAMPLES", 1000))
        _show(console, report.routes)
    if EVENTS in parts:
        from tests.fuzz.conversation import hold

        report.events = hold(_number("FUZZ_MESSAGES", 1_000_000))
        _show(console, report.events)
    (OUT.parent / "fuzz.json").write_bytes(msgspec.json.format(msgspec.json.encode(report)))
    return any(fuzzed.findings for fuzzed in report.targets)


def _probe_routes(report: Report, examples: int) -> None:
    from tests.fuzz.http_api import probe
    from tests.fuzz.served import served_echo

    for mode in ("duplex", "turn"):
        with served_echo(mode) as base:
            report.routes[mode] = probe(base, examples)


def _show(console: Console, done: object) -> None:
    console.print_json(msgspec.json.encode(done).decode(), indent=None)


def _number(name: str, usually: int) -> int:
    return int(os.environ.get(name, usually))


if __name__ == "__main__":
    sys.exit(main())
