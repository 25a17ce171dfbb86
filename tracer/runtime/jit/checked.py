"""`checked`: a function whose compiled program raises where it makes a NaN or infinity."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.runtime.jit.jit import JitFunction, jit
from tracer.settings import config
from tracer.trace.tracebacks import set_boundaries, wrapping
from tracer.transforms.functions import check_callable


def checked(fun: Callable[..., Any], *, nans: bool = True, infs: bool = True) -> Callable[..., Any]:
    """Return the jitted function with a check after each operation that makes a NaN or infinity of finite numbers.

    fun: takes and returns trees of arrays of any shapes and dtypes, jitted or not. Give it the whole computation,
    `checked(grad(loss))`, so that the derivative is checked too. nans, infs: the elements that are errors. The checks
    are part of the compiled program: each result is reduced to one flag. Elements that a `where` drops are passed over.

    Raises NonFiniteError with the user's line, the iterations of loops around it, and the ranges of the operands. The
    error of a derivative names the line as "in the gradient of" it.

    >>> def loss(x):
    ...     return tnp.sqrt(x - 1.0).sum()
    >>> tracer.checked(tracer.grad(loss))(tnp.asarray([5.0, 2.0]))
    Array([0.25, 0.5 ], f64)
    >>> tracer.checked(tracer.grad(loss))(tnp.asarray([5.0, 1.0]))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    tracer.errors.NonFiniteError: div in the gradient of ...:2: 1 of 2 elements are infinite, from finite operands
      operand f64[] = 0.5
      operand f64[2] in [0, 2]
      help: tracer.debug.watch(f)(...) shows the range of every line's values
      more: python -m tracer docs NonFiniteError
    """
    check_callable(fun, "checked")
    run = fun if isinstance(fun, JitFunction) else jit(fun)

    @wrapping(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        with config.using(debug_nans=nans, debug_infs=infs):
            return run(*args, **kwargs)

    return call


set_boundaries(globals(), ["checked"])
