"""`tracer.random` against what JAX draws: `reference.json`, written by tools/random_reference.py."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import ml_dtypes  # NumPy knows bfloat16 by name once this is imported
import numpy as np
import pytest

from tracer import random
from tracer.ir import dtypes
from tracer.trace.array import require_concrete

REFERENCE = json.loads((Path(__file__).parent / "reference.json").read_text())
CASES = REFERENCE["cases"]
NAMES = sorted({case["call"] for case in CASES})

# Samples that are made of mathematical functions agree to the rounding of those. In units of the dtype's resolution,
# relative and absolute: JAX's own functions are off by up to 20 (log1p, erf_inv in float64).
ROUNDING = {
    "normal", "exponential", "gumbel", "laplace", "logistic", "cauchy", "maxwell", "truncated_normal", "pareto",
    "rayleigh", "weibull_min", "lognormal", "triangular", "wald", "double_sided_maxwell", "gamma", "loggamma",
    "beta", "dirichlet", "chisquare", "f", "t", "generalized_normal", "ball", "multivariate_normal", "orthogonal",
}  # fmt: skip
UNITS = 32


def argument(value: Any) -> Any:
    if isinstance(value, dict):
        return np.array(value["array"], value["dtype"])
    return tuple(value) if isinstance(value, list) else value


def drawn(case: dict[str, Any]) -> np.ndarray[Any, Any]:
    arguments = {name: argument(value) for name, value in case["args"].items()}
    return require_concrete(getattr(random, case["call"])(random.key(case["seed"]), **arguments))


def expected(case: dict[str, Any]) -> np.ndarray[Any, Any]:
    return np.frombuffer(bytes.fromhex(case["bytes"]), case["dtype"]).reshape(case["shape"])


@pytest.mark.parametrize("name", NAMES)
def test_the_same_key_gives_the_numbers_of_jax(name: str) -> None:
    for case in CASES:
        if case["call"] != name:
            continue
        got, wanted = drawn(case), expected(case)
        assert (got.dtype, got.shape) == (wanted.dtype, wanted.shape), case["args"]
        if name in ROUNDING:
            limits = ml_dtypes.finfo(dtypes.real_dtype(wanted.dtype))
            tolerance = UNITS * float(limits.eps)
            wide = np.complex128 if wanted.dtype.kind == "c" else np.float64
            np.testing.assert_allclose(got.astype(wide), wanted.astype(wide), rtol=tolerance, atol=tolerance)
        else:
            assert got.tobytes() == wanted.tobytes(), (case["args"], case["seed"], got, wanted)


def test_every_sampler_is_compared() -> None:
    trivial = {"PRNGKey", "clone", "key", "key_impl", "wrap_key_data"}  # in test_keys.py
    assert set(random.__all__) - trivial == set(NAMES)


ABSENT = {
    "key_dtype": "a key is a type of its own here, not a dtype",
}
NOT_TAKEN = ["out_sharding"]  # arrays are on one device


def test_every_name_of_jax_is_here_or_excused() -> None:
    assert set(REFERENCE["names"]) - set(random.__all__) == set(ABSENT)


def test_every_parameter_of_jax_is_taken_in_its_order() -> None:
    for name, theirs in REFERENCE["names"].items():
        if name not in ABSENT:
            ours = list(inspect.signature(getattr(random, name)).parameters)
            assert [p for p in ours if p in theirs] == [p for p in theirs if p in ours], name
            assert set(theirs) - set(ours) <= set(NOT_TAKEN), name
