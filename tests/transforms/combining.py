"""Transforms as functions from programs to programs, each with what it means in plain calls of the program.

A program takes a tree and gives a tree. A derivative means a central difference, a batch a loop over calls, control
flow its Python. What stands inside is called compiled, so only the outermost transform is on trial.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import tracer
import tracer.numpy as tnp
from tests.transforms.programs import Example
from tracer import lax, tree
from tracer.primitives.reference import run_reference
from tracer.trace.stage import stage

Function = Callable[[Any], Any]
STEP = 1e-6  # of central differences: their error is about STEP² and 1e-16 / STEP, of values near 1
TOLERANCE = 2e-7  # of derivatives against differences, relative to the largest element
EXACT = 1e-11  # of what computes the same numbers in another order
SCALES = (1.0, 0.97, 1.02)  # of the lanes of a batch


class Transform(NamedTuple):
    """name; apply(f) -> g; meaning(f)(x) -> g(x) by calls of f; whether that is inexact; whether it pushes forward."""

    name: str
    apply: Callable[[Function], Function]
    meaning: Callable[[Function], Function]
    differences: bool = False
    forward: bool = False


# Trees as vectors of real numbers


def weights(leaf: Any) -> np.ndarray[Any, Any]:
    """Fixed numbers of a leaf's shape and dtype."""
    base = 0.8 + 0.5 * np.sin(1.0 + np.arange(np.size(leaf), dtype=float)).reshape(np.shape(leaf))
    return base * (1.0 - 0.4j) if np.iscomplexobj(leaf) or np.dtype(leaf.dtype).kind == "c" else base


def weighed(y: Any) -> Any:
    """A real scalar of a tree, in which every element counts."""
    total: Any = 0.0
    for leaf in tree.leaves(y):
        part = tnp.asarray(leaf) * weights(leaf)
        total = total + (part.real if part.dtype.kind == "c" else part).sum()
    return total


def direction(x: Any) -> Any:
    return tree.map(lambda leaf: tnp.asarray(weights(leaf)[::-1].copy() if np.ndim(leaf) else weights(leaf)), x)


def moved(x: Any, d: Any, step: float) -> Any:
    return tree.map(lambda a, b: tnp.asarray(np.asarray(a) + step * np.asarray(b)), x, d)


def basis(x: Any) -> Iterator[tuple[int, tuple[int, ...], Any]]:
    """(leaf, place, tree that is one there), for every element."""
    leaves, structure = tracer.tree_util.tree_flatten(x)
    for number, leaf in enumerate(leaves):
        for place in np.ndindex(np.shape(leaf)):
            unit = [np.zeros(np.shape(other), np.asarray(other).dtype) for other in leaves]
            unit[number][place] = 1.0
            yield number, place, tracer.tree_util.tree_unflatten(structure, unit)


# Meanings


def difference(f: Function, x: Any, d: Any) -> Any:
    above, below = f(moved(x, d, STEP)), f(moved(x, d, -STEP))
    return tree.map(lambda a, b: (np.asarray(a) - np.asarray(b)) / (2 * STEP), above, below)


def gradient_by_differences(f: Function) -> Function:
    """JAX's convention: the derivative by the real part, minus i times that by the imaginary part."""

    def gradient(x: Any) -> Any:
        leaves, structure = tracer.tree_util.tree_flatten(x)
        result = [np.zeros(np.shape(leaf), np.asarray(leaf).dtype) for leaf in leaves]
        for number, place, unit in basis(x):
            found = difference(lambda v: weighed(f(v)), x, unit)
            if np.iscomplexobj(result[number]):
                turned = tree.map(lambda u: 1j * u if np.iscomplexobj(u) else u, unit)
                found = found - 1j * difference(lambda v: weighed(f(v)), x, turned)
            result[number][place] = found
        return tracer.tree_util.tree_unflatten(structure, result)

    return gradient


def over_lanes(f: Function) -> Function:
    def summed(x: Any) -> Any:
        parts = [f(moved(x, x, scale - 1.0)) for scale in SCALES]
        return tree.map(lambda *ys: sum(s * np.asarray(y) for s, y in zip(SCALES, ys, strict=True)), *parts)

    return summed


# Transforms


def _lanes(x: Any) -> Any:
    return tree.map(lambda leaf: tnp.stack([tnp.asarray(leaf) + (s - 1.0) * tnp.asarray(leaf) for s in SCALES]), x)


def _scales(y: Any) -> Any:
    return tnp.asarray(SCALES).reshape((3,) + (1,) * (y.ndim - 1))


def vmapped(f: Function) -> Function:
    return lambda x: tree.map(lambda y: (y * _scales(y)).sum(0), tracer.vmap(f)(_lanes(x)))


def summed_by_lanes(f: Function) -> Function:
    """The sum inside the batch, by a collective."""

    def lane(x: Any, scale: Any) -> Any:
        return tree.map(lambda y: lax.psum(y * scale, "lanes"), f(x))

    return lambda x: tracer.vmap(lane, out_axes=None, axis_name="lanes")(_lanes(x), tnp.asarray(SCALES))


def scanned(f: Function) -> Function:
    def loop(x: Any) -> Any:
        start = tree.map(lambda t: tnp.zeros(t.shape, t.dtype), tracer.eval_shape(f, x))

        def step(total: Any, lane: Any) -> Any:
            v, scale = lane
            return tree.map(lambda t, y: t + scale * y, total, f(v)), None

        return lax.scan(step, start, (_lanes(x), tnp.asarray(SCALES)))[0]

    return loop


def looped(f: Function) -> Function:
    def loop(x: Any) -> Any:
        lanes, start = _lanes(x), tree.map(lambda t: tnp.zeros(t.shape, t.dtype), tracer.eval_shape(f, x))

        def step(state: Any) -> Any:
            i, total = state
            scale = tnp.asarray(SCALES)[i]
            y = f(tree.map(lambda leaf: leaf[i], lanes))
            return i + 1, tree.map(lambda t, part: t + scale * part, total, y)

        return lax.while_loop(lambda state: state[0] < 3, step, (0, start))[1]

    return loop


def branched(f: Function) -> Function:
    def choose(x: Any) -> Any:
        flag = weighed(x) > -1e9
        return lax.cond(flag, f, lambda v: tree.map(lambda y: 0.0 * y + tnp.nan, f(v)), x)

    return choose


def gradient(f: Function) -> Function:
    return tracer.grad(lambda x: weighed(f(x)))


def pulled(f: Function) -> Function:
    """The gradient by vjp, its pullback run under jit."""

    def pull(x: Any) -> Any:
        y, pullback = tracer.vjp(lambda v: weighed(f(v)), x)
        return tracer.jit(lambda g: pullback(g)[0])(tnp.ones_like(y))

    return pull


def pushed(f: Function) -> Function:
    return lambda x: tracer.jvp(f, (tree.map(tnp.asarray, x),), (direction(x),))[1]


def linearized(f: Function) -> Function:
    return lambda x: tracer.linearize(f, tree.map(tnp.asarray, x))[1](direction(x))


def by_columns(f: Function) -> Function:
    """The directional derivative by the whole Jacobian, for one real array."""

    def push(x: Any) -> Any:
        leaves = tree.leaves(x)
        if len(leaves) != 1 or np.dtype(leaves[0].dtype if np.ndim(leaves[0]) else float).kind == "c":
            return pushed(f)(x)
        d = direction(x)
        rank = np.ndim(x)
        return tree.map(lambda j: tnp.tensordot(j, d, axes=rank), tracer.jacfwd(f)(tnp.asarray(x)))

    return push


def same(f: Function) -> Function:
    return f


def derivative(f: Function) -> Function:
    return lambda x: difference(f, x, direction(x))


TRANSFORMS = [
    Transform("jit", tracer.jit, same),
    Transform("checkpoint", tracer.checkpoint, same),
    Transform("grad", gradient, gradient_by_differences, differences=True),
    Transform("vjp", pulled, gradient_by_differences, differences=True),
    Transform("jvp", pushed, derivative, differences=True, forward=True),
    Transform("linearize", linearized, derivative, differences=True, forward=True),
    Transform("jacfwd", by_columns, derivative, differences=True, forward=True),
    Transform("vmap", vmapped, over_lanes),
    Transform("psum", summed_by_lanes, over_lanes),
    Transform("scan", scanned, over_lanes),
    Transform("while_loop", looped, over_lanes),
    Transform("cond", branched, same),
]
BY_NAME = {t.name: t for t in TRANSFORMS}

Chain = Sequence[Transform]


def chains(length: int) -> list[Chain]:
    """All of so many transforms; the first stands innermost."""
    return list(product(TRANSFORMS, repeat=length))


def allowed(example: Example, chain: Chain) -> bool:
    """Whether the program has every derivative: a reverse rule has forward derivatives behind a gradient only."""
    if example.forward:
        return True
    for transform in chain:
        if transform.forward:
            return False
        if transform.differences:
            return True
    return True


def composed(f: Function, chain: Chain) -> Function:
    for transform in chain:
        f = transform.apply(f)
    return f


def check(example: Example, chain: Chain) -> None:
    """The outermost transform of the chain means what it should; eagerly, compiled, and by the reference."""
    point = tree.map(tnp.asarray, example.point)
    inner = composed(example.function, chain[:-1])
    last = chain[-1]
    expected = last.meaning(tracer.jit(inner))(point)
    whole = last.apply(inner)
    compiled = tracer.jit(whole)(point)
    label = f"{' of '.join(t.name for t in reversed(chain))} of {example.function.__name__}"
    close(compiled, expected, TOLERANCE if last.differences else EXACT, f"{label}, compiled")
    close(by_reference(whole, point), tree.leaves(compiled), EXACT, f"{label}, by the reference")
    close(whole(point), compiled, EXACT, f"{label}, outside jit")


def by_reference(f: Function, x: Any) -> list[Any]:
    """The leaves of f(x), every operation by NumPy."""
    leaves, structure = tracer.tree_util.tree_flatten(x)

    def flat(inputs: list[Any]) -> list[Any]:
        return tree.leaves(f(tracer.tree_util.tree_unflatten(structure, inputs)))

    staged = stage(flat, [leaf.type for leaf in leaves])
    return run_reference(staged.program, [np.asarray(value) for value in (*staged.constants, *leaves)])


def close(found: Any, expected: Any, tolerance: float, label: str) -> None:
    ours, theirs = tree.leaves(found), tree.leaves(expected)
    assert len(ours) == len(theirs), label
    size = max([1.0, *(float(np.abs(np.asarray(t)).max(initial=0.0)) for t in theirs)])
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=0, atol=tolerance * size, err_msg=label)
