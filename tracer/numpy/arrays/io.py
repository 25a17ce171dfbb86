"""Arrays to and from files, buffers and text, by NumPy's functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, message
from tracer.numpy.core.conversion import array_of
from tracer.trace.array import Array
from tracer.trace.docstrings import signed_as
from tracer.trace.source import here


def save(file: Any, arr: Any, allow_pickle: bool = True) -> None:
    """Write an array to a file in NumPy's .npy format. Raises DTypeError for dtypes that the format lacks, as bfloat16.

    file: a name, or an object with `write`; arr: any shape; allow_pickle: as in `numpy.save`.

    >>> import io; buffer = io.BytesIO(); tnp.save(buffer, tnp.arange(3)); buffer.getvalue()[1:6]
    b'NUMPY'
    """
    np.save(file, stored("save", arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to an uncompressed .npz archive, under their names or as arr_0, arr_1 ...

    file: a name, or an object with `write`; args, kwds: arrays of any shapes and dtypes; allow_pickle: as in
    `numpy.savez`. Raises DTypeError for dtypes that the format lacks, as bfloat16.

    >>> import io; buffer = io.BytesIO(); tnp.savez(buffer, x=tnp.arange(3)); _ = buffer.seek(0)
    >>> tnp.load(buffer)["x"]
    array([0, 1, 2])
    """
    named: dict[str, Any] = {name: stored("savez", x) for name, x in kwds.items()}
    np.savez(file, *(stored("savez", x) for x in args), allow_pickle=allow_pickle, **named)


def stored(name: str, x: Any) -> np.ndarray[Any, Any]:
    """Return an array as NumPy writes it to a file.

    Raises DTypeError for ml_dtypes' dtypes, which NumPy cannot read.
    """
    value = np.asarray(x)
    if value.dtype.isbuiltin == 2:
        raise DTypeError(
            message(
                f"{name}{here()}: NumPy's files do not support {value.dtype}",
                help=f'save np.asarray(x).view("uint{8 * value.dtype.itemsize}"), of as many bytes, or pickle x',
            )
        )
    return value


@signed_as(np.load)
def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Read a .npy file as an array, or an .npz archive as NumPy's mapping of names to ndarrays.

    file: a name, or an object with `read`; the other parameters as in `numpy.load`. The array has the saved shape and
    dtype.

    >>> import io; buffer = io.BytesIO(); tnp.save(buffer, tnp.arange(3)); _ = buffer.seek(0); tnp.load(buffer)
    Array([0, 1, 2], i64)
    """
    found = np.load(file, *args, **kwargs)
    return array_of("load", found) if isinstance(found, np.ndarray) else found


def _read(name: str, read: Callable[..., Any], *args: Any) -> Array:
    """Return NumPy's result as an Array. Raises ArgumentError with NumPy's text for missing elements."""
    try:
        found = read(*args)
    except ValueError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:  # the iterator's own
            raise
        raise ArgumentError(
            message(f"{name}{here()}: {error}", help="compare count=, dtype= and offset= with the data")
        ) from None
    return array_of(name, found)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Array:
    """Return the bytes of a buffer as elements of a dtype.

    buffer: bytes; dtype: of the elements, by default float64; count: of elements, by default all; offset: of the first,
    in bytes. Returns [count], a copy.

    >>> tnp.frombuffer(b"\\x01\\x02", dtype="uint8")
    Array([1, 2], u8)
    """
    return _read("frombuffer", np.frombuffer, buffer, np.dtype(dtype), count, offset)


def fromfile(file: Any, dtype: Any = float, count: int = -1, sep: str = "", offset: int = 0) -> Array:
    """Return the bytes of a file, or the numbers in its text, as elements of a dtype.

    file: a name, or an open file; dtype: of the elements, by default float64; count: of elements, by default all; sep:
    the separator of numbers in text, "" for bytes; offset: of the first element, in bytes. Returns [count].

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     _ = file.write(b"\\x01\\x02"), file.seek(0)
    ...     tnp.fromfile(file, "uint8")
    Array([1, 2], u8)
    """
    return array_of("fromfile", np.fromfile(file, np.dtype(dtype), count, sep, offset))


def fromiter(iter: Iterable[Any], dtype: Any, count: int = -1) -> Array:
    """Return the items of an iterator as a vector.

    iter: of Python numbers; dtype: of the elements; count: of items, by default all. Returns [count].

    >>> tnp.fromiter((i * i for i in range(3)), dtype=int)
    Array([0, 1, 4], i64)
    """
    return _read("fromiter", np.fromiter, iter, np.dtype(dtype), count)


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Array:
    """Return the numbers in a text as a vector.

    string: the text; dtype: of the elements, by default float64; count: of numbers, by default all; sep: the separator.
    Returns [count].

    >>> tnp.fromstring("1 2", dtype=int, sep=" ")
    Array([1, 2], i64)
    """
    return array_of("fromstring", np.fromstring(string, np.dtype(dtype), count, sep=sep))


def array_str(
    a: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: Any = None
) -> str:
    """Return the elements as text.

    a: [*s]; max_line_width, precision, suppress_small: as in `array_repr`. Returns a str.

    >>> tnp.array_str(tnp.asarray([1, 2]))
    '[1 2]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def array_repr(
    arr: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """Return the array as `repr` shows it, with another width or fewer digits.

    arr: any shape; max_line_width: of a line, in characters; precision: digits after the point; suppress_small: write
    numbers that round to 0 as 0. `set_printoptions` has the defaults. Returns a str.

    >>> tnp.array_repr(tnp.asarray([1, 2]))
    'Array([1, 2], i64)'
    """
    wanted: dict[str, Any] = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
    with np.printoptions(**{option: value for option, value in wanted.items() if value is not None}):
        return repr(array_of("array_repr", arr))


def iterable(y: Any) -> bool:
    """Return whether a value can be iterated over.

    y: any object; an array of any shape but []. Returns a Python bool.

    >>> tnp.iterable([1]), tnp.iterable(2)
    (True, False)
    """
    return bool(np.iterable(y))
