"""Vectorising map, `vmap`: a function of examples becomes a function of batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from tracer.errors import ArgumentError, AxisError, message
from tracer.ir.program import Literal
from tracer.ir.types import Type, with_shape
from tracer.primitives.base.shapes import broadcast_in_dim, moveaxis
from tracer.primitives.control.calls import call_p
from tracer.trace import trees
from tracer.trace.array import Array, fixed, renewed
from tracer.trace.device_trace import DeviceTrace
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.state import named_axis, state
from tracer.trace.tracebacks import call_user, wrapping
from tracer.transforms.batch import batch_equation, batch_forward
from tracer.transforms.context import to_front
from tracer.transforms.functions import (
    argument_names,
    arrays_of,
    as_outputs,
    check_callable,
    name_of,
    result_name,
)

Axis = int | None


def vmap(
    fun: Callable[..., Any],
    in_axes: Any = 0,
    out_axes: Any = 0,
    axis_name: object = None,
    axis_size: int | None = None,
    spmd_axis_name: object = None,
) -> Callable[..., Any]:
    """Map a function over leading (or other) axes of its arguments, as one batched computation.

    fun: takes and returns trees of arrays [*s]; the mapped function's have one axis more, [n, *s] by default, and equal
    dtypes. in_axes: an integer, None, or a tree of them that is a prefix of the positional arguments; where it is None,
    `fun` receives the value as it is, an array or any object. out_axes: likewise for the results, None where all
    examples share one. axis_name: a name for collectives, as `lax.psum(x, "batch")`; axis_size: n, where no argument is
    mapped; spmd_axis_name: accepted for JAX's sake. Keyword arguments are mapped along axis 0. Raises ArgumentError
    where sizes disagree.

    >>> import tracer, tracer.numpy as tnp
    >>> tracer.vmap(lambda x, y: x * y, in_axes=(0, None))(tnp.asarray([1.0, 2.0]), 3.0)
    Array([3., 6.], f64)
    """
    check_callable(fun, "vmap")
    name = name_of(fun)

    @wrapping(fun)
    def batched(*args: Any, **kwargs: Any) -> Any:
        args = tuple(map(trees.with_fixed, args))
        kwargs = {key: trees.with_fixed(value) for key, value in kwargs.items()}
        axes = _argument_axes(in_axes, args, kwargs, name)

        def names() -> list[str]:
            every = argument_names(args, kwargs, of=fun)
            return [each for each, axis in zip(every, axes, strict=True) if axis is not None]

        values, structure = trees.flatten_values((args, kwargs))
        places = [n for n, axis in enumerate(axes) if axis is not None]
        mapped = [axis for axis in axes if axis is not None]
        leaves = arrays_of([values[n] for n in places], f"vmap of {name}", names)
        size = _batch_size(leaves, mapped, axis_size, name, names)
        example_types = [_example_type(x, axis) for x, axis in zip(leaves, mapped, strict=True)]
        given = [fixed(x) if isinstance(x, Array) else x for x in values]
        holder: list[Any] = []

        def flat(inputs: list[Any]) -> list[Any]:
            for place, example in zip(places, inputs, strict=True):
                given[place] = example
            positional, keywords = trees.unflatten(structure, given)
            result = call_user(fun, positional, keywords)
            outputs, out_structure = as_outputs(result, f"vmap of {name}")
            holder[:] = [out_structure, result]
            return outputs

        with named_axis(axis_name, size):
            staged = stage(flat, example_types, name=name, protected=True)
        operands = [*staged.constants, *leaves]
        operand_axes = [None] * len(staged.constants) + [axis % x.ndim for x, axis in zip(leaves, mapped, strict=True)]
        if state.staging is None and any(isinstance(x._trace, DeviceTrace) for x in operands):
            params = {"program": staged.program, "inline": True}  # as one program, not an operation at a time
            outputs, found = batch_equation(call_p, operands, operand_axes, params, size, axis_name)
        else:
            outputs, found = batch_forward(staged.program, operands, operand_axes, size, axis_name)
        wanted = trees.broadcast_prefix(out_axes, holder[1], f"out_axes of vmap of {name}")
        rows = enumerate(zip(outputs, found, wanted, strict=True))
        placed = [_place(y, a, w, size, name, partial(result_name, holder[1], n)) for n, (y, a, w) in rows]
        return trees.unflatten(holder[0], placed)

    return batched


def _argument_axes(in_axes: Any, args: Sequence[Any], kwargs: Mapping[str, Any], name: str) -> list[Axis]:
    """Return the axis of every leaf of the arguments. Raises ArgumentError if `in_axes` does not match them."""
    axes_tree = tuple(in_axes) if isinstance(in_axes, list) else in_axes
    if isinstance(axes_tree, tuple) and len(axes_tree) != len(args):
        raise ArgumentError(
            message(
                f"vmap of {name}{here()}: in_axes has one entry an argument",
                f"got {len(axes_tree)} for {len(args)} positional argument{'s' if len(args) != 1 else ''}",
                help="give one entry for each positional argument, or a single one for all",
            )
        )
    axes = trees.broadcast_prefix(axes_tree, args, f"in_axes of vmap of {name}")
    return axes + [0] * len(trees.flatten(kwargs)[0])


def _check_axis(x: Array, axis: object, name: str, argument: Callable[[], str]) -> None:
    if isinstance(axis, bool) or not isinstance(axis, int):
        raise ArgumentError(
            message(
                f"vmap of {name}{here()}: in_axes takes integers and None",
                f"got {axis!r} for {argument()}",
                help="the axis to map over, counted from 0; None for an argument that is the same for every example",
            )
        )
    if not -x.ndim <= axis < x.ndim:
        raise AxisError(
            message(
                f"vmap of {name}{here()}: in_axes names an axis that does not exist",
                f"axis {axis} of {argument()}, {x.type}",
                help="an argument that is the same for every example takes in_axes=None",
            )
        )


def _example_type(x: Array, axis: int) -> Type:
    shape = list(x.shape)
    del shape[axis]
    return with_shape(x.type, tuple(shape))


def _batch_size(
    leaves: Sequence[Array], axes: Sequence[Axis], given: int | None, name: str, names: Callable[[], list[str]]
) -> int:
    sizes = {}
    for position, (x, axis) in enumerate(zip(leaves, axes, strict=True)):
        if axis is not None:
            _check_axis(x, axis, name, lambda position=position: names()[position])  # type: ignore[misc]
            sizes[position] = x.shape[axis]
    if given is not None:
        sizes[-1] = given
    if not sizes:
        raise ArgumentError(
            message(
                f"vmap of {name}{here()}: nothing to map over",
                "no argument has an axis in in_axes",
                help="map one argument at least, or give axis_size",
            )
        )
    if len(set(sizes.values())) > 1:
        shown = [f"{names()[p] if p >= 0 else 'axis_size'} has size {n}" for p, n in sizes.items()]
        raise ArgumentError(
            message(
                f"vmap of {name}{here()}: the mapped axes have different sizes",
                *shown,
                help="sizes must agree; an argument that is the same for every example takes in_axes=None",
            )
        )
    return next(iter(sizes.values()))


def _place(y: Any, found: Axis, wanted: Axis, size: int, name: str, result: Callable[[], str]) -> Any:
    """Move the batch axis of an output to the axis that the user wants. Raises ArgumentError or AxisError."""
    if wanted is not None and (isinstance(wanted, bool) or not isinstance(wanted, int)):
        text = f"vmap of {name}{here()}: out_axes takes integers and None"
        raise ArgumentError(
            message(text, f"got {wanted!r} for {result()}", help="where the results are stacked, from 0")
        )
    if wanted is None:
        if found is not None:
            raise ArgumentError(
                message(
                    f"vmap of {name}{here()}: out_axes=None for an output that differs between examples",
                    f"got {y.type} for {result()}, batched along axis {found}",
                    help="give it an axis in out_axes",
                )
            )
        return broadcast_in_dim(y, (), ()) if isinstance(y, Literal) else renewed(y)
    front = to_front(y, found, size)
    rank = len(front.shape)
    if not -rank <= wanted < rank:
        raise AxisError(
            message(
                f"vmap of {name}{here()}: out_axes names an axis that does not exist",
                f"axis {wanted} of {result()}, {front.type}",
                help=f"out_axes runs from {-rank} to {rank - 1} here",
            )
        )
    return renewed(moveaxis(front, 0, wanted % rank))
