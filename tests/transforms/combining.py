"""Transforms as functions from programs to programs, each with what it means in plain calls of the program.

A program takes a tree and gives a tree. A derivative means a central difference, a batch a loop over calls, control
flow its Python. What stands inside is run by the reference, so only the outermost transform is on trial.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from itertools import product
from typing import Any, NamedTuple

import numpy as np

import tracer
import tracer.numpy as tnp
from tests.transforms import written
from tests.transforms.programs import Example
from tests.transforms.written import SCALES, Function, basis, direction, moved, weighed
from tracer import tree
from tracer.primitives.base.reference import run_reference
from tracer.trace.stage import Staged, stage

STEP = 1e-6  # of central differences: their error is about STEP² and 1e-16 / STEP, of values near 1
TOLERANCE = 2e-7  # of derivatives against differences, relative to the largest element
EXACT = 1e-11  # of what computes the same numbers in another order


class Transform(NamedTuple):
    """name; apply(f) -> g; meaning(f)(x) -> g(x) by calls of f. differences: whether that is inexact.

    forward: it asks for the forward derivative. reverse_only: what it gives has none of its own.
    """

    name: str
    apply: Callable[[Function], Function]
    meaning: Callable[[Called], Function]
    differences: bool = False
    forward: bool = False
    reverse_only: bool = False


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


def gradients_of_lanes(f: Function) -> Function:
    return over_lanes(gradient_by_differences(f))


# Transforms


def same(f: Function) -> Function:
    return f


def derivative(f: Function) -> Function:
    return lambda x: difference(f, x, direction(x))


def curvature(f: Called) -> Function:
    """The Hessian of the weighed results times a direction, by differences of the gradient."""
    return lambda x: difference(Called(written.gradient(f.function)), x, direction(x))


def exact(name: str, apply: Callable[[Function], Function], meaning: Callable[[Called], Function]) -> Transform:
    return Transform(name, apply, meaning)


TRANSFORMS = [
    exact("jit", tracer.jit, same),
    exact("checkpoint", tracer.checkpoint, same),
    exact("checkpoint of dots", written.with_dots_kept, same),
    exact("checkpoint of names", written.with_names_kept, same),
    exact("closure_convert", written.closed, same),
    Transform("custom_gradient", written.with_pullback, same, reverse_only=True),
    Transform("custom_jvp", written.with_own_tangents, same, forward=True),
    Transform("custom_vjp", written.with_own_gradients, same, reverse_only=True),
    Transform("grad", written.gradient, gradient_by_differences, differences=True),
    Transform("vjp", written.pulled, gradient_by_differences, differences=True),
    Transform("vjp out of jit", written.pulled_outside, gradient_by_differences, differences=True),
    Transform("vjp out of scan", written.pulled_in_lanes, gradients_of_lanes, differences=True),
    Transform("jacrev", written.by_rows, derivative, differences=True),
    Transform("linear_transpose", written.transposed, gradient_by_differences, differences=True, forward=True),
    Transform("jvp", written.pushed, derivative, differences=True, forward=True),
    Transform("linearize", written.linearized, derivative, differences=True, forward=True),
    Transform("jacfwd", written.by_columns, derivative, differences=True, forward=True),
    Transform("hessian", written.by_hessian, curvature, differences=True),
    Transform("hvp", written.by_product, curvature, differences=True),
    exact("vmap", written.vmapped, over_lanes),
    exact("psum", written.summed_by_lanes, over_lanes),
    exact("all_gather", written.gathered_lanes, over_lanes),
    exact("custom_vmap", written.with_own_batches, over_lanes),
    exact("scan", written.scanned, over_lanes),
    exact("scan in reverse", written.scanned_backwards, over_lanes),
    exact("unrolled scan", written.unrolled, over_lanes),
    exact("map", written.mapped, over_lanes),
    exact("associative_scan", written.by_prefixes, over_lanes),
    exact("while_loop", written.looped, over_lanes),
    exact("fori_loop", written.counted, over_lanes),
    exact("while_loop of lanes", written.stopped_lanes, over_lanes),
    exact("cond", written.branched, same),
    exact("cond of lanes", written.branched_lanes, over_lanes),
    exact("switch", written.switched, same),
]
BY_NAME = {t.name: t for t in TRANSFORMS}

Chain = Sequence[Transform]


def chains(length: int) -> list[Chain]:
    """All of so many transforms; the first stands innermost."""
    return list(product(TRANSFORMS, repeat=length))


# Loops of unknown length move the tangents of all their carries, read or not
_LOOPS = {"while_loop", "while_loop of lanes", "fori_loop"}


def allowed(example: Example, chain: Chain) -> bool:
    """Whether the program has every derivative. Behind a reverse rule there is a forward one after a gradient only."""
    rules, looped = 0 if example.forward else 1, False
    for transform in chain:
        second = transform.name in ("hessian", "hvp")
        if rules > (1 if second and not looped else 0) and (transform.forward or second):
            return False
        rules += transform.reverse_only
        rules -= transform.differences and rules > 0
        looped = looped or transform.name in _LOOPS
    return True


def composed(f: Function, chain: Chain) -> Function:
    for transform in chain:
        f = transform.apply(f)
    return f


class Called:
    """A program from tree to tree that is run by the reference; staged once for all arguments of a kind."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.staged: dict[Any, tuple[Any, Staged]] = {}

    def __call__(self, x: Any) -> Any:
        leaves, structure = tracer.tree_util.tree_flatten(tree.map(tnp.asarray, x))
        key = (structure, tuple(leaf.type for leaf in leaves))
        if key not in self.staged:
            self.staged[key] = self._stage(leaves, structure)
        made, staged = self.staged[key]
        values = run_reference(staged.program, [np.asarray(value) for value in (*staged.constants, *leaves)])
        return tracer.tree_util.tree_unflatten(made, values)

    def _stage(self, leaves: list[Any], structure: Any) -> tuple[Any, Staged]:
        made = []

        def flat(inputs: list[Any]) -> list[Any]:
            results, result = tracer.tree_util.tree_flatten(self.function(structure.unflatten(inputs)))
            made.append(result)
            return results

        staged = stage(flat, [leaf.type for leaf in leaves])
        return made[-1], staged


@lru_cache(maxsize=4)
def inner_of(f: Function, chain: tuple[Transform, ...]) -> Called:
    """All of a chain but its outermost transform, for the chains that differ in that alone."""
    return Called(composed(f, chain))


WAYS = ("by the reference", "outside jit")


def check(example: Example, chain: Chain, ways: Sequence[str] = WAYS) -> None:
    """The outermost transform of the chain means what it should; compiled, and the other `ways` as compiled."""
    point = tree.map(tnp.asarray, example.point)
    inner, last = inner_of(example.function, tuple(chain[:-1])), chain[-1]
    expected = last.meaning(inner)(point)
    whole = last.apply(inner.function)
    compiled = tracer.jit(whole)(point)
    label = f"{' of '.join(t.name for t in reversed(chain))} of {example.function.__name__}"
    close(compiled, expected, TOLERANCE if last.differences else EXACT, f"{label}, compiled")
    for way in ways:
        again = Called(whole) if way == "by the reference" else whole
        close(again(point), compiled, EXACT, f"{label}, {way}")


def close(found: Any, expected: Any, tolerance: float, label: str) -> None:
    ours, theirs = tree.leaves(found), tree.leaves(expected)
    assert len(ours) == len(theirs), label
    size = max([1.0, *(float(np.abs(np.asarray(t)).max(initial=0.0)) for t in theirs)])
    for a, b in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=0, atol=tolerance * size, err_msg=label)
