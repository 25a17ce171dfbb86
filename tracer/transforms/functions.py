"""Conversion between users' functions on trees and internal functions on lists of arrays."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from tracer.errors import ArgumentError, DTypeError, TracerError, message
from tracer.ir.program import Literal
from tracer.settings import gate
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.device_trace import together
from tracer.trace.source import here
from tracer.trace.tracebacks import call_user


def name_of(function: Callable[..., Any]) -> str:
    """Return the function's name in printed programs and errors."""
    name = getattr(function, "__name__", None) or type(function).__name__
    return "lambda" if name == "<lambda>" else str(name)


def flatten_arguments(
    arguments: Any, caller: str, names: Callable[[], list[str]]
) -> tuple[list[Array], trees.Structure]:
    """Return the leaves of a tree of arguments as arrays, and the structure.

    caller: the operation, for errors. names: the names of the leaves, for errors. Raises as `as_array`.
    """
    if arguments.__class__ is tuple and len(arguments) == 1 and arguments[0].__class__ is Array and not gate.elsewhere:
        return [arguments[0]], trees.ONE
    leaves, structure = trees.flatten_values(arguments)
    return arrays_of(leaves, caller, names), structure


def arrays_of(leaves: Sequence[Any], caller: str, names: Callable[[], list[str]]) -> list[Array]:
    """Return the leaves as arrays. caller, names: as for `flatten_arguments`. Raises as `as_array`."""
    arrays = [
        leaf if isinstance(leaf, Array) else _named(leaf, position, caller, names)
        for position, leaf in enumerate(leaves)
    ]
    if gate.elsewhere or any(x._trace is not None for x in arrays):
        return together(arrays, caller, names)
    return arrays


def _named(leaf: Any, position: int, caller: str, names: Callable[[], list[str]]) -> Array:
    try:
        return as_array(leaf, caller)
    except (ArgumentError, DTypeError):
        pass
    return as_array(leaf, f"{caller}: {names()[position]}")  # raises again, naming the leaf


def argument_names(
    args: Sequence[Any], kwargs: Mapping[str, Any] | None = None, *,
    of: Callable[..., Any] | Sequence[str] | None = None, positions: Sequence[int] | None = None,
) -> list[str]:  # fmt: skip
    """Return `argument 0`, `argument 1, params['w'][2]` and so on for every leaf of a call's arguments.

    of: the function, whose parameters give names, or these names. positions: the positions of args in the call.
    """
    parameters = parameter_names(of) if of is None or callable(of) else of
    names = []
    for position, argument in zip(positions or range(len(args)), args, strict=True):
        parameter = parameters[position] if position < len(parameters) else None
        names += _leaf_names(f"argument {position}", parameter, argument)
    for key in sorted(kwargs or {}):
        names += _leaf_names(f"argument {key!r}", key, (kwargs or {})[key])
    return names


def _leaf_names(argument: str, parameter: str | None, value: Any) -> list[str]:
    paths = [name.removeprefix("*") for name in trees.leaf_names(value, "*")]
    return [f"{argument}, {parameter or 'at '}{path}" if path else argument for path in paths]


def parameter_names(function: Callable[..., Any] | None) -> list[str]:
    """Return the names of a function's positional parameters; none if it has no signature."""
    return [] if function is None else list(positional_parameters(function)[0])


def positional_parameters(function: Callable[..., Any]) -> tuple[tuple[str, ...], int | None]:
    """Return the names of the positional parameters, and their max count (None if unlimited or unknown)."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return (), None
    names = tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
    open_ended = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    return names, None if open_ended else len(names)


def check_positions(numbers: Iterable[int], function: Callable[..., Any], option: str, where: str) -> None:
    """Raise ArgumentError if the function does not have an argument of such a number.

    option, where: the option that gave the numbers, and the transform of the function.
    """
    count = positional_parameters(function)[1]
    for number in sorted(numbers):
        if count is not None and not -count <= number < count:
            raise ArgumentError(
                message(
                    f"{where}{here()}: {option} names argument {number}",
                    f"the function has {count} positional parameter{'' if count == 1 else 's'}",
                    help="count from 0, or use names",
                )
            )


def as_outputs(result: Any, caller: str) -> tuple[list[Any], trees.Structure]:
    """Return a function's result as operands, and its structure. caller: the function, for errors."""
    if type(result) is Array:
        return [result], trees.LEAF
    leaves, structure = trees.flatten_values(result)
    outputs = [
        leaf if isinstance(leaf, Array) else as_output(leaf, caller, partial(result_name, result, number))
        for number, leaf in enumerate(leaves)
    ]
    return outputs, structure


def result_name(result: Any, number: int) -> str:
    """Return the name of one leaf of a function's result in errors, as `result_names` does for all of them."""
    return result_names(result)[number]


def result_names(result: Any) -> list[str]:
    """Return `the result`, or `the result at ['w'][2]`, for each leaf of a function's result."""
    paths = [name.removeprefix("*") for name in trees.leaf_names(result, "*")]
    return [f"the result at {path}" if path else "the result" for path in paths]


def as_output(value: Any, caller: str, name: Callable[[], str] = lambda: "the result") -> Any:
    """Return a leaf of a function's result as an operand. name: its name in errors.

    Raises ArgumentError if it is not an array.
    """
    if isinstance(value, Array | Literal):
        return value
    try:
        return as_array(value, caller)
    except ArgumentError:
        place = name().removeprefix("the result")
        raise ArgumentError(
            message(
                f"{caller}{here()} returned a value that is not an array",
                f"got {type(value).__name__}" + (f" for the result{place}" if place else ""),
                help="return arrays and numbers, or trees of them",
            )
        ) from None


def call_rule(function: Callable[..., Any], arguments: Sequence[Any], caller: str) -> Any:
    """Call a function of the user's with our arguments. Raises ArgumentError if it takes another number of them."""
    try:
        return call_user(function, arguments, {})
    except TypeError as error:
        called = error.__traceback__.tb_next if error.__traceback__ is not None else None
        deeper = called is not None and called.tb_next is not None
        if deeper or isinstance(error, TracerError):
            raise
        count = f"{len(arguments)} argument{'s' if len(arguments) != 1 else ''}"
        text = f"{caller}{here()} is called with {count}"
        raise ArgumentError(message(text, str(error), help="give the function these parameters")) from None


def check_callable(function: Any, caller: str) -> None:
    """Raise ArgumentError if this is not a function, but for example the result of calling one."""
    if not callable(function):
        curried = f", as in {caller}(f), and call the result: {caller}(f)(x)"
        raise ArgumentError(
            message(
                f"{caller}{here()} takes a function",
                f"got {'None' if function is None else type(function).__name__}",
                help="pass the function itself" + (curried if caller in _CURRIED else ", not the result of a call"),
            )
        )


_CURRIED = (
    "jit", "grad", "value_and_grad", "vmap", "jacfwd", "jacrev", "hessian", "make_program", "custom_vjp", "custom_jvp",
)  # fmt: skip
