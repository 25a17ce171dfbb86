"""Inspection of compiled programs while they run: `debug.print`, `debug.callback` and `debug.breakpoint`.

`debug.first_nan` runs a program again, and finds the operation that a NaN comes from. `debug.watch` tabulates the
ranges of the values of every line.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable
from importlib import import_module
from itertools import islice
from typing import IO, TYPE_CHECKING, Any

from tracer.absent import absent
from tracer.lazy import LazyModule
from tracer.runtime.jit.nonfinite import NonFinite as NonFinite
from tracer.runtime.jit.nonfinite import first_nan as first_nan
from tracer.runtime.values.callbacks import io_callback
from tracer.runtime.values.checks import check_format, formatted, on_values
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import user_frames
from tracer.trace.tracebacks import set_boundaries

if TYPE_CHECKING:
    from tracer import debugger
    from tracer.runtime.jit.watched import watch as watch
else:
    debugger = LazyModule("tracer.debugger")


def callback(
    callback: Callable[..., Any], *args: Any, ordered: bool = False, partitioned: bool = False, **kwargs: Any
) -> None:
    """Call a Python function with NumPy arrays whenever the code runs, in order; its result is dropped.

    callback: takes NumPy arrays in the structure of args and kwargs; leaves that are neither arrays nor numbers, such
    as strings, are passed on unchanged. ordered: no effect, all effects are in order. partitioned: accepted for JAX,
    ignored.

    >>> tracer.jit(lambda x: tracer.debug.callback(builtins.print, x))(2.0)  # doctest: +SKIP
    2.0
    """
    del ordered, partitioned

    def quiet(*values: Any, **named: Any) -> None:
        callback(*values, **named)

    quiet.__name__ = getattr(callback, "__name__", "callback")
    _call(quiet, args, kwargs)


def print(
    fmt: str, *args: Any, ordered: bool = False, partitioned: bool = False, skip_format_check: bool = False,
    **kwargs: Any,
) -> None:  # fmt: skip
    """Print values whenever the code runs: `debug.print("x = {x}, y = {}", y, x=x)`, as `str.format`.

    fmt: as of `str.format`; args, kwargs: arrays of any shapes and numbers, printed as NumPy does. ordered: no effect,
    all effects are in order. Raises ArgumentError where the format and the values do not fit each other, unless
    `skip_format_check`. partitioned: accepted for JAX, ignored.

    >>> tracer.jit(lambda x: tracer.debug.print("x = {:.1f}", x))(2.0)
    x = 2.0
    """
    del ordered, partitioned
    if not skip_format_check:
        check_format("debug.print", fmt, args, kwargs)

    def show(*values: Any, **named: Any) -> None:
        builtins.print(formatted(fmt, values, named))  # noqa: T201  # it prints for the user

    show.__name__ = "print"
    _call(show, args, kwargs)


def _call(function: Callable[..., None], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Call with the values of arrays and numbers, and with other arguments unchanged."""
    host, values = on_values(function, args, kwargs)
    host.__name__ = function.__name__
    io_callback(host, None, *values)


def breakpoint(
    *, backend: str | None = None, filter_frames: bool = True, num_frames: int | None = None, ordered: bool = False,
    token: Any = None, stdin: IO[str] | None = None, stdout: IO[str] | None = None,
) -> None:  # fmt: skip
    """Stop whenever the code runs, and read commands about the values of the frame and of its callers.

    Under jit the program calls back here. Commands are pdb's: p, pp, where, up, down, list, continue, quit, which
    raises `bdb.BdbQuit`; anything else is an expression. num_frames: the number of frames shown. stdin, stdout: input
    of commands and output of answers. backend, filter_frames, ordered, token: accepted for JAX, ignored.

    >>> import io
    >>> def f(x):
    ...     y = 2.0 * x
    ...     tracer.debug.breakpoint(stdin=io.StringIO("p y"), num_frames=1)
    ...     return y
    >>> tracer.jit(f)(3.0)  # doctest: +ELLIPSIS
    > <doctest tracer.debug.breakpoint[1]>(3)f()
    ...
    (tracer) array(6.)
    (tracer)
    Array(6., f64*)
    """
    del backend, filter_frames, ordered, token
    frames = [
        debugger.Frame(f.f_code.co_filename, f.f_lineno, f.f_code.co_name, dict(f.f_locals), f.f_globals)
        for f in islice(user_frames(), num_frames)
    ]
    leaves, structure = trees.flatten([frame.locals for frame in frames])
    running = [isinstance(leaf, Array) and (leaf._trace is None or leaf._trace.is_open) for leaf in leaves]

    def stop(*values: Any) -> None:
        given = iter(values)
        shown = [next(given) if on else leaf for leaf, on in zip(leaves, running, strict=True)]
        named = trees.unflatten(structure, shown)
        debugger.Debugger(
            [f._replace(locals=names) for f, names in zip(frames, named, strict=True)], stdin, stdout
        ).run()

    stop.__name__ = "breakpoint"
    io_callback(stop, None, *(leaf for leaf, on in zip(leaves, running, strict=True) if on))


set_boundaries(globals())
_LATER = frozenset(("Watched", "watch"))


def __getattr__(name: str) -> object:
    if name in _LATER:
        return getattr(import_module("tracer.runtime.jit.watched"), name)
    raise absent(__name__, name)
