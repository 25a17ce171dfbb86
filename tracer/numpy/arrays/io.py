"""Arrays from and to files, buffers and text: NumPy's functions, whose results become arrays of ours."""

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
    """Write an array to a file of NumPy's .npy format. DTypeError for dtypes that the format has not, as bfloat16.

    file: a name, or what has `write`; arr: any shape; allow_pickle: as NumPy's.

    >>> import io; buffer = io.BytesIO(); tnp.save(buffer, tnp.arange(3)); buffer.getvalue()[1:6]
    b'NUMPY'
    """
    np.save(file, stored("save", arr), allow_pickle=allow_pickle)


def savez(file: Any, *args: Any, allow_pickle: bool = True, **kwds: Any) -> None:
    """Write several arrays to an uncompressed .npz archive, under their names or as arr_0, arr_1 ...

    file: a name, or what has `write`; args, kwds: arrays of any shapes and dtypes; allow_pickle: as NumPy's. Raises
    DTypeError for dtypes that the format has not, as bfloat16.

    >>> import io; buffer = io.BytesIO(); tnp.savez(buffer, x=tnp.arange(3)); _ = buffer.seek(0)
    >>> tnp.load(buffer)["x"]
    array([0, 1, 2])
    """
    named: dict[str, Any] = {name: stored("savez", x) for name, x in kwds.items()}
    np.savez(file, *(stored("savez", x) for x in args), allow_pickle=allow_pickle, **named)


def stored(name: str, x: Any) -> np.ndarray[Any, Any]:
    """What a file of NumPy's is to hold. DTypeError for a dtype of ml_dtypes', which would be read as bytes."""
    value = np.asarray(x)
    if value.dtype.isbuiltin == 2:
        raise DTypeError(
            message(
                f"{name}{here()}: files of NumPy's have no {value.dtype}",
                help=f'save np.asarray(x).view("uint{8 * value.dtype.itemsize}"), of as many bytes, or pickle x',
            )
        )
    return value


@signed_as(np.load)
def load(file: Any, *args: Any, **kwargs: Any) -> Any:
    """Read a .npy file as an array, or an .npz archive as NumPy's mapping of names to ndarrays.

    file: a name, or what has `read`; the rest as of `numpy.load`. The array has the shape and dtype that were saved.

    >>> import io; buffer = io.BytesIO(); tnp.save(buffer, tnp.arange(3)); _ = buffer.seek(0); tnp.load(buffer)
    Array([0, 1, 2], i64)
    """
    found = np.load(file, *args, **kwargs)
    return array_of("load", found) if isinstance(found, np.ndarray) else found


def _read(name: str, read: Callable[..., Any], *args: Any) -> Array:
    """What NumPy reads; what it says of elements that are not there is the user's to know."""
    try:
        found = read(*args)
    except ValueError as error:
        if error.__traceback__ is not None and error.__traceback__.tb_next is not None:  # the iterator's own
            raise
        raise ArgumentError(
            message(f"{name}{here()}: {error}", help="compare count=, dtype= and offset= with what is there")
        ) from None
    return array_of(name, found)


def frombuffer(buffer: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> Array:
    """The bytes of a buffer read as elements of a dtype.

    buffer: bytes; dtype: of the elements, float64 by default; count: how many elements, all by default; offset: of the
    first, in bytes. Returns [count], a copy.

    >>> tnp.frombuffer(b"\\x01\\x02", dtype="uint8")
    Array([1, 2], u8)
    """
    return _read("frombuffer", np.frombuffer, buffer, np.dtype(dtype), count, offset)


def fromfile(file: Any, dtype: Any = float, count: int = -1, sep: str = "", offset: int = 0) -> Array:
    """The bytes of a file, or the numbers in its text, read as elements of a dtype.

    file: a name, or an open one; dtype: of the elements, float64 by default; count: how many, all by default; sep: what
    stands between numbers of text, "" for bytes; offset: where to begin, in bytes. Returns [count].

    >>> import tempfile
    >>> with tempfile.TemporaryFile() as file:
    ...     _ = file.write(b"\\x01\\x02"), file.seek(0)
    ...     tnp.fromfile(file, "uint8")
    Array([1, 2], u8)
    """
    return array_of("fromfile", np.fromfile(file, np.dtype(dtype), count, sep, offset))


def fromiter(iter: Iterable[Any], dtype: Any, count: int = -1) -> Array:
    """What an iterator yields, as a vector.

    iter: of Python numbers; dtype: of the elements; count: how many to take, all by default. Returns [count].

    >>> tnp.fromiter((i * i for i in range(3)), dtype=int)
    Array([0, 1, 4], i64)
    """
    return _read("fromiter", np.fromiter, iter, np.dtype(dtype), count)


def fromstring(string: str, dtype: Any = float, count: int = -1, *, sep: str) -> Array:
    """The numbers in a text, as a vector.

    string: the text; dtype: of the elements, float64 by default; count: how many to take, all by default; sep: what
    stands between them. Returns [count].

    >>> tnp.fromstring("1 2", dtype=int, sep=" ")
    Array([1, 2], i64)
    """
    return array_of("fromstring", np.fromstring(string, np.dtype(dtype), count, sep=sep))


def array_str(
    a: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: Any = None
) -> str:
    """The elements as text.

    a: [*s]; max_line_width, precision, suppress_small: as of `array_repr`. Returns a str.

    >>> tnp.array_str(tnp.asarray([1, 2]))
    '[1 2]'
    """
    return np.array_str(np.asarray(a), max_line_width, precision, suppress_small)


def array_repr(
    arr: Any, max_line_width: int | None = None, precision: int | None = None, suppress_small: bool | None = None
) -> str:
    """The array as `repr` shows it, with another width, or fewer digits.

    arr: any shape; max_line_width: of a line, in characters; precision: digits behind the point; suppress_small:
    numbers that round to 0 as 0. By default as `set_printoptions` says. Returns a str.

    >>> tnp.array_repr(tnp.asarray([1, 2]))
    'Array([1, 2], i64)'
    """
    wanted: dict[str, Any] = {"linewidth": max_line_width, "precision": precision, "suppress": suppress_small}
    with np.printoptions(**{option: value for option, value in wanted.items() if value is not None}):
        return repr(array_of("array_repr", arr))


def iterable(y: Any) -> bool:
    """Whether a value can be iterated over.

    y: any object; an array of any shape but []. Returns a Python bool.

    >>> tnp.iterable([1]), tnp.iterable(2)
    (True, False)
    """
    return bool(np.iterable(y))
