"""Comparison of derivatives with finite differences, for tests of custom rules.

Differences are central, along one random direction each, equal in every run: (f(x + h v) - f(x - h v)) / 2h. The step h
is `eps`, by default the cube root of the dtype's precision, which balances truncation and rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.trace import trees
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries
from tracer.transforms.jacobian_products import jvp, vjp

Tree = Any
_TOLERANCE = {"f16": 3e-2, "bf16": 2e-1, "f32": 5e-3, "f64": 1e-6, "c64": 5e-3, "c128": 1e-6}


def check_grads(
    f: Callable[..., Any], args: Sequence[Any], order: int, modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None, rtol: float | None = None, eps: float | None = None,
) -> None:  # fmt: skip
    """Compare the derivatives of `f` at `args` with differences, up to an order, in forward and reverse mode.

    f: takes and returns floats, complex numbers, or trees of them; args: a tuple, of any shapes; order: of
    differentiation. modes: applied in every combination. atol, rtol: tolerances, by default of the dtype. eps: the
    step. Raises AssertionError that names the difference.

    >>> check_grads(lambda x: x * tnp.sin(x), (1.0,), order=2)
    """
    unknown = [mode for mode in modes if mode not in ("fwd", "rev")]
    if unknown or order < 1:
        what = f"modes {unknown}" if unknown else f"order {order}"
        raise ArgumentError(message(f"check_grads{here()}: modes are 'fwd' and 'rev', orders from 1 on", f"got {what}"))
    _check(f, tuple(args), order, tuple(modes), {"atol": atol, "rtol": rtol, "eps": eps}, "")


def _check(
    f: Callable[..., Any], args: tuple[Any, ...], order: int, modes: tuple[str, ...], options: dict[str, Any], path: str
) -> None:
    if "fwd" in modes:
        check_jvp(f, partial(jvp, f), args, err_msg=f"{path}jvp", **options)
        if order > 1:
            tangents = _directions(args, 1)
            _check(lambda *xs: jvp(f, xs, tangents), args, order - 1, modes, options, f"{path}jvp of ")
    if "rev" in modes:
        check_vjp(f, partial(vjp, f), args, err_msg=f"{path}vjp", **options)
        if order > 1:
            cotangents = _directions(f(*args), 2)
            _check(lambda *xs: vjp(f, *xs)[1](cotangents), args, order - 1, modes, options, f"{path}vjp of ")


def check_jvp(
    f: Callable[..., Any], f_jvp: Callable[..., Any], args: Sequence[Any], atol: float | None = None,
    rtol: float | None = None, eps: float | None = None, err_msg: str = "",
) -> None:  # fmt: skip
    """Compare `f_jvp(primals, tangents)`, which returns results and their tangents, with `f` and its differences.

    args: a tuple of its arguments; atol, rtol, eps: as of `check_grads`; err_msg: prefix of an error. Raises
    AssertionError that names the difference.

    >>> check_jvp(tnp.sin, lambda xs, dxs: (tnp.sin(xs[0]), tnp.cos(xs[0]) * dxs[0]), (1.0,))
    """
    args = tuple(args)
    tangents = _directions(args, 0)
    value, moved = f_jvp(args, tangents)
    _agree(value, f(*args), atol, rtol, f"{err_msg or 'jvp'}: results")
    _agree(moved, _slope(f, args, tangents, eps), atol, rtol, f"{err_msg or 'jvp'}: tangents")


def check_vjp(
    f: Callable[..., Any], f_vjp: Callable[..., Any], args: Sequence[Any], atol: float | None = None,
    rtol: float | None = None, eps: float | None = None, err_msg: str = "",
) -> None:  # fmt: skip
    """Compare `f_vjp(*primals)`, which returns results and a pullback, with `f` and its differences.

    args: a tuple of its arguments; atol, rtol, eps: as of `check_grads`; err_msg: prefix of an error. Raises
    AssertionError that names the difference.

    The pullback of a cotangent, times a direction, equals the cotangent times the slope in that direction. Both are
    sums of plain products, whose real parts are compared.

    >>> check_vjp(tnp.sin, lambda x: (tnp.sin(x), lambda g: (g * tnp.cos(x),)), (1.0,))
    """
    args = tuple(args)
    tangents = _directions(args, 0)
    value, pullback = f_vjp(*args)
    expected = f(*args)
    what = err_msg or "vjp"
    _agree(value, expected, atol, rtol, f"{what}: results")
    cotangents = _directions(expected, 2)
    ours, theirs = _terms(pullback(cotangents), tangents), _terms(cotangents, _slope(f, args, tangents, eps))
    usual = max((_usual(leaf) for leaf in trees.flatten((args, expected))[0]), default=0.0)
    size = float(np.abs(theirs).sum())  # terms may cancel
    allowed = (usual if atol is None else atol) + (usual if rtol is None else rtol) * size
    np.testing.assert_allclose(ours.sum(), theirs.sum(), rtol=0, atol=allowed, err_msg=f"{what} beside differences")


def _directions(tree: Tree, seed: int) -> Tree:
    """Return random arrays of the tree's shapes and dtypes."""
    generator = np.random.default_rng(seed)
    leaves, structure = trees.flatten(tree)

    def drawn(leaf: Any) -> Any:
        x = np.asarray(leaf)
        if not dtypes.is_inexact(x.dtype):
            raise ArgumentError(
                message(
                    f"check of derivatives{here()}: arguments must be floats or complex numbers",
                    f"got {x.dtype}",
                    help="close over other arguments: check_grads(lambda x: f(x, n), (x,), 1)",
                )
            )
        real = generator.standard_normal(x.shape)
        return (real + 1j * generator.standard_normal(x.shape) if dtypes.is_complex(x.dtype) else real).astype(x.dtype)

    return trees.unflatten(structure, [drawn(leaf) for leaf in leaves])


def _slope(f: Callable[..., Any], args: tuple[Any, ...], tangents: Tree, eps: float | None) -> Tree:
    """Return the derivative of f along the tangents."""
    step = eps if eps is not None else max((_step(leaf) for leaf in trees.flatten(args)[0]), default=1.0)

    def at(sign: float) -> Tree:
        return f(*trees.tree_map(lambda x, v: (np.asarray(x) + sign * step * v).astype(v.dtype), args, tangents))

    return trees.tree_map(lambda a, b: (_wide(a) - _wide(b)) / (2 * step), at(1), at(-1))


def _step(leaf: Any) -> float:
    dtype = np.asarray(leaf).dtype
    return float(np.cbrt(float(dtypes.finfo(dtypes.real_dtype(dtype) if dtypes.is_complex(dtype) else dtype).eps)))


def _wide(x: Any) -> Any:
    value = np.asarray(x)
    return value.astype(np.complex128 if dtypes.is_complex(value.dtype) else np.float64)


def _usual(leaf: Any) -> float:
    """Return the tolerance of a dtype."""
    return _TOLERANCE[dtypes.short_name(np.asarray(leaf).dtype)]


def _terms(xs: Tree, ys: Tree) -> Any:
    """Return the real parts of the products of all elements."""
    pairs = zip(trees.flatten(xs)[0], trees.flatten(ys)[0], strict=True)
    return np.concatenate([np.zeros(0), *((_wide(x) * _wide(y)).real.ravel() for x, y in pairs)])


def _agree(found: Tree, expected: Tree, atol: float | None, rtol: float | None, what: str) -> None:
    paths = (name.removeprefix("*") for name in trees.leaf_names(found, "*"))
    leaves = zip(paths, trees.flatten(found)[0], trees.flatten(expected)[0], strict=True)
    for path, x, y in leaves:
        np.testing.assert_allclose(
            _wide(x), _wide(y), rtol=_usual(x) if rtol is None else rtol, atol=_usual(x) if atol is None else atol,
            err_msg=f"{what}{path} beside differences",
        )  # fmt: skip


__all__ = ["check_grads", "check_jvp", "check_vjp"]

set_boundaries(globals(), __all__)
