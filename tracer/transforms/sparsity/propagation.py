"""Propagation of index sets through a program: which inputs each element of each output depends on.

A value that depends on no input may be known: a captured array, a literal, or a result of these. Known indices
make gathers exact, known factors of zero end a dependence, and known trip counts unroll loops.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracer.errors import InternalError, TracerError
from tracer.ir.primitive import Composite, NoRule, Primitive, Structured
from tracer.ir.program import Atom, Equation, Literal, Program, Var
from tracer.ir.types import ArrayType, Float0Type, StackType, Type
from tracer.ir.visit import live_equations
from tracer.primitives.base.reference import reference_outputs
from tracer.trace.array import is_recorded
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.transforms.sparsity.index_sets import IndexSets, joined, union

MAX_KNOWN = 1 << 22  # elements of a value that is computed while patterns are
MAX_EQUATIONS = 20_000  # after so many, loops are no longer unrolled


@dataclass(frozen=True, eq=False, slots=True)
class Value:
    """Value of a program. sets: of each element, None if it depends on no input. known: its value, if that is concrete.

    A stack has the elements of one item: its sets are the union over the items.
    """

    type: Type
    sets: IndexSets | None = None
    known: Any = None

    @property
    def shape(self) -> tuple[int, ...]:
        return self.type.item.shape if isinstance(self.type, StackType) else self.type.shape

    @property
    def size(self) -> int:
        return math.prod(self.shape)


Rule = Callable[..., Sequence[IndexSets | None]]
"""rule(propagation, values, types, params) -> the sets of each output; types: of the outputs. Some value has sets."""
ValueRule = Callable[..., Sequence[Value]]
"""rule(propagation, values, params) -> outputs: of an equation that holds programs."""


@dataclass(eq=False, slots=True)
class Propagation:
    """Walk over a program. rules, programs: by primitive; else it is expanded, or outputs depend on all operands."""

    rules: Mapping[Primitive, Rule]
    programs: Mapping[Primitive, ValueRule]
    equations: int = 0

    def run(self, program: Program, inputs: Sequence[Value]) -> list[Value]:
        """Return the outputs of a program."""
        environment = dict(zip(program.inputs, inputs, strict=True))
        outer_source = state.source  # which references of operations that may fault set
        try:
            for equation in live_equations(program):
                self.equations += 1
                values = [_read(environment, atom) for atom in equation.inputs]
                environment.update(zip(equation.outputs, self._outputs(equation, values), strict=True))
        finally:
            state.source = outer_source
        return [_read(environment, atom) for atom in program.outputs]

    def _outputs(self, equation: Equation, values: Sequence[Value]) -> Sequence[Value]:
        primitive, types = equation.primitive, [v.type for v in equation.outputs]
        if primitive in self.programs:
            found = self.programs[primitive](self, values, equation.params)
            return [Value(type, value.sets, value.known) for type, value in zip(types, found, strict=True)]
        if all(value.sets is None for value in values):
            return _computed(equation, values, types)
        sets = self._sets(primitive, values, types, equation.params)
        return [Value(t, None if isinstance(t, Float0Type) else s) for t, s in zip(types, sets, strict=True)]

    def _sets(
        self, primitive: Primitive, values: Sequence[Value], types: Sequence[Type], params: Mapping[str, Any]
    ) -> Sequence[IndexSets | None]:
        rule = self.rules.get(primitive)
        if rule is not None:
            return rule(self, values, types, params)
        if isinstance(primitive.lower, Composite):
            return [value.sets for value in self.expanded(primitive, values, params)]
        return depend_on_all(self, values, types, params)

    def expanded(self, primitive: Primitive, values: Sequence[Value], params: Mapping[str, Any]) -> list[Value]:
        """Run the program that a composite primitive expands to."""
        assert isinstance(primitive.lower, Composite)
        expand = primitive.lower.expand

        def run(inputs: list[Any]) -> list[Any]:
            outputs = expand(*inputs, **params)
            return list(outputs) if primitive.multiple else [outputs]

        return self.written_as(run, values, primitive.name)

    def written_as(self, function: Callable[[list[Any]], list[Any]], values: Sequence[Value], name: str) -> list[Value]:
        """Run the program of a function on lists of operands."""
        staged = stage(function, [value.type for value in values], name=name)
        return self.run(staged.program, [*(constant(array) for array in staged.constants), *values])


def constant(array: Any) -> Value:
    """Return the value of an array that a program captures: known unless it is traced."""
    known = isinstance(array.type, ArrayType) and not is_recorded(array)
    return Value(array.type, None, np.asarray(array._value) if known else None)


def _read(environment: Mapping[Var, Value], atom: Atom) -> Value:
    if isinstance(atom, Literal):
        return Value(atom.type, None, np.asarray(atom.value, atom.type.dtype))
    return environment[atom]


def _computed(equation: Equation, values: Sequence[Value], types: Sequence[Type]) -> list[Value]:
    """Return outputs that depend on no input: known if the operands are, and there are not too many elements."""
    primitive = equation.primitive
    small = all(isinstance(t, ArrayType) and math.prod(t.shape) <= MAX_KNOWN for t in types)
    plain = not isinstance(primitive.reference, NoRule) and not isinstance(primitive.lower, Structured)
    if not small or not plain or any(value.known is None for value in values):
        return [Value(type) for type in types]
    try:
        found = reference_outputs(primitive, [value.known for value in values], equation.params, equation.source)
    except (TracerError, InternalError):  # an index that is out of bounds, which may never be read
        return [Value(type) for type in types]
    return [Value(t, None, np.broadcast_to(y, t.shape)) for t, y in zip(types, found, strict=True)]


def depend_on_all(
    _: Propagation, values: Sequence[Value], types: Sequence[Type], params: Mapping[str, Any]
) -> list[IndexSets | None]:
    """Return the sets of outputs of which every element depends on every element of the operands."""
    return [everywhere(values, Value(type).size) for type in types]


def everywhere(values: Sequence[Value], count: int) -> IndexSets | None:
    """Return `count` rows, each the union of all sets of the values."""
    parts = [value.sets for value in values if value.sets is not None]
    if not parts:
        return None
    rows = joined(parts)
    total = rows.merged(np.zeros(rows.rows, np.int64), 1)
    return total.take(np.zeros(count, np.int64))


def union_of(parts: Sequence[IndexSets | None]) -> IndexSets | None:
    """Return the union of sets, where None is empty."""
    total: IndexSets | None = None
    for part in parts:
        if part is not None:
            total = part if total is None else union(total, part)
    return total


def union_of_values(a: Value, b: Value) -> Value:
    """Return a value that may be either."""
    same = a.known is not None and b.known is not None and np.array_equal(a.known, b.known, equal_nan=_may_be_nan(a))
    return Value(a.type, union_of([a.sets, b.sets]), a.known if same else None)


def _may_be_nan(value: Value) -> bool:
    return value.known is not None and value.known.dtype.kind in "fc"


def same_values(a: Value, b: Value) -> bool:
    """Whether two values have equal sets, and are equally known."""
    if (a.known is None) != (b.known is None):
        return False
    if a.known is not None and not np.array_equal(a.known, b.known, equal_nan=_may_be_nan(a)):
        return False
    if a.sets is None or b.sets is None:
        return (a.sets is None or a.sets.is_empty) and (b.sets is None or b.sets.is_empty)
    return a.sets is b.sets or a.sets.same(b.sets)
