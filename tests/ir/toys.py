"""A handful of primitives, enough to write programs of every form: for the tests of `tracer.ir` alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from tracer.errors import ShapeError
from tracer.ir import dtypes
from tracer.ir.dtypes import F32
from tracer.ir.primitive import FAULTS, IO, NoRule, Primitive
from tracer.ir.program import Atom, Equation, Literal, Program, Source, Var, infer_types, literal
from tracer.ir.types import ArrayType, Type, array_type

NONE = NoRule("a toy has no such rule")


class Mode(Enum):
    CLIP = "clip"
    WRAP = "wrap"


@dataclass(frozen=True)
class Window:
    size: tuple[int, ...]
    dtype: Any = None


Window.__module__ = "tracer.ir.toys"  # printed as the package's own records are
RECORDS = {"Window": Window}
ENUMS = {"Mode": Mode}


def toy(name: str, infer: Any, **rest: Any) -> Primitive:
    return Primitive(name, infer, NONE, NONE, NONE, NONE, NONE, **rest)


def _same(*types: ArrayType, **_: Any) -> Type:
    if len({type.shape for type in types}) > 1:
        raise ShapeError(f"add: shapes {', '.join(map(str, types))} differ")
    promoted = dtypes.promote(*((type.dtype, type.weak) for type in types))
    assert promoted is not None
    return array_type(promoted[0], types[0].shape, promoted[1])


def _reduced(x: ArrayType, *, axes: tuple[int, ...]) -> Type:
    return array_type(x.dtype, tuple(n for axis, n in enumerate(x.shape) if axis not in axes))


def _while(*types: Type, cond: Program, body: Program, **_: Any) -> tuple[Type, ...]:
    return body.output_types


def _cond(*types: Type, branches: tuple[Program, ...]) -> tuple[Type, ...]:
    return branches[0].output_types


def _sort(*types: Type, **_: Any) -> tuple[Type, ...]:
    return types


def _checked(predicate: Type, x: Type, **_: Any) -> Type:
    return x


add_p = toy("add", _same, splat=True, commutative=True)
subtract_p = toy("subtract", _same, splat=True)
neg_p = toy("neg", lambda x, **_: x)
lt_p = toy("lt", lambda a, b: array_type(dtypes.BOOL, a.shape), splat=True)
reduce_or_p = toy("reduce_or", _reduced)
sort_p = toy("sort", _sort, multiple=True)
while_loop_p = toy("while_loop", _while, multiple=True)
cond_p = toy("cond", _cond, multiple=True)
show_p = toy("show", lambda *_, **__: (), multiple=True, effects=IO)
take_p = toy("take", _checked, effects=FAULTS, guard=0)
odd_p = toy("odd", lambda x, **_: x)  # takes any parameter

_ALL = (
    add_p, subtract_p, neg_p, lt_p, reduce_or_p, sort_p, while_loop_p, cond_p, show_p, take_p, odd_p
)  # fmt: skip
PRIMITIVES: Mapping[str, Primitive] = {p.name: p for p in _ALL}


class Writer:
    """Writes a program, equation by equation, with inferred types and lines that count up."""

    def __init__(self, *types: Type, file: str | None = "/home/me/demo.py", line: int = 1) -> None:
        self.inputs = tuple(map(Var, types))
        self.equations: list[Equation] = []
        self.file, self.line = file, line

    def __call__(self, primitive: Primitive, *inputs: Atom, **params: Any) -> Any:
        """The output variable, or the tuple of them."""
        outputs = tuple(map(Var, infer_types(primitive, inputs, params)))
        source = Source(self.file, self.line, "g") if self.file else None
        self.equations.append(Equation(primitive, inputs, params, outputs, source))
        self.line += 1
        return outputs if primitive.multiple else outputs[0]

    def program(self, *outputs: Atom, name: str = "f") -> Program:
        return Program(self.inputs, tuple(self.equations), outputs, name)


def f32(*shape: int) -> ArrayType:
    return array_type(F32, shape)


def number(value: float, dtype: Any = F32, weak: bool = False) -> Literal:
    return literal(value, dtype, weak)


def doubling(line: int = 15, name: str = "double") -> Program:
    """x + x"""
    w = Writer(f32(3), line=line)
    return w.program(w(add_p, *w.inputs, *w.inputs), name=name)


def looping(limit: float = 100.0) -> Program:
    """Doubles while any element is below the limit."""
    c = Writer(f32(3), line=15)
    below = c(lt_p, *c.inputs, number(limit))
    cond = c.program(c(reduce_or_p, below, axes=(0,)))
    w = Writer(f32(3), line=14)
    (result,) = w(while_loop_p, *w.inputs, cond=cond, body=doubling(line=17))
    return w.program(result, name="g")


def branching() -> Program:
    """Chooses between x + x and -x."""
    w = Writer(array_type(dtypes.BOOL, ()), f32(3), line=3)
    n = Writer(f32(3), line=5)
    negated = n.program(n(neg_p, *n.inputs))
    (result,) = w(cond_p, *w.inputs, branches=(doubling(line=4), negated))
    return w.program(result, name="choose")


def sorting() -> Program:
    """Sorts keys and carries their numbers along."""
    w = Writer(f32(3), array_type(dtypes.I64, (3,)), line=8)
    keys, numbers = w(sort_p, *w.inputs, dimension=0, num_keys=1)
    return w.program(keys, numbers, name="order")


def chain(length: int) -> Program:
    """A long program without nesting."""
    w = Writer(f32(8))
    x: Any = w.inputs[0]
    for _ in range(length):
        x = w(add_p, x, number(1.5))
    return w.program(x)


def scalar_of(bits: bytes, dtype: Any) -> Literal:
    return Literal(np.frombuffer(bits, dtype)[0], array_type(dtype, ()))
