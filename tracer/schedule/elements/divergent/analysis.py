"""Loops that run in the lanes of one nest, each lane until it is done.

They are found by writing them for symbolic operands.

Divergent lanes have a mask among the carries. Where all lanes take equally many iterations, the carries without axes
count them. Each vector of lanes then has its own carries.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import prod

from tracer.ir import dtypes
from tracer.ir.layout import components, scalar_count
from tracer.ir.loop import Block, Buffer, For, Register, Space, While
from tracer.ir.loop.build import Builder
from tracer.ir.loop.varying import varying_from
from tracer.ir.loop.walk import results_of, statements_of
from tracer.ir.primitive import Effect, Gather
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.ir.types import StackType, Type
from tracer.passes.base.loops import Loop, loop_of
from tracer.primitives.control.divergence import mask_position
from tracer.schedule.elements.divergent.bodies import Given, Lane, LaneWriter, MisfitError
from tracer.schedule.elements.gather_bounds import FaultSites
from tracer.schedule.terms.affine import ZERO, Affine, Extents, Flat, of_register
from tracer.schedule.terms.cost_model import statements_written_out
from tracer.schedule.terms.value_locations import Memory

_MAX_STATEMENTS = 800  # of a lane, functions written out: more would spill registers and cost compile time
_FEW = 8  # statements beside an iteration's branch and poll


@dataclass(frozen=True, slots=True)
class LaneFit:
    """How a loop's lanes are walked. lanes: their shape. loops: the sizes of the loops over them, one or one an axis.

    shared: the positions of the operands that all lanes read, in memory.
    """

    lanes: tuple[int, ...]
    loops: tuple[int, ...]
    shared: frozenset[int]

    def lane(self, places: tuple[Affine, ...], extents: Extents) -> Lane:
        """Return the lane at these indices of the loops."""
        flat = len(self.loops) < len(self.lanes)
        return Lane(self.lanes, Flat(places[0], self.lanes) if flat else places, extents)


def shared_arrays(equation: Equation) -> list[Atom] | None:
    """Return the operands that must be in memory of a loop that runs in lanes, or None for other equations."""
    fit = lane_fit(equation)
    return None if fit is None else [equation.inputs[n] for n in sorted(fit.shared)]


@lru_cache(maxsize=64)
def lane_fit(equation: Equation) -> LaneFit | None:
    """Return how the equation runs in lanes, if it is a loop that does."""
    loop = loop_of(equation)
    if loop is None or loop.count or loop.xs or loop.ys or Effect.IO in equation.effects:
        return None
    if any(isinstance(atom.type, StackType) for atom in equation.inputs):
        return None
    mask = mask_position(equation.params) if loop.cond is not None else None
    lanes = loop.carry[mask].type.shape if mask is not None else _lanes_in_step(loop)
    if not lanes or 0 in lanes:
        return None
    read = _read_anywhere(loop.body)
    consts = enumerate((*loop.cond_consts, *loop.const_inputs))
    shared = frozenset(n for n, a in consts if a in read or a.type.shape not in ((), lanes))
    for loops in dict.fromkeys([(prod(lanes),), lanes]):
        fit = LaneFit(lanes, loops, shared)
        if _fits(equation, fit, in_step=mask is None):
            return fit
    return None


def _lanes_in_step(loop: Loop) -> tuple[int, ...]:
    """Return the shape of lanes that all take as many iterations, from the loop's carries, or () for none.

    Loops that may fault are excluded: the fault of the first iteration would have to be reported, in any lane."""
    shapes = {atom.type.shape for atom in loop.carry} - {()}
    if len(shapes) != 1 or Effect.FAULT in loop.equation.effects or len(loop.body.equations) > _MAX_STATEMENTS:
        return ()
    lanes = shapes.pop()
    return lanes if prod(lanes) > 1 else ()


def _read_anywhere(program: Program) -> set[Var]:
    """Return the inputs that gathers read at computed indices, in the program or in loops within."""
    found: set[Atom] = set()
    for equation in program.equations:
        if isinstance(equation.primitive.lower, Gather):
            found.add(equation.inputs[0])
        loop = loop_of(equation)
        if loop is not None:
            read, inputs = _read_anywhere(loop.body), loop.body.inputs[len(loop.count) :]
            found.update(a for a, v in zip((*loop.consts, *loop.carry, *loop.xs), inputs, strict=True) if v in read)
    return {v for v in program.inputs if v in found}


def _fits(equation: Equation, fit: LaneFit, *, in_step: bool) -> bool:
    """Whether the loop can be written for a lane, and is no more than a lane should do."""
    builder = Builder()
    extents = {Register(dtypes.I64, "lane"): n for n in fit.loops}
    places = tuple(ZERO if n == 1 else of_register(r) for r, n in extents.items())
    given = [_any(atom.type, in_memory=n in fit.shared) for n, atom in enumerate(equation.inputs)]
    try:
        LaneWriter(builder, fit.lane(places, extents), FaultSites()).loop(equation, given)
    except MisfitError:
        return False
    block = builder.finish()
    if statements_written_out(statements_of(block)) > _MAX_STATEMENTS:
        return False
    own = set(extents)
    for atom, x in zip(equation.inputs, given, strict=True):
        if atom.type.shape and not isinstance(x, Memory):
            own.update(part for part in x if isinstance(part, Register))
    return not in_step or _is_by_lane(block, own)


def _is_by_lane(block: Block, own: set[Register]) -> bool:
    """Whether most computations differ by lane. Each vector repeats lane-invariant ones, which must not be loops."""
    varying = varying_from(block, own)
    alike = []
    for s in statements_of(block):
        if isinstance(s, For | While):
            if varying.isdisjoint(c.register for c in s.carries):
                return False
        elif varying.isdisjoint(results_of(s)):
            alike.append(s)
    much = statements_written_out(alike)
    return much <= _FEW or 2 * much <= statements_written_out(statements_of(block))


def _any(type: Type, *, in_memory: bool) -> Given:
    dtype, count = components(type)
    if in_memory:
        return Memory(Buffer("shared", dtype, scalar_count(type), Space.ARGUMENT), ZERO, type)
    return tuple(Register(dtype, "given") for _ in range(count))
