"""Arithmetic on shapes and axes, in one place, so that run-time dimensions can come in here."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Sequence

from tracer.errors import ArgumentError, AxisError, ShapeError, TracedValueError, TracerIntegerError, message

Shape = tuple[int, ...]


def show(shape: Sequence[int]) -> str:
    """Return the shape as in the printed IR: `[2,3]`."""
    return f"[{','.join(map(str, shape))}]"


def size(shape: Sequence[int]) -> int:
    return math.prod(shape)


def strides(shape: Sequence[int]) -> tuple[int, ...]:
    """Return row-major strides, in elements.

    >>> strides((2, 3, 4))
    (12, 4, 1)
    """
    result = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        result[axis] = result[axis + 1] * shape[axis + 1]
    return tuple(result)


def axis_index(axis: object, rank: int, operation: str) -> int:
    """Return a single axis, counted from either end, as 0 <= axis < rank.

    operation: its name in errors. Raises AxisError if out of range, ArgumentError if not an integer,
    TracerIntegerError if traced.
    """
    try:
        index = operator.index(axis)  # type: ignore[arg-type]  # any integer-like object
    except TracedValueError:
        raise TracerIntegerError(
            message(
                f"{operation}: an axis must be known while tracing",
                f"got {axis!r}",
                help="mark the argument static: jit(f, static_argnums=...)",
            )
        ) from None
    except TypeError:
        remedy = f"axes run from {-rank} to {rank - 1}" if rank else "the array has no axes"
        raise ArgumentError(message(f"{operation}: an axis is an integer", f"got {axis!r}", help=remedy)) from None
    if not -rank <= index < rank:
        raise AxisError(
            message(
                f"{operation}: axis {index} is out of range for {rank} axes",
                help=f"axes run from {-rank} to {rank - 1}" if rank else "the array has no axes",
            )
        )
    return index % rank if rank else index


def axes_tuple(axes: object, rank: int, operation: str) -> tuple[int, ...]:
    """Return None (all axes), one axis or several as a sorted tuple.

    Raises as `axis_index`, and AxisError if an axis repeats.
    """
    if axes is None:
        return tuple(range(rank))
    given = tuple(axes) if isinstance(axes, Iterable) and getattr(axes, "ndim", None) != 0 else (axes,)
    result = tuple(sorted(axis_index(axis, rank, operation) for axis in given))
    if len(set(result)) != len(result):
        raise AxisError(message(f"{operation}: repeated axis in {given}", help="name every axis once"))
    return result


def drop(shape: Sequence[int], axes: Iterable[int]) -> Shape:
    """Return the shape without `axes`."""
    gone = set(axes)
    return tuple(n for axis, n in enumerate(shape) if axis not in gone)


def broadcast(*shapes: Shape, operation: str = "broadcast", kind: type[ShapeError] = ShapeError) -> Shape:
    """Return the shape that NumPy broadcasts the shapes to. Raises an error of type `kind` where they do not fit.

    >>> broadcast((3, 1), (4,))
    (3, 4)
    """
    first = shapes[0]
    if all(shape == first for shape in shapes):
        return first
    rank = max(map(len, shapes))
    result = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in shapes if len(shape) >= -axis}
        sizes.discard(1)
        if len(sizes) > 1:
            shown = ", ".join(show(shape) for shape in shapes)
            raise kind(
                message(
                    f"{operation}: shapes {shown} do not broadcast together",
                    f"axis {axis} has sizes {' and '.join(map(str, sorted(sizes)))}",
                    help="sizes must be equal, or one of them 1; reshape or slice the operands",
                )
            )
        result.append(sizes.pop() if sizes else 1)
    return tuple(result)


def inverse(permutation: Sequence[int]) -> tuple[int, ...]:
    """Return the permutation that undoes another."""
    result = [0] * len(permutation)
    for position, axis in enumerate(permutation):
        result[axis] = position
    return tuple(result)


def slice_size(start: int, stop: int, step: int) -> int:
    """Count the elements that start:stop:step takes, for step > 0."""
    return max(0, -(-(stop - start) // step))
