"""Checks for users' tests: derivatives beside finite differences, and steps of training that keep their bits.

Differences are central, along one random direction each, equal in every run: (f(x + h v) - f(x - h v)) / 2h. The step h
is `eps`, by default the cube root of the dtype's precision, which balances truncation and rounding.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from tracer import io, lax, random
from tracer.data.loader import Loader
from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.ir.types import ArrayType
from tracer.nn.module import parts
from tracer.runtime.analysis.cost import bytes_of
from tracer.runtime.jit.jit import JitFunction, jit
from tracer.runtime.jit.trace_call import eval_shape
from tracer.settings import config
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries
from tracer.transforms.jacobian_products import jvp, vjp

Tree = Any
Tolerance = float | Mapping[Any, float] | None
"""One number, or a number by dtype; the usual one for None and for dtypes that are not in it."""
_TOLERANCE = {"f16": 3e-2, "bf16": 2e-1, "f32": 5e-3, "f64": 1e-6, "c64": 5e-3, "c128": 1e-6}


def check_grads(
    f: Callable[..., Any], args: Sequence[Any], order: int, modes: Sequence[str] = ("fwd", "rev"),
    atol: Tolerance = None, rtol: Tolerance = None, eps: float | None = None,
) -> None:  # fmt: skip
    """Compare the derivatives of `f` at `args` with differences, up to an order, in forward and reverse mode.

    f: takes and returns floats, complex numbers, or trees of them; args: a tuple, of any shapes; order: of
    differentiation. modes: applied in every combination. atol, rtol: tolerances, numbers or dicts by dtype; the usual
    ones of the dtype by default. eps: the step. Raises AssertionError that names the difference.

    >>> check_grads(lambda x: x * tnp.sin(x), (1.0,), order=2)
    """
    unknown = [mode for mode in modes if mode not in ("fwd", "rev")]
    if unknown or order < 1:
        wrong = f"modes {unknown}" if unknown else f"order {order}"
        raise ArgumentError(
            message(f"check_grads{here()}: modes are 'fwd' and 'rev', orders from 1 on", f"got {wrong}")
        )
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
    f: Callable[..., Any], f_jvp: Callable[..., Any], args: Sequence[Any], atol: Tolerance = None,
    rtol: Tolerance = None, eps: float | None = None, err_msg: str = "",
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
    f: Callable[..., Any], f_vjp: Callable[..., Any], args: Sequence[Any], atol: Tolerance = None,
    rtol: Tolerance = None, eps: float | None = None, err_msg: str = "",
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
    subject = err_msg or "vjp"
    _agree(value, expected, atol, rtol, f"{subject}: results")
    cotangents = _directions(expected, 2)
    ours, theirs = _terms(pullback(cotangents), tangents), _terms(cotangents, _slope(f, args, tangents, eps))
    leaves = trees.flatten((args, expected))[0]
    absolute, relative = (max((_allowed(given, leaf) for leaf in leaves), default=0.0) for given in (atol, rtol))
    allowed = absolute + relative * float(np.abs(theirs).sum())  # terms may cancel
    np.testing.assert_allclose(ours.sum(), theirs.sum(), rtol=0, atol=allowed, err_msg=f"{subject} beside differences")


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


def _allowed(given: Tolerance, leaf: Any) -> float:
    """Return a given tolerance for the dtype of an array."""
    dtype = np.asarray(leaf).dtype
    if isinstance(given, Mapping):
        given = next((value for key, value in given.items() if np.dtype(key) == dtype), None)
    return _TOLERANCE[dtypes.short_name(dtype)] if given is None else given


def _terms(xs: Tree, ys: Tree) -> Any:
    """Return the real parts of the products of all elements."""
    pairs = zip(trees.flatten(xs)[0], trees.flatten(ys)[0], strict=True)
    return np.concatenate([np.zeros(0), *((_wide(x) * _wide(y)).real.ravel() for x, y in pairs)])


def _agree(found: Tree, expected: Tree, atol: Tolerance, rtol: Tolerance, subject: str) -> None:
    paths = (name.removeprefix("*") for name in trees.leaf_names(found, "*"))
    leaves = zip(paths, trees.flatten(found)[0], trees.flatten(expected)[0], strict=True)
    for path, x, y in leaves:
        np.testing.assert_allclose(
            _wide(x), _wide(y), rtol=_allowed(rtol, x), atol=_allowed(atol, x),
            err_msg=f"{subject}{path} beside differences",
        )  # fmt: skip


def check_training(
    make: Callable[[], Any], step: Callable[..., Any], loader: Loader, steps: int, *, threads: Sequence[int] = (1, 2)
) -> None:
    """Run a training loop in several ways, and require the same bits of its state from all of them.

    make: returns the state at the start, a tree of arrays. step: a function of the state and a batch, whose parts are
    arguments of their own if it is a tuple; returns the next state, or a tuple that begins with it. loader: of batches
    of one size; it is left where it was. steps: how many. threads: numbers of threads to compare.

    The ways: a loop, again; with each number of threads; interrupted halfway, saved to a file and loaded; as one
    `lax.scan`. Floats of the state must be finite, and a step that donates the state must not copy it. Raises
    AssertionError that names the way and the first array that differs, ArgumentError if the loader has fewer batches.

    >>> loader = tracer.data.Loader(np.arange(12.0).reshape(6, 2), 2, key=tracer.random.key(0))
    >>> step = tracer.jit(lambda w, x: w - 0.01 * (x @ w - 1) @ x, donate_argnums=0)
    >>> check_training(lambda: tnp.zeros(2), step, loader, 4)
    """
    place, start = here(), loader.state
    try:
        batches = list(islice(loader, steps))
        if steps < 1 or len(batches) < steps:
            raise ArgumentError(
                message(f"check_training{place} takes 1 step or more, and as many batches", f"got {steps} steps for "
                        f"{len(batches)} batches", help="epochs=None makes a loader without an end")
            )  # fmt: skip
        like = eval_shape(make)
        one = _next_state(like, step)

        def looped(state: Any, count: int) -> Any:
            for batch in islice(loader, count):
                state = one(state, batch)
            return state

        def run() -> Any:
            loader.seek(start)
            return looped(make(), steps)

        expected = run()
        for name, leaf in _named(expected):
            if _is_inexact(leaf) and not bool(np.isfinite(np.asarray(leaf)).all()):
                raise AssertionError(message(f"check_training{place}: {name} is not finite after {steps} steps"))
        _same(f"check_training{place}: the loop again", run(), expected)
        for count in threads:
            with config.using(threads=count):
                _same(f"check_training{place}: on {count} of {list(threads)} threads", run(), expected)
        loader.seek(start)
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "half.safetensors"
            io.save(file, {"state": looped(make(), steps // 2), "loader": loader.state})
            found = io.load(file, {"state": like, "loader": start})
        loader.seek(found["loader"])
        _same(f"check_training{place}: interrupted", looped(found["state"], steps - steps // 2), expected)
        stacked = trees.tree_map(lambda *leaves: np.stack([np.asarray(leaf) for leaf in leaves]), *batches)
        scanned = jit(lambda state, xs: lax.scan(lambda s, x: (one(s, x), None), state, xs)[0])(make(), stacked)
        _same(f"check_training{place}: as one scan", scanned, expected)
        _check_donation(f"check_training{place}", step, like, batches[0])
    finally:
        loader.seek(start)


def _arguments(batch: Any) -> tuple[Any, ...]:
    return batch if type(batch) is tuple else (batch,)


def _next_state(like: Any, step: Callable[..., Any]) -> Callable[[Any, Any], Any]:
    """Return the step as a function of a state and a batch to the next state."""
    structure = trees.flatten(like)[1]

    def one(state: Any, batch: Any) -> Any:
        found = step(state, *_arguments(batch))
        if trees.flatten(found)[1] == structure:
            return found
        if isinstance(found, tuple) and found and trees.flatten(found[0])[1] == structure:
            return found[0]
        raise ArgumentError(
            message(
                f"check_training{here()}: step returns the next state, or a tuple that begins with it",
                f"expected {trees.structure_text(structure)}",
                f"got {trees.structure_text(trees.flatten(found)[1])}",
            )
        )

    return one


def _named(tree: Tree) -> list[tuple[str, Any]]:
    return [(path or "the state", leaf) for path, leaf, _ in parts(tree)]


def _is_inexact(leaf: Any) -> bool:
    return not _is_key(leaf) and dtypes.is_inexact(np.asarray(leaf).dtype)


def _is_key(leaf: Any) -> bool:
    return isinstance(leaf, Array) and not isinstance(leaf.type, ArrayType)


def _same(way: str, found: Tree, expected: Tree) -> None:
    """Raise AssertionError for the first leaf whose bits differ."""
    for (name, x), (_, y) in zip(_named(found), _named(expected), strict=True):
        a, b = (np.asarray(random.key_data(leaf) if _is_key(leaf) else leaf) for leaf in (x, y))
        if (a.dtype, a.shape) != (b.dtype, b.shape):
            raise AssertionError(
                message(f"{way}, {name} has another type", f"expected {b.dtype}{list(b.shape)}",
                        f"got {a.dtype}{list(a.shape)}")
            )  # fmt: skip
        if a.tobytes() != b.tobytes():
            differs = int(np.count_nonzero(a != b))
            most = f", by {np.abs(_wide(a) - _wide(b)).max():.2g} at most" if _is_inexact(a) else ""
            raise AssertionError(message(f"{way}, {name} has other bits", f"{differs} of {a.size} elements{most}"))


def _check_donation(way: str, step: Callable[..., Any], like: Any, batch: Any) -> None:
    """Raise AssertionError if a step that donates its state leaves arrays of the next one in new memory."""
    if not isinstance(step, JitFunction):
        return
    lowered = step.lower(like, *_arguments(batch))
    types = lowered.program().output_types
    count = len(trees.flatten(like)[0])
    donated = lowered._signature.donated(lowered._call)
    # Scalars are returned in new memory; results beside the state do not count
    free = sum(bytes_of(type) for n, type in enumerate(types) if n >= count or not type.shape)
    copied = lowered.memory().results - free
    if set(donated) >= set(range(count)) and copied > 0:
        raise AssertionError(
            message(f"{way}: the step donates the state, and {copied:,} bytes of the next one are in new memory",
                    help="every array of the next state must have the shape and dtype of one of the last")
        )  # fmt: skip


__all__ = ["check_grads", "check_jvp", "check_training", "check_vjp"]

set_boundaries(globals(), __all__)
