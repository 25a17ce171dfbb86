"""Names in printed programs: `named_scope` for lines, `named_call` for a function as a call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.primitives.control.calls import call
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.tracebacks import call_user, wrapping
from tracer.transforms.functions import check_callable, name_of


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

    fun: any function, of any arguments; its arrays [*s] are the call's operands. name: by default fun's own.

    >>> import tracer
    >>> program = tracer.make_program(tracer.named_call(lambda x: 2 * x, name="twice"))(1.0)
    >>> program.equations[0].params["program"].name
    'twice'
    """
    check_callable(fun, "named_call")
    label = name_of(fun) if name is None else name

    @wrapping(fun)
    def named(*args: Any, **kwargs: Any) -> Any:
        if state.staging is None:
            return call_user(fun, args, kwargs)
        leaves, structure = trees.flatten((args, kwargs))
        arrays = [x for x in leaves if isinstance(x, Array)]
        result: list[Any] = []

        def flat(inputs: list[Array]) -> list[Any]:
            moving = iter(inputs)
            given, keywords = trees.unflatten(structure, [next(moving) if isinstance(x, Array) else x for x in leaves])
            result[:] = trees.flatten(call_user(fun, given, keywords))
            return [y for y in result[0] if isinstance(y, Array)]

        staged = stage(flat, [x.type for x in arrays], name=label)
        outputs = iter(call(staged.program, *staged.constants, *arrays))
        returned, kind = result
        return trees.unflatten(kind, [next(outputs) if isinstance(y, Array) else y for y in returned])

    return named
