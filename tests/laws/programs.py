"""Random programs over the whole catalogue, drawn from the tables of cases.

An equation is drawn as a primitive and one of its cases; its operands are values of the program so far, brought to
the case's types by conversions, slices and reshapes, or new inputs where the case asks for particular values
(indices, trip counts). So a new primitive is in random programs as soon as it has cases.

A program is determined by its seed and length; a shorter one of the same seed is a beginning of the longer one.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from tests.laws.cases import Case, all_cases, typed
from tests.laws.values import (
    Array,
    Draw,
    Interval,
    additive,
    anything,
    direction,
    every_part,
    few,
    near_one,
    ordinary,
    small_integers,
)
from tracer.ir import dtypes
from tracer.ir.primitive import NoRule
from tracer.ir.program import Literal, Program
from tracer.ir.types import ArrayType, Type, array_type, size, storage_type
from tracer.primitives.arithmetic import add, mul
from tracer.primitives.branches import cond_branches
from tracer.primitives.calls import call
from tracer.primitives.complex import complex as from_parts
from tracer.primitives.complex import imag, real
from tracer.primitives.conversion import convert_element_type
from tracer.primitives.counted import for_program
from tracer.primitives.joining import concatenate, slice_in_dim
from tracer.primitives.scan import scan_program
from tracer.primitives.shapes import broadcast_in_dim, reshape
from tracer.primitives.trigonometric import sin
from tracer.trace.stage import stage
from tracer.trace.trace import Trace, as_literal, bind_all, open_trace, stage_process

GENERIC: tuple[Draw, ...] = (anything, every_part, ordinary, additive, near_one, small_integers, few, direction)
LARGEST = 200  # elements of any operand
START = ("f64", "f64", "f32", "i32", "c128", "bool", "i64", "f16", "bf16", "u8", "c64", "u64", "i8")
SHAPES = ((), (3,), (2, 3), (1,), (35,), (4, 2, 3), (0,))
UNSMOOTH = {"clamp": "where the limits meet, all three operands count as not chosen, as in JAX"}
NESTED = ("call", "cond", "scan", "for_loop")  # of random programs, besides their cases


class Drawn(NamedTuple):
    """A program, operands for it, and every array in it, in order."""

    program: Program
    values: list[Array]
    everything: Program  # the same equations, returning every array


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
    """Whether the case has derivatives of both kinds that are differences."""
    primitive = case.primitive
    if primitive.name in UNSMOOTH or primitive.name.startswith("stack_"):
        return False  # a stack's derivatives are for programs that read every item, as those of loops do
    absent = isinstance(primitive.jvp, NoRule) or {"jvp", "transpose"} & set(primitive.laws)
    return case.smooth is not None and case.is_exact_enough and not absent


def _from_pool(case: Case, position: int, *, smooth: bool) -> bool:
    """Whether an operand may be any value of its type. In smooth programs integers are not: nothing moves them."""
    type = case.types[position]
    if not isinstance(type, ArrayType):
        return False
    draw = (case.smooth if smooth and case.smooth is not None else case.values)[position]
    if smooth and not dtypes.is_inexact(type.dtype):
        return False
    return draw in GENERIC or isinstance(draw, Interval)


def draw_program(seed: int, length: int, *, smooth: bool = False) -> Drawn:
    """A random program of about `length` equations besides those that bring operands to their types."""
    writer = _Writer(np.random.default_rng(seed), smooth=smooth)
    with open_trace(stage_process, "drawn", staging=True) as trace:
        writer.trace = trace
        for _ in range(1 + seed % 3):
            writer.start()
        for _ in range(length):
            writer.step()
        arrays = [x for x in writer.pool if x.shape is not None]
        read = {atom for equation in trace.equations for atom in equation.inputs}
        last = [x for x in arrays if x._atom not in read] or arrays[-1:]
        program, everything = trace.program(last), trace.program(arrays)
    return Drawn(program, writer.values, everything)


class _Writer:
    """What has been written so far: the values in the pool, and those drawn for the inputs."""

    def __init__(self, rng: np.random.Generator, *, smooth: bool, depth: int = 0) -> None:
        self.rng, self.smooth, self.depth = rng, smooth, depth
        self.pool: list[Any] = []
        self.values: list[Array] = []
        self.trace: Trace | None = None

    def start(self) -> None:
        """A new input to begin with."""
        short = self._one(("f64", "c128") if self.smooth else START)
        shape = self._one(SHAPES[:-1] if self.smooth else SHAPES)
        self.pool.append(self._input(typed(short, *shape), Interval(0.3, 1.7) if self.smooth else anything))

    def step(self) -> None:
        """One more equation."""
        cases = usable(smooth=self.smooth, closed=self.trace is None)
        name = self._one((*cases, *NESTED) if self.depth < 2 else tuple(cases))
        if name in NESTED and (name not in cases or self.rng.random() < 0.5):
            outputs = getattr(self, f"_{name}")()
        else:
            outputs = self._apply(self._one(cases[name]))
        self.pool += [y for y in outputs if not isinstance(y, Literal) and isinstance(y.type, ArrayType)]

    def _apply(self, case: Case) -> Sequence[Any]:
        operands = [self._operand(case, i) for i in case.given]
        if case.body is not None:
            return case.body(*operands)
        given = iter(operands)
        full = [
            as_literal(case.literals[i], type.dtype) if i in case.literals else next(given)  # type: ignore[union-attr]
            for i, type in enumerate(case.types)
        ]
        return bind_all(case.primitive, full, case.params)

    def _operand(self, case: Case, position: int) -> Any:
        type = case.types[position]
        draw = (case.smooth if self.smooth and case.smooth is not None else case.values)[position]
        if not _from_pool(case, position, smooth=self.smooth):
            return self._input(type, draw)
        if self.smooth and not any(dtypes.is_inexact(x.dtype) and x.size for x in self.pool):
            return self._input(type, draw)
        assert isinstance(type, ArrayType)
        x = self.fitted(self._candidate(type), type)
        return _inside(x, draw) if isinstance(draw, Interval) and (self.smooth or self.rng.random() < 0.7) else x

    def _input(self, type: Type, draw: Draw) -> Any:
        assert self.trace is not None, "nested programs are closed"
        self.values.append(np.ascontiguousarray(draw(self.rng, type)).reshape(_stored_shape(type)))
        return self.trace.new_input(type)

    def _candidate(self, type: ArrayType) -> Any:
        """A value of the program, rather of the type or the dtype that is wanted, and rather a late one."""
        pool = [x for x in self.pool if dtypes.is_inexact(x.dtype) and x.size] if self.smooth else self.pool
        for wanted in (lambda x: x.type == type, lambda x: x.dtype == type.dtype, lambda x: True):
            found = [x for x in pool if wanted(x)]
            if found and self.rng.random() < 0.7:
                return found[-1 - int(self.rng.integers(0, min(len(found), 6)))]
        return self._one(pool)

    def fitted(self, x: Any, type: ArrayType) -> Any:
        """The value in the dtype and shape that are wanted: elements are dropped or repeated."""
        if x.dtype != type.dtype:
            if dtypes.is_complex(x.dtype) and not dtypes.is_complex(type.dtype):
                x = imag(x) if self.rng.random() < 0.5 else real(x)
            x = convert_element_type(x, type.dtype)
        if x.shape == type.shape:
            return x
        count, wanted = x.size, size(type)
        if not count:
            return broadcast_in_dim(as_literal(1, type.dtype), type.shape, ())
        flat = reshape(x, (count,))
        if count < wanted:
            flat = concatenate([flat] * -(-wanted // count), 0)
        start = int(self.rng.integers(0, max(count - wanted, 0) + 1))
        return reshape(slice_in_dim(flat, start, start + wanted), type.shape)

    # nested programs

    def _types(self) -> list[ArrayType]:
        shorts = ("f64", "c128") if self.smooth else ("f64", "f32", "i32", "bf16", "c128", "bool", "u16")
        count = int(self.rng.integers(1, 4))
        return [array_type(typed(self._one(shorts)).dtype, self._one(SHAPES[:4])) for _ in range(count)]  # type: ignore[union-attr]

    def _given(self, types: Sequence[ArrayType]) -> list[Any]:
        """Values of the types; in smooth programs where no derivative is steep."""
        found = []
        for type in types:
            if self.smooth and not any(x.size and dtypes.is_inexact(x.dtype) for x in self.pool):
                found.append(self._input(type, Interval(0.3, 1.7)))
                continue
            x = self.fitted(self._candidate(type), type)
            found.append(_inside(x, Interval(0.3, 1.7)) if self.smooth else x)
        return found

    def _body(self, inputs: Sequence[ArrayType], outputs: Sequence[ArrayType]) -> Program:
        """A random closed program from types to types."""
        length = int(self.rng.integers(1, 5))

        def run(operands: list[Any]) -> list[Any]:
            inner = _Writer(self.rng, smooth=self.smooth, depth=self.depth + 1)
            inner.pool = list(operands)
            for _ in range(length):
                inner.step()
            return inner._given(outputs)

        staged = stage(run, inputs, name="body")
        assert not staged.constants
        return staged.program

    def _call(self) -> Sequence[Any]:
        inputs, outputs = self._types(), self._types()
        return call(self._body(inputs, outputs), *self._given(inputs), inline=bool(self.rng.random() < 0.5))

    def _cond(self) -> Sequence[Any]:
        inputs, outputs = self._types(), self._types()
        branches = tuple(self._body(inputs, outputs) for _ in range(int(self.rng.integers(1, 4))))
        index = as_literal(int(self.rng.integers(-1, 4)), dtypes.I32)
        if self.trace is not None:
            index = self._input(typed("i32"), lambda rng, type: rng.integers(-1, 4, (), np.int32))
        elif not self.smooth:
            index = self.fitted(self._one(self.pool), array_type(dtypes.I32, ()))
        return cond_branches(index, branches, *self._given(inputs))

    def _scan(self) -> Sequence[Any]:
        consts, carries, rows, outputs = (self._types() for _ in range(4))
        body = self._body([*consts, *carries, *rows], [*carries, *outputs])
        length = int(self.rng.integers(0, 4))
        stacked = [array_type(t.dtype, (length, *t.shape)) for t in rows]
        fixed, entry = self._given(consts), self._given(carries)
        return scan_program(
            body, fixed, entry, self._given(stacked), length=length, reverse=bool(self.rng.random() < 0.5)
        )

    def _for_loop(self) -> Sequence[Any]:
        consts, carries = self._types(), self._types()
        step = array_type(dtypes.I64, ())
        body = self._body([step, *consts, *carries], carries)
        count: Any = as_literal(int(self.rng.integers(0, 4)), dtypes.I64)
        if self.trace is not None:
            count = self._input(step, lambda rng, type: rng.integers(0, 4, ()))
        operands = [count, *self._given(consts), *self._given(carries)]
        return for_program(body, operands, consts=len(consts), reverse=bool(self.rng.random() < 0.5))

    def _one(self, choices: Sequence[Any]) -> Any:
        return choices[int(self.rng.integers(0, len(choices)))]


def _inside(x: Any, interval: Interval) -> Any:
    """A smooth map of the value into an interval."""

    def mapped(part: Any, low: float, high: float) -> Any:
        middle, half = (low + high) / 2, (high - low) / 2
        return add(mul(sin(part), 0.9 * half), middle)

    if dtypes.is_complex(x.dtype):
        return from_parts(mapped(real(x), interval.low, interval.high), mapped(imag(x), *interval.imaginary))
    return mapped(x, interval.low, interval.high) if dtypes.is_float(x.dtype) else x


def _stored_shape(type: Type) -> tuple[int, ...]:


    return storage_type(type).shape


