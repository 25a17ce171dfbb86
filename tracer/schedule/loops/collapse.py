"""Collapsing: adjacent loops that memory does not tell apart become one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tracer.ir import dtypes
from tracer.ir.loop import Address, Compute, Fault, Load, Register, Statement, Store, Update

Statements = list[Statement]


@dataclass(frozen=True, slots=True)
class Axis:
    """One loop of a nest over range(size)."""

    register: Register
    size: int
    reduced: bool


def collapse(blocks: Sequence[Statements], axes: Sequence[Axis]) -> tuple[list[Statements], list[Axis]]:
    """Merge loops of one sort, outer and inner, where every address steps through both as through one.

    An address does if the outer loop's coefficient is the inner one's times the inner size. Loops whose registers
    are used in any other way stay as they are.
    """
    computed = _used_as_values(blocks)
    places = {_coefficients(s.address) for block in blocks for s in block if isinstance(s, Load | Store | Update)}
    merged: list[Axis] = []
    replaced: dict[Register, Register | None] = {}
    for axis in [a for a in axes if not a.reduced] + [a for a in axes if a.reduced]:
        outer = merged[-1] if merged else None
        if outer is not None and _mergeable(outer, axis, places, computed):
            register = Register(dtypes.I64, axis.register.name)
            replaced[outer.register], replaced[axis.register] = None, register
            places = {_merge_coefficients(place, outer.register, axis.register, register) for place in places}
            merged[-1] = Axis(register, outer.size * axis.size, axis.reduced)
        else:
            merged.append(axis)
    if not replaced:
        return list(blocks), merged
    return [[_rewrite(s, replaced) for s in block] for block in blocks], merged


Coefficients = frozenset[tuple[Register, int]]


def _coefficients(address: Address) -> Coefficients:
    return frozenset(address.terms)


def _merge_coefficients(place: Coefficients, outer: Register, inner: Register, new: Register) -> Coefficients:
    return frozenset((new if r is inner else r, c) for r, c in place if r is not outer)


def _mergeable(outer: Axis, inner: Axis, places: set[Coefficients], computed: set[Register]) -> bool:
    if outer.reduced != inner.reduced or outer.register in computed or inner.register in computed:
        return False
    for place in places:
        steps = dict(place)
        if steps.get(outer.register, 0) != steps.get(inner.register, 0) * inner.size:
            return False
    return True


def _used_as_values(blocks: Sequence[Statements]) -> set[Register]:
    """Return the registers that statements read other than in addresses."""
    used: set[Register] = set()
    for block in blocks:
        for s in block:
            match s:
                case Compute():
                    used.update(x for x in s.operands if isinstance(x, Register))
                case Load():
                    used.update(x for x in (s.mask, s.fill) if isinstance(x, Register))
                case Store() | Update():
                    used.update(x for x in (s.value, s.mask) if isinstance(x, Register))
                case Fault():
                    used.update(x for x in (s.predicate, s.position, *s.values) if isinstance(x, Register))
                case _:
                    raise AssertionError(s)
    return used


def _rewrite(statement: Statement, replaced: dict[Register, Register | None]) -> Statement:
    if not isinstance(statement, Load | Store | Update):
        return statement
    terms: list[tuple[Register, int]] = []
    changed = False
    for register, coefficient in statement.address.terms:
        found: Register | None = register
        while found is not None and found in replaced:
            found, changed = replaced[found], True
        if found is not None:
            terms.append((found, coefficient))
    if not changed:
        return statement
    return replace(statement, address=Address(statement.address.constant, tuple(terms)))
