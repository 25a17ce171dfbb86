"""Reuse of equal nests: a function is written once for each key, which is all that a nest computes.

A key is a nest's equations with variables numbered in order of discovery. Leaves are the arrays and scalars that it
reads and stores. Nests with equal keys share a function, called with their own leaves. Nests that may fault have no
key, since each fault names its own line.

Nests that differ in constants alone, such as steps of an unrolled loop, share a function once there are several. The
constants are its arguments. Only constants of arithmetic and comparisons qualify, since other operations are written
differently for concrete operands.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from tracer.ir.digest import params_key
from tracer.ir.dtypes import F32, F64
from tracer.ir.loop import Address, Buffer, Constant, Operand, Register, View
from tracer.ir.primitive import Compare, Pointwise
from tracer.ir.program import Atom, Equation, Literal, Var
from tracer.ir.scalar import ScalarOp
from tracer.schedule.elements.puller import is_reduction
from tracer.schedule.plan.steps import Nest
from tracer.schedule.terms.value_locations import Inline, Memory, Scalars, Source
from tracer.schedule.write.nest_writer import Argument, Invocation

_MAX_NUMBERS: Final = 8  # that a function takes as arguments: each has a register throughout its loop
_ARITHMETIC: Final = (ScalarOp.ADD, ScalarOp.SUB, ScalarOp.MUL, ScalarOp.DIV, ScalarOp.MAX, ScalarOp.MIN)

Place = tuple[Buffer, Address] | Register


@dataclass(frozen=True, slots=True)
class NestKey:
    """Key of a nest, equal for nests that one function computes.

    leaves: the nest's arguments for it, in order of discovery.
    """

    key: Hashable
    leaves: tuple[Argument, ...] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Written:
    """A function by its name, and which leaf each of its parameters stands for."""

    name: str
    order: tuple[int, ...]

    def arguments(self, nest: NestKey) -> list[Argument]:
        """Return the arguments for an equal nest."""
        return [nest.leaves[number] for number in self.order]


def written(name: str, nest: NestKey, invocation: Invocation) -> Written:
    """Return a nest's function with the facts that a call for an equal nest needs."""
    numbers = {_place(leaf): number for number, leaf in enumerate(nest.leaves)}
    return Written(name, tuple(numbers[_place(argument)] for argument in invocation.arguments))


@dataclass(frozen=True, slots=True)
class Lifted:
    """A nest that reads its constants from registers. numbers: their values. sources: locations of its values."""

    nest: Nest
    key: NestKey
    numbers: Mapping[Register, Constant]
    source_of: Callable[[Var], Source]

    def arguments(self, function: Written) -> list[Argument]:
        """Return the arguments for this nest: its constants."""
        given = function.arguments(self.key)
        return [self.numbers.get(a, a) if isinstance(a, Register) else a for a in given]


def lifted_nest(nest: Nest, source_of: Callable[[Var], Source], target_of: Callable[[Var], Memory]) -> Lifted | None:
    """Return the nest with its constants as arguments, or None where it has none, or too many, or may fault."""
    encoder = _Lifting(nest, source_of)
    key = encoder.encode(target_of)
    if key is None or not 0 < len(encoder.constants) <= _MAX_NUMBERS:
        return None
    made = encoder.made

    def source(variable: Var) -> Source:
        if variable in encoder.registers:
            return Scalars((encoder.registers[variable],))
        found = source_of(variable)
        return replace(found, equation=made[found.equation][1]) if isinstance(found, Inline) else found

    roots = [made[equation][1] for equation in nest.roots]
    return Lifted(replace(nest, roots=roots), key, encoder.constants, source)


def nest_key(nest: Nest, source_of: Callable[[Var], Source], target_of: Callable[[Var], Memory]) -> NestKey | None:
    """Return the nest's key, or None if it may fault."""
    return _Encoder(nest, source_of).encode(target_of)


class _Encoder:
    def __init__(self, nest: Nest, source_of: Callable[[Var], Source]) -> None:
        self.nest = nest
        self.source_of = source_of
        self.own = {e.outputs[0]: e for e in nest.roots if not is_reduction(e)}
        self.parts: list[Hashable] = [nest.domain, nest.axes]
        self.numbers: dict[Var, int] = {}
        self.found: list[Var] = []  # variables by index
        self.leaves: list[Argument] = []
        self.places: dict[Place, int] = {}

    def encode(self, target_of: Callable[[Var], Memory]) -> NestKey | None:
        for equation in self.nest.roots:
            if not self._equation(equation, 0):
                return None
            target = target_of(equation.outputs[0])
            self.parts.append((self._leaf(target.view), target.type))
        for variable in self.found:  # grows while it is walked
            if not self._source(variable):
                return None
        return NestKey(tuple(self.parts), tuple(self.leaves))

    def _source(self, variable: Var) -> bool:
        """Append where a variable comes from; False if that has no key."""
        own = self.own.get(variable)
        source = Inline(own) if own is not None else self.source_of(variable)
        match source:
            case Memory():
                self.parts.append((self._leaf(source.view), source.type))
            case Scalars(element):
                self.parts.append(tuple(map(self._scalar, element)))
            case Inline(equation, output):
                return self._equation(equation, output)
            case _:
                return False
        return True

    def _equation(self, equation: Equation, output: int) -> bool:
        if equation.effects:
            return False
        inputs = self._inputs(equation)
        types: Sequence[Hashable] = [v.type for v in equation.outputs]
        self.parts.append((equation.primitive, output, params_key(equation.params), inputs, *types))
        return True

    def _inputs(self, equation: Equation) -> Hashable:
        return tuple([(a.type, a.bits) if isinstance(a, Literal) else self._number(a) for a in equation.inputs])

    def _number(self, variable: Var) -> int:
        number = self.numbers.get(variable)
        if number is None:
            number = self.numbers[variable] = len(self.found)
            self.found.append(variable)
        return number

    def _scalar(self, operand: Operand) -> Hashable:
        if isinstance(operand, Constant):
            return (operand.dtype, operand.bits)
        return (self._leaf(operand), operand.dtype)

    def _leaf(self, argument: Argument) -> int:
        """Return the argument's index among the leaves, the same for a repeated argument."""
        number = self.places.setdefault(_place(argument), len(self.leaves))
        if number == len(self.leaves):
            self.leaves.append(argument)
        return number


class _Lifting(_Encoder):
    """Encoder of a nest without its constants. made: each equation's part of the key, and the equation on registers."""

    def __init__(self, nest: Nest, source_of: Callable[[Var], Source]) -> None:
        super().__init__(nest, source_of)
        self.made: dict[Equation, tuple[Hashable, Equation]] = {}
        self.constants: dict[Register, Constant] = {}
        self.registers: dict[Var, Register] = {}

    def _inputs(self, equation: Equation) -> Hashable:
        if equation not in self.made:
            lifts = _takes_constants(equation)
            inputs = [
                self._lifted(a) if lifts and isinstance(a, Literal) and _is_float(a) else a for a in equation.inputs
            ]
            changed = any(a is not b for a, b in zip(inputs, equation.inputs, strict=True))
            new = replace(equation, inputs=tuple(inputs)) if changed else equation
            parts = [self._part(a) for a in inputs]
            self.made[equation] = (tuple(parts), new)
        return self.made[equation][0]

    def _lifted(self, number: Literal) -> Var:
        variable, register = Var(number.type), Register(number.type.dtype, "number")
        self.constants[register] = Constant(number.value, number.type.dtype)
        self.registers[variable] = register
        return variable

    def _part(self, atom: Atom) -> Hashable:
        if isinstance(atom, Literal):
            return (atom.type, atom.bits)
        register = self.registers.get(atom)
        return self._number(atom) if register is None else ("number", self._leaf(register), atom.type)


def _takes_constants(equation: Equation) -> bool:
    """Whether an equation is computed in the same way from a concrete scalar and from a traced one."""
    match equation.primitive.lower:
        case Pointwise(op):
            return op in _ARITHMETIC
        case Compare():
            return True
        case _:
            return False


def _is_float(literal: Literal) -> bool:
    return literal.type.dtype in (F32, F64)


def _place(argument: Argument) -> Place:
    if isinstance(argument, View):
        return (argument.buffer, argument.start)
    assert isinstance(argument, Register)
    return argument
