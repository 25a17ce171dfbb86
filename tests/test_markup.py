"""Views of notebooks: whole HTML in one style that reaches no further, readable without it."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import markup
from tracer.errors import ShapeError

SINE = tracer.jit(lambda x: tnp.sum(tnp.sin(x @ x)))
SINE(np.ones((4, 4)))
LOWERED = SINE.lower(np.ones((4, 4)))


def an_error() -> ShapeError:
    with pytest.raises(ShapeError) as error:
        tnp.ones(3) + tnp.ones(4)
    return error.value


VIEWS: dict[str, Any] = {
    "cost": LOWERED.cost(), "memory": LOWERED.memory(), "stages": LOWERED.stages(), "explain": SINE.explain(),
    "llvm": LOWERED.llvm(), "device": tracer.devices()[0],
    "simulated": tracer.devices("cuda-sim")[0], "error": an_error(), "matrix": tnp.ones((4, 4)),
    "sequence": tnp.sin(tnp.arange(500.0)), "holes": tnp.asarray([1.0, np.nan, np.inf, 0.0] * 4),
    "narrow": tnp.ones(20, "bfloat16"), "huge": tnp.asarray([1e308, -1e308] * 8), "nothing": tnp.full(9, np.nan),
}  # fmt: skip


class Page(HTMLParser):
    """Text outside of styles; fails on elements that are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.text = ""
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


@each("name", VIEWS)
def test_a_view_is_one_element_whose_style_reaches_no_further(name: str) -> None:
    html = VIEWS[name]._repr_html_()
    Page(html)
    assert html.startswith('<div class="tracer-view">')
    assert not re.search(r"<script|<link|<img|https?:|@import|url\(", html)
    style = html.partition("<style>")[2].partition("</style>")[0]
    for selectors in re.findall(r"([^{}]+)\{", style):
        assert all(each.strip().startswith(".tracer-view") for each in selectors.split(","))


def text_of(name: str) -> str:
    return Page(VIEWS[name]._repr_html_()).text


def test_the_numbers_of_the_text_are_in_the_tables() -> None:
    for name in ("cost", "memory"):
        numbers = set(re.findall(r"[\d,]{2,} B", str(VIEWS[name])))
        assert numbers
        assert all(number.strip() in text_of(name) for number in numbers)


def test_an_error_shows_its_message() -> None:
    assert "".join(str(VIEWS["error"]).split()) in "".join(text_of("error").split())
    assert "ShapeError" in text_of("error")


def test_arrays_of_floats_show_their_range_and_a_picture() -> None:
    assert "f64[4,4]" in text_of("matrix")
    assert "<rect" in VIEWS["matrix"]._repr_html_()
    assert "<polyline" in VIEWS["sequence"]._repr_html_()
    text = text_of("holes")
    assert "4 (25%)" in text
    assert {"NaN", "infinite", "zeros"} <= set(re.findall("NaN|infinite|zeros", text))
    assert "1e+308" in text_of("huge")
    assert "inf" not in text_of("huge").partition("elements")[0]


@pytest.mark.parametrize("array", [tnp.asarray(1.0), tnp.ones(3), tnp.arange(100), tnp.ones(20, bool)], ids=str)
def test_few_elements_and_other_dtypes_stay_text(array: Any) -> None:
    assert array._repr_html_() is None


def test_traced_and_donated_arrays_stay_text() -> None:
    seen = []

    def look(x: Any) -> Any:
        seen.append(x._repr_html_())
        return x

    tracer.jit(look)(tnp.ones(20))
    assert seen == [None]


def test_text_is_escaped() -> None:
    html = markup.view("<b>", markup.table(["<i>"], [["a & b"]]), markup.code("x < y"), note="<u>")
    assert Page(html).text == "<b> <u><i>a & bx < y"


def test_large_arrays_are_sampled() -> None:
    text = Page(tnp.ones(3 << 20, "float32")._repr_html_()).text  # type: ignore[operator]
    assert "every 3th element" in text
