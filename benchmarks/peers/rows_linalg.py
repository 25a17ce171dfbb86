"""Rows about linear algebra: many small systems, single ones, determinants and their gradients."""

from __future__ import annotations

from typing import Any

import numpy as np

from peers.row import Maker, Row, World


def matrices(count: int, n: int, *, positive: bool = False) -> Any:
    """Well-conditioned matrices [count, n, n], or one [n, n] for a count of 0."""
    values = np.random.default_rng(n).normal(size=(*([count] if count else []), n, n)) / n**0.5 + 2 * np.eye(n)
    return values @ np.swapaxes(values, -1, -2) if positive else values


def sides(count: int, n: int) -> Any:
    return np.random.default_rng(n + 1).normal(size=(*([count] if count else []), n, 1))


def _named(name: str) -> Maker:
    return lambda w: getattr(w.np.linalg, name)


def _logdet_gradient(w: World) -> Any:
    return w.root.grad(lambda a: w.np.linalg.slogdet(a)[1].sum())


def _solve_gradient(w: World) -> Any:
    return w.root.grad(lambda a, b: (w.np.linalg.solve(a, b) ** 2).sum(), argnums=(0, 1))


_FAMILY = "linear algebra"
_SAME = ("numpy",)


def _solve(label: str, count: int, n: int) -> Row:
    return Row(
        f"solve f8 {label}", _FAMILY, lambda: (matrices(count, n), sides(count, n)), _named("solve"), _SAME,
        tolerance=1e-9,
    )  # fmt: skip


def _svdvals_gradient(w: World) -> Any:
    return w.root.grad(lambda a: w.np.linalg.svdvals(a).sum())


def _alone(name: str, count: int, n: int) -> Row:
    positive = name in ("cholesky", "eigvalsh")
    label = f"{count}x{n}x{n}" if count else f"one {n}x{n}"
    return Row(
        f"{name} f8 {label}", _FAMILY, lambda: (matrices(count, n, positive=positive),), _named(name), _SAME,
        tolerance=1e-9,
    )  # fmt: skip


ROWS = [
    _solve("10000x4x4", 10000, 4),
    _solve("1024x8x8", 1024, 8),
    _solve("one 8x8", 0, 8),
    _solve("one 512x512", 0, 512),
    _alone("cholesky", 10000, 4),
    _alone("cholesky", 1000, 16),
    _alone("inv", 10000, 4),
    _alone("det", 10000, 4),
    *(_alone(name, 1000, 8) for name in ("qr", "eigvalsh", "svdvals")),
    *(_alone(name, 0, 256) for name in ("qr", "eigvalsh", "svdvals", "pinv")),
    Row("svdvals gradient f8 1000x8x8", _FAMILY, lambda: (matrices(1000, 8),), _svdvals_gradient, tolerance=1e-9),
    Row("logdet gradient f8 1000x8x8", _FAMILY, lambda: (matrices(1000, 8),), _logdet_gradient, tolerance=1e-9),
    Row(
        "solve gradients f8 1000x4x4", _FAMILY, lambda: (matrices(1000, 4), sides(1000, 4)), _solve_gradient,
        tolerance=1e-9,
    ),
]  # fmt: skip
