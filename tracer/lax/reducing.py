"""`reduce` and `reduce_window` by a user's function; single operations become reduction primitives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import numpy as np

from tracer.errors import ArgumentError, CarryTypeError, ShapeError, message
from tracer.ir import shape as shapes
from tracer.ir.dtypes import DType
from tracer.ir.program import Program
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import array_type, same_up_to_weakness
from tracer.lax.bodies import Body, stage_body
from tracer.primitives.arrays.reductions.pooling import (
    neutral,
    reduce_window_max_p,
    reduce_window_min_p,
    reduce_window_sum_p,
    window_reduction,
)
from tracer.primitives.arrays.reductions.reductions import (
    reduce_and,
    reduce_max,
    reduce_min,
    reduce_or,
    reduce_prod,
    reduce_xor,
)
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.arrays.sliding_windows import dilated, padded, positions, sliding_windows
from tracer.primitives.base.broadcasting import axes_of, broadcast_in_dim, reduce_sum
from tracer.primitives.base.shapes import reshape, transpose
from tracer.primitives.elementwise.arithmetic import add_p, max_p, min_p, mul_p
from tracer.primitives.elementwise.bits import and_p, or_p, xor_p
from tracer.primitives.linalg.convolution_layouts import padtype_to_pads
from tracer.trace import trees
from tracer.trace.array import Array, concrete_value
from tracer.trace.evaluate import evaluate
from tracer.trace.integers import integers, pairs
from tracer.trace.source import here
from tracer.trace.trace import bind
from tracer.transforms.batch import batch_program
from tracer.transforms.functions import check_callable, flatten_arguments

# By the operation on two elements: its reduction, and for windows the primitive and the operation's name
_REDUCTIONS: Final = {
    add_p: reduce_sum, mul_p: reduce_prod, max_p: reduce_max, min_p: reduce_min, and_p: reduce_and, or_p: reduce_or,
    xor_p: reduce_xor,
}  # fmt: skip
_WINDOWS: Final = {
    add_p: (reduce_window_sum_p, ScalarOp.ADD), max_p: (reduce_window_max_p, ScalarOp.MAX),
    min_p: (reduce_window_min_p, ScalarOp.MIN),
}  # fmt: skip


def reduce(
    operands: Any, init_values: Any, computation: Callable[[Any, Any], Any], dimensions: Sequence[int],
    out_sharding: None = None,
) -> Any:  # fmt: skip
    """Join the elements along `dimensions` by an associative function of two scalars, starting from `init_values`.

    operands: an array [*s], or a tree of arrays of one shape; init_values: a scalar for each. computation takes two
    trees of scalars and returns one. Returns the tree with arrays [*s minus dimensions]. One array under a single
    operation (add, mul, max, min, and, or, xor) is reduced by its primitive; otherwise neighbours are joined in pairs,
    many at once. out_sharding: there is one device, so None. Without dimensions, the operands are returned unchanged,
    not even joined with `init_values`. Raises ShapeError where shapes differ, CarryTypeError unless the function
    returns the types that it takes.

    >>> tracer.lax.reduce(tnp.asarray([1.0, 2.0, 3.0]), 0.0, lambda a, b: a + b, (0,))
    Array(6., f64)
    >>> tracer.lax.reduce(tnp.asarray([1.0, 5.0, 3.0]), 0.5, lambda a, b: a * b + a + b, (0,))
    Array(71., f64)
    """
    xs, starts, structure, body = _staged("reduce", operands, init_values, computation)
    axes = axes_of("reduce", dimensions, xs[0].ndim)
    return trees.unflatten(structure, _reduced(xs, starts, body, axes) if axes else xs)


def _staged(
    caller: str, operands: Any, init_values: Any, computation: Callable[[Any, Any], Any]
) -> tuple[list[Array], list[Array], trees.Structure, Body]:
    """Return operands, initial values of their dtypes, and the function of two trees of scalars as a program."""
    check_callable(computation, caller)
    xs, structure = flatten_arguments(operands, caller, lambda: trees.leaf_names(operands, "operands"))
    starts, start_structure = flatten_arguments(
        init_values, caller, lambda: trees.leaf_names(init_values, "init_values")
    )
    if not xs or structure != start_structure or any(x.shape != xs[0].shape for x in xs) or any(s.ndim for s in starts):
        raise ShapeError(
            message(
                f"{caller}{here()}: operands of one shape, and a scalar to start from for each",
                f"got {', '.join(str(x.type) for x in xs) or 'none'} and {', '.join(str(s.type) for s in starts)}",
                help="broadcast the operands; give the initial values in the operands' structure",
            )
        )
    starts = [s.astype(x.dtype) for x, s in zip(xs, starts, strict=True)]
    types = [array_type(x.dtype, ()) for x in xs]
    pair = trees.flatten((trees.unflatten(structure, xs), trees.unflatten(structure, xs)))[1]
    body = stage_body(computation, pair, types * 2, caller)
    returned = body.program.output_types
    if len(returned) != len(types) or not all(map(same_up_to_weakness, types, returned)):
        raise CarryTypeError(
            message(
                f"{caller}{here()}: the function must return what it takes",
                f"it takes {', '.join(map(str, types))} and returns {', '.join(map(str, returned))}",
                help="cast the result with .astype(...)",
            )
        )
    return xs, starts, structure, body


def operation_of(program: Program) -> Any:
    """Return the single primitive that a function of two scalars consists of, or None."""
    if len(program.equations) != 1 or len(program.inputs) != 2:
        return None
    (equation,) = program.equations
    whole = {*equation.inputs} == {*program.inputs} and list(program.outputs) == list(equation.outputs)
    return equation.primitive if whole else None


def _reduced(xs: list[Array], starts: list[Array], body: Body, axes: Sequence[int]) -> list[Any]:
    operation = operation_of(body.program)
    if operation in _REDUCTIONS:
        total = _REDUCTIONS[operation](xs[0], axes)
        return [bind(operation, broadcast_in_dim(starts[0], total.shape, ()), total)]
    kept = [axis for axis in range(xs[0].ndim) if axis not in axes]
    sizes = tuple(xs[0].shape[axis] for axis in kept)
    count = shapes.size([xs[0].shape[axis] for axis in axes])
    lanes = shapes.size(sizes)
    values = [reshape(transpose(x, (*axes, *kept)), (count, lanes)) for x in xs]
    while count > 1:
        half = count // 2
        first, second = (
            [reshape(slice_in_dim(v, start, 2 * half, 2), (half * lanes,)) for v in values] for start in (0, 1)
        )
        joined = [reshape(y, (half, lanes)) for y in _joined(body, first, second)]
        rest = [slice_in_dim(v, 2 * half, count) for v in values]
        values = [concatenate([y, r], 0) for y, r in zip(joined, rest, strict=True)] if count % 2 else joined
        count -= half
    spread = [broadcast_in_dim(s, (lanes,), ()) for s in starts]
    totals = _joined(body, spread, [reshape(v, (lanes,)) for v in values]) if count else spread
    return [reshape(y, sizes) for y in totals]


def _joined(body: Body, first: Sequence[Any], second: Sequence[Any]) -> list[Any]:
    """Return the function vectorised over many pairs."""
    batched = (False,) * len(body.constants) + (True,) * (len(first) + len(second))
    program = batch_program(body.program, batched, first[0].shape[0], instantiate=True).program
    return evaluate(program, [*body.constants, *first, *second])


def reduce_window(
    operand: Any, init_value: Any, computation: Callable[[Any, Any], Any], window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None, padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None, window_dilation: Sequence[int] | None = None,
) -> Any:  # fmt: skip
    """Join the elements of every window by an associative function of two scalars: pooling.

    operand: an array [*s], or a tree of arrays of one shape; init_value: a scalar for each, also the value of padding.
    computation: as of `reduce`. window_dimensions, window_strides, window_dilation, base_dilation: an integer for every
    axis, the last of the operand; padding: pairs (before, after), or "SAME", "SAME_LOWER", "VALID", for the operand's
    shape before its dilation. Returns arrays [*windows]. add, max and min, from their neutral element, are
    primitives with fast gradients: of equal extrema the first one has the derivative. Raises as `reduce` does,
    ArgumentError for settings of the wrong length.

    >>> x = tnp.asarray([[1.0, 2.0, 5.0], [4.0, 3.0, 0.0]])
    >>> tracer.lax.reduce_window(x, -tnp.inf, tracer.lax.max, (2, 2), (1, 1), "VALID")
    Array([[4., 5.]], f64)
    """
    xs, starts, structure, body = _staged("reduce_window", operand, init_value, computation)
    rank, sizes, window = (
        xs[0].ndim, xs[0].shape, integers("reduce_window", "window_dimensions", window_dimensions)
    )  # fmt: skip
    strides, base, spread = (
        (1,) * rank if given is None else integers("reduce_window", parameter, given)
        for parameter, given in (
            ("window_strides", window_strides), ("base_dilation", base_dilation), ("window_dilation", window_dilation)
        )
    )  # fmt: skip
    pads = pads_of("reduce_window", sizes, window, strides, padding, base, spread)
    known = _WINDOWS.get(operation_of(body.program))
    if known is not None and _is_neutral(init_value, known[1], xs[0].dtype):
        found = [window_reduction(known[0], xs[0], window, strides, pads, base, spread)]
    else:
        _check_settings(sizes, window, strides, pads, base, spread)
        windows = [
            sliding_windows(padded(x, s, pads, base), tuple(range(rank)), window, strides, spread)
            for x, s in zip(xs, starts, strict=True)
        ]
        found = _reduced(windows, starts, body, tuple(range(rank, 2 * rank)))
    return trees.unflatten(structure, found)


def _check_settings(sizes: Sequence[int], window: Any, strides: Any, pads: Any, base: Any, spread: Any) -> None:
    """Raise unless the settings are valid for the primitives."""
    params = {"window": window, "strides": strides, "padding": pads, "base_dilation": base, "window_dilation": spread}
    reduce_window_sum_p.infer(array_type(np.dtype("float64"), sizes), **params)


def pads_of(
    caller: str, sizes: Sequence[int], window: Sequence[int], strides: Sequence[int], padding: Any, base: Sequence[int],
    spread: Sequence[int],
) -> tuple[tuple[int, int], ...]:  # fmt: skip
    """Return the padding of every axis as pairs (before, after). Raises ArgumentError unless the settings fit."""
    numbers = (window, strides, base, spread)
    counted = numbers if isinstance(padding, str) else (*numbers, padding)
    if any(len(given) != len(sizes) for given in counted) or any(n < 1 for given in numbers for n in given):
        raise ArgumentError(
            message(
                f"{caller}{here()}: expected window sizes, strides and dilations >= 1, and paddings, per axis",
                f"got window={window}, strides={strides}, padding={padding}, base_dilation={base}, "
                f"window_dilation={spread} for sizes {tuple(sizes)}",
                help="axes that are not reduced have a window of 1",
            )
        )
    if isinstance(padding, str):
        wide = [dilated(w, d) for w, d in zip(window, spread, strict=True)]
        return padtype_to_pads(sizes, wide, strides, padding)  # of the shape before dilation, as in JAX
    return pairs(caller, "padding", padding)


def _is_neutral(init_value: Any, op: ScalarOp, dtype: DType) -> bool:
    """Return whether an initial value is concrete and the neutral element."""
    (start,), _ = trees.flatten(init_value)
    value = concrete_value(start) if isinstance(start, Array) else start
    if value is None:
        return False
    return bool(np.asarray(value).astype(dtype) == neutral(op, dtype))


def reduce_window_shape_tuple(
    operand_shape: Sequence[int], window_dimensions: Sequence[int], window_strides: Sequence[int],
    padding: Sequence[tuple[int, int]], base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:  # fmt: skip
    """Return the shape of a `reduce_window`'s result.

    operand_shape: [*s]; window_dimensions, window_strides, padding, base_dilation, window_dilation: one entry an axis.
    Returns a tuple, [*windows].

    >>> tracer.lax.reduce_window_shape_tuple((5, 6), (2, 2), (1, 2), ((0, 0), (0, 0)))
    (4, 3)
    """
    rank = len(operand_shape)
    given = {
        "operand_shape": operand_shape, "window_dimensions": window_dimensions, "window_strides": window_strides,
        "base_dilation": (1,) * rank if base_dilation is None else base_dilation,
        "window_dilation": (1,) * rank if window_dilation is None else window_dilation,
    }  # fmt: skip
    sizes, window, strides, base, spread = (
        integers("reduce_window_shape_tuple", parameter, values) for parameter, values in given.items()
    )
    pads = pairs("reduce_window_shape_tuple", "padding", padding)
    wide = [dilated(n, d) + sum(pad) for n, d, pad in zip(sizes, base, pads, strict=True)]
    return positions(wide, window, strides, spread)
