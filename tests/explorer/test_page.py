"""The page in a browser: hovering, pinning, folding, search, keyboard, comparison, colours, and its speed.

Pictures of it are left in build/explorer.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.explorer.browser import MISSING, REASON, Browser, browser
from tests.explorer.functions import LAYER, layer, line_of

pytestmark = pytest.mark.skipif(MISSING, reason=REASON)
PICTURES = Path(__file__).parents[2] / "build" / "explorer"

ROWS = """
const rows = [...document.querySelectorAll(`[data-stage="${arguments[0]}"] .row`)];
return rows.map(row => ({ text: row.querySelector("code")?.textContent || "", line: Number(row.dataset.line),
  lit: row.classList.contains("lit") || row.classList.contains("pale"), kind: row.className,
  x: row.getBoundingClientRect().x + 150, y: row.getBoundingClientRect().y + 10 }));
"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    one = tracer.explore(layer, *LAYER).save(folder / "one.html")
    two = tracer.explore(layer, *LAYER, against=tracer.grad(layer)).save(folder / "two.html")
    notebook = folder / "notebook.html"
    cell = tracer.explore(layer, *LAYER)._repr_html_()
    notebook.write_text(f'<!DOCTYPE html><html data-ready="1"><meta charset="utf-8"><p id="mine">text</p>{cell}</html>')
    return {"one": one, "two": two, "notebook": notebook}


@pytest.fixture(scope="module")
def window() -> Iterator[Browser]:
    with browser() as made:
        yield made


@pytest.fixture
def page(window: Browser, pages: dict[str, Path]) -> Browser:
    window.resize(1500, 950)
    window.prefer("light")
    window.open(pages["one"])
    return window


def rows(page: Browser, stage: str) -> list[dict[str, Any]]:
    page.run("return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
    found: list[dict[str, Any]] = page.run(ROWS, stage)
    return found


def row(page: Browser, stage: str, text: str) -> dict[str, Any]:
    return next(each for each in rows(page, stage) if text in each["text"])


def lit(page: Browser, stage: str) -> list[str]:
    return [each["text"].strip() for each in rows(page, stage) if each["lit"]]


def hover(page: Browser, stage: str, text: str) -> None:
    found = row(page, stage, text)
    page.move(found["x"], found["y"])


def test_the_panes_are_the_main_stages(page: Browser) -> None:
    names = page.run("return [...document.querySelectorAll('.pane .name')].map(each => each.textContent)")
    assert names == ["source", "program", "optimized", "loops", "LLVM", "assembly"]
    page.picture(PICTURES / "wide-light.png")


def test_hovering_a_source_line_lights_its_equations_and_no_others(page: Browser) -> None:
    hover(page, "source", "hidden = tnp.tanh")
    equations = lit(page, "program")
    assert [text.split(" = ")[1].split("(")[0] for text in equations] == [
        "dot_general",
        "broadcast_in_dim",
        "add",
        "tanh",
    ]
    assert lit(page, "source") == ["hidden = tnp.tanh(x @ w + b)"]
    assert any("copysign" in text or "fma" in text for text in lit(page, "loops"))
    page.move(2, 2)
    assert lit(page, "program") == []


def test_hovering_an_equation_lights_its_source_line(page: Browser) -> None:
    hover(page, "optimized", "tanh(")
    assert lit(page, "source") == ["hidden = tnp.tanh(x @ w + b)"]
    where = page.run("return document.querySelector('footer b').textContent")
    assert where == f"functions.py:{line_of('hidden = tnp.tanh')}"


def test_a_click_pins_and_brings_machine_code_into_view(page: Browser) -> None:
    found = row(page, "source", "shifted = tnp.exp")
    page.click(found["x"], found["y"])
    page.move(2, 2)
    assert lit(page, "source") == ["shifted = tnp.exp(steps) - 1.0"]
    assert lit(page, "loops")
    assert lit(page, "assembly")
    page.picture(PICTURES / "pinned.png")
    page.press("Escape")
    assert lit(page, "source") == []


def test_hovering_an_instruction_lights_one_line_of_loops_strongly(page: Browser) -> None:
    found = row(page, "source", "shifted = tnp.exp")
    page.click(found["x"], found["y"])
    instruction = next(each for each in rows(page, "assembly") if each["lit"])
    page.press("Escape")
    page.move(instruction["x"], instruction["y"])
    strong = [each for each in rows(page, "assembly") if " lit" in each["kind"]]
    assert [each["line"] for each in strong] == [instruction["line"]]
    assert lit(page, "source") == ["shifted = tnp.exp(steps) - 1.0"]


def test_nested_programs_fold(page: Browser) -> None:
    before = [each["text"].strip() for each in rows(page, "program")]
    assert any(text.startswith("return %") for text in before[:-3])
    page.run("""[...document.querySelectorAll('[data-stage="program"] .row')].find(
        row => row.textContent.includes("body(")).querySelector(".fold").click()""")
    folded = [each["text"].strip() for each in rows(page, "program")]
    assert len(folded) < len(before)
    assert any(text.startswith("body(") and "lines" in text for text in folded)


def test_usual_parameters_are_shown_when_asked_for(page: Browser) -> None:
    assert "precision=None" not in row(page, "program", "dot_general")["text"]
    page.press("p")
    assert "precision=None" in row(page, "program", "dot_general")["text"]


def test_the_place_of_an_equation_stays_in_sight(page: Browser) -> None:
    page.resize(700, 900)
    page.press("p")
    inside = page.run("""
        const pane = document.querySelector('[data-stage="program"]'), place = pane.querySelector(".place");
        return [place.getBoundingClientRect().right, pane.getBoundingClientRect().right,
          pane.querySelector(".scroller").scrollWidth > pane.querySelector(".scroller").clientWidth]""")
    assert inside[2], "the line is longer than the pane"
    assert inside[0] <= inside[1]
    page.picture(PICTURES / "narrow-light.png")


def test_search_counts_and_goes_from_match_to_match(page: Browser) -> None:
    page.press("/", *"broadcast")
    page.run("return new Promise(done => setTimeout(done, 100))")
    first, count = page.run("return document.querySelector('output').textContent").split("/")
    assert first == "1"
    assert int(count) >= 2
    assert page.run("return document.querySelectorAll('mark').length") >= 2
    page.press("Enter")
    assert page.run("return document.querySelector('output').textContent") == f"2/{count}"
    page.press("Escape")
    assert page.run("return [document.querySelector('input').value, document.querySelectorAll('mark').length]") == [
        "",
        0,
    ]


def test_keys_move_the_line_and_the_pane(page: Browser) -> None:
    page.press("l")
    page.press("j", "j", "ArrowDown", "k")
    (current,) = [each for each in rows(page, "program") if " now" in each["kind"]]
    assert current["line"] == 2
    page.press("Enter")
    assert any(" pin" in each["kind"] for each in rows(page, "program"))
    page.press("?")
    assert page.run("return document.querySelector('dialog').open")
    page.picture(PICTURES / "keys.png")
    page.press("Escape")


def test_two_stages_are_compared_line_by_line(page: Browser) -> None:
    page.press("c")
    kinds = [each["kind"] for each in rows(page, "program")]
    assert any("gone" in kind for kind in kinds)
    assert len(kinds) == len(rows(page, "optimized"))
    page.picture(PICTURES / "compare.png")
    page.press("Escape", "Escape")
    assert page.run("return document.querySelectorAll('.pane').length") == 6


def test_a_function_is_compared_with_its_gradient(window: Browser, pages: dict[str, Path]) -> None:
    window.resize(1500, 950)
    window.open(pages["two"])
    assert window.run("return document.querySelectorAll('.pane').length") == 6
    window.press("c")
    names = window.run("return [...document.querySelectorAll('.pane .owner')].map(each => each.textContent)")
    assert names == ["1 layer", "2 layer"]
    assert window.run("return document.querySelectorAll('.row.add').length") > 3
    window.picture(PICTURES / "gradient.png")


def test_colours_follow_the_preference(page: Browser, pages: dict[str, Path]) -> None:
    shade = "return getComputedStyle(document.querySelector('.pane')).backgroundColor"
    assert page.run(shade) == "rgb(255, 255, 255)"
    page.prefer("dark")
    assert page.run(shade) == "rgb(25, 28, 33)"
    hover(page, "source", "hidden = tnp.tanh")
    rows(page, "source")
    page.picture(PICTURES / "wide-dark.png")
    page.resize(700, 900)
    page.picture(PICTURES / "narrow-dark.png")


def test_a_notebook_shows_the_panes_and_keeps_its_own_style(window: Browser, pages: dict[str, Path]) -> None:
    window.resize(1000, 900)
    window.open(pages["notebook"])
    look = """const own = getComputedStyle(document.querySelector("#mine"));
        return ["fontFamily", "fontSize", "color", "marginTop", "lineHeight"].map(each => own[each])"""
    display = "return getComputedStyle(document.querySelector(arguments[0])).display"
    before = window.run(look)
    assert window.run(display, ".tracer-static") == "none"
    assert window.run(display, "iframe") != "none"
    window.run("document.querySelector('.tracer-explorer').remove()")
    assert window.run(look) == before
    window.open(pages["notebook"])
    window.run("return new Promise(done => setTimeout(done, 500))")
    window.picture(PICTURES / "notebook.png")
    window.run("document.querySelector('iframe').remove()")
    assert window.run("return getComputedStyle(document.querySelector('.tracer-static')).display") == "block"


def test_of_thousands_of_equations_only_those_in_sight_are_drawn(window: Browser, tmp_path: Path) -> None:
    def long(x: Any) -> Any:
        y = x
        for _ in range(2000):
            y = tnp.sin(y) * x
        return y

    found = tracer.explore(long, np.ones(8))
    assert sum("sin(" in line.text or "mul(" in line.text for line in found.stage("program").lines) == 4000
    file = found.save(tmp_path / "long.html")
    window.resize(1500, 950)
    window.open(file)
    assert window.run("return document.querySelectorAll('.row').length") < 500
    window.run("""document.querySelector('[data-stage="program"] .scroller').scrollTop = 60000""")
    assert rows(window, "program")[0]["line"] > 2800
    window.picture(PICTURES / "long.png")
