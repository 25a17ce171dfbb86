"""`custom_gradient`: functions that return their own reverse derivative."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.trace.source import here
from tracer.trace.tracebacks import call_user, wrapping
from tracer.transforms.custom.closures import hoisted
from tracer.transforms.custom.derivatives import custom_vjp
from tracer.transforms.functions import check_callable, name_of


def custom_gradient(fun: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap a function that returns its own reverse derivative: fun(*args) -> (outputs, pullback).

    fun: takes arrays of any shapes; cotangents have the shapes and dtypes of their values.

    pullback(cotangents of the outputs) returns a tuple with the cotangent of each argument; the cotangent alone if
    there is one argument. Arrays that it closes over are kept as residuals. See `custom_vjp` for two functions instead.

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
                help="pullback takes the outputs' cotangents and returns the arguments' cotangents",
            )
        )
    return result
