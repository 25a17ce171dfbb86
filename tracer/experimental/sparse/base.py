"""`JAXSparse`: the base class of sparse arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NoReturn

from tracer import numpy as tnp
from tracer.errors import ArgumentError, ShapeError, message
from tracer.numpy.core.conversion import array_of
from tracer.trace.array import Array
from tracer.trace.source import here


class JAXSparse:
    """Sparse array: a tree of its arrays, with a shape that is known while tracing.

    Operators take sparse and dense arrays and numbers. A product with a dense array is dense. `x.todense()` has every
    element.
    """

    data: Array
    shape: tuple[int, ...]
    __array_ufunc__ = None  # NumPy's arrays leave operators to this class
    __array_priority__ = 100

    @property
    def dtype(self) -> Any:
        """Dtype of the values."""
        return self.data.dtype

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements, zeros included."""
        return math.prod(self.shape)

    @property
    def nse(self) -> int:
        """Number of specified elements, padding included."""
        raise NotImplementedError

    @property
    def T(self) -> Any:  # noqa: N802  # NumPy's name
        """Transpose."""
        return self.transpose()

    def transpose(self, axes: Sequence[int] | None = None) -> Any:
        raise NotImplementedError

    def todense(self) -> Any:
        raise NotImplementedError

    def block_until_ready(self) -> Any:
        """Return the array itself, computed."""
        self.data.block_until_ready()
        return self

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a sparse array without axes has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        name = type(self).__name__
        if not isinstance(self.__dict__.get("data"), Array):  # a tree of other leaves
            return f"{name}(shape={self.shape})"
        return f"{name}({str(self.data.type).partition('[')[0]}{list(self.shape)}, nse={self.nse})"

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise ArgumentError(
            message(
                f"{type(self).__name__}{here()}: a sparse array is not converted to a dense one by itself",
                help="m.todense(), or m.to_scipy() for SciPy's",
            )
        )

    def __bool__(self) -> NoReturn:
        text = f"bool of {type(self).__name__}{here()}: it has many elements"
        raise ArgumentError(message(text, help="m.todense().any()"))

    def __iter__(self) -> NoReturn:
        text = f"{type(self).__name__}{here()}: a sparse array has no iterator"
        raise ArgumentError(message(text, help="iterate over m.todense()"))


def is_sparse(x: object) -> bool:
    """Return whether x is a sparse array."""
    return isinstance(x, JAXSparse)


def todense(arr: Any) -> Any:
    """Return a sparse array as a dense one, and a dense one as it is.

    >>> from tracer.experimental import sparse
    >>> sparse.todense(sparse.eye(2))
    Array([[1., 0.],
           [0., 1.]], f64)
    """
    return arr.todense() if is_sparse(arr) else array_of("todense", arr)


def index_array(caller: str, x: Any) -> Array:
    """Return indices as an array. Raises ArgumentError where they are not integers."""
    found = array_of(caller, x)
    if found.dtype.kind not in "iu":
        raise ArgumentError(message(f"{caller}{here()}: indices are integers", f"got {found.type}"))
    return found


def matrix_shape(caller: str, shape: Sequence[int]) -> tuple[int, int]:
    """Return the shape of a matrix. Raises ShapeError for another number of axes."""
    found = tuple(int(n) for n in shape)
    if len(found) != 2:
        text = f"{caller}{here()}: this format is for matrices"
        raise ShapeError(message(text, f"got shape {found}", help="BCOO has any number of axes"))
    return found[0], found[1]


def check_inner(caller: str, shape: Sequence[int], x: Any, axis: int) -> None:
    """Raise ShapeError unless the first axis of x is as long as an axis of a matrix."""
    if x.ndim not in (1, 2) or x.shape[0] != shape[axis]:
        raise ShapeError(
            message(
                f"{caller}{here()}: the operand has {shape[axis]} rows, for a matrix of shape {tuple(shape)}",
                f"got {x.type}",
                help="a vector [n] or a matrix [n, k]",
            )
        )


def dense_operand(x: Any) -> Any:
    """Return a dense operand as an array; None if it is not array-like."""
    if isinstance(x, Array):
        return x
    if is_sparse(x) or isinstance(x, str | bytes | dict) or x is None:
        return None
    return tnp.asarray(x)
