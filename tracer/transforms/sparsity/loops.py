"""Index sets through equations that hold programs: calls, branches, loops, custom rules.

A loop whose trip count is concrete is unrolled, so the pattern of a time stepper is exact. Other loops take the
smallest sets that one more step does not change.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from tracer.ir import dtypes
from tracer.ir.primitive import Primitive
from tracer.ir.program import Program
from tracer.ir.types import array_type, with_shape
from tracer.primitives.control.calls import call_p
from tracer.primitives.control.cond import cond_p
from tracer.primitives.control.custom.custom_rules import custom_jvp_p, custom_vjp_p
from tracer.primitives.control.custom.custom_vmap import custom_vmap_p
from tracer.primitives.control.for_loop import for_p
from tracer.primitives.control.reverse.remat import checkpoint_p
from tracer.primitives.control.scan import scan_p, split_parts
from tracer.primitives.control.while_loop import while_p
from tracer.transforms.sparsity.index_sets import joined
from tracer.transforms.sparsity.propagation import (
    MAX_EQUATIONS,
    Propagation,
    Value,
    ValueRule,
    everywhere,
    same_values,
    union_of_values,
)

Values = Sequence[Value]
_STEPS: Final = 64  # steps by which a loop's sets may settle, before they become the union of all


def _called(p: Propagation, values: Values, params: Mapping[str, Any]) -> Values:
    return p.run(params["program"], values)


def _cond(p: Propagation, values: Values, params: Mapping[str, Any]) -> Values:
    index, *operands = values
    branches: Sequence[Program] = params["branches"]
    if index.known is not None:
        return p.run(branches[int(np.clip(index.known, 0, len(branches) - 1))], operands)
    return _either(*(p.run(branch, operands) for branch in branches))


def _either(first: Values, *others: Values) -> Values:
    for other in others:
        first = [union_of_values(a, b) for a, b in zip(first, other, strict=True)]
    return first


def _settled(step: Callable[[Values], Values], carry: Values, others: Values) -> Values:
    """Return the smallest carries that hold the given ones and do not change by a step."""
    for _ in range(max(_STEPS, len(carry) + 2)):
        new = _either(carry, step(carry))
        if all(map(same_values, carry, new)):
            return carry
        carry = new
    total = [*carry, *others]
    return [Value(x.type, None if x.sets is None else everywhere(total, x.size)) for x in carry]


def _while_loop(p: Propagation, values: Values, params: Mapping[str, Any]) -> Values:
    first, second = params["cond_consts"], params["cond_consts"] + params["body_consts"]
    tests, consts, carry = values[:first], values[first:second], values[second:]

    def step(carry: Values) -> Values:
        return p.run(params["body"], [*consts, *carry])

    while p.equations < MAX_EQUATIONS:
        goes_on = p.run(params["cond"], [*tests, *carry])[0].known
        if goes_on is None:
            break
        if not goes_on:
            return carry
        carry = step(carry)
    return _settled(step, carry, consts)


def _for_loop(p: Propagation, values: Values, params: Mapping[str, Any]) -> Values:
    count, consts, carry = values[0], values[1 : 1 + params["consts"]], values[1 + params["consts"] :]
    number = array_type(dtypes.I64, ())
    if count.known is not None and _fits(p, params["body"], int(count.known)):
        steps = range(int(count.known))
        for step in reversed(steps) if params["reverse"] else steps:
            carry = p.run(params["body"], [Value(number, None, np.asarray(step, np.int64)), *consts, *carry])
        return carry
    return _settled(lambda carry: p.run(params["body"], [Value(number), *consts, *carry]), carry, consts)


def _fits(p: Propagation, body: Program, steps: int) -> bool:
    return p.equations + steps * len(body.equations) <= MAX_EQUATIONS


def _scan(p: Propagation, values: Values, params: Mapping[str, Any]) -> Values:
    body, length, carries = params["body"], params["length"], params["carries"]
    consts, carry, xs = split_parts(values, params["consts"], carries)
    if not length or not _fits(p, body, length):
        means = [_any_step(x) for x in xs]
        carry = _settled(lambda carry: p.run(body, [*consts, *carry, *means])[:carries], carry, (*consts, *means))
        ys = p.run(body, [*consts, *carry, *means])[carries:]
        return [*carry, *(_repeated(y, length) for y in ys)]
    rows: list[Values] = []
    for step in reversed(range(length)) if params["reverse"] else range(length):
        outputs = p.run(body, [*consts, *carry, *(_step_of(x, step) for x in xs)])
        carry = tuple(outputs[:carries])
        rows.append(outputs[carries:])
    if params["reverse"]:
        rows.reverse()
    return [*carry, *(_stacked(column) for column in zip(*rows, strict=True))]


def _step_of(x: Value, step: int) -> Value:
    type = with_shape(x.type, x.shape[1:])
    size = Value(type).size
    sets = None if x.sets is None else x.sets.take(np.arange(step * size, (step + 1) * size))
    return Value(type, sets, None if x.known is None else x.known[step])


def _any_step(x: Value) -> Value:
    type = with_shape(x.type, x.shape[1:])
    size = Value(type).size
    return Value(type, None if x.sets is None else x.sets.merged(np.arange(x.size) % max(size, 1), size))


def _repeated(y: Value, length: int) -> Value:
    type = with_shape(y.type, (length, *y.shape))
    return Value(type, None if y.sets is None else y.sets.take(np.tile(np.arange(y.size), length)))


def _stacked(column: Values) -> Value:
    type = with_shape(column[0].type, (len(column), *column[0].shape))
    known = np.stack([y.known for y in column]) if all(y.known is not None for y in column) else None
    moving = [y.sets for y in column if y.sets is not None]
    if not moving:
        return Value(type, None, known)
    nothing = moving[0].take(np.full(column[0].size, -1))
    return Value(type, joined([nothing if y.sets is None else y.sets for y in column]))


PROGRAMS: Final[dict[Primitive, ValueRule]] = {
    **dict.fromkeys((call_p, checkpoint_p, custom_jvp_p, custom_vjp_p, custom_vmap_p), _called),
    cond_p: _cond,
    while_p: _while_loop,
    for_p: _for_loop,
    scan_p: _scan,
}
