"""Matrix products of a scan's steps, computed at once: before the scan from its inputs, after it from its outputs.

- A step's slice times a constant matrix is a slice of one product: a recurrent net's input times its weights.
- A carry that only sums products is one product that also sums over the steps: the gradient by these weights.

A product at once reads the other matrix once, and threads share it. The values that a step stores for it are limited.
They are an eighth of the matrix at most, or no larger than the sum. They are also not much larger than the existing
slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import prod
from typing import Any, Final

from tracer.ir import dtypes
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.ir.types import ArrayType, Type
from tracer.passes.base.loops import Loop, loop_of, pick
from tracer.passes.base.rewriter import Rewriter, rewriting
from tracer.primitives.base.broadcasting import reduce_sum_p
from tracer.primitives.base.shapes import transpose_p
from tracer.primitives.control.scan import scan_p
from tracer.primitives.elementwise.arithmetic import add_p
from tracer.primitives.linalg.dot_general import dot_general_p

_MIN: Final = 4  # steps
_FEW: Final = 8  # matrix size over step result: a larger result keeps the matrix busy within the step
_MORE: Final = 4  # times the existing slices, at most


def _stacked(equation: Equation, at: Rewriter) -> Sequence[Atom] | None:
    loop = loop_of(equation) if equation.primitive is scan_p and equation.params["length"] >= _MIN else None
    if loop is None:
        return None
    given = _products_of_slices(loop, at)
    sums = _Sums(given)
    if given is loop and not sums.chosen:
        return None
    return sums.emit(at)


# Before the scan


def _products_of_slices(loop: Loop, at: Rewriter) -> Loop:
    """Return the loop with products of slices and constants among its slices."""
    slices = _outside(loop.x_inputs, loop.xs, stacked=True)
    consts = _outside(loop.const_inputs, loop.consts)
    most = _MORE * _bytes(*[v.type for v in loop.x_inputs])
    moved: list[tuple[Equation, Atom]] = []
    for equation in loop.body.equations:
        if equation.primitive is not dot_general_p or not _is_float(equation.outputs[0].type):
            continue
        x, w = equation.inputs
        ((of_x, of_w), batched), out = equation.params["dimension_numbers"], equation.outputs[0].type
        fits = isinstance(x, Var) and isinstance(w, Var) and x in slices and w in consts and not any(batched)
        if not fits or _bytes(out) > min(_bytes(w.type) // _FEW, most):
            continue
        numbers = ((tuple(axis + 1 for axis in of_x), of_w), batched)
        params = {**equation.params, "dimension_numbers": numbers}
        most -= _bytes(out)
        (product,) = at.emit_at(equation.source, dot_general_p, (slices[x], consts[w]), params)  # type: ignore[index]
        moved.append((equation, product))
    if not moved:
        return loop
    gone = [equation for equation, _ in moved]
    kept = tuple(e for e in loop.body.equations if not any(e is other for other in gone))
    inputs = (*loop.body.inputs, *[e.outputs[0] for e in gone])
    body = Program(inputs, kept, loop.body.outputs, loop.body.name)
    return replace(loop, body=body, xs=(*loop.xs, *[product for _, product in moved]))


def _outside(inputs: Sequence[Var], operands: Sequence[Atom], *, stacked: bool = False) -> dict[Var, Atom]:
    """Map the body's float inputs to the loop's operands, where their types agree.

    stacked: whether the operands have a leading axis of steps.
    """
    pairs = zip(inputs, operands, strict=True)
    return {v: atom for v, atom in pairs if v.type.shape == atom.type.shape[stacked:] and _is_float(v.type)}


# After the scan


@dataclass(slots=True)
class _Sum:
    """Carry that only sums: the addition of a step, and the equation that makes its term."""

    position: int
    added: Equation
    made: Equation  # the product, or the sum of a value's elements
    order: tuple[int, ...] | None  # of the product's axes in the added term


@dataclass(slots=True)
class _Sums:
    """Carries of a loop that are summed after it, and the values of the steps that the sums need."""

    loop: Loop
    chosen: list[_Sum] = field(default_factory=list)
    stored: list[Var] = field(default_factory=list)  # more slices of ys

    def __post_init__(self) -> None:
        body, slices = self.loop.body, _outside(self.loop.x_inputs, self.loop.xs, stacked=True)
        definitions = {v: e for e in body.equations for v in e.outputs}
        most = _bytes(*[v.type for v in (*self.loop.x_inputs, *self.loop.y_outputs)])
        uses = [a for e in body.equations for a in e.inputs] + list(body.outputs)
        waiting: list[_Sum] = []
        for position, (old, new) in enumerate(zip(self.loop.carry_inputs, self.loop.next_carry, strict=True)):
            found = _sum_of(position, old, new, definitions)
            if found is None or uses.count(old) != 1 or uses.count(new) != 1:
                continue
            if found.made.primitive is reduce_sum_p:
                waiting.append(found)
                continue
            operands = [a for a in found.made.inputs if isinstance(a, Var)]
            wanted = [a for a in dict.fromkeys(operands) if a not in slices and a not in self.stored]
            size = _bytes(*[a.type for a in wanted])
            if len(operands) == 2 and size <= min(_bytes(old.type), most) and not self._are_constant(operands):
                most -= size
                self.stored += wanted
                self.chosen.append(found)
        self.chosen += [s for s in waiting if s.made.inputs[0] in self.stored or s.made.inputs[0] in slices]

    def _are_constant(self, operands: Sequence[Var]) -> bool:
        return any(a in self.loop.const_inputs for a in operands)

    def emit(self, at: Rewriter) -> list[Atom]:
        """Emit the loop without these carries, and their sums after it. Return all the loop's outputs."""
        loop, length = self.loop, self.loop.equation.params["length"]
        gone = {s.position: s for s in self.chosen}
        flags = [n not in gone for n in range(len(loop.carry))]
        first = len(loop.consts)
        inputs = (*loop.body.inputs[:first], *pick(loop.carry_inputs, flags), *loop.x_inputs)
        outputs = (*pick(loop.next_carry, flags), *loop.y_outputs, *self.stored)
        kept = tuple(e for e in loop.body.equations if not any(e is s.added for s in self.chosen))
        body = Program(inputs, kept, outputs, loop.body.name)
        new = replace(loop, body=body, carry=pick(loop.carry, flags), finals=pick(loop.finals, flags)).joined()
        results = at.emit_all(new.primitive, new.inputs, new.params)
        finals, ys = results[: sum(flags)], results[sum(flags) :]
        count = len(loop.y_outputs)
        stacks = {**_outside(loop.x_inputs, loop.xs, stacked=True), **dict(zip(self.stored, ys[count:], strict=True))}
        assert all(stack.type.shape[0] == length for stack in stacks.values())
        left = iter(finals)
        carries = [
            _added(gone[n], start, stacks, at) if n in gone else next(left) for n, start in enumerate(loop.carry)
        ]
        return [*carries, *ys[:count]]


def _sum_of(position: int, old: Var, new: Atom, definitions: dict[Var, Equation]) -> _Sum | None:
    """Return the carry as a sum of products, or of the elements of a value; None if it is neither."""
    added = definitions.get(new) if isinstance(new, Var) else None
    if added is None or added.primitive is not add_p or old not in added.inputs or not _is_float(old.type):
        return None
    term = added.inputs[added.inputs[0] is old]
    made = definitions.get(term) if isinstance(term, Var) else None
    order = None
    if made is not None and made.primitive is transpose_p and isinstance(made.inputs[0], Var):
        order, made = made.params["permutation"], definitions.get(made.inputs[0])
    if made is None or made.outputs[0].type.dtype != old.type.dtype:  # type: ignore[union-attr]
        return None
    sums = made.primitive is reduce_sum_p and order is None and isinstance(made.inputs[0], Var)
    product = made.primitive is dot_general_p and not any(made.params["dimension_numbers"][1])
    return _Sum(position, added, made, order) if sums or product else None


def _added(sum: _Sum, start: Atom, stacks: dict[Var, Atom], at: Rewriter) -> Atom:
    """Emit the value of the carry after the scan."""
    made = sum.made
    operands = [stacks[a] for a in made.inputs if isinstance(a, Var)]
    if made.primitive is reduce_sum_p:
        params: dict[str, Any] = {**made.params, "axes": (0, *[axis + 1 for axis in made.params["axes"]])}
    else:
        contracted, batched = made.params["dimension_numbers"]
        further = tuple((0, *[axis + 1 for axis in axes]) for axes in contracted)
        params = {**made.params, "dimension_numbers": (further, batched)}
    (total,) = at.emit_at(made.source, made.primitive, operands, params)
    if sum.order is not None:
        (total,) = at.emit_at(made.source, transpose_p, (total,), {"permutation": sum.order})
    return at.emit_at(sum.added.source, add_p, (start, total), {})[0]


def _is_float(type: Type) -> bool:
    return isinstance(type, ArrayType) and type.dtype in (dtypes.F32, dtypes.F64)


def _bytes(*types: Type) -> int:
    return sum(prod(t.shape) * t.dtype.itemsize for t in types if isinstance(t, ArrayType))


stacked_products = rewriting(_stacked)
"""Compute the matrix products of scans' steps at once, where that pays."""
