"""Which loops run in the lanes of one nest, each lane until it is done: found by writing them for any operands."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tracer.ir import dtypes
from tracer.ir.loop import Buffer, Register, Space
from tracer.ir.loop_build import Builder
from tracer.ir.loop_walk import statements_of
from tracer.ir.primitive import Effect, Gather, Structured
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.ir.types import Type, size
from tracer.primitives.lanes import mask_position
from tracer.schedule.index import ZERO, Affine, Extents, Flat, of_register
from tracer.schedule.lane_bodies import Given, Lane, LaneWriter, MisfitError
from tracer.schedule.sources import Memory, components, scalar_count
from tracer.schedule.windows import FaultSites
from tracer.schedule.work import statements_written_out

_MOST_STATEMENTS = 800  # of a lane, functions written out: more would spill registers and cost compile time


@dataclass(frozen=True, slots=True)
class LaneFit:
    """How a loop's lanes are walked. lanes: their shape. loops: the sizes of the loops over them, one or one an axis.

    shared: the positions of the operands that all lanes read, in memory.
    """

    lanes: tuple[int, ...]
    loops: tuple[int, ...]
    shared: frozenset[int]

    def lane(self, places: tuple[Affine, ...], extents: Extents) -> Lane:
        """The lane where the loops are at these places."""
        flat = len(self.loops) < len(self.lanes)
        return Lane(self.lanes, Flat(places[0], self.lanes) if flat else places, extents)


def shared_arrays(equation: Equation) -> list[Atom] | None:
    """The operands that must be in memory, of a loop that runs in lanes; None for any other equation."""
    fit = lane_fit(equation)
    return None if fit is None else [equation.inputs[n] for n in sorted(fit.shared)]


def lane_fit(equation: Equation) -> LaneFit | None:
    """How the equation runs in lanes, if it is a loop that does."""
    if equation.primitive.lower != Structured("while") or Effect.IO in equation.effects:
        return None
    params = equation.params
    mask = mask_position(params)
    if mask is None:
        return None
    consts = params["body_consts"]
    lanes = equation.inputs[consts + mask].type.shape
    if not lanes or 0 in lanes:
        return None
    read = _read_anywhere(params["body"])
    inner = params["body"].inputs[:consts]
    shared = frozenset(n for n, v in enumerate(inner) if v in read or v.type.shape not in ((), lanes))
    for loops in dict.fromkeys([(size(equation.inputs[consts + mask].type),), lanes]):
        fit = LaneFit(lanes, loops, shared)
        if _writes(equation, fit):
            return fit
    return None


def _read_anywhere(program: Program) -> set[Var]:
    """The inputs that gathers read at computed places, in the program or in loops within."""
    found: set[Atom] = set()
    for equation in program.equations:
        if isinstance(equation.primitive.lower, Gather):
            found.add(equation.inputs[0])
        for outer, inner in _handed_on(equation):
            found.update(a for a, v in zip(outer, inner.inputs, strict=False) if v in _read_anywhere(inner))
    return {v for v in program.inputs if v in found}


def _handed_on(equation: Equation) -> Iterator[tuple[tuple[Atom, ...], Program]]:
    """The bodies of loops, with what they are given."""
    match equation.primitive.lower:
        case Structured("while"):
            yield equation.inputs[equation.params["cond_consts"] :], equation.params["body"]
        case Structured("scan"):
            yield equation.inputs, equation.params["body"]
        case _:
            pass


def _writes(equation: Equation, fit: LaneFit) -> bool:
    """Whether the loop can be written for a lane, and is no more than a lane should do."""
    builder = Builder()
    extents = {Register(dtypes.I64, "lane"): n for n in fit.loops}
    places = tuple(ZERO if n == 1 else of_register(r) for r, n in extents.items())
    given = [_any(atom.type, in_memory=n in fit.shared) for n, atom in enumerate(equation.inputs)]
    try:
        LaneWriter(builder, fit.lane(places, extents), FaultSites()).loop(equation, given)
    except MisfitError:
        return False
    return statements_written_out(statements_of(builder.finish())) <= _MOST_STATEMENTS


def _any(type: Type, *, in_memory: bool) -> Given:
    dtype, count = components(type)
    if in_memory:
        return Memory(Buffer("shared", dtype, scalar_count(type), Space.ARGUMENT), ZERO, type)
    return tuple(Register(dtype, "given") for _ in range(count))
