"""Checks whose text has values, and formats of values that the running program computes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.errors import ArgumentError, CheckError, message
from tracer.lazy import LazyModule
from tracer.primitives.control import effects
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.source import here

if TYPE_CHECKING:
    import string
else:
    string = LazyModule("string")


def check(condition: Any, text: str, *args: Any, **kwargs: Any) -> None:
    """Raise CheckError(text, at the user's line) if the condition is false: eagerly, and from compiled code.

    condition: bool []; text: the error's text; args, kwargs: arrays and other values for its fields, as `str.format`
    takes them. Inside `cond` and `while_loop` under vmap, dead lanes are not checked. Raises ArgumentError where fields
    and values do not fit each other.

    >>> @tracer.jit
    ... def root(x):
    ...     tracer.check(tnp.all(x >= 0), "a root of a negative number, {}", tnp.min(x))
    ...     return tnp.sqrt(x)
    >>> root(tnp.asarray([4.0, 9.0]))
    Array([2., 3.], f64)
    >>> root(tnp.asarray([-1.0]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tracer.errors.CheckError: check failed at ...: a root of a negative number, -1.0
      more: python -m tracer docs CheckError
    """
    if not args and not kwargs:
        effects.check(condition, text)
        return
    check_format("check", text, args, kwargs)
    where = here()

    def fail(*args: Any, **kwargs: Any) -> None:
        raise CheckError(message(f"check failed{where}: {formatted(text, args, kwargs)}"))

    on_failure, values = on_values(fail, args, kwargs)
    effects.check_by(condition, on_failure, [as_array(x, "check") for x in values])


def formatted(fmt: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> str:
    """Return a format with values: arrays without axes as Python scalars, so that format specifications apply."""
    return fmt.format(*map(_number, args), **{name: _number(value) for name, value in kwargs.items()})


def _number(value: Any) -> Any:
    return value[()] if getattr(value, "ndim", None) == 0 else value


def on_values(
    function: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Callable[..., None], list[Any]]:
    """Return a function of the arrays and numbers among the arguments, and their values.

    Other arguments pass unchanged.
    """
    leaves, structure = trees.flatten((args, kwargs))
    computed = [isinstance(leaf, Array | np.ndarray | np.generic | int | float | complex) for leaf in leaves]

    def host(*values: Any) -> None:
        given = iter(values)
        positional, named = trees.unflatten(
            structure, [next(given) if on else leaf for leaf, on in zip(leaves, computed, strict=True)]
        )
        function(*positional, **named)

    return host, [leaf for leaf, on in zip(leaves, computed, strict=True) if on]


def check_format(caller: str, fmt: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise ArgumentError unless a format has a field for each value, and a value for each field."""
    if not isinstance(fmt, str):
        first = "the format comes first" if caller == "debug.print" else "the text comes after the condition"
        call = 'debug.print("{}", x)' if caller == "debug.print" else 'check(x > 0, "x is {}", x)'
        raise ArgumentError(message(f"{caller}{here()}: {first}", f"got {type(fmt).__name__}", help=call))
    bare = [field.split(".")[0].split("[")[0] for field in _fields(fmt)]
    positions = {int(field) for field in bare if field.isdigit()} or set(range(bare.count("")))
    names = {field for field in bare if field and not field.isdigit()}
    if not positions <= set(range(len(args))) or not names <= set(kwargs):
        raise ArgumentError(
            message(
                f"{caller}{here()}: the format names values that were not given",
                f"got {fmt!r} for {len(args)} values and {sorted(kwargs)}",
            )
        )
    if len(positions) < len(args):
        raise ArgumentError(
            message(
                f"{caller}{here()}: the format leaves values out",
                f"got {fmt!r} for {len(args)} values",
                help="write {} for each of them; an f-string would have formatted them before the code runs",
            )
        )


def _fields(fmt: str) -> Iterator[str]:
    """Yield the fields of a format, including nested ones in specifications."""
    for _, field, specification, _ in string.Formatter().parse(fmt):
        if field is not None:
            yield field
            yield from _fields(specification or "")
