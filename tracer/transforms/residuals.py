"""Residuals of a derivative: the operands and outputs of an operation that its tangent rule reads.

The rule runs once on arrays without values, for each primitive, parameters and types. A phantom on the tape replaces a
value that no operation of the rule takes. So the function's last reference frees the value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracer.ir.primitive import Linearized, Primitive, Zero
from tracer.ir.program import Literal, Var
from tracer.ir.types import Type, is_differentiable, tangent_type
from tracer.trace.array import Array, traced
from tracer.trace.stage import stage
from tracer.trace.trace import Operand, open_trace, stage_process

_reads: dict[Any, tuple[bool, ...]] = {}
_phantoms: dict[Type, Array] = {}
_MAX_KEYS = 16384


def params_key(params: Mapping[str, Any]) -> Any:
    """Return the parameters as a hashable value."""
    return tuple(params.items())


def operand_key(primitive: Primitive, x: Operand) -> Any:
    """Return the part of an operand that a tangent rule can see: its type, and a literal's value.

    A lifted literal counts as an array: the rule sees its type alone.
    """
    if not isinstance(x, Literal):
        return x.type
    return (x.type,) if is_lifted(primitive, x) else x


def is_lifted(primitive: Primitive, x: Any) -> bool:
    """Whether an operand is a float literal of an elementwise operation, whose value may differ between calls."""
    return primitive.splat and isinstance(x, Literal) and is_differentiable(x.type)


def read_flags(
    primitive: Primitive,
    params: Mapping[str, Any],
    active: Sequence[bool],
    xs: Sequence[Operand],
    linearized: Linearized,
) -> tuple[bool, ...] | None:
    """Return for each residual whether it is read; None where a parameter cannot be hashed, and all are kept."""
    try:
        key = (primitive, params_key(params), tuple(active), tuple([operand_key(primitive, x) for x in xs]))
        reads = _reads.get(key)
    except TypeError:  # an unhashable parameter
        return None
    if reads is None:
        if len(_reads) >= _MAX_KEYS:
            _reads.clear()
        reads = _reads[key] = _read_flags(linearized, active, xs)
    return reads


def phantom(type: Type) -> Array:
    """Return an array with a type but without a value."""
    if type not in _phantoms:
        with open_trace(stage_process, "phantom", staging=False) as trace:
            _phantoms[type] = traced(trace, Var(type))
    return _phantoms[type]


def _read_flags(linearized: Linearized, active: Sequence[bool], xs: Sequence[Operand]) -> tuple[bool, ...]:
    residuals = linearized.residuals
    arrays = [r for r in residuals if not isinstance(r, Literal)]
    moving = [tangent_type(x.type) for x, on in zip(xs, active, strict=True) if on]

    def residuals_of_rule(inputs: list[Any]) -> list[Operand]:
        """Return the residuals that the rule's linear program reads."""
        given = iter(inputs[: len(arrays)])
        values = [r if isinstance(r, Literal) else next(given) for r in residuals]
        with open_trace(stage_process, "linear", staging=False) as linear:
            tangents = [linear.new_input(t) for t in moving]
            dys = [dy for dy in linearized.apply(values, tangents) if not isinstance(dy, Zero)]
            linear.program(dys)
            return [array for _, array in linear.constants]

    program = stage(residuals_of_rule, [a.type for a in arrays], name="rule").program
    read = {atom for equation in program.equations for atom in equation.inputs}.union(program.outputs)
    flags = iter(v in read for v in program.inputs[len(program.inputs) - len(arrays) :])
    return tuple(True if isinstance(r, Literal) else next(flags) for r in residuals)
