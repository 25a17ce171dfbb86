"""The result of `explore`: its stages, text, page and errors."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.explorer.functions import LAYER, layer, line_of
from tracer.errors import ArgumentError, TracerBoolError
from tracer.explorer import Exploration
from tracer.explorer.collect import collected, size_text
from tracer.explorer.records import Kind
from tracer.explorer.sources import source_stage

MAIN = ["source", "program", "optimized", "loops", "LLVM", "assembly"]


@pytest.fixture(scope="module")
def found() -> Exploration:
    return tracer.explore(layer, *LAYER)


def data_of(html: str) -> dict[str, object]:
    data: dict[str, object] = json.loads(html.partition('type="application/json">')[2].partition("</script>")[0])
    return data


def test_the_stages_hold_the_texts_of_lower(found: Exploration) -> None:
    lowered = tracer.jit(layer).lower(*LAYER)
    assert [stage.name for stage in found.functions[0].stages if stage.main] == MAIN
    assert found.stage("program").text() == re.sub(r" +# .*", "", str(lowered.program()))
    assert found.stage("optimized").text() == re.sub(r" +# .*", "", str(lowered.optimized()))
    assert found.stage("loops").text() == str(lowered.loops()).rstrip("\n")
    assert found.stage("LLVM").text() == lowered.llvm().rstrip("\n")
    assert found.stage("assembly").text() == "\n".join(line.expandtabs(8) for line in lowered.asm().splitlines())


def test_the_source_pane_shows_the_lines_with_their_cost(found: Exploration) -> None:
    stage = found.stage("source")
    line = next(line for line in stage.lines if line.place == str(line_of("hidden = tnp.tanh")))
    assert line.text == "    hidden = tnp.tanh(x @ w + b)"
    assert line.figures is not None
    assert line.figures.flops >= 2 * 16 * 8 * 4
    total = sum(line.figures.share for line in stage.lines if line.figures is not None)
    assert total == pytest.approx(1)


def test_usual_parameters_are_apart(found: Exploration) -> None:
    line = next(line for line in found.stage("program").lines if "dot_general" in line.text)
    assert "precision" not in line.text
    assert "precision=None" in line.full
    assert "dimension_numbers=" in line.text


def test_equations_have_their_cost_and_place(found: Exploration) -> None:
    line = next(line for line in found.stage("optimized").lines if "tanh" in line.text)
    assert line.place == f"functions.py:{line_of('hidden = tnp.tanh')}"
    assert line.figures is not None
    assert line.figures.functions == 64
    assert line.figures.bytes == 64 * 8


def test_the_text_is_a_summary(found: Exploration) -> None:
    text = str(found)
    assert text.startswith("layer (f64[8,4], f64[4], f64[16,8]) → f64[]\n")
    assert all(f"  {name} " in text for name in MAIN)
    assert re.search(r"% of the work at functions\.py:\d+  hidden = tnp\.tanh", text)


def test_two_functions_are_told_apart() -> None:
    found = tracer.explore(layer, tracer.grad(layer), *LAYER)
    assert [function.name for function in found.functions] == ["1 layer", "2 layer"]
    named = tracer.explore(layer, *LAYER, against=tracer.grad(layer))
    assert [function.signature for function in named.functions] == [each.signature for each in found.functions]
    assert len(found.functions[1].stage("optimized").lines) > len(found.functions[0].stage("optimized").lines)  # type: ignore[union-attr]


def test_a_static_function_is_an_argument() -> None:
    apply = tracer.jit(lambda f, x: f(x), static_argnums=0)
    assert [
        stage.name for stage in tracer.explore(apply, tnp.sin, np.ones(3)).functions[0].stages if stage.main
    ] == MAIN


def test_cuda_is_one_more_stage_with_the_lines_of_each_kernel() -> None:
    found = tracer.explore(lambda x: tnp.sin(x) + 1.0, np.ones((64, 64), np.float32), cuda="sm_90")
    stage = found.stage("CUDA")
    assert stage.kind is Kind.CUDA
    kernel = next(line for line in stage.lines if "__global__" in line.text)
    assert [file for file, _ in kernel.keys] == [__file__]


def test_the_page_is_whole_and_asks_nothing_of_a_network(found: Exploration) -> None:
    html = found.html()
    assert html.startswith("<!DOCTYPE html>")
    assert not re.findall(r"""(?:src|href)=|@import|url\(|https?://|\bfetch\(|XMLHttpRequest""", html)
    assert html.count("</script>") == 2
    data = data_of(html)
    (function,) = data["functions"]  # type: ignore[misc]
    assert function["name"] == "layer"


def test_text_of_the_user_cannot_end_the_data() -> None:
    def tricky(x: object) -> object:
        return tnp.sin(x)  # </script><script>alert(1)</script>

    html = tracer.explore(tricky, 1.0).html()
    assert html.count("</script>") == 2
    assert "alert(1)" in json.dumps(data_of(html))


def test_without_frames_styles_and_scripts_the_stages_are_text(found: Exploration) -> None:
    html = found._repr_html_()
    bare = re.sub(r"<style>.*?</style>|<iframe.*?</iframe>", "", html, flags=re.DOTALL)
    assert "<script" not in bare
    assert bare.count("<details") == len(MAIN)
    assert "hidden = tnp.tanh(x @ w + b)" in bare
    assert f"# functions.py:{line_of('hidden = tnp.tanh')}" in bare


def test_the_style_in_a_notebook_reaches_no_further(found: Exploration) -> None:
    outside = re.sub(r'srcdoc="[^"]*"', "", found._repr_html_())
    style = outside.partition("<style>")[2].partition("</style>")[0]
    assert all(rule.strip().startswith(".tracer-explorer") for rule in style.split("}") if rule.strip())


def test_a_lowered_function_is_shown_by_the_same_page() -> None:
    html = tracer.jit(layer).lower(*LAYER)._repr_html_()
    assert html.startswith('<div class="tracer-explorer">')


def test_save_writes_the_page(found: Exploration, tmp_path: Path) -> None:
    path = found.save(tmp_path / "layer.html")
    assert path.read_text(encoding="utf-8") == found.html()


def test_a_file_that_cannot_be_written_is_one_message(found: Exploration, tmp_path: Path) -> None:
    path = tmp_path / "missing" / "layer.html"
    with pytest.raises(ArgumentError) as error:
        found.save(path)
    assert str(error.value).startswith("explore.save at test_exploration.py:")
    assert str(error.value).splitlines()[0].endswith(f": cannot write {path}")
    assert str(error.value).splitlines()[1:] == [
        "  No such file or directory",
        "  help: name a file in a folder that exists and is yours",
    ]


@pytest.mark.parametrize("path", [3, None, "a\0b"], ids=["a number", "None", "a zero byte"])
def test_what_names_no_file_is_one_message(found: Exploration, path: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^explore.save at .*: cannot write .*\n  .*\n  help: name a file"):
        found.save(path)


def test_what_is_no_function_is_one_message() -> None:
    with pytest.raises(ArgumentError, match="got int, which is no function\n  help: explore") as error:
        tracer.explore(3)
    assert "explore at test_exploration.py:" in str(error.value)


def test_arguments_that_do_not_fit_are_one_message() -> None:
    with pytest.raises(ArgumentError, match=r"layer does not take these arguments\n  missing a required argument: 'b'"):
        tracer.explore(layer, np.ones(3))


def test_a_function_that_does_not_trace_raises_its_own_error() -> None:
    def branching(x: float) -> float:
        return x if x > 0 else -x

    with pytest.raises(TracerBoolError):
        tracer.explore(branching, 1.0)


def test_an_unknown_stage_is_one_message(found: Exploration) -> None:
    with pytest.raises(ArgumentError, match="no stage 'ptx'\n  help: one of source, program"):
        found.stage("ptx")


def test_lines_of_a_file_that_is_gone_are_kept() -> None:
    stage = source_stage([("/nowhere/f.py", 7)], {})
    assert [(line.place, line.keys) for line in stage.lines] == [("7", (("/nowhere/f.py", 7),))]


def test_of_a_long_file_the_functions_in_use_are_shown(tmp_path: Path) -> None:
    file = tmp_path / "long.py"
    body = "\n".join(f"def f{n}(x):\n    return x + {n}\n" for n in range(60))
    file.write_text(body)
    stage = source_stage([(str(file), 5), (str(file), 50)], {})
    shown = [line.text for line in stage.lines]
    assert shown == ["def f1(x):", "    return x + 1", "⋯", "def f16(x):", "    return x + 16"]


def test_programs_of_very_many_lines_leave_out_what_is_between() -> None:
    found = collected(tracer.jit(layer).lower(*LAYER), most=10)
    assert [stage.name for stage in found.stages] == MAIN


def test_bytes_are_shown_in_a_unit_that_suits_them() -> None:
    assert [size_text(n) for n in (0, 999, 1000, 2_000_000)] == ["0 B", "999 B", "1 kB", "2 MB"]


def test_data_of_a_page_cannot_open_a_tag() -> None:
    def f(x: Any) -> Any:
        return x * 2  # <!-- <script>

    html = tracer.explore(f, 3.0).html()
    assert "<!-- <script" not in html
    assert "\\u003c!-- \\u003cscript>" in html
