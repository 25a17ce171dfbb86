"""Control flow in loop IR: `while_loop` and `scan` are native loops, `cond` a native branch.

Carries and results without axes are registers, carried arrays have buffers (see `carries`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Final, NamedTuple

from tracer.ir.layout import components, scalar_count
from tracer.ir.loop import Address, Compute, Copy, If, Invoke, Load, Operand, Store, Update
from tracer.ir.loop.build import Builder
from tracer.ir.loop.walk import blocks_of, statements_of
from tracer.ir.primitive import Structured
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import StackType, with_shape
from tracer.primitives.control.divergence import mask_position
from tracer.schedule.elements.divergent.analysis import lane_fit, shared_arrays
from tracer.schedule.plan.update_chains import kept_operand
from tracer.schedule.terms.affine import plus, scaled, shifted
from tracer.schedule.terms.cost import NOTHING, Cost, Nested, nested_cost
from tracer.schedule.terms.schedules import Definitions, Schedule, Values
from tracer.schedule.terms.value_locations import Memory, Scalars, Source
from tracer.schedule.write.carries import Carries, move_at_once, registers_of
from tracer.schedule.write.divergent_loops import shared_results, write_lanes
from tracer.schedule.write.growable_stacks import stack_of
from tracer.schedule.write.program_writer import BlockWriter


def _wrote_in_lanes(writer: BlockWriter, equation: Equation, write: Callable[[BlockWriter, Equation], None]) -> bool:
    """Write native loops in the lanes of one nest, where the loop's lanes have nothing to do with one another.

    Whether that was so. write: how the loop is written otherwise, for results that all lanes share.
    """
    fit = lane_fit(equation)
    if fit is None:
        return False
    apart = shared_results(equation, writer.plan.last_read)
    if apart is not None:
        write(writer, apart)
    write_lanes(writer, equation, fit)
    return True


def write_while(writer: BlockWriter, equation: Equation) -> None:
    """Write a while_loop."""
    if _wrote_in_lanes(writer, equation, write_while):
        return
    params, inputs = equation.params, equation.inputs
    first, second = params["cond_consts"], params["cond_consts"] + params["body_consts"]
    cond_consts, body_consts = _sources(writer, inputs[:first]), _sources(writer, inputs[first:second])
    carries = Carries(writer, equation, inputs[second:], equation.outputs)
    b = writer.builder
    loop = b.while_(*carries.entry)
    with loop.condition as condition:
        test = _block(writer, b, params["cond"], [*cond_consts, *carries.sources(loop.carries)])
        (predicate,) = test.write()
        condition.yields(*registers_of(test, predicate))
    with loop.body as scope:
        owned = [False] * len(body_consts) + [True] * len(carries.types)
        body = _block(writer, b, params["body"], [*body_consts, *carries.sources(loop.carries)], owned)
        carries.targets(body, len(body_consts))
        scope.yields(*carries.settle(body, body.write()))
    b.leave()
    _bind(writer, equation.outputs, carries.sources(loop.results))


def write_scan(writer: BlockWriter, equation: Equation) -> None:
    """Write a scan: a counted loop over slices."""
    if _wrote_in_lanes(writer, equation, write_scan):
        return
    params, inputs, b = equation.params, equation.inputs, writer.builder
    consts, count, length = params["consts"], params["carries"], params["length"]
    fixed = _sources(writer, inputs[:consts])
    carries = Carries(writer, equation, inputs[consts : consts + count], equation.outputs[:count])
    xs = [writer.memory_of(atom) for atom in inputs[consts + count :]]
    ys = [writer.target_of(v) for v in equation.outputs[count:]]

    def step(registers: Sequence[Operand], number: Address) -> Sequence[Operand]:
        """Write one step of the scan and return its carries in registers."""
        at = shifted(scaled(number, -1), length - 1) if params["reverse"] else number
        targets = [None] * count + [_slice(y, at) for y in ys]
        owned = [False] * consts + [n not in carries.framed for n in range(count)] + [False] * len(xs)
        sources = [*fixed, *carries.sources(registers), *[_slice(x, at) for x in xs]]
        body = BlockWriter(writer.module, b, params["body"], sources, targets, owned)
        carries.targets(body, consts)
        carries.turn(body)
        return carries.settle(body, body.write()[:count])

    carries.take_turns(params["body"], consts)
    steps = 2 if carries.spare else 1
    loop = b.for_("step", 0, length // steps, carries=carries.entry)
    with loop:
        registers: Sequence[Operand] = loop.carries
        for n in range(steps):
            registers = step(registers, Address(n, ((loop.index, steps),)))
        loop.yields(*registers)
    registers = loop.results
    if length % steps:
        registers = step(registers, Address(length - 1))
    b.leave()
    _bind(writer, equation.outputs[:count], carries.sources(registers))


def write_for(writer: BlockWriter, equation: Equation) -> None:
    """Write a counted loop whose count is known at run time."""
    params, inputs, b = equation.params, equation.inputs, writer.builder
    consts = params["consts"]
    count = writer.element_of(inputs[0])[0]
    fixed = _sources(writer, inputs[1 : 1 + consts])
    carries = Carries(writer, equation, inputs[1 + consts :], equation.outputs)
    loop = b.for_("step", 0, count, carries=carries.entry)
    with loop:
        last = b.compute(ScalarOp.SUB, count, 1) if params["reverse"] else None
        step = loop.index if last is None else b.compute(ScalarOp.SUB, last, loop.index)
        owned = [False] * (1 + consts) + [True] * len(carries.types)
        sources = [Scalars((step,)), *fixed, *carries.sources(loop.carries)]
        body = _block(writer, b, params["body"], sources, owned)
        carries.targets(body, 1 + consts)
        loop.yields(*carries.settle(body, body.write()))
    b.leave()
    _bind(writer, equation.outputs, carries.sources(loop.results))


def _slice(stacked: Memory, step: Address) -> Memory:
    """Return one step of a stacked array."""
    type = with_shape(stacked.type, stacked.type.shape[1:])
    return Memory(stacked.buffer, plus(stacked.start, scaled(step, scalar_count(type))), type)


def write_cond(writer: BlockWriter, equation: Equation) -> None:
    """Write a cond: a chain of branches, the last one for every other index."""
    index, operands = equation.inputs[0], equation.inputs[1:]
    sources = _sources(writer, operands)
    chosen = writer.element_of(index)[0]
    taken = _taken_over(writer, equation)
    targets = [writer.target_of(v) if v.type.shape and v not in taken else None for v in equation.outputs]
    kept = [writer.memory_of(v) if v in taken else None for v in equation.outputs]
    places = _Places(sources, [a in taken.values() for a in operands], targets, kept)
    results = _write_branches(writer, chosen, equation.params["branches"], places)
    written = writer.builder.statements[-1]
    if any(not isinstance(s, _NEVER_FAIL) for block in blocks_of(written) for s in statements_of(block)):
        writer.builder.leave()
    registers = iter(results)
    for variable in equation.outputs:
        if not variable.type.shape:
            writer.sources[variable] = Scalars(tuple(next(registers) for _ in range(components(variable.type)[1])))


_NEVER_FAIL = (Compute, Load, Store, Update, Copy, If, Invoke)  # functions that may are followed by a Leave


class _Places(NamedTuple):
    """Where branches find their operands and leave their results.

    owned: which operands are changed into results. kept: their memory, for such a result; any other result is stored in
    its target, or yielded in registers.
    """

    sources: Sequence[Source]
    owned: Sequence[bool]
    targets: Sequence[Memory | None]
    kept: Sequence[Memory | None]


def _taken_over(writer: BlockWriter, equation: Equation) -> dict[Var, Var]:
    """Return the results that every branch makes by updating one array at its last use, or returns, with that array."""
    taken: dict[Var, Var] = {}
    for position, variable in enumerate(equation.outputs):
        number = kept_operand(equation, position, writer.module.schedules) if variable.type.shape else None
        operand = equation.inputs[number] if number is not None else None
        if isinstance(operand, Var) and writer.may_take_over(equation, operand, variable):
            taken[variable] = operand
            writer.sources[variable] = writer.memory_of(operand)
            writer.sources.pop(operand)
    return taken


def _write_branches(writer: BlockWriter, index: Operand, branches: Sequence[Program], places: _Places) -> list[Operand]:
    b = writer.builder
    if len(branches) == 1:
        return _write_branch(writer, b, branches[0], places)
    branch = b.if_(b.compute(ScalarOp.LE, index, 0))
    with branch:
        branch.yields(*_write_branch(writer, b, branches[0], places))
    with branch.otherwise as otherwise:
        lower = b.compute(ScalarOp.SUB, index, 1) if len(branches) > 2 else index
        otherwise.yields(*_write_branches(writer, lower, branches[1:], places))
    return list(branch.results)


def _write_branch(writer: BlockWriter, b: Builder, program: Program, places: _Places) -> list[Operand]:
    block = BlockWriter(
        writer.module, b, program, places.sources, places.targets, places.owned, calls=writer.plan.calls
    )  # fmt: skip
    outputs = block.write()
    registers: list[Operand] = []
    moves: list[tuple[Memory, Memory]] = []
    for source, target, memory in zip(outputs, places.targets, places.kept, strict=True):
        if memory is not None:
            assert isinstance(source, Memory)
            moves += [(memory, source)] if source != memory else []
        elif target is None:
            registers += registers_of(block, source)
    move_at_once(block, moves)
    return registers


def _block(
    writer: BlockWriter, b: Builder, program: Program, sources: Sequence[Source], owned: Sequence[bool] | None = None
) -> BlockWriter:
    return BlockWriter(writer.module, b, program, sources, [None] * len(program.outputs), owned)


def _sources(writer: BlockWriter, atoms: Sequence[Atom]) -> list[Source]:
    """Return the operands of a nested program: arrays in memory, values without axes in registers."""
    return [_source(writer, atom) for atom in atoms]


def _source(writer: BlockWriter, atom: Atom) -> Source:
    if isinstance(atom.type, StackType):
        return stack_of(writer, atom)
    return writer.memory_of(atom) if atom.type.shape else Scalars(writer.element_of(atom))


def _bind(writer: BlockWriter, variables: Sequence[Var], sources: Sequence[Source]) -> None:
    writer.sources.update(zip(variables, sources, strict=True))


# -- records -----------------------------------------------------------------------------------------------------


def _operands_in_memory(equation: Equation, values: Values) -> Sequence[Atom]:
    """Return the operands that all lanes of a loop share, where it runs in lanes, else all operands."""
    shared = shared_arrays(equation)
    return equation.inputs if shared is None else shared


def _while_cost(equation: Equation, nested: Nested) -> Cost:
    return replace(nested_cost(equation, nested), unknown_trips=True)


def _scan_cost(equation: Equation, nested: Nested) -> Cost:
    return nested_cost(equation, nested).times(equation.params["length"])


def _cond_cost(equation: Equation, nested: Nested) -> Cost:
    return max(nested, key=lambda cost: cost.work, default=NOTHING)


def _carry_of_while(equation: Equation, position: int, definitions: Definitions) -> Atom | None:
    """Return the carry. None where lanes stop one by one: their loop stores results of its own."""
    params = equation.params
    first = params["cond_consts"] + params["body_consts"]
    return equation.inputs[first + position] if mask_position(params) is None else None


def _carry_of_scan(equation: Equation, position: int, definitions: Definitions) -> Atom | None:
    params = equation.params
    return equation.inputs[params["consts"] + position] if position < params["carries"] else None


WHILE: Final = Schedule(Structured, "while", _while_cost, write_while, _operands_in_memory, overwritten=_carry_of_while)
FOR: Final = Schedule(Structured, "for", nested_cost, write_for, _operands_in_memory)
SCAN: Final = Schedule(Structured, "scan", _scan_cost, write_scan, _operands_in_memory, overwritten=_carry_of_scan)
COND: Final = Schedule(Structured, "cond", _cond_cost, write_cond)
