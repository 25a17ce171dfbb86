"""Rewriter: one walk over a program that applies one rule to every equation.

    rule(equation, at) -> atoms that stand for the equation's outputs, or None to keep it

The rule sees operands already rewritten, and can look up their definitions. The equations that it emits are rewritten
by the rule before the next equation. So one walk from the first equation to the last is enough.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracer.ir.dtypes import U32
from tracer.ir.primitive import Params, Primitive
from tracer.ir.program import Atom, Equation, Literal, Program, Source, Var, infer_types
from tracer.ir.types import ArrayType, KeyType, Type, same_up_to_weakness, with_shape
from tracer.ir.visit import substitute
from tracer.passes.base.rewrite import Rewrite, nested_first
from tracer.primitives.arrays.random import random_wrap_p
from tracer.primitives.base.broadcasting import broadcast_in_dim_p
from tracer.primitives.elementwise.conversion import convert_element_type_p
from tracer.trace.trace import as_literal

Rule = Callable[[Equation, "Rewriter"], Sequence[Atom] | None]


class Rewriter:
    """Target of a rule's new equations. They carry the source line of the equation that is being rewritten."""

    __slots__ = ("definitions", "equations", "ranges", "replaced", "rule", "source")

    def __init__(self, rule: Rule) -> None:
        self.rule = rule
        self.ranges: dict[Var, tuple[int, int]] = {}  # of the program's inputs, where they are known
        self.equations: list[Equation] = []
        self.definitions: dict[Var, Equation] = {}
        self.replaced: dict[Var, Atom] = {}
        self.source: Source | None = None

    def run(self, program: Program) -> Program:
        """Return the rewritten program; the same object if no rule applied."""
        changed, rule, outer = False, self.rule, self.source
        equations, definitions, replaced = self.equations, self.definitions, self.replaced
        for equation in program.equations:
            if replaced:
                equation = substitute(equation, replaced)
            self.source, mark = equation.source, len(equations)
            results = rule(equation, self)
            if results is not None and _fit(results, equation):
                replaced.update(zip(equation.outputs, results, strict=True))
                changed = True
                continue
            del equations[mark:]
            equations.append(equation)
            for variable in equation.outputs:
                definitions[variable] = equation
        self.source = outer
        if not changed:
            return program
        outputs = tuple(map(self.read, program.outputs))
        return Program(program.inputs, tuple(self.equations), outputs, program.name)

    def read(self, atom: Atom) -> Atom:
        """Return the atom that stands for this one now."""
        return self.replaced.get(atom, atom) if isinstance(atom, Var) else atom

    def add(self, equation: Equation) -> bool:
        """Rewrite an equation, or append it as it is. Return whether it was rewritten.

        A result of another type, weak flag included, is refused.
        """
        outer, mark = self.source, len(self.equations)
        self.source = equation.source
        results = self.rule(equation, self)
        self.source = outer
        if results is not None and _fit(results, equation):
            self.replaced.update(zip(equation.outputs, results, strict=True))
            return True
        del self.equations[mark:]
        self.equations.append(equation)
        for variable in equation.outputs:
            self.definitions[variable] = equation
        return False

    # services for rules

    def definition(self, atom: Atom, *primitives: Primitive) -> Equation | None:
        """Return the equation that defines the atom, if it is one of the primitives."""
        found = self.definitions.get(atom) if isinstance(atom, Var) else None
        return found if found is not None and found.primitive in primitives else None

    def splat(self, atom: Atom) -> Literal | None:
        """Return the one value that the atom has everywhere, if it is constant."""
        if isinstance(atom, Literal):
            return atom
        broadcast = self.definition(atom, broadcast_in_dim_p)
        value = broadcast.inputs[0] if broadcast is not None else None
        return value if isinstance(value, Literal) else None

    def emit(self, primitive: Primitive, *inputs: Atom, **params: Any) -> Atom:
        """Return a new equation's output, which may be an older atom if the equation can be rewritten itself."""
        return self.emit_all(primitive, inputs, params)[0]

    def emit_all(self, primitive: Primitive, inputs: Sequence[Atom], params: Params) -> list[Atom]:
        """Return a new equation's outputs, as `emit` for any number of them."""
        outputs = tuple(map(Var, infer_types(primitive, inputs, params)))
        self.add(Equation(primitive, tuple(inputs), params, outputs, self.source))
        return [self.read(variable) for variable in outputs]

    def emit_at(
        self, source: Source | None, primitive: Primitive, inputs: Sequence[Atom], params: Params
    ) -> list[Atom]:
        """Return the outputs of a new equation with a source line of its own."""
        outer, self.source = self.source, source
        try:
            return self.emit_all(primitive, inputs, params)
        finally:
            self.source = outer

    def inline(self, program: Program, operands: Sequence[Atom], *, at_one_line: bool = False) -> list[Atom]:
        """Write a nested program's equations here; return its outputs.

        at_one_line: whether the equations take the current source line instead of their own.
        """
        values: dict[Var, Atom] = {}
        for variable, operand in zip(program.inputs, operands, strict=True):
            values[variable] = self.fit(operand, variable.type)
        for equation in program.equations:
            inputs = tuple(values[a] if isinstance(a, Var) else a for a in equation.inputs)
            outputs = tuple(Var(v.type) for v in equation.outputs)
            source = self.source if at_one_line else equation.source or self.source
            self.add(Equation(equation.primitive, inputs, equation.params, outputs, source))
            values.update(zip(equation.outputs, map(self.read, outputs), strict=True))
        return [values[a] if isinstance(a, Var) else a for a in program.outputs]

    def fit(self, atom: Atom, type: Type) -> Atom:
        """Return the atom in the type: a literal is broadcast to the shape, a weak flag set or cleared."""
        if atom.type is type or atom.type == type:
            return atom
        if isinstance(atom, Literal) and isinstance(type, ArrayType) and type.dtype == atom.type.dtype:
            return self.full(Literal(atom.value, with_shape(type, ())), type)  # type: ignore[arg-type]
        if isinstance(type, ArrayType) and same_up_to_weakness(atom.type, type):
            return self.emit(convert_element_type_p, atom, new_dtype=type.dtype, weak=type.weak)
        return atom

    def full(self, value: Literal, type: Type) -> Atom:
        """Return an array of one value; the literal itself for a type without axes."""
        return value if not type.shape else self.spread(value, type.shape, ())

    def spread(self, atom: Atom, shape: Sequence[int], dims: Sequence[int]) -> Atom:
        """Return the atom broadcast to the shape; the atom itself if it has the shape."""
        if atom.type.shape == tuple(shape) and tuple(dims) == tuple(range(len(shape))):
            return atom
        return self.emit(broadcast_in_dim_p, atom, shape=tuple(shape), broadcast_dimensions=tuple(dims))

    def number(self, value: Any, type: Type) -> Atom:
        """Return an array of the type with the value in every element."""
        assert isinstance(type, ArrayType)
        literal = as_literal(type.dtype.type(value), type.dtype)
        return self.full(Literal(literal.value, with_shape(type, ())), type)  # type: ignore[arg-type]

    def zeros(self, type: Type) -> Atom | None:
        """Return zeros of an array's type, zero words for keys; None for a type without zeros."""
        match type:
            case ArrayType():
                return self.number(0, type)
            case KeyType(shape):
                words = as_literal(U32.type(0), U32)
                return self.emit(random_wrap_p, self.spread(words, (*shape, 2), ()))
            case _:
                return None


def _fit(results: Sequence[Atom], equation: Equation) -> bool:
    """Whether the atoms may stand for the equation's outputs."""
    return all(a.type == v.type for a, v in zip(results, equation.outputs, strict=True))


def rewriting(rule: Rule) -> Rewrite:
    """Return the pass that applies a rule everywhere, to nested programs first."""
    return nested_first(lambda program: Rewriter(rule).run(program))
