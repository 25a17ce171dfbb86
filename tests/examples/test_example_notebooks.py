"""Notebooks of the examples are those of their pages, and run from the first cell to the last."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from tools import gallery_notebooks

THOROUGH = os.environ.get("TRACER_HYPOTHESIS_PROFILE") == "thorough"
RUN = gallery_notebooks.names() if THOROUGH else ["components"]


@pytest.mark.parametrize("name", gallery_notebooks.names())
def test_notebook_is_made_from_the_page_and_the_program(name: str) -> None:
    stored = (gallery_notebooks.NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8")
    assert stored == gallery_notebooks.notebook(name), "run python tools/gallery_notebooks.py"


def test_every_notebook_has_a_page_and_every_trained_example_a_notebook() -> None:
    stored = {path.stem for path in gallery_notebooks.NOTEBOOKS.glob("*.ipynb")}
    assert stored == set(gallery_notebooks.names())
    trained = {
        "adapters", "cart_pole", "characters", "ensemble", "equilibrium", "folds", "from_torch", "generation", "names",
        "photograph", "training", "writers",
    }  # fmt: skip
    assert trained <= stored


@pytest.mark.parametrize("name", RUN)
def test_notebook_runs(name: str, tmp_path: Path) -> None:
    """All of them in the thorough profile: the documentation runs the pages' cells, too."""
    nbformat: Any = pytest.importorskip("nbformat", reason='the notebooks need pip install -e ".[test]"')
    nbclient: Any = pytest.importorskip("nbclient", reason='the notebooks need pip install -e ".[test]"')
    pytest.importorskip("matplotlib", reason="the pages draw")
    notebook = nbformat.reads(gallery_notebooks.notebook(name), as_version=4)
    nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}}).execute()
    assert any(cell.outputs for cell in notebook.cells if cell.cell_type == "code")
