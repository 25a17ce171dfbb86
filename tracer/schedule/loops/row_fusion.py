"""Row fusion: successive nests that pass only a row's own values to each other share one loop over rows.

softmax is three nests over the rows of a matrix: maxima, exponentials with their sums, quotients. In one loop a row
stays in the nearest cache from its first read to its last. Each row is computed as before, in the same order, so
results are unchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Compute,
    Constant,
    For,
    Function,
    If,
    Invoke,
    Load,
    LoopKind,
    Module,
    Operand,
    Prefix,
    Register,
    Space,
    Statement,
    Store,
    View,
    While,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.walk import statements_of
from tracer.ir.target import CPU, Machine, Target
from tracer.schedule.cpu.vectorise import runs_lanes_inside
from tracer.schedule.terms.clone import Names, copied
from tracer.schedule.terms.cost_model import statements_written_out, trips, work

_MIN_ROWS: Final = 64  # of nests that threads would share
_MAX_STATEMENTS: Final = 1500  # functions written out
_MAX_NESTS: Final = 16  # each is held against all before it


@dataclass(frozen=True, slots=True)
class Region:
    """Memory that a nest is given. Views of the arena with equal offset and dtype are the same memory."""

    buffer: Buffer | tuple[int, str]
    start: Address


@dataclass(frozen=True, slots=True)
class Use:
    """Use of memory by a nest. step: distance from one row to the next, None where rows may overlap."""

    view: View
    step: int | None
    written: bool


@dataclass(frozen=True, slots=True)
class Nest:
    """A function whose outermost loop runs over rows. steps: of its buffers, see `Use`; size: statements of a row."""

    function: Function
    loop: For
    has_loops: bool
    steps: Mapping[Buffer, int | None]
    size: int
    work: float


@dataclass(frozen=True, slots=True)
class Rows:
    """A call of a nest over rows."""

    nest: Nest
    invoke: Invoke
    uses: Mapping[Region, Use]


def fuse_rows(
    module: Module,
    target: Target = CPU,
    runs_rows: Callable[[For, Machine], bool] = runs_lanes_inside,
    *,
    with_values: bool = False,
) -> Module:
    """Return the module with nests over the same rows fused where only a row's own values pass between them.

    Nests long enough for threads to share are fused only where their rows are enough for that. runs_rows: whether a
    loop over loops would run its rows one after another, or one in each block of a GPU. with_values: whether nests of
    one value a row join nests with loops, before the first and behind the last of these.
    """
    return _Fusion(module, target.machine, runs_rows, with_values=with_values).run()


class _Fusion:
    def __init__(
        self, module: Module, machine: Machine, runs_rows: Callable[[For, Machine], bool], *, with_values: bool
    ) -> None:
        self.module, self.machine, self.runs_rows, self.with_values = module, machine, runs_rows, with_values
        self.functions = {f.name: f for f in module.functions}
        self.nests: dict[str, Nest | None] = {}
        self.made: dict[object, Function] = {}

    def run(self) -> Module:
        entry = self.functions[self.module.entry]
        body = self._block(entry.body)
        if not self.made:
            return self.module
        called = {s.function for s in statements_of(body) if isinstance(s, Invoke)}
        kept = [f for f in (*self.module.functions, *self.made.values()) if f.name in called]
        return replace(self.module, functions=(*kept, replace(entry, body=body)))

    def _block(self, block: Block) -> Block:
        statements: list[Statement] = []
        run: list[Rows] = []
        for s in block.statements:
            rows = self._rows(s) if isinstance(s, Invoke) else None
            if rows is not None and run and self._fits(run, rows):
                run.append(rows)
                continue
            statements += self._fused(run)
            run = [] if rows is None else [rows]
            if rows is None:
                statements.append(self._within(s))
        statements += self._fused(run)
        return Block(tuple(statements), block.yields)

    def _within(self, s: Statement) -> Statement:
        match s:
            case For():
                return replace(s, body=self._block(s.body))
            case While():
                return replace(s, condition=self._block(s.condition), body=self._block(s.body))
            case If():
                return replace(s, then=self._block(s.then), otherwise=self._block(s.otherwise))
            case _:
                return s

    def _rows(self, s: Invoke) -> Rows | None:
        """Return a call of a nest over rows, or None for other calls."""
        if s.function not in self.nests:
            self.nests[s.function] = self._nest(self.functions[s.function])
        nest = self.nests[s.function]
        return None if nest is None else Rows(nest, s, _uses(nest, s))

    def _nest(self, function: Function) -> Nest | None:
        """Return the function as a nest over rows, or None for other functions."""
        loop = loop_over_rows(function)
        if loop is None or loop.kind is not LoopKind.PARALLEL:
            return None
        inner = list(statements_of(loop.body))
        has_loops = any(isinstance(s, For) for s in inner)
        if not all(isinstance(s, For | Compute | Load | Store | Prefix) for s in inner):
            return None
        if has_loops and not self.runs_rows(loop, self.machine):
            return None
        size, cost = statements_written_out(inner), work([loop], self.machine)
        return Nest(function, loop, has_loops, _steps(loop, inner), size, cost)

    def _fits(self, run: Sequence[Rows], rows: Rows) -> bool:
        """Whether a nest may run row by row together with the nests before it."""
        count = trips(rows.nest.loop)
        if len(run) >= _MAX_NESTS or count != trips(run[0].nest.loop):
            return False
        if any(_conflict(earlier, rows) for earlier in run):
            return False
        together = [*run, rows]
        if (
            sum(r.nest.size for r in together) > _MAX_STATEMENTS
            or _row_bytes(together) > self.machine.second_cache // 4
        ):
            return False
        return count >= _MIN_ROWS or sum(r.nest.work for r in together) < self.machine.shared_work

    def _fused(self, run: Sequence[Rows]) -> list[Statement]:
        """Return the calls. Calls from the first to the last with loops within a row are fused in one loop."""
        whole = [n for n, rows in enumerate(run) if rows.nest.has_loops]
        if self.with_values and whole:
            whole = [0, *whole, len(run) - 1]
        if len(run) < 2 or len(whole) < 2:
            return [rows.invoke for rows in run]
        first, last = whole[0], whole[-1] + 1
        before, after = ([rows.invoke for rows in part] for part in (run[:first], run[last:]))
        return [*before, self._call(run[first:last]), *after]

    def _call(self, run: Sequence[Rows]) -> Invoke:
        places: dict[object, int] = {}
        arguments: list[View | Operand] = []
        shared: list[tuple[int, ...]] = []  # for each nest, which of the arguments its parameters are
        for rows in run:
            for argument in rows.invoke.arguments:
                key = _region(argument) if isinstance(argument, View) else argument
                if key not in places:
                    places[key] = len(arguments)
                    arguments.append(argument)
            shared.append(tuple(places[_region(a) if isinstance(a, View) else a] for a in rows.invoke.arguments))
        name = (tuple(rows.nest.function.name for rows in run), tuple(shared))
        if name not in self.made:
            self.made[name] = _fused_function(f"rows{len(self.made)}", [rows.nest for rows in run], shared)
        return Invoke(self.made[name].name, tuple(arguments))


def _fused_function(name: str, nests: Sequence[Nest], shared: Sequence[tuple[int, ...]]) -> Function:
    """Return one function for all nests. shared: the new parameter for each of theirs."""
    pairs = [(n, own) for nest, ns in zip(nests, shared, strict=True) for n, own in zip(ns, _given(nest), strict=True)]
    written = {n for n, own in pairs if isinstance(own, Buffer) and own.written}
    parameters: dict[int, Buffer | Register] = {}
    for n, own in pairs:
        if n not in parameters:
            parameters[n] = (
                replace(own, name=f"a{n}", written=n in written)
                if isinstance(own, Buffer)
                else Register(own.dtype, f"a{n}")
            )
    row, statements = Register(nests[0].loop.index.dtype, "row"), list[Statement]()
    for nest, ns in zip(nests, shared, strict=True):
        names: Names = {nest.loop.index: row}
        names |= {own: parameters[n] for n, own in zip(ns, _given(nest), strict=True)}
        statements += copied(nest.loop.body, names).statements
    loop = replace(nests[0].loop, index=row, body=Block(tuple(statements)))
    return Function(name, tuple(parameters[n] for n in range(len(parameters))), Block((loop,)))


def _given(nest: Nest) -> Sequence[Buffer | Register]:
    return nest.function.parameters


def loop_over_rows(function: Function) -> For | None:
    """Return the loop that is all of a function, if it counts from 0 without carries, else None."""
    if len(function.body.statements) != 1 or not isinstance(function.body.statements[0], For):
        return None
    loop = function.body.statements[0]
    counted = loop.start == index_constant(0) and isinstance(loop.stop, Constant) and loop.step == 1
    return loop if counted and not loop.carries else None


# -- memory --------------------------------------------------------------------------------------------------------


def _region(view: View) -> Region:
    buffer = view.buffer
    if buffer.space is Space.ARENA:
        return Region((buffer.offset, buffer.dtype.str), view.start)
    return Region(buffer, view.start)


def _steps(loop: For, inner: Sequence[Statement]) -> dict[Buffer, int | None]:
    """Return the distance from one row to the next in each buffer."""
    extents = {s.index: s for s in inner if isinstance(s, For)}
    found: dict[Buffer, set[int | None]] = {}
    for s in inner:
        if isinstance(s, Load | Store):
            found.setdefault(s.buffer, set()).add(row_step(s.address, loop.index, extents))
    return {buffer: steps.pop() if len(steps) == 1 else None for buffer, steps in found.items()}


def _uses(nest: Nest, s: Invoke) -> dict[Region, Use]:
    """Return the uses of memory by a call."""
    uses: dict[Region, Use] = {}
    for parameter, argument in zip(nest.function.parameters, s.arguments, strict=True):
        if not isinstance(argument, View):
            continue
        assert isinstance(parameter, Buffer)
        place, step, written = _region(argument), nest.steps.get(parameter), parameter.written
        if place in uses:
            step, written = step if uses[place].step == step else None, written or uses[place].written
        uses[place] = Use(argument, step, written)
    return uses


def row_step(address: Address, row: Register, extents: Mapping[Register, For]) -> int | None:
    """Return the distance from one row to the next where an address stays within its row, else None."""
    step, low, high = 0, address.constant, address.constant
    for register, coefficient in address.terms:
        if register is row:
            step = coefficient
            continue
        loop = extents.get(register)
        if loop is None or loop.start != index_constant(0) or not isinstance(loop.stop, Constant):
            return None
        reach = coefficient * (trips(loop) - 1) * loop.step
        low, high = low + min(reach, 0), high + max(reach, 0)
    return step if low >= 0 and high < step else None


def _conflict(earlier: Rows, later: Rows) -> bool:
    """Whether a row of the later nest may need, or overwrite, other rows of the earlier one."""
    for place, use in earlier.uses.items():
        for other, its in later.uses.items():
            if place == other and use.view.buffer.size != its.view.buffer.size:
                return True
            if not (use.written or its.written):
                continue
            if place == other:
                if use.step is None or use.step != its.step:
                    return True
            elif use.view.buffer == its.view.buffer:
                return True
    return False


# -- size ----------------------------------------------------------------------------------------------------------


def _row_bytes(run: Sequence[Rows]) -> int:
    """Return the bytes of a row in all arrays."""
    found = {place: use for rows in run for place, use in rows.uses.items() if use.step}
    return sum((use.step or 0) * use.view.buffer.dtype.itemsize for use in found.values())
