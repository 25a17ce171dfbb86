"""Collectives: operations across the lanes of a named batch axis, `vmap(f, axis_name="i")`.

Batching by that axis turns them into ordinary reductions; batching by another leaves them as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.ir.primitive import NoRule, Primitive, Rule
from tracer.ir.types import Shape, Type, array_type, with_shape
from tracer.primitives.arithmetic import div, mul
from tracer.primitives.broadcasting import axis_of, broadcast_in_dim, reduce_sum
from tracer.primitives.reductions import reduce_max, reduce_min
from tracer.primitives.rules import linear_jvp
from tracer.primitives.shapes import Batched, iota, moveaxis, reshape
from tracer.primitives.slicing import dynamic_slice
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.trace.trace import as_literal, bind

Names = Any  # a hashable name, or a tuple of them

_ONLY_BATCHED = "a collective is an operation across the lanes of vmap, which batching has replaced before it would run"
_LAWS = {"all": "it stands in programs until vmap batches them by its axis, and is never executed"}


def _names(names: Names) -> tuple[Any, ...]:
    return tuple(names) if isinstance(names, list | tuple) else (names,)


def size_of_axis(operation: str, name: object) -> int:
    """The size of a named batch axis. Raises ArgumentError outside of it."""
    size = state.axes.get(name)
    if size is None:
        known = ", ".join(map(repr, state.axes)) or "none"
        raise ArgumentError(
            message(
                f"{operation}{here()}: no batch axis is called {name!r}",
                f"there are {known}",
                help=f"map the function by vmap(f, axis_name={name!r})",
            )
        )
    return size


def _across(name: str, reduce: Callable[..., Any], unbatched: Callable[[Any, int], Any]) -> Rule:
    """The batch rule of a reduction: over the batch axis if it is the named one, lane by lane if not."""

    def batch(ctx: Any, xs: Sequence[Any], axes: Sequence[int | None], *, axis_name: object) -> Batched:
        (x,), (axis,) = xs, axes
        if ctx.axis_name != axis_name:
            return ctx.bind_all(ctx.primitive, xs, {"axis_name": axis_name}), [axis]
        return [unbatched(x, ctx.size) if axis is None else reduce(x, (axis,))], [None]

    return batch


def _sum_transpose(ctx: Any, cts: Any, xs: Any, *, axis_name: object) -> list[Any]:
    return [bind(ctx.primitive, cts[0], axis_name=axis_name)]


psum_p = Primitive(
    name="psum", infer=lambda x, *, axis_name: x, reference=NoRule(_ONLY_BATCHED),
    jvp=linear_jvp, transpose=_sum_transpose,
    batch=_across("psum", reduce_sum, lambda x, size: mul(x, x.type.dtype.type(size))),
    lower=NoRule(_ONLY_BATCHED), laws=_LAWS,
)  # fmt: skip

pmax_p, pmin_p = (
    Primitive(
        name=name, infer=lambda x, *, axis_name: x, reference=NoRule(_ONLY_BATCHED),
        jvp=NoRule(f"{name} has no derivative; all_gather and a maximum have"),
        transpose=NoRule(f"{name} is not linear"),
        batch=_across(name, reduce, lambda x, size: x), lower=NoRule(_ONLY_BATCHED), laws=_LAWS,
    )
    for name, reduce in (("pmax", reduce_max), ("pmin", reduce_min))
)  # fmt: skip


def _gather_infer(x: Type, *, axis_name: object, axis_size: int, axis: int) -> Type:
    return with_shape(x, (*x.shape[:axis], axis_size, *x.shape[axis:]))


def _gather_batch(
    ctx: Any, xs: Sequence[Any], axes: Sequence[int | None], *, axis_name: object, axis_size: int, axis: int
) -> Batched:
    (x,), (lane,) = xs, axes
    if ctx.axis_name != axis_name:
        params = {"axis_name": axis_name, "axis_size": axis_size, "axis": axis + 1}
        return ctx.bind_all(ctx.primitive, [ctx.to_front(x, lane)], params), [0]
    if lane is not None:
        return [moveaxis(x, lane, axis)], [None]
    shape: Shape = x.type.shape
    kept = [d + (d >= axis) for d in range(len(shape))]
    return [broadcast_in_dim(x, (*shape[:axis], ctx.size, *shape[axis:]), kept)], [None]


def _gather_transpose(ctx: Any, cts: Any, xs: Any, *, axis_name: object, axis_size: int, axis: int) -> list[Any]:
    """Each lane's own slice of the sum of all cotangents."""
    total = bind(psum_p, cts[0], axis_name=axis_name)
    starts = [axis_index(axis_name) if d == axis else as_literal(0, dtypes.I64) for d in range(total.ndim)]
    sizes = [1 if d == axis else n for d, n in enumerate(total.shape)]
    return [reshape(dynamic_slice(total, starts, sizes), xs[0].type.shape)]


all_gather_p = Primitive(
    name="all_gather", infer=_gather_infer, reference=NoRule(_ONLY_BATCHED),
    jvp=linear_jvp, transpose=_gather_transpose, batch=_gather_batch, lower=NoRule(_ONLY_BATCHED), laws=_LAWS,
)  # fmt: skip


def _index_batch(ctx: Any, xs: Any, axes: Any, *, axis_name: object) -> Batched:
    if ctx.axis_name != axis_name:
        return [bind(axis_index_p, axis_name=axis_name)], [None]
    return [iota(dtypes.I32, ctx.size)], [0]


axis_index_p = Primitive(
    name="axis_index", infer=lambda *, axis_name: array_type(dtypes.I32, ()), reference=NoRule(_ONLY_BATCHED),
    jvp=NoRule("axis_index has no operands"), transpose=NoRule("axis_index has no operands"), batch=_index_batch,
    lower=NoRule(_ONLY_BATCHED), laws=_LAWS,
)  # fmt: skip


# Public twins


def _reduced(primitive: Primitive, x: Any, names: Names) -> Any:
    for name in _names(names):
        size_of_axis(primitive.name, name)

    def reduced(leaf: Any) -> Any:
        array = as_array(leaf, primitive.name)
        for name in _names(names):
            array = bind(primitive, array, axis_name=name)
        return array

    return trees.tree_map(reduced, x)


def psum(x: Any, axis_name: Names) -> Any:
    """The sums over the lanes of a named batch axis, or of several, of every leaf; a Python number is multiplied.

    >>> tracer.vmap(lambda x: x / tracer.lax.psum(x, "i"), axis_name="i")(tnp.asarray([1.0, 3.0]))
    Array([0.25, 0.75], f64)
    """
    if isinstance(x, int | float | complex):
        return x * axis_size(axis_name)
    return _reduced(psum_p, x, axis_name)


def pmean(x: Any, axis_name: Names) -> Any:
    """The means over the lanes of a named batch axis, of every leaf.

    >>> tracer.vmap(lambda x: x - tracer.lax.pmean(x, "i"), axis_name="i")(tnp.asarray([1.0, 3.0]))
    Array([-1.,  1.], f64)
    """
    size = axis_size(axis_name)
    return trees.tree_map(lambda total: div(total, size), psum(trees.tree_map(as_array, x), axis_name))


def pmax(x: Any, axis_name: Names) -> Any:
    """The greatest values over the lanes of a named batch axis, of every leaf.

    >>> tracer.vmap(lambda x: tracer.lax.pmax(x, "i") - x, axis_name="i")(tnp.asarray([1.0, 3.0]))
    Array([2., 0.], f64)
    """
    return _reduced(pmax_p, x, axis_name)


def pmin(x: Any, axis_name: Names) -> Any:
    """The least values over the lanes of a named batch axis, of every leaf.

    >>> tracer.vmap(lambda x: x - tracer.lax.pmin(x, "i"), axis_name="i")(tnp.asarray([1.0, 3.0]))
    Array([0., 2.], f64)
    """
    return _reduced(pmin_p, x, axis_name)


def all_gather(x: Any, axis_name: object, *, axis: int = 0, tiled: bool = False) -> Any:
    """The values of all lanes of a named batch axis along a new axis; along an old one, end to end, if `tiled`.

    >>> tracer.vmap(lambda x: tracer.lax.all_gather(x, "i"), axis_name="i")(tnp.asarray([1.0, 3.0]))
    Array([[1., 3.],
           [1., 3.]], f64)
    """
    size = size_of_axis("all_gather", axis_name)

    def gathered(leaf: Any) -> Any:
        array = as_array(leaf, "all_gather")
        place = axis_of("all_gather", axis, array.ndim + (not tiled))
        result = bind(all_gather_p, array, axis_name=axis_name, axis_size=size, axis=place)
        if not tiled:
            return result
        return reshape(result, (*array.shape[:place], size * array.shape[place], *array.shape[place + 1 :]))

    return trees.tree_map(gathered, x)


def axis_index(axis_name: object) -> Array:
    """The number of the lane along a named batch axis: int32 [].

    >>> tracer.vmap(lambda x: x * tracer.lax.axis_index("i"), axis_name="i")(tnp.asarray([5, 5]))
    Array([0, 5], i64)
    """
    size_of_axis("axis_index", axis_name)
    return bind(axis_index_p, axis_name=axis_name)


def axis_size(axis_name: Names) -> int:
    """How many lanes a named batch axis has; of several names, the product.

    >>> tracer.vmap(lambda x: x / tracer.lax.axis_size("i"), axis_name="i")(tnp.asarray([1.0, 3.0]))
    Array([0.5, 1.5], f64)
    """
    result = 1
    for name in _names(axis_name):
        result *= size_of_axis("axis_size", name)
    return result


COLLECTIVES = (psum_p, pmax_p, pmin_p, all_gather_p, axis_index_p)
