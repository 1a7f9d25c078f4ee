"""Reports of the benchmarks: text, JSON, and the page."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser

import pytest

from bench.harness.chart import Scale, bar_chart
from bench.harness.figures import Bound, Figure, Machine
from bench.harness.report_html import as_html
from bench.harness.report_text import NOTE, as_json, as_text, number

MACHINE = Machine(date="2026-11-20 12:00", cpus=2, python="3.11.7", cli="2.1.329", load=0.5)
FLOOR = Figure("text", "Warm run", "AnthropicModel", "ms", 9, 10.0, 12.0)
OURS = Figure("text", "Warm run", "ClaudeCodeModel", "ms", 9, 25.0, 31.0, 2.5, Bound("ratio", 3.0))
NASTY = '<script>alert("&")</script>'

VOID = {"meta", "rect", "line"}


class Page(HTMLParser):
    """Sees that all that is opened is closed, and remembers tags, attributes and texts."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.tags: list[str] = []
        self.attributes: dict[str, list[str]] = {}
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            self.attributes.setdefault(name, []).append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.01234, "0.012"), (1.234, "1.23"), (12.34, "12.3"), (123.4, "123"), (12345.6, "12,346"), (-1642.0, "-1,642")],
)
def test_numbers_have_the_digits_that_mean_something(value: float, text: str) -> None:
    assert number(value) == text


def test_the_text_shows_a_ratio_and_a_missed_bound() -> None:
    text = as_text([FLOOR, replace(OURS, bound=Bound("ratio", 2.0))])

    assert text.splitlines()[1] == "Warm run"
    assert re.search(r"ClaudeCodeModel .*25\.0 ms .*x +2\.50 .*at most 2 times the floor +MISSED", text)
    assert "MISSED" not in as_text([FLOOR, OURS])
    assert "MISSED" not in as_text([replace(OURS, bound=Bound("ratio", 2.0))], judged=False)


def test_the_json_has_every_field() -> None:
    found = json.loads(as_json([FLOOR, OURS], MACHINE, ["A note."]))

    assert found["machine"] == {
        "date": "2026-11-20 12:00",
        "cpus": 2,
        "python": "3.11.7",
        "cli": "2.1.329",
        "load": 0.5,
    }
    assert found["notes"] == [NOTE, "A note."]
    assert found["figures"][1] == {
        "suite": "text", "group": "Warm run", "name": "ClaudeCodeModel", "unit": "ms", "n": 9, "median": 25.0,
        "p90": 31.0, "ratio": 2.5, "bound": {"of": "ratio", "limit": 3.0, "least": False}, "kept": True,
    }  # fmt: skip
    assert found["figures"][0]["kept"] is None


def test_the_page_is_well_formed_and_has_a_bar_for_each_figure() -> None:
    page = Page(as_html([FLOOR, OURS], MACHINE, {"text": "Text runs"}))

    assert page.open == []
    assert page.tags.count("svg") == page.tags.count("rect") == 2
    assert page.attributes["aria-label"] == ["AnthropicModel: 10.0 ms", "ClaudeCodeModel: 25.0 ms"]
    for shown in ("Text runs", "Warm run", "2.1.329", "2026-11-20 12:00", NOTE, "All 1 bounds are kept."):
        assert shown in page.text


def test_the_page_needs_no_network_and_no_script() -> None:
    page = as_html([FLOOR, OURS], MACHINE, {})

    assert not re.search(r"https?:|//[a-z]|url\(|@import", page)
    assert not {"script", "link", "img", "iframe"} & set(Page(page).tags)


def test_names_are_text_whatever_they_contain() -> None:
    figure = replace(OURS, suite=NASTY, group=NASTY, name=NASTY, unit=NASTY)
    page = Page(as_html([figure], replace(MACHINE, cli=NASTY), {NASTY: NASTY}, [NASTY]))

    assert "script" not in page.tags
    assert page.open == []
    assert page.text.count(NASTY) >= 5
    assert any(value.startswith(NASTY) for value in page.attributes["aria-label"])


def test_the_page_names_what_was_missed() -> None:
    missed = replace(OURS, bound=Bound("ratio", 2.0))

    assert "1 of 1 bounds are missed: Warm run: ClaudeCodeModel." in Page(as_html([FLOOR, missed], MACHINE, {})).text
    quick = Page(as_html([FLOOR, missed], MACHINE, {}, judged=False))
    assert "missed" not in quick.text
    assert "too few repetitions" in quick.text


def test_bars_are_linear_as_long_as_all_can_be_seen() -> None:
    scale = Scale([10.0, 100.0])

    assert not scale.is_log
    assert (scale.percent(100.0), scale.percent(10.0), scale.percent(0.0)) == (100, 10, 0)


def test_bars_far_apart_are_logarithmic_and_all_are_seen() -> None:
    scale = Scale([1.0, 10.0, 100.0, 0.0, -5.0])

    assert scale.is_log
    assert scale.percent(1.0) > 0
    assert scale.percent(100.0) == 100
    assert scale.percent(10.0) == pytest.approx((scale.percent(1.0) + scale.percent(100.0)) / 2)
    assert scale.percent(-5.0) == 0


def test_a_logarithmic_chart_says_so() -> None:
    assert "Logarithmic scale." in bar_chart([FLOOR, replace(OURS, median=900.0, p90=950.0)])
    assert "Logarithmic scale." not in bar_chart([FLOOR, OURS])
