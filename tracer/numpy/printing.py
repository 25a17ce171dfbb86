"""How arrays are printed: NumPy's options, which hold for arrays of ours, and numbers as text."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import numpy as np


def get_printoptions() -> dict[str, Any]:
    """NumPy's options of printing, which hold here too.

    >>> tnp.get_printoptions()["precision"]
    8
    """
    return dict(np.get_printoptions())


def set_printoptions(precision: int | None = None, **options: Any) -> None:
    """Set NumPy's options of printing: precision, threshold, edgeitems, linewidth, suppress, and so on.

    >>> tnp.set_printoptions(precision=8)
    """
    np.set_printoptions(precision, **options)


def printoptions(**options: Any) -> AbstractContextManager[Any]:
    """NumPy's options of printing, set for a `with` block.

    >>> with tnp.printoptions(precision=3):
    ...     print(tnp.asarray([tnp.pi]))
    [3.142]
    """
    return np.printoptions(**options)


def array2string(a: Any, *args: Any, **options: Any) -> str:
    """The elements as text, by NumPy's options.

    >>> tnp.array2string(tnp.asarray([1.5, 2.0]), separator=", ")
    '[1.5, 2. ]'
    """
    return np.array2string(np.asarray(a), *args, **options)


def base_repr(number: int, base: int = 2, padding: int = 0) -> str:
    """An integer in a base of 2 to 36.

    number: a Python integer; padding: how many zeros to put in front. Returns a str.

    >>> tnp.base_repr(10, base=3)
    '101'
    """
    return np.base_repr(number, base, padding)


def binary_repr(num: int, width: int | None = None) -> str:
    """An integer in binary; a negative one as two's complement, if a width is given.

    num: a Python integer; width: of the text at least. Returns a str.

    >>> tnp.binary_repr(-3, width=4)
    '1101'
    """
    return np.binary_repr(num, width)


def format_float_positional(x: Any, *args: Any, **options: Any) -> str:
    """A number in digits, with as few as tell it from its neighbours.

    >>> tnp.format_float_positional(tnp.asarray(0.1))
    '0.1'
    """
    return np.format_float_positional(np.asarray(x).item(), *args, **options)


def format_float_scientific(x: Any, *args: Any, **options: Any) -> str:
    """A number as a fraction and a power of ten, with as few digits as tell it from its neighbours.

    >>> tnp.format_float_scientific(tnp.asarray(1500.0))
    '1.5e+03'
    """
    return np.format_float_scientific(np.asarray(x).item(), *args, **options)
