from __future__ import annotations

from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from omniduplex.benchmarks.serve.plots import (
    BOTTOM,
    HEIGHT,
    LEFT,
    RIGHT,
    TOP,
    WIDTH,
    axis_end,
    chart,
)

SVG = "{http://www.w3.org/2000/svg}"


def test_a_line_goes_from_corner_to_corner() -> None:
    root = ElementTree.fromstring(chart("t", "x", "y", {"a": [(0.0, 0.0), (8.0, 50.0)]}))
    (line,) = root.iter(f"{SVG}polyline")
    first, last = (tuple(map(float, point.split(","))) for point in line.attrib["points"].split())
    assert first == (LEFT, HEIGHT - BOTTOM)
    assert last == (WIDTH - RIGHT, TOP)


def test_names_are_text_whatever_is_in_them() -> None:
    root = ElementTree.fromstring(chart("a & b", "x < 1", "y", {"<p50>": [(1.0, 1.0)]}))
    texts = {"".join(node.itertext()) for node in root.iter(f"{SVG}text")}
    assert {"a & b", "x < 1", "y", "<p50>"} <= texts


def test_lines_without_points_or_height_make_a_picture() -> None:
    root = ElementTree.fromstring(chart("t", "x", "y", {"none": [], "flat": [(1.0, 0.0)]}))
    assert len(list(root.iter(f"{SVG}polyline"))) == 2
    assert len(list(root.iter(f"{SVG}circle"))) == 1


@pytest.mark.parametrize(
    ("largest", "end"), [(0.0, 1.0), (8.0, 8.0), (100.6, 120.0), (921.0, 1000.0), (0.07, 0.08)]
)
def test_an_axis_ends_at_a_round_number(largest: float, end: float) -> None:
    assert axis_end(largest) == pytest.approx(end)


@given(st.floats(1e-6, 1e9))
def test_an_axis_holds_its_values_and_little_more(largest: float) -> None:
    assert largest <= axis_end(largest) * (1 + 1e-9) <= largest * 1.35
