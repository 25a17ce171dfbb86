"""Sources in notebooks are named as IPython names their cells."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tracer.ir.cells import cell_name
from tracer.ir.program import Source

CELLS = [
    "import tracer, tracer.numpy as tnp\ndef f(x):\n    return tnp.sin(x)",
    "print(tracer.make_program(f)(1.0))",
    "program = tracer.make_program(lambda x: f(x) +\n   x)(1.0); print([str(e.source) for e in program.equations])",
    "tracer.jit(lambda x: x @ x)(1.0)",
    "def f(x):\n\n    return tnp.cos(x)\nprint(tracer.make_program(f)(1.0).equations[0].source)",
]


@pytest.fixture
def shell() -> Iterator[Any]:
    interactive = pytest.importorskip("IPython.core.interactiveshell").InteractiveShell
    yield interactive.instance()
    interactive.clear_instance()


def test_sources_name_cells(shell: Any, capsys: pytest.CaptureFixture[str]) -> None:
    for cell in CELLS:
        shell.run_cell(cell, store_history=True)
    out = capsys.readouterr().out
    assert "# In[1]:3" in out
    assert re.search(r"\['In\[1\]:3', 'In\[3\]:[12]'\]", out)
    assert " at In[4]:1" in out
    assert out.rstrip().endswith("In[5]:3")
    assert not re.search(r"\d{4,}\.py|ipython-input", out)


def test_other_files_keep_their_names(shell: Any) -> None:
    assert cell_name(__file__) is None
    assert str(Source(__file__, 3, "f")) == "test_cells.py:3"


def test_without_a_shell_nothing_is_a_cell() -> None:
    assert cell_name("/tmp/ipykernel_1/123.py") is None
