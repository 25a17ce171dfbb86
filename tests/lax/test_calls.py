"""Calls on dtypes at the edge of what lax functions take: JAX's results and gradients, and errors where it refuses."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tests.lax.call_cases import CASES, Case
from tests.primitives.elementwise_cases import read_table
from tests.primitives.structural_cases import outputs_of, weights
from tracer import lax
from tracer.errors import TracerError

JAX = read_table(Path(__file__).parent / "jax_calls.npz")
TOLERANCE = {"float16": 2e-3, "float32": 1e-6, "float64": 1e-13, "complex64": 1e-6, "complex128": 1e-13}

# Calls that JAX refuses, or whose results are others here, and why.
DIFFERENT: dict[str, str] = {
    **dict.fromkeys(
        (f"select_and_scatter {order} {name} 3" for order in ("ge", "gt") for name in ("ties", "integers")),
        "of equal elements the first (or last) in row-major order; XLA goes down the columns of this window",
    ),
    "dot complex64->uint32": "sums below 0 saturate at 0, as in every conversion; XLA lets them wrap in this one",
}


def check(got: Any, expected: Any) -> None:
    got = np.asarray(got)
    assert (got.dtype, got.shape) == (expected.dtype, expected.shape)
    if got.dtype.kind in "fcV":
        tolerance = TOLERANCE.get(got.dtype.name, 1e-2)
        wide = np.complex128 if got.dtype.kind == "c" else np.float64
        np.testing.assert_allclose(got.astype(wide), expected.astype(wide), rtol=tolerance, atol=tolerance)
    else:
        np.testing.assert_array_equal(got, expected)


@each("case", CASES, ids=[case.label for case in CASES])
def test_results_and_refusals_are_those_of_jax(case: Case) -> None:
    xs = [tnp.asarray(x) for x in case.operands]
    if f"{case.label}.refused" in JAX and case.label not in DIFFERENT:
        with pytest.raises(TracerError):
            case.call(lax, *xs)
        return
    for i, got in enumerate(outputs_of(case.call(lax, *xs))):
        if case.label not in DIFFERENT:
            check(got, JAX[f"{case.label}.out{i}"])


GRADIENTS = [case for case in CASES if any(name.startswith(f"{case.label}.grad") for name in JAX)]


@each("case", GRADIENTS, ids=[case.label for case in GRADIENTS])
def test_gradients_are_those_of_jax(case: Case) -> None:
    xs = [tnp.asarray(x) for x in case.operands]
    active = [i for i in range(len(xs)) if f"{case.label}.grad{i}" in JAX]

    def total(*moving: Any) -> Any:
        given = dict(zip(active, moving, strict=True))
        results = outputs_of(case.call(lax, *(given.get(i, x) for i, x in enumerate(xs))))
        sums = [tnp.sum(y * weights(y)) for y in results if y.dtype.kind in "fc"]
        return sum(tnp.real(s) + 2 * tnp.imag(s) for s in sums)

    gradients = tracer.grad(total, tuple(range(len(active))))(*(xs[i] for i in active))
    for i, gradient in zip(active, gradients, strict=True):
        check(gradient, JAX[f"{case.label}.grad{i}"])
