"""Nests shared by threads, wider vector loops, and vector loops without a remainder.

A nest whose loop is long enough is invoked with `share`. Its outermost loop, or the longest of a perfect nest, then
runs over a part of its range. Iterations compute as before, so results do not depend on the number of threads.

A vector loop may have a length that its lanes do not divide. It runs its last vector from the end backwards, where it
reads no array that it writes. Some elements are computed twice, and no masked copy of the body is needed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from tracer.ir.dtypes import I64
from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Compute,
    Constant,
    Fault,
    For,
    Function,
    If,
    Invoke,
    Load,
    LoopKind,
    Module,
    Operand,
    Register,
    Share,
    Statement,
    Store,
    Update,
    While,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.varying import varying_registers
from tracer.ir.loop.walk import blocks_of, statements_of, with_statements
from tracer.ir.scalar import ScalarOp
from tracer.ir.target import CPU, Machine, Target
from tracer.schedule.terms.cost_model import trips, work
from tracer.schedule.terms.loop_slicing import moved

_MIN_TRIPS: Final = 8  # an outer loop this long is shared, rather than a longer one within
_CHAIN: Final = 12  # computations of an iteration that latency limits, not memory
_MAX_COMPUTATIONS: Final = 500  # of an iteration, once for each vector: more cost too much to compile
_MIN_VECTORS: Final = 16  # of a loop that is made wider
_SHARED: Final = 4  # lane-invariant statements that a short loop should not repeat


def parallelise(module: Module, target: Target = CPU) -> Module:
    """Return the module with long nests shared by threads, and vector loops without remainders where possible."""
    shares: dict[str, Share] = {}
    functions = []
    for function in module.functions:
        if function.name != module.entry:
            function = replace(function, body=_widened(function.body))
            function, share = _share(function, target.machine)
            if share is not None:
                shares[function.name] = share
        functions.append(function)
    if shares:
        functions = [
            replace(f, body=with_statements(f.body, lambda s: _sharing(s, shares))) if f.name == module.entry else f
            for f in functions
        ]
    return replace(module, functions=tuple(functions))


def _sharing(s: Statement, shares: Mapping[str, Share]) -> Sequence[Statement]:
    """Return a call with the share of its function."""
    return (replace(s, share=shares[s.function]) if isinstance(s, Invoke) and s.function in shares else s,)


def _share(function: Function, machine: Machine) -> tuple[Function, Share | None]:
    """Return the function over a part of its work, and the share that counts the work; None for no share."""
    chain = _chain(function.body)
    total = work(function.body.statements, machine) if chain else 0.0
    if not chain or total < machine.shared_work:
        return replace(function, body=_without_remainders(function.body)), None
    chosen = _choose(chain)
    loop, count = chain[chosen], trips(chain[chosen])
    begin, end = Register(I64, "begin"), Register(I64, "end")
    inner: tuple[Statement, ...] | Statement
    lanes = least = 1
    if loop.kind is LoopKind.VECTOR:
        if count % loop.lanes == 0 or (count > loop.lanes and _is_idempotent(loop)):
            least = 1 if count % loop.lanes == 0 else 2  # a block that is moved back is run by whom its neighbour is
            inner, count = _blocks(loop, begin, end), -(-count // loop.lanes)
        else:
            inner, lanes = _part(loop, begin, end), loop.lanes
    else:
        inner = replace(loop, start=begin, stop=end, body=_without_remainders(loop.body))
    grain = max(1, int(machine.grain_work * count / total)) if total else 1
    grain = -(-max(grain, least) // lanes) * lanes
    statements: tuple[Statement, ...] = inner if isinstance(inner, tuple) else (inner,)
    for outer in reversed(chain[:chosen]):
        statements = (replace(outer, body=Block(statements)),)
    body = Block(statements)
    return replace(function, parameters=(*function.parameters, begin, end), body=body), Share(count, grain)


def _chain(body: Block) -> list[For]:
    """Return the perfectly nested loops of independent iterations, outermost first."""
    chain: list[For] = []
    while len(body.statements) == 1 and isinstance(body.statements[0], For):
        loop = body.statements[0]
        independent = loop.kind in (LoopKind.PARALLEL, LoopKind.VECTOR) and not loop.carries
        if not independent or loop.step != 1 or not isinstance(loop.stop, Constant) or loop.start != index_constant(0):
            break
        chain.append(loop)
        if loop.kind is LoopKind.VECTOR:
            break
        body = loop.body
    return chain


def _choose(chain: Sequence[For]) -> int:
    """Return the loop to share: the outermost long enough, else the longest."""
    vectors = [trips(loop) // loop.lanes for loop in chain]
    long = [n for n, count in enumerate(vectors) if count >= _MIN_TRIPS]
    return long[0] if long else max(range(len(chain)), key=vectors.__getitem__)


# -- wider vector loops -------------------------------------------------------------------------------------------


def _widened(block: Block) -> Block:
    """Return the block with two or four times the lanes in compute-bound vector loops, so that chains overlap.

    Measured on an AVX-512 core: Black-Scholes takes 0.6 of its time with four vectors, gelu 0.77; axpy gains nothing.
    """
    statements: list[Statement] = []
    for s in block.statements:
        if isinstance(s, For):
            wider = _width(s) if s.kind is LoopKind.VECTOR else 1
            s = replace(s, lanes=s.lanes * wider) if wider > 1 else replace(s, body=_widened(s.body))
        statements.append(s)
    return Block(tuple(statements), block.yields)


def _width(loop: For) -> int:
    """Return the factor by which to widen a vector loop."""
    whole = _as_one_vector(loop)
    if whole > 1:
        return whole
    computations = 0
    for s in loop.body.statements:
        match s:
            case Compute():
                computations += 1
            case Load() | Store() if s.mask is None and _is_smooth(s.address, loop.index):
                pass
            case If():
                pass
            case While() | For():
                inner = [type(x) for block in blocks_of(s) for x in statements_of(block)]
                if not {Compute, If, While, For}.issuperset(inner):
                    return 1
                computations += inner.count(Compute)
            case _:
                return 1
    if loop.carries or computations < _CHAIN:
        return 1
    most = min(_MAX_COMPUTATIONS // computations, trips(loop) // (loop.lanes * _MIN_VECTORS))
    return next((width for width in (4, 2) if width <= most), 1)


def _as_one_vector(loop: For) -> int:
    """Return the factor that makes a short loop a single vector, where each vector would repeat lane-invariant work.

    For example, a row that is gathered in four vectors looks its index up four times.
    """
    vectors = trips(loop) // loop.lanes
    if not isinstance(loop.stop, Constant) or loop.carries or vectors not in (2, 4) or trips(loop) % loop.lanes:
        return 1
    varying = varying_registers(loop)
    shared = 0
    for s in loop.body.statements:
        match s:
            case Compute() | Load() if s.result not in varying:
                shared += 1
            case Compute() | Fault():
                pass
            case Load() | Store() if s.mask is None and _is_smooth(s.address, loop.index):
                pass
            case _:
                return 1
    return vectors if shared >= _SHARED else 1


def _is_smooth(address: Address, index: Register) -> bool:
    return all(c == 1 for r, c in address.terms if r is index)


# -- vector loops in blocks ---------------------------------------------------------------------------------------


def _without_remainders(block: Block) -> Block:
    """Return the block with vector loops over blocks where their lengths leave a remainder."""
    statements: list[Statement] = []
    for s in block.statements:
        if not isinstance(s, For):
            statements.append(s)
        elif s.kind is not LoopKind.VECTOR:
            statements.append(replace(s, body=_without_remainders(s.body)))
        elif isinstance(s.stop, Constant) and trips(s) % s.lanes and trips(s) > s.lanes and _is_idempotent(s):
            statements.append(_blocks(s, index_constant(0), index_constant(-(-trips(s) // s.lanes))))
        else:
            statements.append(s)
    return Block(tuple(statements), block.yields)


def _is_idempotent(loop: For) -> bool:
    """Whether iterations may run twice: they store, reading nothing that any of them stores."""
    read: set[Buffer] = set()
    stored: set[Buffer] = set()
    for s in statements_of(loop.body):
        match s:
            case Load():
                read.add(s.buffer)
            case Store():
                stored.add(s.buffer)
            case Update():
                return False
            case _:
                pass
    return not loop.carries and not read & stored


def _blocks(loop: For, begin: Operand, end: Operand) -> For:
    """Return the loop over blocks of its lanes, the last block moved back to end with the loop."""
    length, lanes = trips(loop), loop.lanes
    block = Register(I64, "block")
    statements: list[Statement] = []
    start: Address = Address(0, ((block, lanes),))
    if length % lanes:
        scaled, first = Register(I64, "scaled"), Register(I64, "first")
        statements.append(Compute(scaled, ScalarOp.MUL, (block, index_constant(lanes))))
        statements.append(Compute(first, ScalarOp.MIN, (scaled, index_constant(length - lanes))))
        start = Address(0, ((first, 1),))
    statements.append(moved(loop, start, index_constant(lanes)))
    return For(block, begin, end, Block(tuple(statements)))


def _part(loop: For, begin: Register, end: Register) -> tuple[Statement, ...]:
    """Return the loop over a part of its range."""
    count = Register(I64, "count")
    length = Compute(count, ScalarOp.SUB, (end, begin))
    return length, moved(loop, Address(0, ((begin, 1),)), count)
