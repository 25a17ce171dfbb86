"""Functions for NumPy users beyond JAX's: variants of `asarray`, memory and dtype queries, and text files."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, TracerArrayError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.numpy.arrays.io import stored
from tracer.numpy.core.conversion import array_of
from tracer.numpy.core.dtypes import result_type
from tracer.numpy.elementwise.logic import isfinite
from tracer.numpy.elementwise.rounding import real
from tracer.numpy.shapes.creation import asarray
from tracer.trace.array import Array, concrete_value
from tracer.trace.docstrings import signed_as
from tracer.trace.source import here

False_, True_ = np.False_, np.True_


def asanyarray(a: Any, dtype: Any = None, order: Any = None, *, copy: bool | None = None, device: Any = None) -> Array:
    """Convert to an array as `asarray` does, because arrays have no subclasses.

    a, dtype, order, copy, device: as in `asarray`. Returns the same shape and dtype.

    >>> tnp.asanyarray([1, 2])
    Array([1, 2], i64)
    """
    return asarray(a, dtype, order, copy=copy, device=device)


def ascontiguousarray(a: Any, dtype: Any = None) -> Array:
    """Convert to an array with at least one axis, as `asarray` does; all arrays are contiguous.

    a: any shape; dtype: as in `asarray`. Returns its shape, or [1] for [].

    >>> tnp.ascontiguousarray(5.0).shape
    (1,)
    """
    x = asarray(a, dtype)
    return x if x.ndim else x.reshape(1)


def asarray_chkfinite(a: Any, dtype: Any = None, order: Any = None) -> Array:
    """Convert to an array as `asarray` does. Raises ArgumentError unless all elements are finite.

    a: any shape, concrete; dtype, order: as in `asarray`. Returns its shape.

    >>> tnp.asarray_chkfinite([1.0, 2.0])
    Array([1., 2.], f64)
    """
    del order
    x = asarray(a, dtype)
    if dtypes.is_inexact(x.dtype) and not bool(isfinite(x).all()):
        raise ArgumentError(message(f"asarray_chkfinite{here()}: an element is infinite or NaN", f"got {x.type}"))
    return x


def require(a: Any, dtype: Any = None, requirements: Any = None) -> Array:
    """Convert to an array as `asarray` does; all arrays are contiguous and aligned, and own their memory.

    a, dtype: as in `asarray`; requirements: ignored. Returns a's shape.

    >>> tnp.require([1, 2], "float32")
    Array([1., 2.], f32)
    """
    del requirements
    return asarray(a, dtype)


def real_if_close(a: Any, tol: float = 100) -> Array:
    """Return the real parts if all imaginary parts are within `tol` rounding errors of 0, else the array.

    a: [*s], concrete. Returns [*s], real or complex depending on the values.

    >>> tnp.real_if_close(tnp.asarray([1 + 1e-15j, 2.0]))
    Array([1., 2.], f64)
    """
    x = array_of("real_if_close", a)
    if not dtypes.is_complex(x.dtype):
        return x
    bound = tol * float(np.finfo(x.dtype).eps) if tol > 1 else tol
    return real(x) if bool((abs(x.imag) < bound).all()) else x


def common_type(*arrays: Any) -> DType:
    """Return the float or complex dtype to which all arrays can be cast; integers count as float64.

    arrays: of any shapes. Raises DTypeError for bools.

    >>> tnp.common_type(tnp.float32(1), tnp.float32(2))
    dtype('float32')
    """
    found = [array_of("common_type", x).dtype for x in arrays]
    if dtypes.BOOL in found:
        raise DTypeError(message(f"common_type{here()}: bools are not numbers", help="cast them to int first"))
    return result_type(*(dtypes.F64 if dtypes.is_integer(d) else d for d in found))


def min_scalar_type(a: Any) -> DType:
    """Return the smallest dtype that holds a scalar, and an array's own dtype.

    a: a concrete number, [], or an array of any shape.

    >>> tnp.min_scalar_type(10)
    dtype('uint8')
    """
    if isinstance(a, Array) and a.ndim:
        return a.dtype
    known = concrete_value(a) if isinstance(a, Array) else a
    if known is None:
        raise TracerArrayError(
            message(f"min_scalar_type{here()} depends on the value, which is traced", f"got {a.type}")
        )
    return np.min_scalar_type(known)


def isfortran(a: Any) -> bool:
    """Return whether an array is in Fortran order and not in C order: always False.

    a: any shape. Returns a Python bool.

    >>> tnp.isfortran(tnp.ones((2, 2)))
    False
    """
    array_of("isfortran", a)
    return False


def shares_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Return whether two arrays share memory. An Array never shares memory with another.

    a, b: arrays of any shapes; max_work: as in `numpy.shares_memory`. Returns a Python bool.

    A NumPy view of an Array, as `np.asarray` returns it, shares its memory.

    >>> x = tnp.arange(3)
    >>> tnp.shares_memory(x, x[1:]), tnp.shares_memory(x, np.asarray(x))
    (False, True)
    """
    found = _memories(a, b)
    return found is not None and bool(np.shares_memory(*found, max_work))


def may_share_memory(a: Any, b: Any, max_work: Any = None) -> bool:
    """Return whether the memory bounds of two arrays overlap, as `shares_memory` without the exact test.

    a, b: any shapes; max_work: as in `numpy.may_share_memory`. Returns a Python bool.

    >>> tnp.may_share_memory(tnp.arange(3), tnp.arange(3))
    False
    """
    found = _memories(a, b)
    return found is not None and bool(np.may_share_memory(*found, max_work))


def _memories(a: Any, b: Any) -> tuple[Any, Any] | None:
    """Return NumPy arrays to compare; None for two Arrays, and for a traced one, which has no memory."""
    if isinstance(a, Array) and isinstance(b, Array):
        return None
    first, second = (concrete_value(x) if isinstance(x, Array) else x for x in (a, b))
    return None if first is None or second is None else (first, second)


def ndindex(*shape: Any) -> Iterator[tuple[int, ...]]:
    """Iterate over the indices of an array of a shape, as tuples of integers.

    >>> list(tnp.ndindex(2, 2))
    [(0, 0), (0, 1), (1, 0), (1, 1)]
    """
    return iter(np.ndindex(*shape))


def ndenumerate(arr: Any) -> Iterator[tuple[tuple[int, ...], Array]]:
    """Iterate over the indices and elements of an array.

    arr: [*s], concrete. Yields (index, element) in row-major order: a tuple of integers and an array [].

    >>> list(tnp.ndenumerate(tnp.asarray([5, 6])))
    [((0,), Array(5, i64)), ((1,), Array(6, i64))]
    """
    x = array_of("ndenumerate", arr)
    return ((index, x[index]) for index in np.ndindex(*x.shape))


@signed_as(np.savetxt)
def savetxt(fname: Any, X: Any, *args: Any, **options: Any) -> None:
    """Write a vector or matrix as text, by NumPy's options.

    fname: the name of a file, or an object with `write`; X: [n] or [m, n]; the other parameters as in `numpy.savetxt`:
    fmt and delimiter choose the format, header and footer the surrounding text.

    >>> import io; text = io.StringIO(); tnp.savetxt(text, tnp.asarray([1.0, 2.0]), fmt="%.1f"); text.getvalue()
    '1.0\\n2.0\\n'
    """
    np.savetxt(fname, np.asarray(X), *args, **options)


def savez_compressed(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to a compressed .npz archive, under their names or as arr_0, arr_1 ...

    file: a name, or an object with `write`; args, kwds: arrays of any shapes and dtypes; allow_pickle: as in
    `numpy.savez_compressed`. Raises DTypeError for dtypes that the format lacks, as bfloat16.

    >>> import io; buffer = io.BytesIO(); tnp.savez_compressed(buffer, x=tnp.arange(3)); buffer.getvalue()[:2]
    b'PK'
    """
    named: dict[str, Any] = {name: stored("savez_compressed", x) for name, x in kwds.items()}
    arrays = (stored("savez_compressed", x) for x in args)
    np.savez_compressed(file, *arrays, allow_pickle=allow_pickle, **named)


@signed_as(np.loadtxt)
def loadtxt(fname: Any, *args: Any, **options: Any) -> Any:
    """Read numbers from text, by NumPy's options: one array, or with unpack=True one for each column.

    fname: the name of a file, an open file, or lines; the other parameters as in `numpy.loadtxt`: delimiter, skiprows,
    usecols and max_rows select the numbers. Returns [m, n], or [n] for one row or column; dtype: by default float64.

    >>> import io; tnp.loadtxt(io.StringIO("1 2\\n3 4"))
    Array([[1., 2.],
           [3., 4.]], f64)
    """
    return asarray(np.loadtxt(fname, *args, **options))


@signed_as(np.genfromtxt)
def genfromtxt(fname: Any, *args: Any, **options: Any) -> Array:
    """Read numbers from text where some are missing, by NumPy's options.

    fname: the name of a file, an open file, or lines; the other parameters as in `numpy.genfromtxt`: delimiter,
    skip_header, usecols and filling_values select the numbers. Returns [m, n], or [n] for one row or column; dtype: by
    default float64. Missing numbers are NaN.

    >>> import io; tnp.genfromtxt(io.StringIO("1,\\n3,4"), delimiter=",")
    Array([[ 1., nan],
           [ 3.,  4.]], f64)
    """
    return asarray(np.genfromtxt(fname, *args, **options))
