"""The magics in a real shell of IPython, and their messages for bad input."""

from __future__ import annotations

import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

import tracer
from tracer.errors import ArgumentError
from tracer.explorer import Exploration, magics

interactive = pytest.importorskip("IPython.core.interactiveshell", reason='needs IPython: pip install -e ".[test]"')


@pytest.fixture(scope="module")
def shell() -> Iterator[Any]:
    made = interactive.InteractiveShell.instance()
    made.run_line_magic("load_ext", "tracer")
    made.run_cell("import numpy as np, tracer, tracer.numpy as tnp\ndef square(x):\n    return x * x\n")
    yield made
    interactive.InteractiveShell.clear_instance()


def test_lower_explores_a_call(shell: Any) -> None:
    found = shell.run_line_magic("lower", "square(np.ones(3))")
    assert isinstance(found, Exploration)
    assert found.functions[0].name == "square"
    assert "x * x" in found.stage("source").text()


def test_lower_runs_the_cell_and_explores_its_last_call(shell: Any) -> None:
    cell = "def cube(x, *, scale=1.0):\n    return scale * x**3\n\nvalues = [np.ones(4)]\ncube(*values, scale=2.0)"
    found = shell.run_cell_magic("lower", "", cell)
    assert found.functions[0].signature.startswith("(f64[4]")
    assert "cube" in shell.user_ns
    assert "scale * x**3" in found.stage("source").text()


def test_lower_names_the_lines_of_its_own_cell(shell: Any) -> None:
    cell = "scale = 2.0\ntracer.grad(lambda y: tnp.sum(scale * tnp.sin(y)))(tnp.ones(3))"
    found = shell.run_cell_magic("lower", "", cell)
    (text,) = {line.text for line in found.stage("source").lines if line.keys}
    assert text == cell.splitlines()[1]
    assert [line.place for line in found.stage("source").lines if line.keys] == ["3"]  # below the magic
    assert not {name for name in shell.user_ns if name.startswith("__tracer")}


def test_lower_shows_the_error_of_its_cell_and_explores_nothing(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    assert shell.run_cell_magic("lower", "", "1 / 0\nsquare(2.0)") is None
    assert "ZeroDivisionError" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 3", "%lower: got x = 3, which is no call"),
        ("", "%lower: got nothing, which is no call"),
        ("square(", "%lower: line 1 does not parse"),
    ],
)
def test_lower_wants_a_call(shell: Any, text: str, said: str) -> None:
    with pytest.raises(ArgumentError) as error:
        shell.run_line_magic("lower", text)
    assert str(error.value).startswith(said)
    assert str(error.value).endswith("  help: end with a call, as in: %lower f(x)")


def test_explain_tells_why_a_function_compiled(shell: Any) -> None:
    shell.run_cell("quick = tracer.jit(square)\nquick(np.ones(3))\nquick(np.ones(4))")
    text = shell.run_line_magic("explain", "quick")
    assert text == shell.user_ns["quick"].explain()
    assert text.startswith("square compiled twice") or "2 times" in text


def test_explain_wants_a_jitted_function(shell: Any) -> None:
    with pytest.raises(
        ArgumentError, match="%explain: square is a function, not a jitted function\n  help: %explain f"
    ):
        shell.run_line_magic("explain", "square")
    with pytest.raises(ArgumentError, match="%explain: got nothing, which is no expression"):
        shell.run_line_magic("explain", "")


@pytest.mark.parametrize("line", ["%explain", "%explain quick.nothing", "%lower x = 3"])
def test_tracebacks_of_magics_end_at_the_users_line(shell: Any, line: str) -> None:
    error = shell.run_cell(line).error_in_exec
    files = [frame.filename for frame in traceback.extract_tb(error.__traceback__)]
    assert not [file for file in files if file.endswith("magics.py")]


def test_tprofile_runs_its_text_under_the_profiler(shell: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []

    @contextmanager
    def profile() -> Iterator[str]:
        seen.append("began")
        yield "the profile"
        seen.append(str(shell.user_ns["number"]))

    monkeypatch.setattr(magics, "profile", profile)
    assert shell.run_cell_magic("tprofile", "", "number = 3") == "the profile"
    assert shell.run_line_magic("tprofile", "number = 4") == "the profile"
    assert seen == ["began", "3", "began", "4"]


def test_tprofile_profiles_a_cell(shell: Any) -> None:
    assert shell.run_cell_magic("tprofile", "", "made = quick(np.ones(3))") is not None
    assert "made" in shell.user_ns


def test_an_error_of_a_cell_is_followed_by_its_documentation(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    shell.run_line_magic("reload_ext", "tracer")
    shell.run_cell("tnp.ones(2) + tnp.ones(3)")
    said = capsys.readouterr().out
    assert said.index("help: ") < said.index("python -m tracer docs ShapeError")
    assert said.count("python -m tracer docs") == 1
    shell.run_cell("1 / 0")
    assert "python -m tracer docs" not in capsys.readouterr().out


def test_without_ipython_there_is_one_message() -> None:
    with pytest.raises(ArgumentError, match="which is no shell of IPython\n  help: in IPython or a notebook"):
        tracer.load_ipython_extension(None)  # type: ignore[operator]
