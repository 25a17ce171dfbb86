"""Looking into compiled programs while they run: `debug.print` and `debug.callback`."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from string import Formatter
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.runtime.callbacks import io_callback
from tracer.trace.source import here


def callback(callback: Callable[..., Any], *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Call a Python function with NumPy arrays whenever the code runs, in order; what it returns is dropped.

    >>> tracer.jit(lambda x: tracer.debug.callback(builtins.print, x))(2.0)  # doctest: +SKIP
    2.0
    """

    def quiet(*values: Any, **named: Any) -> None:
        callback(*values, **named)

    quiet.__name__ = getattr(callback, "__name__", "callback")
    io_callback(quiet, None, *args, ordered=ordered, **kwargs)


def print(fmt: str, *args: Any, ordered: bool = False, **kwargs: Any) -> None:
    """Print values whenever the code runs: `debug.print("x = {x}, y = {}", y, x=x)`, as `str.format`.

    >>> tracer.jit(lambda x: tracer.debug.print("x = {:.1f}", x))(2.0)
    x = 2.0
    """
    _check_format(fmt, args, kwargs)

    def show(*values: Any, **named: Any) -> None:
        shown = {name: _number(value) for name, value in named.items()}
        builtins.print(fmt.format(*map(_number, values), **shown))  # noqa: T201  # it is what it is for

    show.__name__ = "print"
    io_callback(show, None, *args, ordered=ordered, **kwargs)


def _number(value: Any) -> Any:
    """A scalar as one, so that format specifications apply."""
    return value[()] if getattr(value, "ndim", None) == 0 else value


def _check_format(fmt: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if not isinstance(fmt, str):
        raise ArgumentError(message(f"debug.print{here()}: the format comes first", f"got {type(fmt).__name__}",
                                    help='debug.print("{}", x)'))  # fmt: skip
    fields = [field for _, field, _, _ in Formatter().parse(fmt) if field is not None]
    positional = sum(1 for field in fields if field == "")
    named = {field.split(".")[0].split("[")[0] for field in fields if field and not field[0].isdigit()}
    if positional > len(args) or not named <= set(kwargs):
        raise ArgumentError(
            message(
                f"debug.print{here()}: the format names values that were not given",
                f"got {fmt!r} for {len(args)} values and {sorted(kwargs)}",
            )
        )
