"""Programs, literals and parameters at random, for hypothesis. The programs are well formed."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import strategies as st

from tests.ir import toys
from tracer.ir import dtypes
from tracer.ir.program import Atom, Literal, Program, Source
from tracer.ir.types import ArrayType, Float0Type, KeyType, StackType, Type, array_type

SHAPES = st.lists(st.integers(0, 5), max_size=3).map(tuple)
DTYPES = st.sampled_from(dtypes.ALL)
ARRAY_TYPES: st.SearchStrategy[ArrayType] = st.builds(array_type, DTYPES, SHAPES, st.booleans())
TYPES: st.SearchStrategy[Type] = st.one_of(
    ARRAY_TYPES, st.builds(KeyType, SHAPES), st.builds(Float0Type, SHAPES), st.builds(StackType, ARRAY_TYPES)
)
FILES = st.sampled_from(["demo.py", "/home/my notes.py", "C:\\work\\heat.py", "<ipython-input-3>", "#1.py"])
SOURCES = st.none() | st.builds(Source, FILES, st.integers(0, 10**6), st.just(""))
NAMES = st.sampled_from(["f", "heat_step", "<lambda>", "Model.loss", "two words", 'a"b\n', "scan[3]", ""])


@st.composite
def literals(draw: st.DrawFn) -> Literal:
    """A literal of any dtype and any bits, the odd NaNs included."""
    dtype = draw(DTYPES)
    if dtypes.is_bool(dtype):
        bits = bytes([draw(st.integers(0, 1))])
    else:
        usual = st.integers(-3, 3).map(lambda n: np.asarray(n / 2).astype(dtype).tobytes())
        if dtypes.is_unsigned(dtype):
            usual = st.integers(0, 9).map(lambda n: np.asarray(n, dtype).tobytes())
        bits = draw(usual | st.binary(min_size=dtype.itemsize, max_size=dtype.itemsize))
        if dtypes.is_narrow(dtype):
            bits = bytes([bits[0] & (1 << dtypes.bits(dtype)) - 1])
    return Literal(np.frombuffer(bits, dtype)[0], array_type(dtype, (), draw(st.booleans())))


_LEAVES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.complex_numbers(),
    st.text(),
    DTYPES,
    TYPES,
    literals().map(lambda literal: literal.value),
    st.sampled_from(toys.Mode),
    st.sampled_from(list(toys.PRIMITIVES.values())),
    st.builds(toys.Window, st.tuples(st.integers())),
)
PARAMS = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=3).map(tuple) | st.dictionaries(st.text(), inner, max_size=2),
    max_leaves=6,
)


@st.composite
def programs(draw: st.DrawFn, depth: int = 2) -> Program:
    """A program of toys; `depth` levels of nested programs at most."""
    w = toys.Writer(*draw(st.lists(TYPES, max_size=3)), file=None)
    known: list[Any] = list(w.inputs)

    def atom() -> Atom:
        return draw(st.sampled_from(known) | literals() if known else literals())

    for _ in range(draw(st.integers(0, 5))):
        choice = draw(st.sampled_from(["odd", "sort", "show", "while_loop", "cond"][: 5 if depth else 3]))
        operands = [atom() for _ in range(draw(st.integers(0, 3)))]
        if choice == "odd":
            params = draw(st.dictionaries(st.sampled_from(["a", "axes", "mode"]), PARAMS, max_size=2))
            if depth and draw(st.booleans()):
                params["rules"] = (None, draw(programs(depth=0)), 3)
            known.append(w(toys.odd_p, atom(), **params))
        elif choice == "while_loop":
            nested = {name: draw(programs(depth=depth - 1)) for name in ("cond", "body")}
            known += w(toys.while_loop_p, *operands, **nested, limit=draw(st.none() | st.integers(0)))
        elif choice == "cond":
            branches = tuple(draw(programs(depth=depth - 1)) for _ in range(draw(st.integers(1, 3))))
            known += w(toys.cond_p, *operands, branches=branches)
        else:
            known += w(toys.PRIMITIVES[choice], *operands)
    placed = [e.__class__(e.primitive, e.inputs, e.params, e.outputs, draw(SOURCES)) for e in w.equations]
    outputs = tuple(atom() for _ in range(draw(st.integers(0, 3))))
    return Program(w.inputs, tuple(placed), outputs, draw(NAMES))
