"""Elements on demand: the value of one element of an array, pulled through the equations that define it.

The `Puller` writes the statements that compute `array[index]` into a builder. An array in memory gives a load, and a
pointwise equation gives scalar operations. An equation that only moves elements gives another index. An element that is
wanted twice at the same index is computed once. The walk keeps its own stack, so that chains may be of any length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from tracer.errors import InternalError
from tracer.ir import dtypes
from tracer.ir.layout import components
from tracer.ir.loop import Address, Operand
from tracer.ir.loop.build import Builder, constant
from tracer.ir.primitive import (
    Alias,
    Checked,
    Compare,
    Convert,
    Gather,
    Generate,
    IndexMap,
    Join,
    Parts,
    Pointwise,
    Reduce,
)
from tracer.ir.program import Atom, Equation, Literal, Var
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, Type
from tracer.schedule.elements.gather_bounds import (
    FaultSites,
    Window,
    fill_element,
    gather_window,
    is_always,
    slice_window,
    write_check,
    write_divisor_check,
)
from tracer.schedule.elements.index_maps import INDEX_MAPS
from tracer.schedule.elements.index_set_splitting import chosen
from tracer.schedule.elements.pointwise import pointwise_element
from tracer.schedule.terms.affine import Extents, Flat, Index, flatten, operand_of, plus, position, scaled, unflatten
from tracer.schedule.terms.value_locations import Element, Inline, Memory, Scalars, Source, StackSource

Demand = tuple[Atom, Index]
_BOUND: Final = 2**31  # bound of i32
_MAPS: Final = frozenset({Pointwise, Compare, Convert, Parts, Checked, IndexMap, Generate, Gather})


class Plan(NamedTuple):
    """Recipe of an element: the elements it is computed from, and a function that writes it once they are there."""

    demands: Sequence[Demand]
    finish: Callable[[Sequence[Element]], Element]


def is_map(equation: Equation) -> bool:
    """Whether every element can be computed on its own, where it is read."""
    lower = equation.primitive.lower
    return type(lower) in _MAPS or (type(lower) is Alias and len(equation.outputs) == 1)


def is_name(equation: Equation) -> bool:
    """Whether a value may be its operand's memory under another name or shape."""
    match equation.primitive.lower:
        case IndexMap() as lower:
            return lower.keeps_order
        case Alias():
            return len(equation.outputs) == 1
        case _:
            return False


def is_reduction(equation: Equation) -> bool:
    """Whether the equation reduces with an operation that joins partial results."""
    lower = equation.primitive.lower
    if not isinstance(lower, Reduce):
        return False
    operand = equation.inputs[0]
    complex_product = isinstance(operand.type, ArrayType) and dtypes.is_complex(operand.type.dtype)
    return isinstance(operand, Var) and not (complex_product and lower.op is not ScalarOp.ADD)


class Puller:
    """Writer of elements into a builder. `extents` bounds the loop registers, `sites` collects faulting equations."""

    def __init__(
        self, builder: Builder, source_of: Callable[[Var], Source], extents: Extents, sites: FaultSites
    ) -> None:
        self.builder = builder
        self.source_of = source_of
        self.extents = extents
        self.sites = sites
        self._elements: dict[tuple[Var, Index], Element] = {}

    def element(self, atom: Atom, index: Index) -> Element:
        """Return the element at an index, appending statements where it was not computed before."""
        stack: list[tuple[Atom, Index, Plan | None]] = [(atom, index, None)]
        while stack:
            wanted, at, plan = stack.pop()
            if self._known(wanted, at) is not None:
                continue
            assert isinstance(wanted, Var)
            if plan is None:
                plan = self._plan(wanted, at)
                missing = [d for d in plan.demands if self._known(*d) is None]
                if missing:
                    stack.append((wanted, at, plan))
                    stack.extend((a, i, None) for a, i in reversed(missing))
                    continue
            found = [self._known(*demand) for demand in plan.demands]
            before = len(self.builder.statements)
            self._elements[wanted, at] = plan.finish(found)  # type: ignore[arg-type]  # all are known by now
            if self.sites.origins is not None:
                self._record(wanted, before)
        result = self._known(atom, index)
        assert result is not None
        return result

    def _record(self, variable: Var, before: int) -> None:
        """Record the line of the statements from `before` on, if they compute the element and do not load it."""
        source = self.source_of(variable)
        if isinstance(source, Inline) and self.sites.origins is not None:
            self.sites.origins.computes(source.equation.source, self.builder.statements[before:])

    def _known(self, atom: Atom, index: Index) -> Element | None:
        if isinstance(atom, Literal):
            return literal_element(atom)
        return self._elements.get((atom, index))

    def _plan(self, variable: Var, index: Index) -> Plan:
        source = self.source_of(variable)
        match source:
            case Scalars(element):
                return Plan((), lambda _: element)
            case Memory():
                return Plan((), lambda _: self.load(source, index))
            case Inline(equation):
                return self._plan_equation(equation, index, source.output)
            case StackSource():
                raise InternalError("a stack has no elements")

    def load(self, source: Memory, index: Index) -> Element:
        """Read an element from memory."""
        count = components(source.type)[1]
        place = plus(source.start, scaled(position(index, source.type.shape), count))
        return tuple(
            self.builder.load(source.buffer, Address(place.constant + part, place.terms)) for part in range(count)
        )

    def axes(self, index: Index, type: Type) -> tuple[Address, ...]:
        """Return the index by axes. Emits divisions where needed."""
        return unflatten(self.builder, index, type.shape, self.extents)

    def _plan_equation(self, equation: Equation, index: Index, output: int) -> Plan:
        primitive, result = equation.primitive, equation.outputs[output].type
        match primitive.lower:
            case Pointwise() | Compare() | Convert() | Parts():
                demands = [(atom, operand_index(atom, index, result)) for atom in equation.inputs]
                return Plan(demands, lambda found: pointwise_element(self.builder, equation, found))
            case Checked("divisor"):
                return self._plan_divisor(equation, index)
            case Checked():
                return self._plan_checked(equation, index)
            case IndexMap(kind):
                return Plan([(equation.inputs[0], self._mapped(equation, kind, index))], lambda found: found[0])
            case Generate():
                along = self.axes(index, result)[equation.params["dimension"]]
                return Plan((), lambda _: self._counter(along, result))
            case Alias(kind):
                return self._plan_alias(equation, kind, index, output)
            case Gather(kind):
                return self._plan_gather(equation, kind, index)
            case Join():
                read = chosen(equation, self.axes(index, result), self.extents)
                if read is None:
                    raise InternalError(f"{primitive.name} is read across the border of its operands")
                return Plan([read], lambda found: found[0])
            case _:
                raise InternalError(f"{primitive.name} cannot be computed where it is read")

    def _mapped(self, equation: Equation, kind: str, index: Index) -> Index:
        operand, result = equation.inputs[0].type, equation.outputs[0].type
        if kind == "reshape":
            return Flat(position(index, result.shape), operand.shape)
        by_axes = self.axes(index, result)
        return INDEX_MAPS[kind](by_axes, operand.shape, equation.params)

    def _counter(self, along: Address, result: Type) -> Element:
        assert isinstance(result, ArrayType)
        dtype = dtypes.real_dtype(result.dtype)
        if dtype == dtypes.I32 and all(abs(c) < _BOUND for c in (along.constant, *(c for _, c in along.terms))):
            value = self._counted(along)
        else:
            value = self.builder.convert(operand_of(self.builder, along), dtype)
        if dtypes.is_complex(result.dtype):
            return (value, constant(0, value.dtype))
        return (value,)

    def _counted(self, along: Address) -> Operand:
        """Return an affine form in i32 arithmetic, which wraps as a conversion does, outer loops first."""
        b = self.builder
        total: Operand | None = constant(along.constant, dtypes.I32) if along.constant or not along.terms else None
        for register, coefficient in along.terms:
            part = b.convert(register, dtypes.I32)
            part = part if coefficient == 1 else b.compute(ScalarOp.MUL, part, coefficient)
            total = part if total is None else b.compute(ScalarOp.ADD, part, total)
        assert total is not None
        return total

    def _plan_alias(self, equation: Equation, kind: str, index: Index, output: int) -> Plan:
        operand = equation.inputs[output if len(equation.outputs) > 1 else 0]
        if kind == "wrap":
            by_axes = self.axes(index, equation.outputs[0].type)
            words = [(operand, (*by_axes, Address(word))) for word in range(2)]
            return Plan(words, lambda found: (found[0][0], found[1][0]))
        if kind == "unwrap":
            *outer, word = self.axes(index, equation.outputs[0].type)
            return Plan([(operand, tuple(outer))], lambda found: (self._word(found[0], word),))
        return Plan([(operand, index)], lambda found: found[0])

    def _word(self, key: Element, word: Address) -> Operand:
        if not word.terms:
            return key[word.constant]
        first = self.builder.compute(ScalarOp.EQ, operand_of(self.builder, word), 0)
        return self.builder.apply(ScalarOp.SELECT, first, *key)

    def _plan_checked(self, equation: Equation, index: Index) -> Plan:
        indices, predicate = equation.inputs
        by_axes = self.axes(index, indices.type)
        always = is_always(predicate)
        demands: list[Demand] = [(indices, by_axes)]
        if not always:
            demands.append((predicate, by_axes[:-1] if predicate.type.shape else ()))

        def finish(found: Sequence[Element]) -> Element:
            wanted = None if always else found[1][0]
            flat = flatten(by_axes, indices.type.shape)
            write_check(self.builder, self.sites, equation, found[0][0], wanted, by_axes[-1], flat)
            return found[0]

        return Plan(demands, finish)

    def _plan_divisor(self, equation: Equation, index: Index) -> Plan:
        divisor, predicate = equation.inputs
        always = is_always(predicate)
        demands: list[Demand] = [(divisor, index)]
        if not always:
            demands.append((predicate, index if predicate.type.shape else ()))

        def finish(found: Sequence[Element]) -> Element:
            wanted = None if always else found[1][0]
            flat = position(index, divisor.type.shape)
            write_divisor_check(self.builder, self.sites, equation, found[0][0], wanted, flat)
            return found[0]

        return Plan(demands, finish)

    def _plan_gather(self, equation: Equation, kind: str, index: Index) -> Plan:
        result = equation.outputs[0].type
        by_axes = self.axes(index, result)
        operand, views = self._viewed(equation.inputs[0])
        window: Window = (gather_window if kind == "windows" else slice_window)(equation, by_axes)
        source = self._memory(operand)
        alone = [] if source else [(operand, ())]  # its one element, in registers

        def finish(found: Sequence[Element]) -> Element:
            place, live = window.locate(self.builder, self.sites, found[: len(window.demands)])
            for kind, view in views:
                place = list(INDEX_MAPS[kind](tuple(place), view.inputs[0].type.shape, view.params))
            if source:
                read = self._load_where(source, place, live, window.fill)
            else:
                read = found[-1] if live is None else self._select(live, found[-1], window.fill)
            if window.wanted is None:
                return read
            zero = fill_element(result, None)  # for masked elements; the fill value is for indices out of bounds
            return self._select(found[window.wanted][0], read, zero)

        return Plan([*window.demands, *alone], finish)

    def _viewed(self, operand: Atom) -> tuple[Atom, list[tuple[str, Equation]]]:
        """Return the array in memory that an operand is a view of, and the index maps from operand to array."""
        views = []
        while isinstance(operand, Var) and operand.type.shape:
            source = self.source_of(operand)
            if not isinstance(source, Inline) or not isinstance(source.equation.primitive.lower, IndexMap):
                break
            views.append((source.equation.primitive.lower.kind, source.equation))
            operand = source.equation.inputs[0]
        return operand, views

    def _memory(self, operand: Atom) -> Memory | None:
        """Return the memory in which elements are read at computed indices, or None for a scalar in registers."""
        source = None if isinstance(operand, Literal) else self.source_of(operand)
        if isinstance(source, Memory):
            return source
        if operand.type.shape:
            raise InternalError(f"{operand} is read at computed places, and not in memory")
        return None

    def _select(self, condition: Operand, chosen: Element, other: Element) -> Element:
        pairs = zip(chosen, other, strict=True)
        return tuple(self.builder.apply(ScalarOp.SELECT, condition, x, y) for x, y in pairs)

    def _load_where(self, source: Memory, index: Sequence[Address], live: Operand | None, fill: Element) -> Element:
        if live is None:
            return self.load(source, tuple(index))
        count = components(source.type)[1]
        place = plus(source.start, scaled(flatten(index, source.type.shape), count))
        return tuple(
            self.builder.load(source.buffer, Address(place.constant + part, place.terms), mask=live, fill=fill[part])
            for part in range(count)
        )


def operand_index(atom: Atom, index: Index, result: Type) -> Index:
    """Return the index at which a pointwise equation reads an operand: its own, or () for a value without axes."""
    return () if not atom.type.shape and result.shape else index


def literal_element(atom: Literal) -> Element:
    """Return a literal's element, as constants."""
    dtype = atom.type.dtype
    if dtypes.is_complex(dtype):
        real = dtypes.real_dtype(dtype)
        return (constant(atom.value.real, real), constant(atom.value.imag, real))
    return (constant(atom.value, dtype),)
