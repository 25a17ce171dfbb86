"""Closure conversion: functions with the arrays that they close over as arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.ir.types import Type, is_differentiable
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.stage import Staged, stage
from tracer.trace.tracebacks import wrapping
from tracer.transforms.functions import argument_names, as_outputs, check_callable, flatten_arguments, name_of


def closure_convert(fun: Callable[..., Any], *example_args: Any) -> tuple[Callable[..., Any], list[Array]]:
    """Return the function with the traced arrays that it closes over as arguments, and these arrays.

    fun: takes and returns trees of arrays of any shapes.

    Returns (converted, captured) such that converted(*args, *captured) is fun(*args), for arguments of the structure
    and types of `example_args`. So a custom rule may be differentiated with respect to captured arrays.

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
    """Convert a closure as `closure_convert`, for the traced arrays whose types satisfy `is_hoisted`."""
    name = name_of(fun)
    staged, structure, result = staged_call(fun, example_args, f"closure_convert of {name}")
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

    vars(converted).pop("__wrapped__")  # it takes other arguments, and no longer closes over `fun`'s arrays
    return converted, captured


def staged_call(fun: Callable[..., Any], args: tuple[Any, ...], caller: str) -> tuple[Staged, Any, Any]:
    """Trace a function at these arguments. Return the staged program, and the structures of arguments and result.

    caller: the operation and the function, for errors; the last word names the program.
    """
    leaves, structure = flatten_arguments(args, caller, lambda: argument_names(args))
    structures: list[trees.Structure] = []

    def flat(inputs: list[Any]) -> list[Any]:
        outputs, found = as_outputs(fun(*trees.unflatten(structure, inputs)), caller)
        structures.append(found)
        return outputs

    staged = stage(flat, [x.type for x in leaves], name=caller.rpartition(" ")[2])
    return staged, structure, structures[-1]
