"""Computing at once what is known while a function is traced: `ensure_compile_time_eval`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

from tracer.trace.state import Level, state


def ensure_compile_time_eval() -> AbstractContextManager[None]:
    """Within it, what is computed from arrays that are known has a value at once, also while a function is traced.

    So Python may branch on it, and the program holds the result as a constant. Operations on traced arrays are traced
    as ever. A context manager, or a decorator of functions.

    >>> @tracer.jit
    ... def f(x):
    ...     with tracer.ensure_compile_time_eval():
    ...         largest = tnp.sin(tnp.arange(4.0)).max()
    ...         steps = 2 if largest > 0.5 else 1
    ...     return x * steps
    >>> f(3.0)
    Array(6., f64*)
    """
    return _at_once()


@contextmanager
def _at_once() -> Iterator[None]:
    with Level(None, None, None, state.axes).entered():
        yield
