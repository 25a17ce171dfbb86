"""Batching: from a program on examples, the program on batches of them.

Every value has a batch axis or None; values that no batched value reaches are computed once.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from tracer.errors import InternalError
from tracer.ir.primitive import NoRule, Primitive
from tracer.ir.program import Literal, Program, Var
from tracer.ir.types import StackType, Type, with_shape
from tracer.primitives.control.custom.constants_to_literals import closed
from tracer.trace.array import Array
from tracer.trace.evaluate import Environment, read
from tracer.trace.memo import remembered
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import Operand, bind_all
from tracer.transforms.context import Context, raise_no_rule, to_front

Axis = int | None


class BatchedProgram(NamedTuple):
    """Batched program, and which of its outputs are batched (always along axis 0)."""

    program: Program
    batched_outputs: tuple[bool, ...]


def batched_type(type: Type, size: int) -> Type:
    """Return the type of a batch of values; for stacks, a stack of batches of items."""
    inner = type.item.shape if isinstance(type, StackType) else type.shape
    return with_shape(type, (size, *inner))


@remembered
def batch_program(
    program: Program,
    batched: tuple[bool, ...],
    size: int,
    axis_name: object = None,
    instantiate: tuple[bool, ...] | bool = False,
) -> BatchedProgram:
    """Batch a program along axis 0 of its `batched` inputs. instantiate: which outputs must be batched."""
    wanted = (instantiate,) * len(program.outputs) if isinstance(instantiate, bool) else instantiate
    types = [batched_type(v.type, size) if on else v.type for v, on in zip(program.inputs, batched, strict=True)]
    batched_outputs: list[bool] = []

    def run(inputs: list[Array]) -> list[Operand]:
        outputs, axes = batch_forward(program, inputs, [0 if on else None for on in batched], size, axis_name)
        batched_outputs.extend(axis is not None or want for axis, want in zip(axes, wanted, strict=True))
        return [
            to_front(y, axis, size) if on else y for y, axis, on in zip(outputs, axes, batched_outputs, strict=True)
        ]

    staged = stage(run, types, name=program.name)
    return BatchedProgram(closed(staged), tuple(batched_outputs))


def batch_forward(
    program: Program, operands: Sequence[Operand], axes: Sequence[Axis], size: int, axis_name: object
) -> tuple[list[Operand], list[Axis]]:
    """Run a program on batches, at the current level. Return its outputs and their batch axes."""
    environment: Environment = dict(zip(program.inputs, operands, strict=True))
    axis_of: dict[Var, int] = {v: a for v, a in zip(program.inputs, axes, strict=True) if a is not None}
    outer_source = state.source
    try:
        for equation in program.equations:
            state.source = equation.source
            xs = [read(environment, atom) for atom in equation.inputs]
            x_axes = [axis_of.get(atom) if isinstance(atom, Var) else None for atom in equation.inputs]
            ys, y_axes = batch_equation(equation.primitive, xs, x_axes, equation.params, size, axis_name)
            environment.update(zip(equation.outputs, ys, strict=True))
            axis_of.update((v, a) for v, a in zip(equation.outputs, y_axes, strict=True) if a is not None)
    finally:
        state.source = outer_source
    outputs = [read(environment, atom) for atom in program.outputs]
    return outputs, [None if isinstance(atom, Literal) else axis_of.get(atom) for atom in program.outputs]


def batch_equation(
    primitive: Primitive,
    xs: Sequence[Operand],
    axes: Sequence[Axis],
    params: Mapping[str, Any],
    size: int,
    axis_name: object,
) -> tuple[Sequence[Operand], Sequence[Axis]]:
    """Run one operation on batches, at the current level. Return its outputs and their batch axes.

    Raises NoRuleError if the primitive has no batch rule.
    """
    named = axis_name is not None and params.get("axis_name") == axis_name
    if all(axis is None for axis in axes) and not named and not any(True for _ in _nested(params, axis_name)):
        ys = bind_all(primitive, xs, params)
        return ys, [None] * len(ys)
    rule = primitive.batch
    if isinstance(rule, NoRule):
        raise_no_rule(primitive, "vmap", rule)
    context = Context(primitive, transform=batch_program, size=size, axis_name=axis_name)
    ys, y_axes = rule(context, xs, axes, **params)
    if len(ys) != len(y_axes):
        raise InternalError(f"batch of {primitive.name} gave {len(ys)} outputs and {len(y_axes)} axes")
    return ys, y_axes


def _nested(params: Mapping[str, Any], axis_name: object) -> Any:
    """Yield nested programs that may name the batch's axis: only then must unbatched structure be visited."""
    if axis_name is None:
        return
    for value in params.values():
        for item in value if isinstance(value, tuple) else (value,):
            if isinstance(item, Program) and mentions_axis(item, axis_name):
                yield item


@lru_cache(maxsize=4096)
def mentions_axis(program: Program, axis_name: object) -> bool:
    """Whether the program has a collective over the named axis, nested programs included."""
    return any(
        equation.params.get("axis_name") == axis_name
        or any(mentions_axis(nested, axis_name) for _, nested in equation.nested())
        for equation in program.equations
    )
