"""Calls of LAPACK for decompositions: which routines a program calls, and which matrices it transposes before."""

from __future__ import annotations

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp


def loops(f: object, *xs: np.ndarray) -> str:
    """The program's loops, before the passes of loops."""
    stages = map(str, tracer.jit(f).lower(*xs).stages())
    return next(text for text in stages if text.startswith("# allocate_arena"))


@pytest.mark.parametrize(("shape", "nests"), [((20, 20), 0), ((20, 30), 0), ((30, 20), 3)])
def test_svd_transposes_tall_matrices_alone(shape: tuple[int, int], nests: int) -> None:
    assert loops(lambda x: tnp.linalg.svd(x, full_matrices=False), np.ones(shape)).count("  invoke ") == nests


def test_the_solution_of_least_squares_computes_singular_values_on_a_branch_alone() -> None:
    a, b = np.ones((30, 20)), np.ones(30)
    text = loops(lambda a, b: tnp.linalg.lstsq(a, b)[0], a, b)
    assert text.count("library geqrf_f64") == text.count("library gesdd_f64") == 1
    assert text.index("library geqrf_f64") < text.index("if ") < text.index("library gesdd_f64")
