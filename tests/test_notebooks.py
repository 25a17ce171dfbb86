"""The notebooks run from the first cell to the last, and find what they say they find."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

nbformat = pytest.importorskip("nbformat", reason='the notebooks need pip install -e ".[test]"')
nbclient = pytest.importorskip("nbclient", reason='the notebooks need pip install -e ".[test]"')

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
NAMES = ("digits", "heat")


def printed(notebook: Any) -> str:
    """All that the cells of an executed notebook printed."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "".join(output.text for output in outputs if output.output_type == "stream")


def executed(name: str) -> Any:
    """The notebook after a run in a fresh kernel; an error in a cell is raised."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(NOTEBOOKS)}}).execute()
    return notebook


def test_every_notebook_has_its_test() -> None:
    assert sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")) == sorted(NAMES)


def test_digits_notebook_learns_the_digits() -> None:
    text = printed(executed("digits"))
    accuracy = re.search(r"^held-out accuracy: (\d+\.\d) %$", text, re.MULTILINE)
    assert accuracy is not None
    assert float(accuracy.group(1)) >= 97.0
    slopes = [float(number) for number in re.findall(r"^by .*?(-?\d\S*)$", text, re.MULTILINE)]
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-5)


def test_heat_notebook_ends_on_the_straight_line() -> None:
    text = printed(executed("heat"))
    distances = re.findall(r"^largest distance from the straight line: (\S+)$", text, re.MULTILINE)
    assert [float(distance) < 1e-9 for distance in distances] == [True, True]


@pytest.mark.parametrize("name", NAMES)
def test_notebook_is_stored_with_the_outputs_of_a_whole_run(name: str) -> None:
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1)), "run scripts/notebooks"
    assert printed(notebook)
