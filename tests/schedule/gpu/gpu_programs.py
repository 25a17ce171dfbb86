"""Programs that the GPU tests share: each with the types of its operands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.ir.program import Program
from tracer.ir.target import CUDA
from tracer.ir.types import array_type
from tracer.lax import while_loop
from tracer.passes.pipeline import optimize
from tracer.primitives.arrays.indexing.gather import take_along
from tracer.primitives.arrays.reductions.reductions import reduce_max, reduce_or, reduce_sum
from tracer.primitives.arrays.slice_pad_concatenate import concatenate
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.shapes import transpose
from tracer.primitives.control.cumulative import cumsum
from tracer.primitives.elementwise.arithmetic import add, div, max, mul, neg, sub
from tracer.primitives.elementwise.comparison import gt, select
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.elementwise.exponential import exp, log1p
from tracer.trace.stage import stage

Types = Sequence[tuple[str, tuple[int, ...]]]


def program_of(function: Callable[..., Sequence[Any]], types: Types, name: str = "f") -> Program:
    """The function on arrays of these types, traced and optimised."""
    staged = stage(lambda xs: function(*xs), [array_type(np.dtype(d), s) for d, s in types], name=name)
    assert not staged.constants
    return optimize(staged.program, CUDA)


def rows(vector: Any, shape: tuple[int, ...]) -> Any:
    """A value a row, spread along the rows."""
    return broadcast_in_dim(vector, shape, (0,))


def fused(x: Any, y: Any) -> list[Any]:
    return [add(mul(x, y), exp(x)), neg(y)]


def integers(x: Any, y: Any) -> list[Any]:
    return [sub(mul(x, y), div(x, y))]


def choice(x: Any, y: Any) -> list[Any]:
    return [select(gt(x, y), x, max(x, neg(y))), gt(x, y)]


def softmax(x: Any) -> list[Any]:
    shifted = exp(sub(x, rows(reduce_max(x, axes=(1,)), x.shape)))
    return [div(shifted, rows(reduce_sum(shifted, axes=(1,)), x.shape))]


def transposed(x: Any, b: Any) -> list[Any]:
    return [add(transpose(x, (1, 0)), rows(b, (x.shape[1], x.shape[0])))]


def with_scalar(x: Any, y: Any) -> list[Any]:
    return [mul(x, broadcast_in_dim(add(exp(y), 1.0), x.shape, ())), mul(y, y)]


def iterated(x: Any, n: Any) -> list[Any]:
    """A loop that one block runs: rows side by side, a condition, and threads without work."""

    def step(carry: Any) -> Any:
        n, y = carry
        return add(n, 2.0), sub(y, rows(mul(reduce_sum(y, axes=(1,)), 0.125), y.shape))

    return list(while_loop(lambda carry: gt(4.0, reduce_max(carry[0], axes=(0,))), step, (n, x)))


PROGRAMS: dict[str, tuple[Callable[..., Sequence[Any]], Types]] = {
    "fused_f32": (fused, [("float32", (3, 100)), ("float32", (3, 100))]),
    "fused_f64": (fused, [("float64", (300,)), ("float64", (300,))]),
    "fused_f16": (fused, [("float16", (40,)), ("float16", (40,))]),
    "fused_bf16": (fused, [("bfloat16", (40,)), ("bfloat16", (40,))]),
    "integers_i64": (integers, [("int64", (100,)), ("int64", (100,))]),
    "choice_f32": (choice, [("float32", (70,)), ("float32", (70,))]),
    "softmax": (softmax, [("float32", (8, 300))]),
    "column_sums": (lambda x: [reduce_sum(x, axes=(0,))], [("float32", (40, 1100))]),
    "few_column_sums": (lambda x: [reduce_sum(x, axes=(0,))], [("float64", (600, 3))]),
    "full_sum": (lambda x: [reduce_sum(x, axes=(0, 1))], [("float16", (64, 100))]),
    "two_axes": (lambda x: [reduce_sum(x, axes=(0, 2)), reduce_max(log1p(x), axes=(0, 2))], [("float32", (6, 5, 7))]),
    "short_rows": (lambda x: [reduce_sum(x, axes=(1,))], [("float32", (50, 4))]),
    "any_of_row": (lambda x: [reduce_or(gt(x, 2.5), axes=(1,))], [("float32", (3, 100))]),
    "row_of_i64": (lambda x: [reduce_max(x, axes=(1,))], [("int64", (3, 100))]),
    "transposed": (transposed, [("float32", (20, 70)), ("float32", (70,))]),
    "with_scalar": (with_scalar, [("float32", (3, 100)), ("float32", ())]),
    "running_sums": (lambda x: [cumsum(x, axis=1)], [("float32", (3, 100))]),
    "joined": (lambda x, y: [concatenate([x, y], 1)], [("float32", (3, 5)), ("float32", (3, 7))]),
    "empty": (lambda x: [reduce_sum(x, axes=(1,)), neg(x)], [("float32", (3, 0))]),
    "iterated": (iterated, [("float32", (3, 40)), ("float32", (2,))]),
    "converted": (lambda x: [convert_element_type(x, np.dtype("int32"))], [("float32", (33,))]),
    "gathered": (lambda x, i: [take_along(x, i, 0)], [("float32", (9, 4)), ("int64", (6, 4))]),
}


def inputs_of(name: str, rng: np.random.Generator) -> list[Any]:
    """Values for a program's operands; integers are indices into the first axis of the first."""
    types = PROGRAMS[name][1]
    arrays = []
    for dtype, shape in types:
        if dtype.startswith("int"):
            low, high = (0, types[0][1][0]) if name == "gathered" else (-40, 40)
            arrays.append(np.asarray(rng.integers(low, high, shape), dtype))
        else:
            arrays.append(np.abs(rng.standard_normal(shape)).astype(np.dtype(dtype)))
    return arrays
