"""Calls of tracer.numpy's functions that NumPy answers too, by one lambda over the namespace."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

_rng = np.random.default_rng(7)
X = _rng.normal(size=(3, 4))
Y = _rng.normal(size=(3, 4))
Z = X + 1j * Y
P = np.abs(X) + 0.1
UNIT = np.tanh(X)
I = _rng.integers(-9, 9, (3, 4))  # noqa: E741  # integers
J = _rng.integers(1, 7, (3, 4))
B = X > 0
V = _rng.normal(size=5)
M = _rng.normal(size=(4, 2))
T = _rng.normal(size=(2, 3, 4))
ODD = np.array([0.0, -0.0, 1.0, -1.0, 2.5, -2.5, 0.5, 1.5, np.inf, -np.inf, np.nan, 1e300, 5e-324])
WITH_NAN = np.where(X > 0.5, np.nan, X)


@dataclass(frozen=True)
class Case:
    """A call. static: its arguments are constants, so that under jit it has nothing to trace."""

    label: str
    call: Callable[..., Any]
    operands: tuple[Any, ...] = ()


def _each(names: str, *operands: Any) -> list[Case]:
    return [Case(name, lambda xp, *xs, name=name: getattr(xp, name)(*xs), operands) for name in names.split()]


ELEMENTWISE: list[Case] = [
    *_each(
        "sin cos tan arctan sinh tanh arcsinh exp expm1 exp2 square abs fabs sign floor ceil trunc rint isnan isinf "
        "isfinite signbit negative positive cbrt logical_not nan_to_num deg2rad rad2deg isposinf isneginf real conj "
        "imag sinc modf angle",
        ODD,
    ),
    *_each("sqrt log log2 log10 log1p reciprocal arccosh", P),
    *_each("arcsin arccos arctanh", UNIT),
    *_each("sin cos exp log sqrt abs conj real imag angle square sign tanh isnan isfinite reciprocal", Z),
    *_each("abs sign bitwise_not square negative bitwise_count", I),
    *_each("add subtract multiply divide maximum minimum fmax fmin arctan2 hypot logaddexp less equal copysign", X, Y),
    *_each("add subtract multiply divide equal not_equal less greater_equal maximum", Z, Z[::-1]),
    *_each("floor_divide mod fmod bitwise_and bitwise_or bitwise_xor left_shift right_shift power divide", I, J),
    *_each("floor_divide mod divmod fmod", X, Y),
    *_each("mod floor_divide maximum minimum fmax fmin logaddexp heaviside nextafter", ODD[:, None], ODD),
    *_each("logical_and logical_or logical_xor bitwise_and", B, ~B.T.T),
    Case("power fraction", lambda xp, x: xp.power(x, 0.5), (P,)),
    Case("power static", lambda xp, x: x**3, (X,)),
    Case("power of integers wraps", lambda xp, x, y: xp.power(x, 11 * y), (I, J)),
    Case("power of two", lambda xp, x: 2.0**x, (X,)),
    Case("float_power", lambda xp, x: xp.float_power(x, 2), (J,)),
    Case("clip", lambda xp, x: xp.clip(x, -0.5, 0.5), (X,)),
    Case("clip low", lambda xp, x: xp.clip(x, 0, None), (I,)),
    Case("round 2", lambda xp, x: xp.round(x, 2), (X,)),
    Case("round tens", lambda xp, x: xp.round(x, -1), (10 * X,)),
    Case("round int tens", lambda xp, x: xp.round(x, -1), (7 * I,)),
    Case("isclose", lambda xp, x: xp.isclose(x, x + 1e-9), (X,)),
    Case("isclose odd", lambda xp, x: xp.isclose(x[:, None], x, equal_nan=True), (ODD,)),
    Case("allclose", lambda xp, x: xp.allclose(x, x), (X,)),
    Case("array_equal", lambda xp, x, y: xp.array_equal(x, y), (X, Y)),
    Case("where", lambda xp, b, x, y: xp.where(b, x, y), (B, X, Y)),
    Case("where broadcast", lambda xp, b, x: xp.where(b[:, :1], x, 0), (B, X)),
    Case("select", lambda xp, x: xp.select([x < -0.5, x < 0.5], [x, x * 10], 7.0), (X,)),
    Case("nan_to_num options", lambda xp, x: xp.nan_to_num(x, nan=1.0, posinf=2.0, neginf=3.0), (ODD,)),
]

SHAPES: list[Case] = [
    Case("reshape", lambda xp, x: xp.reshape(x, (2, -1)), (X,)),
    Case("reshape F", lambda xp, x: xp.reshape(x, (2, 6), order="F"), (X,)),
    Case("ravel", lambda xp, x: xp.ravel(x), (T,)),
    Case("transpose", lambda xp, x: xp.transpose(x, (2, 0, 1)), (T,)),
    Case("moveaxis", lambda xp, x: xp.moveaxis(x, (0, 1), (-1, 0)), (T,)),
    Case("rollaxis", lambda xp, x: xp.rollaxis(x, 2, 1), (T,)),
    Case("swapaxes", lambda xp, x: xp.swapaxes(x, 0, -1), (T,)),
    Case("squeeze", lambda xp, x: xp.squeeze(x[None, :, None]), (X,)),
    Case("expand_dims", lambda xp, x: xp.expand_dims(x, (0, 2)), (X,)),
    Case("broadcast_to", lambda xp, x: xp.broadcast_to(x, (2, 3, 4)), (X,)),
    Case("flip", lambda xp, x: xp.flip(x, (0, 2)), (T,)),
    Case("fliplr", lambda xp, x: xp.fliplr(x), (X,)),
    *[Case(f"rot90 {k}", lambda xp, x, k=k: xp.rot90(x, k), (X,)) for k in (-1, 0, 1, 2)],
    Case("concatenate", lambda xp, x, y: xp.concatenate([x, y[:1], x]), (X, Y)),
    Case("concatenate flat", lambda xp, x, y: xp.concatenate([x, y], axis=None), (X, V)),
    Case("stack", lambda xp, x, y: xp.stack([x, y], axis=-1), (X, Y)),
    Case("vstack", lambda xp, x, y: xp.vstack([x, y]), (V, V)),
    Case("hstack", lambda xp, x, y: xp.hstack([x, y]), (X, Y)),
    Case("dstack", lambda xp, x, y: xp.dstack([x, y]), (X, Y)),
    Case("column_stack", lambda xp, x, y: xp.column_stack([x, y]), (V, V)),
    Case("block", lambda xp, x, y: xp.block([[x, y], [y, x]]), (X, Y)),
    Case("append", lambda xp, x, y: xp.append(x, y, axis=1), (X, Y)),
    Case("split", lambda xp, x: xp.split(x, 2, axis=1), (X,)),
    Case("split at", lambda xp, x: xp.split(x, [1, 3], axis=1), (X,)),
    Case("array_split", lambda xp, x: xp.array_split(x, 3), (V,)),
    Case("tile", lambda xp, x: xp.tile(x, (2, 1, 2)), (X,)),
    Case("repeat", lambda xp, x: xp.repeat(x, 2, axis=1), (X,)),
    Case("repeat each", lambda xp, x: xp.repeat(x, [1, 0, 2], axis=0), (X,)),
    Case("roll", lambda xp, x: xp.roll(x, (1, -2), (0, 1)), (X,)),
    Case("roll flat", lambda xp, x: xp.roll(x, 3), (X,)),
    *[
        Case(f"pad {mode}", lambda xp, x, mode=mode: xp.pad(x, ((2, 1), (0, 3)), mode=mode), (X,))
        for mode in (
            "constant",
            "edge",
            "wrap",
            "reflect",
            "symmetric",
            "linear_ramp",
            "maximum",
            "minimum",
            "mean",
            "median",
        )
    ],
    Case("pad value", lambda xp, x: xp.pad(x, 1, constant_values=((1.0, 2.0), (3.0, 4.0))), (X,)),
    Case("pad stat_length", lambda xp, x: xp.pad(x, 2, mode="mean", stat_length=2), (X,)),
    Case("atleast_3d", lambda xp, x: xp.atleast_3d(x), (X,)),
    Case("diff", lambda xp, x: xp.diff(x, n=2, axis=1), (X,)),
    Case("diff ends", lambda xp, x: xp.diff(x, prepend=0.0, append=x), (V,)),
    Case("tril", lambda xp, x: xp.tril(x, -1), (T,)),
    Case("triu", lambda xp, x: xp.triu(x, 1), (T,)),
    *[Case(f"diag {k}", lambda xp, x, k=k: xp.diag(x, k), (V,)) for k in (-2, 0, 1)],
    *[Case(f"diagonal {k}", lambda xp, x, k=k: xp.diagonal(x, k, 2, 0), (T,)) for k in (-1, 0, 2)],
    Case("diagonal bool", lambda xp, x: xp.diagonal(x), (B,)),
    Case("meshgrid", lambda xp, x, y: xp.meshgrid(x, y[:2], x), (V, V)),
    Case("meshgrid ij sparse", lambda xp, x, y: xp.meshgrid(x, y[:2], indexing="ij", sparse=True), (V, V)),
]

CREATION: list[Case] = [
    Case("eye", lambda xp: xp.eye(3, 4, -1)),
    Case("tri", lambda xp: xp.tri(3, 4, 1)),
    Case("identity", lambda xp: xp.identity(3)),
    Case("arange", lambda xp: xp.arange(2, 11, 3)),
    Case("arange down", lambda xp: xp.arange(5, -5, -3)),
    Case("arange float", lambda xp: xp.arange(0.0, 1.0, 0.3)),
    Case("arange nothing", lambda xp: xp.arange(3, 3)),
    Case("linspace", lambda xp: xp.linspace(-1.0, 2.0, 7)),
    Case("linspace open", lambda xp: xp.linspace(0, 1, 4, endpoint=False)),
    Case("linspace int", lambda xp: xp.linspace(0, 10, 4, dtype=int)),
    Case("linspace of arrays", lambda xp, v: xp.linspace(v, 2 * v, 3, axis=1), (V,)),
    Case("logspace", lambda xp: xp.logspace(0.0, 2.0, 5)),
    Case("full", lambda xp, v: xp.full((2, 5), v), (V,)),
    Case("zeros_like", lambda xp, x: xp.zeros_like(x), (I,)),
    Case("indices", lambda xp: xp.indices((2, 3))),
]

REDUCTIONS: list[Case] = [
    *[
        Case(f"{name} {axis}", lambda xp, x, name=name, axis=axis: getattr(xp, name)(x, axis=axis), (T,))
        for name in ("sum", "prod", "mean", "var", "std", "max", "min", "all", "any", "median", "ptp", "count_nonzero")
        for axis in (None, 1, (0, 2))
    ],
    *[
        Case(f"{name} keepdims", lambda xp, x, name=name: getattr(xp, name)(x, axis=-1, keepdims=True), (T,))
        for name in ("sum", "mean", "std", "max", "argmax", "argmin", "any", "median")
    ],
    *[
        Case(f"{name} {axis}", lambda xp, x, name=name, axis=axis: getattr(xp, name)(x, axis=axis), (X,))
        for name in ("argmax", "argmin", "cumsum", "cumprod", "sort", "argsort")
        for axis in (None, 0, -1)
    ],
    *_each("sum prod mean var max min argmax ptp cumsum any all", I),
    *_each("sum prod mean var std max min sort cumsum", Z),
    *_each("sum mean max any all argmax", B),
    *_each("nansum nanmean nanmax nanmin nancumsum nancumprod nanargmax nanargmin", WITH_NAN),
    *_each("max min argmax argmin sum median sort argsort", ODD),
    Case("sum where", lambda xp, x, b: xp.sum(x, axis=0, where=b, initial=3.0), (X, B)),
    Case("mean where", lambda xp, x: xp.mean(x, axis=1, where=x > -1.0), (X,)),
    Case("max where", lambda xp, x, b: xp.max(x, axis=0, where=b, initial=-9.0), (X, B)),
    Case("max initial", lambda xp, x: xp.max(x, initial=0.7), (X,)),
    Case("var ddof", lambda xp, x: xp.var(x, axis=1, ddof=1), (X,)),
    Case("average weights", lambda xp, x, w: xp.average(x, axis=1, weights=w), (X, P[0])),
    Case("bincount", lambda xp: xp.bincount(np.array([0, 1, 1, 5]), weights=np.arange(4.0), minlength=8)),
]

SEARCHES: list[Case] = [
    *[
        Case(f"searchsorted {side}", lambda xp, x, v, side=side: xp.searchsorted(np.sort(x), v, side=side), (ODD, V))
        for side in ("left", "right")
    ],
    Case("searchsorted ties", lambda xp: xp.searchsorted(np.array([1, 2, 2, 3]), np.arange(5), side="right")),
    Case("lexsort", lambda xp, x: xp.lexsort((x, np.array([1, 0, 1, 0, 1]))), (V,)),
    Case("isin", lambda xp, x: xp.isin(x, [1, 3, -5]), (I,)),
    Case("nonzero", lambda xp: xp.nonzero(B)),
    Case("argwhere", lambda xp: xp.argwhere(B)),
    Case("flatnonzero", lambda xp: xp.flatnonzero(I)),
    Case("unique", lambda xp: xp.unique(I, return_index=True, return_inverse=True, return_counts=True)),
    Case("unique axis", lambda xp: xp.unique(np.array([[1, 2], [1, 2], [0, 2]]), axis=0)),
    Case("choose", lambda xp, x: xp.choose(np.array([0, 1, 1, 0]), [x[0], x[1]]), (X,)),
    Case("compress", lambda xp, x: xp.compress(np.array([True, False, True]), x, axis=0), (X,)),
    Case("apply_along_axis", lambda xp, x: xp.apply_along_axis(lambda v: xp.sum(v * v), 1, x), (T,)),
]

PRODUCTS: list[Case] = [
    *[
        Case(
            f"matmul {a}@{b}",
            lambda xp, x, y: xp.matmul(x, y),
            (np.ones(a) * 1.5, np.arange(np.prod(b)).reshape(b) / 7),
        )
        for a, b in [
            ((3,), (3,)),
            ((2, 3), (3,)),
            ((3,), (3, 2)),
            ((2, 3), (3, 4)),
            ((5, 2, 3), (3,)),
            ((3,), (5, 3, 2)),
            ((5, 2, 3), (3, 4)),
            ((2, 3), (5, 3, 4)),
            ((5, 2, 3), (5, 3, 4)),
            ((1, 2, 3), (5, 3, 4)),
            ((6, 1, 2, 3), (5, 3, 4)),
            ((5, 2, 3), (1, 3, 4)),
            ((0, 3), (3, 2)),
            ((2, 0), (0, 3)),
        ]
    ],
    Case("dot", lambda xp, x, y: xp.dot(x, y), (T, M)),
    Case("dot scalars", lambda xp, x: xp.dot(2.0, x), (X,)),
    Case("vdot", lambda xp, x, y: xp.vdot(x, y), (Z, Z[::-1])),
    Case("vecdot", lambda xp, x, y: xp.vecdot(x, y), (Z, Z[0])),
    Case("inner", lambda xp, x, y: xp.inner(x, y), (T, X)),
    Case("outer", lambda xp, x, y: xp.outer(x, y), (X, V)),
    Case("tensordot", lambda xp, x, y: xp.tensordot(x, y, ([1, 2], [0, 1])), (T, X)),
    Case("tensordot 0", lambda xp, x, y: xp.tensordot(x, y, 0), (V, M)),
    Case("kron", lambda xp, x, y: xp.kron(x, y), (X, M)),
    Case("cross", lambda xp, x, y: xp.cross(x[:, :3], y[:, :3]), (X, Y)),
    Case("trace", lambda xp, x: xp.trace(x, 1), (X,)),
    Case("matmul int", lambda xp, x, y: x @ y, (I, J.T)),
    *[
        Case(f"einsum {s}", lambda xp, *xs, s=s: xp.einsum(s, *xs), operands)
        for s, operands in [
            ("ij,kj->ik", (X, Y)),
            ("ij->ji", (X,)),
            ("ij->", (X,)),
            ("ii->i", (X[:, :3],)),
            ("ii", (X[:, :3],)),
            ("ij,ij->ij", (X, Y)),
            ("...ij,jk->...ik", (T, M)),
            ("i,j,k->kij", (V, V, V[:2])),
            ("ij,jk,kl->il", (X, M, M.T)),
            ("bij,bjk", (T, np.swapaxes(T, 1, 2))),
            ("i,i", (V, V)),
            ("ij,j", (X, X[0])),
            ("...,...", (X, Y)),
            ("ijk,i->jk", (T, V[:2])),
            ("ba", (X,)),
            ("ij,kl->", (X, Y)),
        ]
    ],
    Case("einsum lists", lambda xp, x, y: xp.einsum(x, [0, 1], y, [2, 1], [0, 2]), (X, Y)),
    Case("norm", lambda xp, x: xp.linalg.norm(x), (X,)),
    *[Case(f"norm {o}", lambda xp, x, o=o: xp.linalg.norm(x, o, axis=1), (X,)) for o in (1, 2, 3, np.inf, -np.inf, 0)],
    *[
        Case(f"matrix norm {o}", lambda xp, x, o=o: xp.linalg.norm(x, o, axis=(0, 2)), (T,))
        for o in ("fro", 1, -1, np.inf)
    ],
    Case("norm complex", lambda xp, x: xp.linalg.norm(x, axis=0, keepdims=True), (Z,)),
    Case("matrix_power", lambda xp, x: xp.linalg.matrix_power(x, 5), (X[:, :3],)),
    Case("multi_dot", lambda xp, x, y, z: xp.linalg.multi_dot([x, y, z]), (X, M, M.T)),
]

CASES = [*ELEMENTWISE, *SHAPES, *CREATION, *REDUCTIONS, *SEARCHES, *PRODUCTS]
