"""Functions with what they close over, and under names: `closure_convert`, `custom_gradient`, `named_call`,
`named_scope`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.ir.types import Type, is_differentiable
from tracer.primitives.control.calls import call
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.stage import Staged, stage
from tracer.trace.state import state
from tracer.trace.tracebacks import call_user, wrapping
from tracer.transforms.custom.derivatives import custom_vjp
from tracer.transforms.functions import argument_names, as_outputs, check_callable, flatten_arguments, name_of


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Array]]:
    """The function with the traced arrays that it closes over as arguments, and those arrays.

    fun: takes and returns trees of arrays of any shapes.

    Returns (converted, captured) such that converted(*args, *captured) is fun(*args), for arguments of the structure
    and types of `example_args`. So a custom rule may be differentiated in what a function captured.

    >>> import tracer
    >>> def f(a):
    ...     converted, captured = tracer.closure_convert(lambda x: a * x, 1.0)
    ...     return len(captured), converted(3.0, *captured)
    >>> tracer.grad(lambda a: f(a)[1])(2.0)
    Array(3., f64*)
    """
    check_callable(fun, "closure_convert")
    return hoisted(fun, example_args, is_differentiable)


def hoisted(
    fun: Callable[..., Any], example_args: tuple[Any, ...], is_hoisted: Callable[[Type], bool]
) -> tuple[Callable[..., Any], list[Array]]:
    """As `closure_convert`, of the traced arrays whose types are to be hoisted."""
    name = name_of(fun)
    staged, structure, result = _staged(fun, example_args, f"closure_convert of {name}")
    flags = [x._trace is not None and is_hoisted(x.type) for x in staged.constants]
    captured = [x for x, on in zip(staged.constants, flags, strict=True) if on]

    @wrapping(fun)
    def converted(*args: Any) -> Any:
        count = len(args) - len(captured)
        given = iter(args[count:])
        constants = [next(given) if on else x for x, on in zip(staged.constants, flags, strict=True)]
        leaves, found = flatten_arguments(args[:count], f"{name} converted", lambda: argument_names(args))
        if found != structure:
            raise ArgumentError(
                message(
                    f"{name}{here()}, converted by closure_convert, takes arguments like the examples first",
                    f"expected {trees.structure_text(structure)}",
                    f"got {trees.structure_text(found)}",
                )
            )
        return trees.unflatten(result, evaluate(staged.program, [*constants, *leaves]))

    vars(converted).pop("__wrapped__")  # it takes other arguments, and no longer closes over what `fun` does
    return converted, captured


def _staged(fun: Callable[..., Any], args: tuple[Any, ...], what: str) -> tuple[Staged, Any, Any]:
    leaves, structure = flatten_arguments(args, what, lambda: argument_names(args))
    structures: list[trees.Structure] = []

    def flat(inputs: list[Any]) -> list[Any]:
        outputs, found = as_outputs(fun(*trees.unflatten(structure, inputs)), what)
        structures.append(found)
        return outputs

    staged = stage(flat, [x.type for x in leaves], name=what.rpartition(" ")[2])
    return staged, structure, structures[-1]


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """A function that returns its own reverse derivative: fun(*args) -> (outputs, pullback).

    fun: takes arrays of any shapes; cotangents have the shapes and dtypes of what they belong to.

    pullback(cotangents of the outputs) returns a tuple with the cotangent of each argument; the cotangent alone where
    there is one argument. What it closes over is kept as residuals. See `custom_vjp` for two functions instead.

    >>> import tracer
    >>> @tracer.custom_gradient
    ... def f(x): return x * x, lambda g: 10.0 * g * x
    >>> tracer.grad(f)(3.0)
    Array(30., f64*)
    """
    check_callable(fun, "custom_gradient")

    @wrapping(fun)
    def call_with_rule(*args: Any, **kwargs: Any) -> Any:
        converted: list[Callable[..., Any]] = []

        @wrapping(fun)
        def primal(*given: Any) -> Any:
            return _pair(call_user(fun, given, kwargs), name_of(fun))[0]

        def forward(*given: Any) -> tuple[Any, Any]:
            outputs, pullback = _pair(call_user(fun, given, kwargs), name_of(fun))
            function, captured = hoisted(pullback, (outputs,), lambda _: True)  # it is called at another level
            converted[:] = [function]
            return outputs, captured

        def backward(captured: Any, cotangents: Any) -> tuple[Any, ...]:
            result = converted[0](cotangents, *captured)
            return (result,) if len(args) == 1 and not (isinstance(result, tuple) and len(result) == 1) else result

        function = custom_vjp(primal)
        function.defvjp(forward, backward)
        return function(*args)

    return call_with_rule


def _pair(result: Any, name: str) -> tuple[Any, Any]:
    if not isinstance(result, tuple) or len(result) != 2 or not callable(result[1]):
        raise ArgumentError(
            message(
                f"custom_gradient {name}{here()}: the function must return (outputs, pullback)",
                f"got {type(result).__name__}",
                help="pullback takes the cotangents of the outputs and returns those of the arguments",
            )
        )
    return result


def named_scope(name: str) -> AbstractContextManager[None]:
    """Within it, what is traced carries the name beside its line in printed programs; names within names are joined.

    A context manager, or a decorator of functions. What transforms make of an operation keeps the name, so it says of a
    gradient which part it belongs to. Raises ArgumentError for what is no string.

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
    """The same function, which stands in printed programs as a call of that name.

    fun: any; name: by default fun's own.

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
        staged, _, result = _staged(lambda given, keywords: call_user(fun, given, keywords), (args, kwargs), label)
        leaves, _ = flatten_arguments((args, kwargs), label, lambda: argument_names(args, kwargs))
        return trees.unflatten(result, call(staged.program, *staged.constants, *leaves))

    return named
