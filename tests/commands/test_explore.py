"""`python -m tracer explore`: the page, the summary, and one message for each mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from tracer.__main__ import main

CODE = "import tracer.numpy as tnp\n\ndef area(x, n):\n    return tnp.sum(tnp.sin(x)) * n\n"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "shapes_of_mine.py").write_text(CODE)
    (tmp_path / "broken_of_mine.py").write_text("1 / 0\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_it_writes_a_page_and_prints_a_summary(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", "shapes_of_mine:area", "--args", "f32[128,64], 3"]) == 0
    said = capsys.readouterr().out
    assert said.startswith("area (f32[128,64], i64*[]) → f32[]\n")
    assert said.endswith("written to area.html\n")
    assert "tnp.sum(tnp.sin(x)) * n" in (folder / "area.html").read_text(encoding="utf-8")


def test_the_page_may_compare_and_show_cuda(folder: Path) -> None:
    names = ["shapes_of_mine:area", "--against", "shapes_of_mine:area", "--cuda", "sm_90", "--out", "both.html"]
    assert main(["explore", *names, "--args", "f32[8], 1.5"]) == 0
    assert "__global__" in (folder / "both.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["shapes_of_mine"], "got 'shapes_of_mine'\n  help: name a function as module:function\n"),
        (["shapes_of_mine:circle"], "shapes_of_mine has no 'circle'\n  help: one of area\n"),
        (["not_there:f"], "cannot import not_there\n  No module named 'not_there'\n  help: run this where"),
        (["broken_of_mine:f"], "cannot import broken_of_mine\n  ZeroDivisionError: division by zero\n  help: run this"),
        (["math:pi.x"], "math has no 'pi.x'\n  help: one of as_integer_ratio, conjugate, fromhex, hex, is_integer\n"),
        (["shapes_of_mine:area", "--args", "q8[3], 1"], "--args: 'q8[3]' is no type of an array and no value\n"),
        (["shapes_of_mine:area", "--args", "f32[3]"], "area does not take these arguments\n  missing a required"),
        (
            ["shapes_of_mine:area", "--args", "f32[3], 1", "--out", "no/x.html"],
            "cannot write no/x.html\n",
        ),
        (["shapes_of_mine:area", "--args", "f32[3], 1", "--cuda", "abc"], "cuda: no architecture 'abc'\n"),
    ],
)
def test_a_mistake_is_one_message(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explore", *arguments]) == 2
    printed = capsys.readouterr()
    assert said in printed.err
    assert printed.err.startswith("tracer explore: ")
    assert "Traceback" not in printed.err
