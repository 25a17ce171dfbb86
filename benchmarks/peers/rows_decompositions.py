"""Rows about factorisations and decompositions: many small matrices, one of 50 rows, one of 500.

Answers of eigenvectors and singular vectors are not compared: their signs and phases differ. Beside NumPy stands SciPy
for what NumPy has no name for.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from peers.row import Maker, Row, World
from peers.rows_linalg import matrices, sides

_FAMILY = "decompositions"
_SIZES = ((10000, 4), (0, 50), (0, 500))


def _label(count: int, n: int) -> str:
    return f"{count}x{n}x{n}" if count else f"one {n}x{n}"


def _hermitian(count: int, n: int) -> Any:
    values = matrices(count, n)
    return values + np.swapaxes(values, -1, -2)


def _tall(count: int, n: int) -> Any:
    """Matrices of twice as many rows as columns."""
    return np.concatenate([matrices(count, n), 0.5 * matrices(count, n)[..., ::-1, :]], axis=-2)


def _named(name: str) -> Maker:
    return lambda w: getattr(w.np.linalg, name)


def _scipy(name: str) -> Maker:
    """A function of SciPy, and of the modules that have its names."""

    def make(w: World) -> Any:
        package = "scipy" if w.root is None else f"{w.root.__name__}.scipy"
        return getattr(importlib.import_module(f"{package}.linalg"), name)

    return make


def _vmapped(name: str) -> Maker:
    return lambda w: w.root.vmap(_scipy(name)(w))


def _of_size(name: str, make: Callable[[int, int], Any], *, tolerance: float | None = 1e-9) -> list[Row]:
    return [
        Row(
            f"{name} f8 {_label(count, n)}", _FAMILY, lambda count=count, n=n: (make(count, n),), _named(name),
            ("numpy",), tolerance=tolerance,
        )
        for count, n in _SIZES
    ]  # fmt: skip


def _by_scipy(name: str) -> list[Row]:
    """Rows of a function that `numpy.linalg` lacks. JAX's `lu` takes stacks by vmap alone."""
    return [
        Row(
            f"{name} f8 {_label(count, n)}", _FAMILY, lambda count=count, n=n: (matrices(count, n),),
            _vmapped(name) if count else _scipy(name), others={"numpy": _scipy(name)}, tolerance=1e-9,
        )
        for count, n in _SIZES
    ]  # fmt: skip


def _solution(w: World) -> Any:
    return lambda a, b: w.np.linalg.lstsq(a, b)[0]


def _solutions(w: World) -> Any:
    return w.root.vmap(_solution(w))


def _least_squares(count: int, n: int) -> Row:
    return Row(
        f"lstsq f8 {count or 'one'} of {2 * n}x{n}", _FAMILY, lambda: (_tall(count, n), sides(count, 2 * n)),
        _solutions if count else _solution, () if count else ("numpy",), tolerance=1e-9,
    )  # fmt: skip


def _solve(count: int, n: int) -> Row:
    return Row(
        f"solve f8 {_label(count, n)}", _FAMILY, lambda: (matrices(count, n), sides(count, n)), _named("solve"),
        ("numpy",), tolerance=1e-9,
    )  # fmt: skip


_ELSEWHERE = ("solve f8 10000x4x4", "cholesky f8 10000x4x4")  # rows of `rows_linalg`
_ALL = [
    *_of_size("qr", matrices),
    *_of_size("svd", matrices, tolerance=None),
    *_of_size("eigh", _hermitian, tolerance=None),
    *_of_size("eigvalsh", _hermitian),
    *_of_size("eig", matrices, tolerance=None),
    *_of_size("cholesky", partial(matrices, positive=True)),
    *_by_scipy("lu"),
    *_by_scipy("expm"),
    *(_solve(count, n) for count, n in _SIZES),
    *(_least_squares(count, n) for count, n in _SIZES),
]
ROWS = [row for row in _ALL if row.name not in _ELSEWHERE]
