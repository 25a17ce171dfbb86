"""The transforms and constructs of `combining`, written as a user would, each as a function from program to program.

A program takes a tree and gives a tree; a batch is three lanes, summed by their scales.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import tracer
import tracer.numpy as tnp
from tracer import lax, tree

Function = Callable[[Any], Any]
SCALES = (1.0, 0.97, 1.02)  # of the lanes of a batch


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


# Batches and loops over the lanes


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


def _total(f: Function, **options: Any) -> Function:
    def loop(x: Any) -> Any:
        start = tree.map(lambda t: tnp.zeros(t.shape, t.dtype), tracer.eval_shape(f, x))

        def step(total: Any, lane: Any) -> Any:
            v, scale = lane
            return tree.map(lambda t, y: t + scale * y, total, f(v)), None

        return lax.scan(step, start, (_lanes(x), tnp.asarray(SCALES)), **options)[0]

    return loop


def scanned(f: Function) -> Function:
    return _total(f)


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


def gathered_lanes(f: Function) -> Function:
    """Every lane sums what all have, and the mean over the lanes is taken by a collective."""

    def lane(x: Any, scale: Any) -> Any:
        def total(y: Any) -> Any:
            every = lax.all_gather(y * scale, "lanes")
            return lax.pmean(every.sum(0), "lanes")

        return tree.map(total, f(x))

    return lambda x: tracer.vmap(lane, out_axes=None, axis_name="lanes")(_lanes(x), tnp.asarray(SCALES))


def with_own_batches(f: Function) -> Function:
    """A batch of a function that says itself what its batches are: one lane after another."""
    return vmapped(tracer.custom_batching.sequential_vmap(f))


def unrolled(f: Function) -> Function:
    return _total(f, unroll=2)


def scanned_backwards(f: Function) -> Function:
    """The results stacked, the last lane first to run; the carry counts."""

    def loop(x: Any) -> Any:
        def step(count: Any, lane: Any) -> Any:
            v, scale = lane
            return count + 1, tree.map(lambda y: scale * y, f(v))

        _, ys = lax.scan(step, 0, (_lanes(x), tnp.asarray(SCALES)), reverse=True)
        return tree.map(lambda y: y.sum(0), ys)

    return loop


def mapped(f: Function) -> Function:
    """Two lanes at once, then the one that is left."""

    def lane(pair: Any) -> Any:
        v, scale = pair
        return tree.map(lambda y: scale * y, f(v))

    return lambda x: tree.map(lambda y: y.sum(0), lax.map(lane, (_lanes(x), tnp.asarray(SCALES)), batch_size=2))


def by_prefixes(f: Function) -> Function:
    """The last of the sums of the first lanes."""

    def sums(x: Any) -> Any:
        ys = tree.map(lambda y: y * _scales(y), tracer.vmap(f)(_lanes(x)))
        totals = lax.associative_scan(lambda a, b: tree.map(lambda u, v: u + v, a, b), ys)
        return tree.map(lambda y: y[-1], totals)

    return sums


def counted(f: Function) -> Function:
    """A loop whose length only the program knows, over lanes looked up by their number."""

    def loop(x: Any) -> Any:
        lanes, start = _lanes(x), tree.map(lambda t: tnp.zeros(t.shape, t.dtype), tracer.eval_shape(f, x))
        steps = 3 + (abs(weighed(x)) > 1e9).astype(int)

        def step(i: Any, total: Any) -> Any:
            y = f(tree.map(lambda leaf: leaf[i], lanes))
            return tree.map(lambda t, part: t + tnp.asarray(SCALES)[i] * part, total, y)

        return lax.fori_loop(0, steps, step, start)

    return loop


def stopped_lanes(f: Function) -> Function:
    """Every lane loops until its own count: none, one or two steps of `f`, which are then put right."""

    def lane(v: Any, scale: Any, steps: Any) -> Any:
        start = tree.map(lambda t: tnp.zeros(t.shape, t.dtype), tracer.eval_shape(f, v))

        def step(state: Any) -> Any:
            i, total = state
            return i + 1, tree.map(lambda t, y: t + scale * y, total, f(v))

        done, total = lax.while_loop(lambda state: state[0] < steps, step, (0, start))
        missing = tree.map(lambda y: scale * y, f(v))
        return tree.map(lambda t, y: t + (1 - done) * y, total, missing)

    def batch(x: Any) -> Any:
        ys = tracer.vmap(lane)(_lanes(x), tnp.asarray(SCALES), tnp.asarray([0, 1, 2]))
        return tree.map(lambda y: y.sum(0), ys)

    return batch


# Branches


def branched(f: Function) -> Function:
    def choose(x: Any) -> Any:
        flag = weighed(x) > -1e9
        return lax.cond(flag, f, lambda v: tree.map(lambda y: 0.0 * y + tnp.nan, f(v)), x)

    return choose


def branched_lanes(f: Function) -> Function:
    """Lanes part: two run `f`, one says the same by other operations; what no lane takes is not a number."""

    def lane(v: Any, scale: Any, number: Any) -> Any:
        branches = [
            lambda v: tree.map(lambda y: scale * y, f(v)),
            lambda v: tree.map(lambda y: 0.5 * scale * (y + y), f(v)),
            lambda v: tree.map(lambda y: tnp.nan * y, f(v)),
        ]
        return lax.switch(number, branches, v)

    def batch(x: Any) -> Any:
        ys = tracer.vmap(lane)(_lanes(x), tnp.asarray(SCALES), tnp.asarray([0, 1, 0]))
        return tree.map(lambda y: y.sum(0), ys)

    return batch


def switched(f: Function) -> Function:
    def choose(x: Any) -> Any:
        number = 1 + (weighed(x) < -1e9).astype(int)
        broken = lambda v: tree.map(lambda y: y / 0.0, f(v))  # noqa: E731
        return lax.switch(number, [broken, f, broken], x)

    return choose


# Rules and closures


def with_dots_kept(f: Function) -> Function:
    return tracer.checkpoint(f, policy=tracer.checkpoint_policies.dots_saveable)


def with_names_kept(f: Function) -> Function:
    def named(x: Any) -> Any:
        return f(tracer.ad_checkpoint.checkpoint_name(tree.map(lambda v: 1.0 * v, x), "entry"))

    return tracer.checkpoint(named, policy=tracer.checkpoint_policies.save_only_these_names("entry"))


def closed(f: Function) -> Function:
    """What the function closes over, handed over as arguments."""

    def convert(x: Any) -> Any:
        converted, captured = tracer.closure_convert(lambda s: tree.map(lambda y: s * y, f(x)), 1.0)
        return converted(1.0, *captured)

    return convert


def with_own_tangents(f: Function) -> Function:
    g = tracer.custom_jvp(f)
    g.defjvp(lambda primals, tangents: tracer.jvp(f, primals, tangents))
    return g


def with_own_gradients(f: Function) -> Function:
    g = tracer.custom_vjp(f)
    g.defvjp(lambda x: (f(x), x), lambda x, ct: tracer.vjp(f, x)[1](ct))
    return g


def with_pullback(f: Function) -> Function:
    return tracer.custom_gradient(lambda x: tracer.vjp(f, x))


# Derivatives


def gradient(f: Function) -> Function:
    return tracer.grad(lambda x: weighed(f(x)))


def pulled(f: Function) -> Function:
    """The gradient by vjp, its pullback run under jit."""

    def pull(x: Any) -> Any:
        y, pullback = tracer.vjp(lambda v: weighed(f(v)), x)
        return tracer.jit(lambda g: pullback(g)[0])(tnp.ones_like(y))

    return pull


def pulled_outside(f: Function) -> Function:
    """The gradient by a pullback that leaves the jit in which it was made."""

    def pull(x: Any) -> Any:
        y, pullback = tracer.jit(lambda u: tracer.vjp(lambda v: weighed(f(v)), u))(x)
        return pullback(tnp.ones_like(y))[0]

    return pull


def pulled_in_lanes(f: Function) -> Function:
    """The gradients of lanes by pullbacks that scan stacked, called in a batch."""

    def pull(x: Any) -> Any:
        _, pullbacks = lax.scan(lambda c, u: (c, tracer.vjp(lambda v: weighed(f(v)), u)[1]), 0, _lanes(x))
        rows = tracer.vmap(lambda pullback: pullback(1.0)[0])(pullbacks)
        return tree.map(lambda row: (row * _scales(row)).sum(0), rows)

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


def by_rows(f: Function) -> Function:
    """The directional derivative by the whole Jacobian in reverse; of complex numbers by the pullback's transpose."""

    def push(x: Any) -> Any:
        y = tracer.eval_shape(f, x)
        values = tree.leaves((x, y))
        if any(np.dtype(getattr(v, "dtype", float)).kind == "c" for v in values):
            return two_pulls(x)
        rows = tracer.jacrev(f)(tree.map(tnp.asarray, x))
        leaves = tree.leaves(direction(x))

        def along(_: Any, row: Any) -> Any:
            return sum(tnp.tensordot(j, d, axes=np.ndim(d)) for j, d in zip(tree.leaves(row), leaves, strict=True))

        return tree.map(along, y, rows)

    def two_pulls(x: Any) -> Any:
        y, pullback = tracer.vjp(f, tree.map(tnp.asarray, x))
        back = tracer.linear_transpose(lambda ct: pullback(ct)[0], y)
        return back(direction(x))[0]

    return push


def transposed(f: Function) -> Function:
    """The gradient, as the transpose of the map of tangents."""

    def pull(x: Any) -> Any:
        y, pushforward = tracer.linearize(f, tree.map(tnp.asarray, x))
        back = tracer.linear_transpose(pushforward, x)
        return back(tree.map(lambda leaf: tnp.asarray(weights(leaf), leaf.dtype), y))[0]

    return pull


def by_hessian(f: Function) -> Function:
    """The Hessian times a direction by its blocks, for real arrays; else by differentiating the gradient."""

    def product(x: Any) -> Any:
        if any(np.dtype(getattr(v, "dtype", float)).kind == "c" for v in tree.leaves(x)):
            return pushed(gradient(f))(x)
        blocks = tracer.hessian(lambda v: weighed(f(v)))(tree.map(tnp.asarray, x))
        leaves, structure = tracer.tree_util.tree_flatten(direction(x))
        rows = structure.flatten_up_to(blocks)
        return tracer.tree_util.tree_unflatten(structure, [
            sum(tnp.tensordot(b, d, axes=np.ndim(d)) for b, d in zip(tree.leaves(row), leaves, strict=True))
            for row in rows
        ])  # fmt: skip

    return product


def by_product(f: Function) -> Function:
    return lambda x: tracer.hvp(lambda v: weighed(f(v)), (tree.map(tnp.asarray, x),), (direction(x),))[0]
