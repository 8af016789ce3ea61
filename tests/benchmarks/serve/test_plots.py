from __future__ import annotations

from xml.etree import ElementTree

from omniduplex.benchmarks.serve.plots import BOTTOM, HEIGHT, LEFT, RIGHT, TOP, WIDTH, chart

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
