from __future__ import annotations

from collections.abc import Callable

import pytest

NoteFigure = Callable[[str, object], None]


@pytest.fixture
def note_figure(request: pytest.FixtureRequest) -> NoteFigure:
    """Have a measured value told at the end of the run."""

    def note(name: str, value: object) -> None:
        request.node.user_properties.append((name, value))

    return note


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    reports = terminalreporter.getreports("passed") + terminalreporter.getreports("failed")
    for report in reports:
        if report.when == "call" and "tests/reliability/" in report.nodeid:
            for name, value in report.user_properties:
                terminalreporter.write_line(f"{report.nodeid}: {name} = {value}")
