"""The notebook's view: whole HTML, everything escaped, every use linked to its definition."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from typing import Any

from tests.ir import toys
from tests.ir.toys import Writer, f32
from tracer.ir.html import MARKED_VARIABLES, program_html
from tracer.ir.program import Program
from tracer.ir.text import program_text


class Page(HTMLParser):
    """Collects elements and text; fails on elements that are not closed in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.lines: list[str] = []
        self.feed(html)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text.append(data)

    def having(self, attribute: str) -> list[str]:
        return [str(attrs[attribute]) for _, attrs in self.elements if attribute in attrs]


def page(program: Program) -> Page:
    return Page(program_html(program))


def test_the_html_holds_the_text_of_the_printed_program() -> None:
    for program in (toys.looping(), toys.branching(), toys.sorting(), Writer().program()):
        text = "".join(page(program).text)
        assert re.sub(r"\s", "", text) == re.sub(r"\s", "", program_text(program))


class Untrusted(Page):
    """What is left where styles and attributes are dropped: text, a line for each `<div>`."""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        super().handle_starttag(tag, attrs)
        if tag == "div" and "pre" in self.open:
            self.text.append("\n")

    def handle_data(self, data: str) -> None:
        assert "pre" in self.open or "style" in self.open, "text without its font and white space"
        super().handle_data(data)


def test_without_styles_the_program_reads_as_printed() -> None:
    for program in (toys.looping(), toys.branching(), toys.sorting()):
        shown = "".join(Untrusted(program_html(program)).text).strip("\n")
        assert [line.split(" # ")[0].rstrip() for line in shown.split("\n")] == [
            line.split(" # ")[0].rstrip() for line in program_text(program).split("\n")
        ]
        assert shown.count(" # ") == program_text(program).count(" # ")


def test_it_is_one_div_with_its_own_style_and_nothing_from_elsewhere() -> None:
    html = program_html(toys.looping())
    tags = [tag for tag, _ in Page(html).elements]
    assert html.startswith('<div class="tracer-program"')
    assert html.endswith("</div>")
    assert tags.count("style") == 1
    assert not {"script", "link", "img", "iframe"} & set(tags)
    assert "http" not in html
    assert "@import" not in html
    assert "url(" not in html


def test_every_use_is_linked_to_one_definition() -> None:
    found = page(toys.branching())
    ids = found.having("id")
    assert len(set(ids)) == len(ids)
    links = found.having("href")
    assert len(links) == 8
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_hovering_shows_the_type_of_a_variable() -> None:
    titles = page(toys.sorting()).having("title")
    inputs, results = ["%a: f32[3]", "%b: i64[3]"], ["%c: f32[3]", "%d: i64[3]"]
    assert titles == [*inputs, *results, *inputs, *results]


def test_two_renderings_of_a_program_differ_in_their_anchors_alone() -> None:
    first, second = program_html(toys.looping()), program_html(toys.looping())
    (a, b) = (str(Page(html).having("id")[0]) for html in (first, second))
    assert a != b
    assert a.rpartition("-")[0] == b.rpartition("-")[0]
    assert first.replace(a, b) == second


def test_every_rule_of_the_style_is_confined_to_the_rendering() -> None:
    html = program_html(toys.looping())
    identifier = Page(html).having("id")[0]
    style = html.partition("<style>")[2].partition("</style>")[0]
    assert style.count("{") == style.count("}")
    for selectors in re.findall(r"([^{}]+)\{", style):
        for selector in selectors.split(","):
            assert selector.strip().startswith(f"#{identifier}")


def test_everything_is_escaped() -> None:
    w = Writer(f32(3), file='<i>alert("x&y").py')
    y = w(toys.odd_p, *w.inputs, text='<img src="x">&amp;', rule=lambda x: x)
    found = page(w.program(y, name="<b>"))
    assert {"b", "i", "img"}.isdisjoint(tag for tag, _ in found.elements)
    text = "".join(found.text)
    assert "<b>(%a: f32[3])" in text
    assert '<img src=\\"x\\">&amp;' in text
    assert '<i>alert("x&y").py:1' in text


def nested(length: int) -> Program:
    body = toys.chain(length)
    w = Writer(f32(8))
    return w.program(*w(toys.cond_p, *w.inputs, branches=(body,)))


def folds(found: Page) -> list[dict[str, Any]]:
    return [attrs for tag, attrs in found.elements if tag == "details"]


def test_small_nested_programs_start_open_and_large_ones_folded() -> None:
    assert folds(page(nested(3))) == [{"open": None}]
    assert folds(page(nested(30))) == [{}]


def test_marking_every_place_of_a_variable_is_left_out_of_very_large_programs() -> None:
    assert program_html(toys.chain(3)).count(":has(.v-") == 4
    assert ":has(.v-" not in program_html(toys.chain(MARKED_VARIABLES))


def test_notebooks_show_programs_as_html() -> None:
    assert toys.sorting()._repr_html_().startswith('<div class="tracer-program"')
