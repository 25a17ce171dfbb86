"""The notebooks run from the first cell to the last, and find what they say they find."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.grids import THOROUGH, each

nbformat = pytest.importorskip("nbformat", reason='the notebooks need pip install -e ".[test]"')
nbclient = pytest.importorskip("nbclient", reason='the notebooks need pip install -e ".[test]"')
manager = pytest.importorskip("jupyter_client.manager", reason='the notebooks need pip install -e ".[test]"')

NOTEBOOKS = Path(__file__).parents[1] / "notebooks"
# What each notebook prints, besides the two with tests of their own.
PRINTED = {
    "batching": r"^one by one agrees: True$",
    "deblurring": r"^seen 2\d\.\d dB, sharpened 3\d\.\d dB$",
    "explorer": r"^[\d,]+ lines of assembly$",
    "first_steps": r"^largest difference: \d\.\de-(0[89]|1\d)$",
    "gaussian_process": r"^cost: 13\.76 to -14\.\d\d$",
    "gpu": r"^x \+ 1 of 1,000 +data there: CPU +data here: CPU$",
    "loops_backwards": r"^missed by \d\.\de-1\d$|^missed by 0\.0e\+00$",
    "ode": r"^loss at the end: 0\.0[45]\d$",
}
NAMES = ("digits", "heat", *PRINTED)
RUN = PRINTED if THOROUGH else ["explorer", "first_steps", "loops_backwards", "ode"]


def printed(notebook: Any) -> str:
    """All that the cells of an executed notebook printed."""
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    return "".join(output.text for output in outputs if output.output_type == "stream")


@pytest.fixture(scope="module")
def kernel() -> Iterator[Any]:
    """One kernel for all notebooks: to start one takes longer than most of them."""
    started, client = manager.start_new_kernel(cwd=str(NOTEBOOKS))
    client.stop_channels()
    yield started
    started.shutdown_kernel(now=True)


def executed(name: str, kernel: Any) -> Any:
    """The notebook after a run in a kernel without names; an error in a cell is raised."""
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    notebook.cells.insert(0, nbformat.v4.new_code_cell("%reset -f"))
    client = nbclient.NotebookClient(notebook, km=kernel, timeout=300)
    client.execute()
    client.kc.stop_channels()
    return notebook


def test_every_notebook_has_its_test() -> None:
    assert sorted(path.stem for path in NOTEBOOKS.glob("*.ipynb")) == sorted(NAMES)


def test_digits_notebook_learns_the_digits(kernel: Any) -> None:
    text = printed(executed("digits", kernel))
    accuracy = re.search(r"^held-out accuracy: (\d+\.\d) %$", text, re.MULTILINE)
    assert accuracy is not None
    assert float(accuracy.group(1)) >= 97.0
    slopes = [float(number) for number in re.findall(r"^by .*?(-?\d\S*)$", text, re.MULTILINE)]
    assert slopes[0] == pytest.approx(slopes[1], rel=1e-5)


def test_heat_notebook_ends_on_the_straight_line(kernel: Any) -> None:
    text = printed(executed("heat", kernel))
    distances = re.findall(r"^largest distance from the straight line: (\S+)$", text, re.MULTILINE)
    assert [float(distance) < 1e-9 for distance in distances] == [True, True]


@pytest.mark.parametrize("name", RUN)
def test_notebook_finds_what_it_says(name: str, kernel: Any) -> None:
    notebook = executed(name, kernel)
    assert re.search(PRINTED[name], printed(notebook), re.MULTILINE), printed(notebook)


@each("name", PRINTED)
def test_notebook_has_a_picture(name: str) -> None:
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs)


@pytest.mark.parametrize("name", NAMES)
def test_notebook_is_stored_with_the_outputs_of_a_whole_run(name: str) -> None:
    notebook = nbformat.read(NOTEBOOKS / f"{name}.ipynb", as_version=4)
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == list(range(1, len(counts) + 1)), "run scripts/notebooks"
    assert printed(notebook)
