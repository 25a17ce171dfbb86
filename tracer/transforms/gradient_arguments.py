"""Differentiated arguments: `argnums`, and the dtypes of arguments, with errors for arguments without a gradient."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracer.errors import ArgumentError, DTypeError, message
from tracer.ir import dtypes
from tracer.ir.types import ArrayType, is_differentiable
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.tracebacks import call_user
from tracer.transforms.functions import argument_names, flatten_arguments, name_of


def refuse_reduce_axes(caller: str, reduce_axes: Sequence[object]) -> None:
    """Raise ArgumentError if `reduce_axes`, which JAX once had and still accepts, is not empty."""
    if reduce_axes:
        text = f"{caller}{here()}: reduce_axes must be empty, as in JAX"
        raise ArgumentError(message(text, f"got {reduce_axes!r}", help="sum over the lanes yourself, by lax.psum"))


def argument_numbers(argnums: Any, caller: str) -> tuple[int, ...]:
    """Return the user's `argnums` as a tuple. Raises ArgumentError unless they are integers."""
    if argnums.__class__ is int:
        return (argnums,)
    numbers = tuple(argnums) if isinstance(argnums, tuple | list) else (argnums,)
    for number in numbers:
        if not isinstance(number, int | np.integer) or isinstance(number, bool):
            raise ArgumentError(
                message(
                    f"{caller}{here()}: argnums takes integers",
                    f"got {number!r}",
                    help=f"count the arguments from 0; they go to the result: {caller}(f)(x)",
                )
            )
    return tuple(map(int, numbers))


def _refuse_repetition(positions: Sequence[int], caller: str) -> None:
    if len(set(positions)) != len(positions):
        twice = next(p for n, p in enumerate(positions) if p in positions[:n])
        raise ArgumentError(
            message(
                f"{caller}{here()}: argnums names argument {twice} twice",
                f"got {len(positions)} numbers",
                help="name each argument once",
            )
        )


def argument_position(number: int, count: int, caller: str) -> int:
    """Return an argnum, counted from either end, as a position. Raises ArgumentError if out of range."""
    if not -count <= number < count:
        raise ArgumentError(
            message(
                f"{caller}{here()}: argnums names argument {number}",
                f"the call has {count} positional argument{'s' if count != 1 else ''}",
                help="pass the differentiated arguments by position",
            )
        )
    return number % count


class Chosen(NamedTuple):
    """Differentiated arguments of a call. names: the leaves' names in errors.

    call, name: the function of these arguments alone, and its name.
    """

    call: Callable[..., Any]
    name: str
    leaves: list[Array]
    structure: trees.Structure
    names: Callable[[], list[str]]


def chosen_arguments(
    fun: Callable[..., Any], caller: str, numbers: Sequence[int], args: Sequence[Any], kwargs: dict[str, Any], *,
    holomorphic: bool, allow_int: bool,
) -> Chosen:  # fmt: skip
    """Return the arguments that argnums name.

    Raises ArgumentError for positions that the call lacks, DTypeError for arguments without a gradient.
    """
    positions = [argument_position(number, len(args), caller) for number in numbers]
    if len(positions) > 1:
        _refuse_repetition(positions, caller)
    given = (args[positions[0]],) if len(positions) == 1 else tuple([args[position] for position in positions])
    chosen = trees.trained_part(given)

    def call(*values: Any) -> Any:
        full = list(args)
        if chosen is not given:
            values = trees.merged(given, values)
        for position, value in zip(positions, values):  # noqa: B905  # as many
            full[position] = value
        return call_user(fun, full, kwargs)

    def names() -> list[str]:
        return argument_names(chosen, of=fun, positions=positions)

    name = name_of(fun)
    where = f"{caller} of {name}"
    leaves, structure = flatten_arguments(chosen, where, names)
    check_gradient_inputs(leaves, names, where, holomorphic, allow_int)
    return Chosen(call, name, leaves, structure, names)


def check_gradient_inputs(
    leaves: Sequence[Array], names: Callable[[], list[str]], caller: str, holomorphic: bool, allow_int: bool
) -> None:
    """Raise DTypeError for arguments without a gradient. caller: the transform and its function."""
    for number, leaf in enumerate(leaves):
        type = leaf._type or leaf.type
        good = is_differentiable(type) or allow_int
        if holomorphic:
            good = isinstance(type, ArrayType) and dtypes.is_complex(type.dtype)
        if not good:
            path = names()[number]
            wanted = "complex" if holomorphic else "floating or complex"
            remedy = (
                "cast with .astype(complex), or leave holomorphic out"
                if holomorphic
                else "pass a float, as 2.0 for 2, or cast with .astype(float)"
                + ("; allow_int=True gives float0" if caller.startswith(_ALLOW_INT) else "")
            )
            missing = "gradient" if "grad" in caller.partition(" ")[0] else "derivative"
            raise DTypeError(
                message(
                    f"{caller}{here()}: {path} has no {missing}",
                    f"expected a {wanted} dtype, got {type}",
                    help=remedy,
                )
            )


_ALLOW_INT = ("grad", "value_and_grad", "jacrev")  # the transforms that take it
