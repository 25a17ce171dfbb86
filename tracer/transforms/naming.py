"""Names in printed programs: `named_scope` for lines, `named_call` for a function as a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.primitives.control.calls import call
from tracer.trace import trees
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.trace.tracebacks import call_user, wrapping
from tracer.transforms.custom.closures import staged_call
from tracer.transforms.functions import argument_names, check_callable, flatten_arguments, name_of


def named_scope(name: str) -> AbstractContextManager[None]:
    """Name the operations traced within it, in printed programs beside their lines; nested names are joined.

    Returns a context manager, which is also a decorator of functions. Operations that transforms derive keep the name,
    so it shows which part a gradient belongs to. Raises ArgumentError if the name is not a string.

    >>> import tracer, tracer.numpy as tnp
    >>> def f(x):
    ...     with tracer.named_scope("head"):
    ...         return tnp.sin(x)
    >>> tracer.make_program(tracer.grad(f))(1.0).equations[0].source.scope
    'head'
    """
    if not isinstance(name, str):
        raise ArgumentError(message(f"named_scope{here()} takes a string", f"got {type(name).__name__}"))
    return _scope(name)


@contextmanager
def _scope(name: str) -> Iterator[None]:
    outer = state.scope
    state.scope = f"{outer}/{name}" if outer else name
    try:
        yield
    finally:
        state.scope = outer


def named_call(fun: Callable[..., Any], *, name: str | None = None) -> Callable[..., Any]:
    """Return the function as one that is a call of that name in printed programs.

    fun: any function; name: by default fun's own.

    >>> import tracer
    >>> program = tracer.make_program(tracer.named_call(lambda x: 2 * x, name="twice"))(1.0)
    >>> program.equations[0].params["program"].name
    'twice'
    """
    check_callable(fun, "named_call")
    label = name_of(fun) if name is None else name

    @wrapping(fun)
    def named(*args: Any, **kwargs: Any) -> Any:
        if state.innermost is None:
            return call_user(fun, args, kwargs)
        staged, _, result = staged_call(lambda given, keywords: call_user(fun, given, keywords), (args, kwargs), label)
        leaves, _ = flatten_arguments((args, kwargs), label, lambda: argument_names(args, kwargs))
        return trees.unflatten(result, call(staged.program, *staged.constants, *leaves))

    return named
