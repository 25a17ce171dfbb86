"""The functions of the array API standard 2025.12: their parameters, and calls that array_api_strict answers too.

A line is a function's name, its positional parameters, and behind the bar the keywords; a star takes any number.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SIGNATURES = """
arange start stop step | dtype device
asarray obj | dtype device copy
empty shape | dtype device
empty_like x | dtype device
eye n_rows n_cols | k dtype device
from_dlpack x | device copy
full shape fill_value | dtype device
full_like x fill_value | dtype device
linspace start stop num | dtype device endpoint
meshgrid *arrays | indexing
ones shape | dtype device
ones_like x | dtype device
tril x | k
triu x | k
zeros shape | dtype device
zeros_like x | dtype device
astype x dtype | copy device
can_cast from to
finfo type
iinfo type
isdtype dtype kind
result_type *arrays_and_dtypes
clip x min max
take x indices | axis
take_along_axis x indices | axis
matmul x1 x2
matrix_transpose x
tensordot x1 x2 | axes
vecdot x1 x2 | axis
broadcast_arrays *arrays
broadcast_shapes *shapes
broadcast_to x shape
concat arrays | axis
expand_dims x axis
flip x | axis
moveaxis x source destination
permute_dims x axes
repeat x repeats | axis
reshape x shape | copy
roll x shift | axis
squeeze x axis
stack arrays | axis
tile x repetitions
unstack x | axis
argmax x | axis keepdims
argmin x | axis keepdims
count_nonzero x | axis keepdims
nonzero x
searchsorted x1 x2 | side sorter
where condition x1 x2
isin x1 x2 | invert
unique_all x
unique_counts x
unique_inverse x
unique_values x
argsort x | axis descending stable
sort x | axis descending stable
cumulative_prod x | axis dtype include_initial
cumulative_sum x | axis dtype include_initial
max x | axis keepdims
mean x | axis keepdims
min x | axis keepdims
prod x | axis dtype keepdims
std x | axis correction keepdims
sum x | axis dtype keepdims
var x | axis correction keepdims
all x | axis keepdims
any x | axis keepdims
diff x | axis n prepend append
"""

BOOL = ("bool",)
INTEGERS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float32", "float64")
COMPLEX = ("complex64", "complex128")
REAL = INTEGERS + FLOATS
NUMERIC = REAL + COMPLEX
INEXACT = FLOATS + COMPLEX
ALL = BOOL + NUMERIC

UNARY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("abs", "negative", "positive", "sign", "square", "isfinite", "isinf", "isnan"), NUMERIC),
    **dict.fromkeys(("ceil", "floor", "trunc"), REAL), "round": NUMERIC, "bitwise_invert": BOOL + INTEGERS,
    **dict.fromkeys(
        ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log", "log10", "log1p",
         "log2", "reciprocal", "sin", "sinh", "sqrt", "tan", "tanh"),
        INEXACT,
    ),
    "conj": NUMERIC, "real": NUMERIC, "imag": COMPLEX, "logical_not": BOOL, "signbit": FLOATS,
}  # fmt: skip
BINARY: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("add", "multiply", "subtract", "pow"), NUMERIC), "divide": INEXACT,
    **dict.fromkeys(("equal", "not_equal"), ALL),
    **dict.fromkeys(("floor_divide", "remainder", "maximum", "minimum"), REAL),
    **dict.fromkeys(("greater", "greater_equal", "less", "less_equal"), REAL),
    **dict.fromkeys(("atan2", "copysign", "hypot", "logaddexp", "nextafter"), FLOATS),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), BOOL + INTEGERS),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), INTEGERS),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), BOOL),
}  # fmt: skip

OPERATORS: dict[str, tuple[str, ...]] = {
    "+": NUMERIC, "-": NUMERIC, "*": NUMERIC, "**": NUMERIC, "/": INEXACT, "//": REAL, "%": REAL, "==": ALL, "!=": ALL,
    "<": REAL, "<=": REAL, ">": REAL, ">=": REAL, "&": BOOL + INTEGERS, "|": BOOL + INTEGERS, "^": BOOL + INTEGERS,
    "<<": INTEGERS, ">>": INTEGERS,
}  # fmt: skip

X = np.array([[3, 1, 2, 0], [5, 4, 4, 7], [1, 0, 6, 2]])
Call = Callable[[Any, Any], Any]  # of the namespace and the array X in a dtype

# Every other function, with the dtypes that it takes.
CALLS: dict[str, tuple[tuple[str, ...], Call]] = {
    "tril": (ALL, lambda xp, x: (xp.tril(x), xp.tril(x, k=-1))), "triu": (ALL, lambda xp, x: xp.triu(x, k=1)),
    "empty_like": (ALL, lambda xp, x: xp.empty_like(x).shape), "ones_like": (ALL, lambda xp, x: xp.ones_like(x)),
    "zeros_like": (ALL, lambda xp, x: xp.zeros_like(x, dtype=xp.int8)),
    "full_like": (NUMERIC, lambda xp, x: xp.full_like(x, 3)),
    "meshgrid": (NUMERIC, lambda xp, x: xp.meshgrid(x[0, :], x[1, :2], indexing="ij")),
    "astype": (BOOL + REAL, lambda xp, x: xp.astype(x, xp.float64)),
    "clip": (REAL, lambda xp, x: (xp.clip(x, 1, 4), xp.clip(x, min=x[:1, :]), xp.clip(x, max=3))),
    "take": (ALL, lambda xp, x: xp.take(x, xp.asarray([2, 0]), axis=1)),
    "take_along_axis": (ALL, lambda xp, x: xp.take_along_axis(x, xp.asarray([[2, 0, 1, 0]]), axis=0)),
    "matmul": (NUMERIC, lambda xp, x: xp.matmul(x, xp.matrix_transpose(x))),
    "matrix_transpose": (ALL, lambda xp, x: xp.matrix_transpose(x)),
    "tensordot": (NUMERIC, lambda xp, x: xp.tensordot(x, x, axes=((0,), (0,)))),
    "vecdot": (NUMERIC, lambda xp, x: xp.vecdot(x, x, axis=-1)),
    "broadcast_arrays": (ALL, lambda xp, x: xp.broadcast_arrays(x, x[:1, :])),
    "broadcast_shapes": (BOOL, lambda xp, x: xp.broadcast_shapes((3, 1), (4,))),
    "broadcast_to": (ALL, lambda xp, x: xp.broadcast_to(x, (2, 3, 4))),
    "concat": (ALL, lambda xp, x: (xp.concat([x, x], axis=1), xp.concat([x, x], axis=None))),
    "expand_dims": (ALL, lambda xp, x: xp.expand_dims(x, axis=1)),
    "flip": (ALL, lambda xp, x: (xp.flip(x), xp.flip(x, axis=0))),
    "moveaxis": (ALL, lambda xp, x: xp.moveaxis(x, 0, -1)),
    "permute_dims": (ALL, lambda xp, x: xp.permute_dims(x, (1, 0))),
    "repeat": (ALL, lambda xp, x: (xp.repeat(x, 2), xp.repeat(x, xp.asarray([1, 0, 2]), axis=0))),
    "reshape": (ALL, lambda xp, x: xp.reshape(x, (2, -1), copy=True)),
    "roll": (ALL, lambda xp, x: (xp.roll(x, 1), xp.roll(x, (1, -2), axis=(0, 1)))),
    "squeeze": (ALL, lambda xp, x: xp.squeeze(x[:1, :], axis=0)),
    "stack": (ALL, lambda xp, x: xp.stack([x, x], axis=-1)),
    "tile": (ALL, lambda xp, x: xp.tile(x, (2, 1, 2))), "unstack": (ALL, lambda xp, x: xp.unstack(x, axis=1)),
    "argmax": (REAL, lambda xp, x: (xp.argmax(x), xp.argmax(x, axis=1, keepdims=True))),
    "argmin": (REAL, lambda xp, x: xp.argmin(x, axis=0)),
    "count_nonzero": (ALL, lambda xp, x: xp.count_nonzero(x, axis=0, keepdims=True)),
    "nonzero": (ALL, lambda xp, x: xp.nonzero(x)),
    "searchsorted": (REAL, lambda xp, x: xp.searchsorted(xp.sort(x[0, :]), x[1, :], side="right")),
    "where": (ALL, lambda xp, x: xp.where(xp.asarray([[True], [False], [True]]), x, xp.flip(x))),
    "isin": (INTEGERS, lambda xp, x: xp.isin(x, x[0, :])),
    "unique_all": (REAL, lambda xp, x: tuple(xp.unique_all(x))),
    "unique_counts": (REAL, lambda xp, x: tuple(xp.unique_counts(x))),
    "unique_inverse": (REAL, lambda xp, x: tuple(xp.unique_inverse(x))),
    "unique_values": (REAL, lambda xp, x: xp.unique_values(x)),
    "argsort": (REAL, lambda xp, x: (xp.argsort(x), xp.argsort(x, axis=0, descending=True, stable=True))),
    "sort": (REAL, lambda xp, x: (xp.sort(x), xp.sort(x, axis=0, descending=True))),
    "cumulative_prod": (NUMERIC, lambda xp, x: xp.cumulative_prod(x, axis=1)),
    "cumulative_sum": (NUMERIC, lambda xp, x: xp.cumulative_sum(x, axis=0, include_initial=True)),
    "max": (REAL, lambda xp, x: (xp.max(x), xp.max(x, axis=0, keepdims=True))), "min": (REAL, lambda xp, x: xp.min(x)),
    "mean": (INEXACT, lambda xp, x: (xp.mean(x), xp.mean(x, axis=(0, 1), keepdims=True))),
    "prod": (NUMERIC, lambda xp, x: (xp.prod(x, axis=1), xp.prod(x, dtype=x.dtype))),
    "std": (FLOATS, lambda xp, x: xp.std(x, axis=1, correction=1)), "var": (FLOATS, lambda xp, x: xp.var(x, axis=0)),
    "sum": (NUMERIC, lambda xp, x: (xp.sum(x), xp.sum(x, axis=0, keepdims=True), xp.sum(x, dtype=x.dtype))),
    "all": (ALL, lambda xp, x: (xp.all(x), xp.all(x, axis=1))), "any": (ALL, lambda xp, x: xp.any(x, axis=0)),
    "diff": (NUMERIC, lambda xp, x: xp.diff(x, axis=0, n=2, prepend=x[:1, :])),
}  # fmt: skip
CREATION: dict[str, Callable[[Any], Any]] = {
    "arange": lambda xp: (xp.arange(5), xp.arange(1, 7, 2, dtype=xp.float32), xp.arange(0.0, 1.0, 0.25)),
    "asarray": lambda xp: (xp.asarray(1), xp.asarray([1.0, 2.0]), xp.asarray([[1, 2]], dtype=xp.uint8, copy=True)),
    "empty": lambda xp: (xp.empty((2, 3)).shape, xp.empty(2, dtype=xp.int8).dtype == xp.int8),
    "eye": lambda xp: (xp.eye(3), xp.eye(2, 4, k=1, dtype=xp.int16)),
    "from_dlpack": lambda xp: xp.from_dlpack(xp.ones(3)),
    "full": lambda xp: (xp.full((2, 3), 1.5), xp.full(2, 7), xp.full((), True), xp.full(2, 1, dtype=xp.complex64)),
    "linspace": lambda xp: (xp.linspace(0, 1, 5), xp.linspace(2.0, 3.0, 4, dtype=xp.float32, endpoint=False)),
    "ones": lambda xp: (xp.ones((2, 2)), xp.ones(3, dtype=xp.bool)),
    "zeros": lambda xp: (xp.zeros(()), xp.zeros((0, 3), dtype=xp.complex128)),
    "can_cast": lambda xp: (xp.can_cast(xp.int8, xp.int16), xp.can_cast(xp.float64, xp.float32)),
    "finfo": lambda xp: tuple(getattr(xp.finfo(xp.float32), name) for name in ("bits", "eps", "max", "min")),
    "iinfo": lambda xp: tuple(getattr(xp.iinfo(xp.int16), name) for name in ("bits", "max", "min")),
    "isdtype": lambda xp: (xp.isdtype(xp.int8, "signed integer"), xp.isdtype(xp.bool, ("integral", xp.bool))),
    "result_type": lambda xp: xp.zeros(1, dtype=xp.result_type(xp.int8, xp.uint8)),
}  # fmt: skip
