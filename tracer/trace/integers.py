"""Integer arguments: counts, sizes, axes. Floats are refused, as in NumPy, not rounded."""

from __future__ import annotations

import operator
from collections.abc import Iterable
from typing import Any, Final

from tracer.errors import ArgumentError, TracedValueError, TracerIntegerError, message
from tracer.trace.source import here

_MOST: Final = 1 << 16  # operations that a function writes out


def integer(name: str, parameter: str, value: Any) -> int:
    """Return the argument as a Python integer, from any object with `__index__`.

    Raises ArgumentError for anything else, TracerIntegerError for a traced array.

    >>> integer("top_k", "k", np.int32(3))
    3
    """
    if type(value) is int:
        return value
    try:
        return operator.index(value)
    except TracedValueError:
        raise _traced(name, parameter, value) from None
    except TypeError:
        raise _refused(name, parameter, "an integer", value) from None


def repetitions(name: str, parameter: str, count: int, elements: int = 0) -> int:
    """Return a number of operations that a function writes out, one after another.

    Raises ArgumentError beyond 65,536, or beyond an axis's number of elements: tracing would seem to hang.

    >>> repetitions("polyder", "m", 3)
    3
    """
    most = max(_MOST, elements)
    if count > most:
        text = f"{name}{here()}: {parameter} is at most {most}, for each is an operation of its own"
        raise ArgumentError(message(text, f"got {count}"))
    return count


def integers(name: str, parameter: str, values: Iterable[Any]) -> tuple[int, ...]:
    """Return several arguments as Python integers. Raises as `integer`, and ArgumentError if not a sequence."""
    try:
        given = tuple(values)
    except TracedValueError:
        raise _traced(name, parameter, values) from None
    except TypeError:
        raise _refused(name, parameter, "a sequence of integers", values, "give a tuple of them") from None
    return tuple([integer(name, parameter, value) for value in given])


def pairs(name: str, parameter: str, values: Iterable[Iterable[Any]]) -> tuple[tuple[int, int], ...]:
    """Return pairs of integers, such as padding by axis. Raises as `integers`."""
    found = []
    for given in values:
        both = integers(name, parameter, given)
        if len(both) != 2:
            raise _refused(name, parameter, "pairs of integers", given, "give two of them for an axis")
        found.append((both[0], both[1]))
    return tuple(found)


def argument_numbers(where: str, parameter: str, given: Any) -> tuple[int, ...]:
    """Return the numbers of a function's arguments, given as one or several. Raises ArgumentError for non-integers."""
    several = isinstance(given, Iterable) and not isinstance(given, str) and getattr(given, "ndim", None) != 0
    values = tuple(given) if several else (given,)
    for value in values:
        if isinstance(value, bool) or not hasattr(type(value), "__index__"):
            raise ArgumentError(
                message(f"{where}{here()}: {parameter} takes integers", f"got {value!r}", help="count from 0")
            )
    return tuple(map(operator.index, values))


def _traced(name: str, parameter: str, value: Any) -> TracerIntegerError:
    return TracerIntegerError(
        message(
            f"{name}{here()}: {parameter} must be known while tracing",
            f"got {value!r}",
            help="mark the argument static: jit(f, static_argnums=...)",
        )
    )


def _refused(name: str, parameter: str, expected: str, value: Any, remedy: str | None = None) -> ArgumentError:
    shown = repr(value)
    got = "None" if value is None else f"{type(value).__name__}: {shown if len(shown) <= 60 else shown[:57] + '...'}"
    said = f"{name}{here()}: {parameter} takes {expected}"
    return ArgumentError(message(said, f"got {got}", help=remedy or _remedy(value)))


def _remedy(value: Any) -> str:
    if isinstance(value, float) or getattr(getattr(value, "dtype", None), "kind", "") == "f":
        return "round it to an integer: int(...), or // where it is divided"
    return "give an integer, or an object with __index__"
