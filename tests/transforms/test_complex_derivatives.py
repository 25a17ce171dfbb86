"""Derivatives of complex functions follow JAX's convention: the table is written by tools/complex_derivatives.py."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.transforms.complex_functions import DIRECTION, Z, functions
from tracer import grad, jit, jvp, lax, linearize, vjp, vmap

TABLE = json.loads((Path(__file__).parent / "complex_derivatives.json").read_text(encoding="utf-8"))["functions"]
REAL, HOLOMORPHIC = functions(tnp, lax)
WAYS = pytest.mark.parametrize("way", [lambda f: f, jit])
POINT, MOVED = tnp.asarray(Z), tnp.asarray(DIRECTION)


def numbers(pairs: list[list[float]]) -> Any:
    return np.asarray([complex(*pair) for pair in pairs])


def test_the_table_is_of_these_functions() -> None:
    assert set(TABLE) == set(REAL) | set(HOLOMORPHIC)


@WAYS
@pytest.mark.parametrize("name", REAL)
def test_functions_to_real_numbers(name: str, way: Any) -> None:
    f, expected = REAL[name], TABLE[name]
    gradient = numbers(expected["grad"])
    np.testing.assert_allclose(way(grad(f))(POINT), gradient, rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(way(vmap(grad(f)))(tnp.stack([POINT, POINT]))[1], gradient, rtol=1e-12, atol=1e-13)
    pushed = way(lambda z, dz: jvp(f, (z,), (dz,))[1])(POINT, MOVED)
    np.testing.assert_allclose(pushed, expected["jvp"], rtol=1e-12, atol=1e-13)
    assert (gradient * np.asarray(DIRECTION)).real.sum() == pytest.approx(expected["jvp"], rel=1e-12)


@WAYS
@pytest.mark.parametrize("name", HOLOMORPHIC)
def test_holomorphic_functions(name: str, way: Any) -> None:
    f, expected = HOLOMORPHIC[name], TABLE[name]
    close = {"rtol": 1e-12, "atol": 1e-13}
    np.testing.assert_allclose(
        way(grad(lambda z: f(z).sum(), holomorphic=True))(POINT), numbers(expected["grad"]), **close
    )
    pushed = way(lambda z, dz: linearize(f, z)[1](dz))(POINT, MOVED)
    np.testing.assert_allclose(pushed, numbers(expected["jvp"]), **close)
    pulled = way(lambda z, ct: vjp(f, z)[1](ct)[0])(POINT, MOVED)
    np.testing.assert_allclose(pulled, numbers(expected["vjp"]), **close)


@WAYS
def test_the_sign_of_a_complex_number_turns_with_it(way: Any) -> None:
    """z / |z| has a derivative, which finite differences confirm; JAX gives 0. At 0 it is 0."""
    moved = way(lambda z, dz: jvp(tnp.sign, (z,), (dz,))[1])(POINT, MOVED)
    step = 1e-6
    z, dz = np.asarray(Z), np.asarray(DIRECTION)
    ahead, behind = z + step * dz, z - step * dz
    np.testing.assert_allclose(
        moved, (ahead / np.abs(ahead) - behind / np.abs(behind)) / (2 * step), rtol=1e-8, atol=1e-9
    )
    (pulled,) = vjp(tnp.sign, POINT)[1](MOVED)
    pairing = (np.asarray(pulled) * dz).real.sum(), (np.asarray(moved) * np.asarray(MOVED)).real.sum()
    assert pairing[0] == pytest.approx(pairing[1], rel=1e-12)
    assert complex(way(lambda z: jvp(tnp.sign, (z,), (1.0 + 1.0j,))[1])(0j)) == 0
