"""What is known before a program runs is what the program would compute, to the bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax

POINTS = (0.1, 0.7, 1.3, 2.6, 5.9, 11.0)


@pytest.mark.parametrize("name", ["exp", "log", "sin", "tanh", "cbrt", "lgamma", "digamma", "erf_inv", "log1p"])
def test_functions_of_numbers_are_the_same_in_and_out_of_programs(name: str) -> None:
    function = getattr(lax, name)
    compiled = tracer.jit(function)
    for point in POINTS if name != "erf_inv" else (0.1, 0.7, 0.999):
        expected = np.asarray(compiled(tnp.asarray(point)))
        assert np.asarray(function(point)) == expected
        assert np.asarray(tracer.jit(lambda v=point: function(v) * tnp.ones(()))()) == expected


def test_complex_ones_too() -> None:
    z = 0.3 - 1.7j
    expected = np.asarray(tracer.jit(lax.exp)(tnp.asarray(z)))
    folded: Any = tracer.jit(lambda: lax.exp(z) * tnp.ones((), "complex128"))()
    assert np.asarray(folded) == expected
