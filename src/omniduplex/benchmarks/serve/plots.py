"""Line charts as SVG: a figure against the load, one line for each of its kinds."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from omniduplex.benchmarks.serve.player import PREROLLS_MS
from omniduplex.benchmarks.serve.report import LevelReport, ServeReport

WIDTH, HEIGHT = 640, 360
LEFT, RIGHT, TOP, BOTTOM = 64, 150, 40, 48
INK, QUIET, PAPER = "#1c2430", "#c3cad4", "#ffffff"
COLOURS = ("#2f6fde", "#d9822b", "#2e9e6b", "#a5418c", "#6b7280", "#b8860b")
TICKS = 4
# What an axis may end at, times a power of ten: a quarter of it is a short number, too.
AXIS_ENDS = (1.0, 1.2, 1.6, 2.0, 2.4, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)
# More points than these are a curve, not measurements to be told apart.
MARKED_POINTS = 20

Line = Sequence[tuple[float, float]]


def pictures(report: ServeReport) -> dict[str, str]:
    """All charts of a report, by the name of their file without its ending."""
    levels = report.levels
    open_loop = any(one.level.rate_per_s is not None for one in levels)
    load = "sessions per second" if open_loop else "sessions at a time"
    title = f"{report.model}, {report.backend}"
    return {
        "first_audio": chart(f"{title}: time to first audio", load, "ms", _first_audio(levels)),
        "underruns": chart(f"{title}: underruns", load, "per minute of speech", _underruns(levels)),
        "distribution": chart(
            f"{title}: time to first audio", "ms", "share of answers", _distribution(levels)
        ),
    }


def chart(title: str, x_name: str, y_name: str, lines: Mapping[str, Line]) -> str:
    """One picture; both axes begin at zero."""
    points = [point for line in lines.values() for point in line]
    x_max = axis_end(max((x for x, _ in points), default=0.0))
    y_max = axis_end(max((y for _, y in points), default=0.0))
    size = f'width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="sans-serif" font-size="11">',
        f'<rect width="100%" height="100%" fill="{PAPER}"/>',
        _text(8, 20, title, 'font-size="14" font-weight="bold"'),
        _text(LEFT, TOP - 6, y_name),
        _text(WIDTH - RIGHT, HEIGHT - 10, x_name, 'text-anchor="end"'),
        *_grid(x_max, y_max),
    ]
    for index, (name, line) in enumerate(lines.items()):
        parts += _line(name, line, x_max, y_max, index)
    return "\n".join([*parts, "</svg>"]) + "\n"


def axis_end(largest: float) -> float:
    """A round number at or above the largest value; 1 when there is nothing to show."""
    if largest <= 0:
        return 1.0
    power: float = 10.0 ** math.floor(math.log10(largest))
    return next((end * power for end in AXIS_ENDS if end * power >= largest), 10.0 * power)


def _first_audio(levels: Iterable[LevelReport]) -> dict[str, Line]:
    known = [(one.level.size, one.ttfp_ms) for one in levels if one.ttfp_ms]
    return {
        "p50": [(size, ttfp.p50) for size, ttfp in known],
        "p95": [(size, ttfp.p95) for size, ttfp in known],
    }


def _underruns(levels: Sequence[LevelReport]) -> dict[str, Line]:
    return {
        f"{preroll_ms} ms pre-roll": [
            (one.level.size, one.continuity[index].underruns_per_min)
            for one in levels
            if one.continuity
        ]
        for index, preroll_ms in enumerate(PREROLLS_MS)
    }


def _distribution(levels: Iterable[LevelReport]) -> dict[str, Line]:
    found: dict[str, Line] = {}
    for one in levels:
        ordered = sorted(a.ttfp_ms for a in one.answers if a.ttfp_ms is not None)
        found[one.level.name] = [
            (ms, count / len(ordered)) for count, ms in enumerate(ordered, start=1)
        ]
    return found


def _x(value: float, largest: float) -> float:
    return round(LEFT + value / largest * (WIDTH - LEFT - RIGHT), 1)


def _y(value: float, largest: float) -> float:
    return round(HEIGHT - BOTTOM - value / largest * (HEIGHT - TOP - BOTTOM), 1)


def _grid(x_max: float, y_max: float) -> list[str]:
    parts = []
    for tick in range(TICKS + 1):
        x_value, y_value = x_max * tick / TICKS, y_max * tick / TICKS
        x, y = _x(x_value, x_max), _y(y_value, y_max)
        parts += [
            f'<line x1="{LEFT}" y1="{y}" x2="{WIDTH - RIGHT}" y2="{y}" stroke="{QUIET}"/>',
            _text(LEFT - 6, y + 4, f"{y_value:.4g}", 'text-anchor="end"'),
            _text(x, HEIGHT - BOTTOM + 16, f"{x_value:.4g}", 'text-anchor="middle"'),
        ]
    return parts


def _line(name: str, line: Line, x_max: float, y_max: float, index: int) -> list[str]:
    colour = COLOURS[index % len(COLOURS)]
    points = [(_x(x, x_max), _y(y, y_max)) for x, y in line]
    marked = points if len(points) <= MARKED_POINTS else []
    path = " ".join(f"{x},{y}" for x, y in points)
    label_y = TOP + 14 + 18 * index
    box = f'x="{WIDTH - RIGHT + 12}" y="{label_y - 9}" width="10" height="10"'
    return [
        f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="1.6"/>',
        *(f'<circle cx="{x}" cy="{y}" r="2.4" fill="{colour}"/>' for x, y in marked),
        f'<rect {box} fill="{colour}"/>',
        _text(WIDTH - RIGHT + 28, label_y, name),
    ]


def _text(x: float, y: float, text: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}" fill="{INK}" {more}>{escape(text)}</text>'
