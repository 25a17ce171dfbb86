"""Numbers of an update: counts, powers, hyperparameters in a leaf's dtype; arithmetic as precise as rules need."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here

Dtypes = frozenset[Any]
_LAST = np.iinfo(np.int32).max
_WIDE = (np.dtype("float64"), np.dtype("complex64"), np.dtype("complex128"), np.dtype("float32"))


def count() -> Array:
    """Return a count of 0, int32."""
    return tnp.zeros((), "int32")


def increment(number: Any) -> Array:
    """Return a count plus one; the largest int32 stays."""
    return tnp.minimum(number, _LAST - 1) + 1


def wide(x: Array) -> Array:
    """Return the array with at least float32's precision: bfloat16 has 0.999 as 1."""
    return x if x.dtype in _WIDE else x.astype("float32")


def wide_dtype(dtype: Any) -> Any:
    """Return the dtype that `wide` computes in."""
    return dtype if np.dtype(dtype) in _WIDE else np.dtype("float32")


def dtypes_of(tree: Any) -> Dtypes:
    """Return the real dtypes that rules compute in for the leaves of a tree."""
    found = (getattr(leaf, "dtype", None) for leaf in trees.flatten(tree)[0])
    return frozenset(dtypes.real_dtype(wide_dtype(dtype)) for dtype in found if dtype is not None)


class Scalar:
    """Number computed at run time, rounded to each dtype of the leaves before the first leaf is reached."""

    def __init__(self, value: Array, among: Iterable[Any]) -> None:
        self.value = value
        self._rounded = {dtype: value.astype(dtype) for dtype in sorted(among, key=str)}

    def of(self, x: Array) -> Array:
        """Return the number in the real dtype of an array."""
        dtype = dtypes.real_dtype(wide_dtype(x.dtype))
        return self._rounded[dtype] if dtype in self._rounded else self.value.astype(dtype)


def at(number: Any, x: Array) -> Any:
    """Return a hyperparameter for a leaf's arithmetic: a Python number as is, an array in the leaf's real dtype."""
    if isinstance(number, Scalar):
        return number.of(x)
    if isinstance(number, bool | int | float):
        return number
    return Scalar(tnp.asarray(number), ()).of(x)


def power_of(decay: Any, exponent: Array) -> Array:
    """Return `decay` to the power of a count, float64."""
    base = float(decay) if isinstance(decay, int | float) else tnp.asarray(decay).astype("float64")
    return tnp.power(base, exponent.astype("float64"))


def correction(decay: Any, number: Array, among: Dtypes) -> Scalar:
    """Return 1 / (1 - decay^count), by which the average of `count` values loses the bias of its start at zero."""
    return Scalar(1.0 / (1.0 - power_of(decay, number)), among)


def average(new: Array, old: Array, decay: Any) -> Array:
    """Return (1 - decay) new + decay old."""
    return (1 - decay) * new + decay * old


def squared(x: Array) -> Array:
    """Return |x|², real."""
    return x.real * x.real + x.imag * x.imag if x.dtype.kind == "c" else x * x


def moment_like(x: Any, dtype: Any = None) -> Array:
    """Return zeros for a first moment: in the dtype of the array, or the given one."""
    return tnp.zeros_like(x, x.dtype if dtype is None else dtype)


def duplicate(x: Array) -> Array:
    """Return a copy with memory of its own, so that both may be donated. Under `jit`, `copy` shares memory."""
    return x * 1


def square_like(x: Any, value: Any = 0.0) -> Array:
    """Return a filled array for a second moment: real, of at least float32."""
    x = tnp.asarray(x)
    return tnp.full_like(x, value, dtypes.real_dtype(wide_dtype(x.dtype)))


def sum_squares(tree: Any) -> Array:
    """Return the sum of the squared magnitudes of all elements, at least float32."""
    leaves = [tnp.asarray(x) for x in trees.flatten(tree)[0]]
    if not leaves:
        return tnp.zeros((), "float32")
    total = tnp.sum(squared(wide(leaves[0])))
    for leaf in leaves[1:]:
        total = total + tnp.sum(squared(wide(leaf)))
    return total


def global_norm(updates: Any) -> Array:
    """Return the Euclidean norm of all elements of a tree together.

    updates: a tree of arrays of any shapes, float or complex; a tree without leaves has norm 0. The result is a scalar
    of at least float32.

    >>> tracer.optim.global_norm({"w": tnp.asarray([3.0, 0.0]), "b": tnp.asarray(4.0)})
    Array(5., f64)
    """
    return tnp.sqrt(sum_squares(updates))


def checked_rate(name: str, rate: Any) -> Any:
    """Return a learning rate, a number, scalar array or schedule. Raises ArgumentError for anything else."""
    if callable(rate) and trees.is_leaf(rate):
        return rate
    if isinstance(rate, bool | str | bytes | complex | None) or not trees.is_leaf(rate) or np.shape(rate) != ():
        given = f"{type(rate).__name__} of shape {np.shape(rate)}" if isinstance(rate, Array | np.ndarray) else (
            "None" if rate is None else type(rate).__name__
        )  # fmt: skip
        raise ArgumentError(
            message(
                f"{name}{here()}: a learning rate is a number, a scalar or a schedule, a function of the count",
                f"got {given}",
                help="parameters go to init: tx = optim.adam(1e-3); state = tx.init(params)"
                if rate is not None and (not trees.is_leaf(rate) or isinstance(rate, Array | np.ndarray))
                else f"{name}(1e-3), or {name}(optim.cosine_decay_schedule(1e-3, steps))",
            )
        )
    return rate
