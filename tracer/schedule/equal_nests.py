"""Equal nests are planned often and written once: what a nest computes is a key, what it reads and stores its leaves.

A key is a nest's equations with variables numbered in order of discovery. Two nests with equal keys have the same
function, called with their own leaves. Nests that may fault have no key, since each fault names its own place.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field

from tracer.ir.digest import params_key
from tracer.ir.loop import Address, Buffer, Constant, Operand, Register, View
from tracer.ir.program import Equation, Literal, Var
from tracer.schedule.elements import is_reduction
from tracer.schedule.nests import Argument, Invocation
from tracer.schedule.plans import Nest
from tracer.schedule.sources import Inline, Memory, Scalars, Source

Place = tuple[Buffer, Address] | Register


@dataclass(frozen=True, slots=True)
class NestKey:
    """Equal for nests that one function computes. leaves: what this nest hands to it, in order of discovery."""

    key: Hashable
    leaves: tuple[Argument, ...] = field(compare=False)


@dataclass(frozen=True, slots=True)
class Written:
    """A function by its name, and which leaf each of its parameters stands for."""

    name: str
    order: tuple[int, ...]

    def arguments(self, nest: NestKey) -> list[Argument]:
        """What to call the function with for an equal nest."""
        return [nest.leaves[number] for number in self.order]


def written(name: str, nest: NestKey, invocation: Invocation) -> Written:
    """What there is to know of a nest's function for those that equal it."""
    numbers = {_place(leaf): number for number, leaf in enumerate(nest.leaves)}
    return Written(name, tuple(numbers[_place(argument)] for argument in invocation.arguments))


def nest_key(nest: Nest, source_of: Callable[[Var], Source], target_of: Callable[[Var], Memory]) -> NestKey | None:
    """The nest's key; None if it may fault."""
    return _Encoder(nest, source_of).encode(target_of)


class _Encoder:
    def __init__(self, nest: Nest, source_of: Callable[[Var], Source]) -> None:
        self.nest = nest
        self.source_of = source_of
        self.own = {e.outputs[0]: e for e in nest.roots if not is_reduction(e)}
        self.parts: list[Hashable] = [nest.domain, nest.axes]
        self.numbers: dict[Var, int] = {}
        self.found: list[Var] = []  # variables in the order of their numbers
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
        inputs = tuple([(a.type, a.bits) if isinstance(a, Literal) else self._number(a) for a in equation.inputs])
        types: Sequence[Hashable] = [v.type for v in equation.outputs]
        self.parts.append((equation.primitive, output, params_key(equation.params), inputs, *types))
        return True

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
        """The argument's number among the leaves; one that comes again keeps the number that it had."""
        number = self.places.setdefault(_place(argument), len(self.leaves))
        if number == len(self.leaves):
            self.leaves.append(argument)
        return number


def _place(argument: Argument) -> Place:
    if isinstance(argument, View):
        return (argument.buffer, argument.start)
    assert isinstance(argument, Register)
    return argument
