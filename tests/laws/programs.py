"""Random programs over the whole catalogue, drawn from the tables of cases.

An equation is drawn as a primitive and one of its cases; its operands are values of the program so far, brought to
the case's types by conversions, slices and reshapes, or new inputs where the case asks for particular values. So a new
primitive is in random programs as soon as it has cases. Control flow is drawn around random programs, too: see
`nested_programs`.

A program is determined by its seed and length; a shorter one of the same seed is a beginning of the longer one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tests.laws.cases import ALL, Case, all_cases, typed
from tests.laws.nested_programs import NESTED, collective
from tests.laws.values import (
    Array,
    Between,
    Draw,
    Interval,
    additive,
    anything,
    direction,
    few,
    near_one,
    ordinary,
    small_integers,
)
from tracer.ir import dtypes
from tracer.ir.primitive import NoRule
from tracer.ir.program import Literal, Program
from tracer.ir.types import ArrayType, Type, array_type, size, storage_type
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, slice_in_dim
from tracer.primitives.base.shapes import broadcast_in_dim, optimization_barrier, reshape
from tracer.primitives.elementwise.arithmetic import add, mul
from tracer.primitives.elementwise.arithmetic import max as larger
from tracer.primitives.elementwise.arithmetic import min as smaller
from tracer.primitives.elementwise.comparison import eq, select
from tracer.primitives.elementwise.complex import complex as from_parts
from tracer.primitives.elementwise.complex import imag, real
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.elementwise.trigonometric import sin
from tracer.trace.stage import stage
from tracer.trace.trace import Trace, as_literal, bind_all, open_trace, stage_process

GENERIC: tuple[Draw, ...] = (anything, ordinary, additive, near_one, small_integers, few, direction)
BATCHES = ("batch",) * 3  # more of them, for the sake of the collectives
LARGEST = 200  # elements of any operand of a case
SHAPES = ((), (3,), (2, 3), (1,), (35,), (4, 2, 3), (0,), (2, 0, 3), (131,))
SMOOTH = Interval(0.3, 1.7)  # where derivatives are not steep
# Apart, so that no two meet, where extremes are chosen: there, derivatives are conventions; and away from the origin,
# where an angle has none.
APART = {
    "clamp": (Interval(-2.0, -1.0), Interval(-3.0, 3.0), Interval(1.0, 2.0)),
    "atan2": (Interval(-3.0, 3.0), Interval(0.3, 3.0)),
}
# Where the sign of an operand is read, or all of its bits: a NaN has no sign, for operations make it of either.
SIGNED = {"copysign": 1, "bitcast_convert_type": 0}
NOT_SMOOTH = {
    "stop_gradient": "its derivative is zero on purpose",
    "reduce_precision": "a step function, with the slope 1 by convention",
    "callback": "nothing is known of the host's function",
}


class Drawn(NamedTuple):
    """A program, and operands for it."""

    program: Program
    values: list[Array]


@cache
def usable(*, smooth: bool, closed: bool) -> dict[str, tuple[Case, ...]]:
    """The cases that programs are made of. closed: those that need no inputs of their own."""
    found: dict[str, tuple[Case, ...]] = {}
    for name, cases in all_cases().items():
        chosen = [
            case
            for case in cases
            if all(size(type) <= LARGEST for type in (*case.types, *case.program.output_types))
            and (not smooth or _is_smooth(case))
            and (not closed or all(_from_pool(case, i, smooth=smooth) for i in case.given))
        ]
        if chosen:
            found[name] = tuple(chosen)
    return found


def _is_smooth(case: Case) -> bool:
    """Whether the case has derivatives that are differences."""
    primitive = case.primitive
    if primitive.name in NOT_SMOOTH or primitive.name.startswith("stack_"):
        return False  # a stack's derivatives are for programs that read every item, as those of loops do
    absent = isinstance(primitive.jvp, NoRule) and primitive.linearize is None
    return case.smooth is not None and case.is_exact_enough and not absent and "transpose" not in primitive.laws


def _from_pool(case: Case, position: int, *, smooth: bool) -> bool:
    """Whether an operand may be any value of its type. In smooth programs integers are not: nothing moves them."""
    type = case.types[position]
    if not isinstance(type, ArrayType):
        return False
    draw = _draw(case, position, smooth=smooth)
    if smooth and not dtypes.is_inexact(type.dtype):
        return False
    return draw in GENERIC or isinstance(draw, Interval | Between)


def _draw(case: Case, position: int, *, smooth: bool) -> Draw:
    if smooth and case.primitive.name in APART:
        return APART[case.primitive.name][position]
    return (case.smooth if smooth and case.smooth is not None else case.values)[position]


def draw_program(
    seed: int, length: int, *, smooth: bool = False, counted: Counter[str] | None = None
) -> Drawn:  # fmt: skip
    """A random program of `length` equations besides those that bring operands to their types.

    counted: how often each primitive was drawn is added to it, in nested programs, too.
    """
    writer = Writer(np.random.default_rng(seed), smooth=smooth, counted=counted)
    with open_trace(stage_process, "drawn", staging=True) as trace:
        writer.trace = trace
        for _ in range(1 + seed % 3):
            writer.start()
        for _ in range(length):
            writer.step()
        arrays = [x for x in writer.pool if x.shape is not None]
        read = {atom for equation in trace.equations for atom in equation.inputs}
        last = [x for x in arrays if x._atom not in read] or arrays[-1:]
        program = trace.program(last)
    return Drawn(program, writer.values)


class Writer:
    """What has been written so far: the values in the pool, and those drawn for the inputs.

    depth: how many nested programs it is inside. axes: the batch axes around it, by name, with their sizes.
    without: primitives that may not stand here. counted: those drawn.
    """

    def __init__(
        self, rng: np.random.Generator, *, smooth: bool, depth: int = 0, axes: tuple[tuple[str, int], ...] = (),
        without: frozenset[str] = frozenset(), counted: Counter[str] | None = None,
    ) -> None:  # fmt: skip
        self.rng, self.smooth, self.depth, self.axes, self.without = rng, smooth, depth, axes, without
        self.counted: Counter[str] = Counter() if counted is None else counted
        self.pool: list[Any] = []
        self.values: list[Array] = []
        self.trace: Trace | None = None

    def start(self) -> None:
        """A new input to begin with."""
        short = self.one(("f64", "f64", "c128") if self.smooth else ("f64", "f32", *ALL))
        shape = self.one([s for s in SHAPES if 0 not in s] if self.smooth else SHAPES)
        self.pool.append(self.input(typed(short, *shape), SMOOTH if self.smooth else anything))

    def step(self) -> None:
        """One more equation."""
        cases = usable(smooth=self.smooth, closed=self.trace is None)
        names = (*cases, *NESTED, *BATCHES) if self.depth < 2 else tuple(cases)
        name = self.one([n for n in names if n not in self.without])
        if self.axes and self.rng.random() < 0.4:
            name, outputs = collective(self)
        elif name in NESTED and (name not in cases or self.rng.random() < 0.5):
            outputs = NESTED[name](self)
        else:
            outputs = self._apply(self.one(cases[name]))
        self.counted[name] += 1
        self.pool += [y for y in outputs if not isinstance(y, Literal) and isinstance(y.type, ArrayType)]

    def _apply(self, case: Case) -> Sequence[Any]:
        operands = [self._operand(case, i) for i in case.given]
        if case.body is not None:
            results = case.body(*operands)
            return results if operands else optimization_barrier(results)  # or constants would be folded, by NumPy
        given = iter(operands)
        full = [
            as_literal(case.literals[i], type.dtype) if i in case.literals else next(given)  # type: ignore[union-attr]
            for i, type in enumerate(case.types)
        ]
        return bind_all(case.primitive, full, case.params)

    def _operand(self, case: Case, position: int) -> Any:
        type, draw = case.types[position], _draw(case, position, smooth=self.smooth)
        mine = self.trace is not None and isinstance(draw, Between) and self.rng.random() < 0.5
        if mine or not _from_pool(case, position, smooth=self.smooth):
            return self.input(type, draw)
        assert isinstance(type, ArrayType)
        x = self.value(type)
        if SIGNED.get(case.primitive.name) == position:
            return select(eq(x, x), x, as_literal(1, type.dtype))
        if isinstance(draw, Between):
            return _between(x, draw)
        kept = self.smooth or case.body is not None or self.rng.random() < 0.7  # bodies may loop for ever elsewhere
        return inside(x, draw) if isinstance(draw, Interval) and kept else x

    def input(self, type: Type, draw: Draw) -> Any:
        """A new input of the program."""
        assert self.trace is not None, "nested programs are closed"
        self.values.append(np.ascontiguousarray(draw(self.rng, type)).reshape(storage_type(type).shape))
        return self.trace.new_input(type)

    def value(self, type: ArrayType) -> Any:
        """A value of the program in the dtype and shape that are wanted; an input where there is none that moves."""
        if self.smooth and self.trace is not None and not any(map(_moves, self.pool)):
            return self.input(type, SMOOTH)
        return self.fitted(self._candidate(type), type)

    def _candidate(self, type: ArrayType) -> Any:
        """Rather of the type or the dtype that is wanted, and rather a late one."""
        pool = [x for x in self.pool if _moves(x)] if self.smooth else self.pool
        for wanted in (lambda x: x.type == type, lambda x: x.dtype == type.dtype, lambda x: True):
            found = [x for x in pool if wanted(x)]
            if found and self.rng.random() < 0.7:
                return found[-1 - int(self.rng.integers(0, min(len(found), 6)))]
        return self.one(pool)

    def fitted(self, x: Any, type: ArrayType) -> Any:
        """The value in another dtype and shape: elements are dropped or repeated."""
        if x.dtype != type.dtype:
            if dtypes.is_complex(x.dtype) and not dtypes.is_complex(type.dtype):
                x = imag(x) if self.rng.random() < 0.5 else real(x)
            x = convert_element_type(x, type.dtype)
        if x.shape == type.shape:
            return x
        count, wanted = x.size, size(type)
        if not count:  # behind a barrier, or it would be folded, by NumPy
            return optimization_barrier([broadcast_in_dim(as_literal(1, type.dtype), type.shape, ())])[0]
        flat, times = reshape(x, (count,)), -(-wanted // count)
        if times > 3:
            flat = reshape(broadcast_in_dim(flat, (times, count), (1,)), (times * count,))
        elif times > 1:
            flat = concatenate([flat] * times, 0)
        start = self.small(0, max(count - wanted, 0) + 1)
        return reshape(slice_in_dim(flat, start, start + wanted), type.shape)

    # for nested programs

    def types(self) -> list[ArrayType]:
        """One to three types of operands or results."""
        shorts = ("f64", "f64", "c128") if self.smooth else ("f64", "f32", *ALL)
        count = int(self.rng.integers(1, 4))
        return [array_type(typed(self.one(shorts)).dtype, self.one(SHAPES[:4])) for _ in range(count)]  # type: ignore[union-attr]

    def given(self, types: Sequence[ArrayType]) -> list[Any]:
        """Values of the types; in smooth programs where no derivative is steep."""
        return [inside(self.value(type), SMOOTH) if self.smooth else self.value(type) for type in types]

    def body(
        self, inputs: Sequence[ArrayType], outputs: Sequence[ArrayType], axis: tuple[str, int] | None = None,
        without: Sequence[str] = (),
    ) -> Program:  # fmt: skip
        """A random closed program from types to types. axis: a batch axis that it is inside."""
        length = int(self.rng.integers(1, 5))
        axes = (*self.axes, axis) if axis is not None else self.axes

        def run(operands: list[Any]) -> list[Any]:
            excluded = self.without | set(without)
            inner = Writer(
                self.rng, smooth=self.smooth, depth=self.depth + 1, axes=axes, without=excluded, counted=self.counted
            )
            inner.pool = list(operands)
            for _ in range(length):
                inner.step()
            return inner.given(outputs)

        staged = stage(run, inputs, name="body")
        assert not staged.constants
        return staged.program

    def integer(self, short: str, low: int, high: int) -> Any:
        """An integer without axes, from low to below high: an input, or in nested programs one of the program."""
        type, bounds = typed(short), Between(low, high - 1)
        assert isinstance(type, ArrayType)
        if self.trace is not None and (self.smooth or self.coin()):
            return self.input(type, bounds)
        if self.smooth:
            return as_literal(self.small(low, high), type.dtype)
        return _between(self.value(type), bounds)

    def small(self, low: int, high: int) -> int:
        """A number from low to below high."""
        return int(self.rng.integers(low, high))

    def one(self, choices: Sequence[Any]) -> Any:
        """One of several."""
        return choices[int(self.rng.integers(0, len(choices)))]

    def coin(self) -> bool:
        return bool(self.rng.random() < 0.5)


def _moves(x: Any) -> bool:
    return bool(dtypes.is_inexact(x.dtype) and x.size)


def inside(x: Any, interval: Interval) -> Any:
    """A smooth map of the value into an interval."""

    def mapped(part: Any, low: float, high: float) -> Any:
        middle, half = (low + high) / 2, (high - low) / 2
        return add(mul(sin(part), 0.9 * half), middle)

    if dtypes.is_complex(x.dtype):
        return from_parts(mapped(real(x), interval.low, interval.high), mapped(imag(x), *interval.imaginary))
    return mapped(x, interval.low, interval.high) if dtypes.is_float(x.dtype) else x


def _between(x: Any, bounds: Between) -> Any:
    """An integer clamped between the bounds, within what its dtype holds."""
    ends = np.iinfo(x.dtype)
    return smaller(larger(x, max(bounds.low, int(ends.min))), min(bounds.high, int(ends.max)))
