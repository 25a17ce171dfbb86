"""Cases of the elementwise primitives: dtypes and parameters as in `tests/primitives/elementwise_cases.py`.

One without a line there is tried on every dtype that it takes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from tests.laws.cases import ALL, COMPLEX, FLOATS, INTEGERS, WIDE, Case, case, typed
from tests.laws.values import Array, Between, Draw, Interval, anything, direction
from tests.primitives.elementwise_cases import CASES
from tests.primitives.elementwise_cases import Case as Row
from tracer.errors import DTypeError
from tracer.ir.dtypes import BY_SHORT_NAME
from tracer.ir.primitive import Compare, Pointwise, Primitive
from tracer.ir.types import Type, size, storage_type
from tracer.primitives.catalogue import BY_NAME, ELEMENTWISE
from tracer.primitives.elementwise.special import polygamma_p

SHAPES = ((), (0,), (1,), (5,), (3, 7), (2, 0, 3), (2, 3, 4))  # in turn, beside one long enough for every vector
LONG = (133,)
LARGE = (4099,)

# Where the derivative is compared: inside the domain, away from what is not smooth. Elsewhere from 0.2 to 3.
DOMAINS = {
    "acosh": (1.2, 4.0), "asin": (-0.9, 0.9), "acos": (-0.9, 0.9), "atanh": (-0.9, 0.9), "erf_inv": (-0.9, 0.9),
    "tan": (-1.2, 1.2), "lgamma": (0.3, 5.0), "digamma": (0.3, 5.0), "neg": (-2.0, 2.0), "abs": (-2.0, 2.0),
    "sin": (-4.0, 4.0), "cos": (-4.0, 4.0), "tanh": (-2.0, 2.0), "erf": (-2.0, 2.0), "logistic": (-4.0, 4.0),
    "add": (-3.0, 3.0), "sub": (-3.0, 3.0), "mul": (-3.0, 3.0), "max": (-3.0, 3.0), "min": (-3.0, 3.0),
    "clamp": (-3.0, 3.0), "atan2": (-3.0, 3.0), "select": (-3.0, 3.0), "exp": (-3.0, 3.0), "sign": (-3.0, 3.0),
    "fma": (-3.0, 3.0), "copysign": (-3.0, 3.0), "square": (-3.0, 3.0), "hypot": (-3.0, 3.0), "exp2": (-3.0, 3.0),
    "expm1": (-3.0, 3.0), "log1p": (-0.8, 3.0), "atan": (-3.0, 3.0), "sinh": (-3.0, 3.0), "cosh": (-3.0, 3.0),
    "asinh": (-3.0, 3.0), "erfc": (-2.0, 2.0),
}  # fmt: skip


def elementwise_cases() -> Iterator[Case]:
    """Every row on every dtype it takes: one long array, one of another shape, and literals for one dtype."""
    for position, listed in enumerate((*CASES, *_unlisted())):
        row = replace(listed, dtypes=(*listed.dtypes, *COMPLEX)) if listed.name == "log2" else listed
        yield _case(row, row.dtypes[position % len(row.dtypes)], LARGE)
        for turn, short in enumerate(row.dtypes):
            last = (2,) if row.name == "bitcast_regroup" and short == "u8" else ()
            others = SHAPES[turn % len(SHAPES) :: len(row.dtypes)]  # every one of them, however few the dtypes
            for shape in (LONG, *others):
                yield _case(row, short, (*shape, *last))
            if short in WIDE:
                yield _case(row, short, ())
        if BY_NAME[row.name].splat and row.arity > 1 + row.bools:
            for position in range(row.bools, row.arity):
                for short in dict.fromkeys((row.dtypes[0], row.dtypes[-1])):
                    yield _case(row, short, (7,), literal=position)
    yield from _choices()
    yield from _changes_of_bits()
    for order in (1, 2, 3):
        for short in FLOATS:
            for shape in (LONG, SHAPES[2 * order - 1], *([LARGE] if short == "f32" else [])):
                yield case(polygamma_p, [typed(short, *shape)], _gamma_points, Interval(0.3, 4.0), order=order)
    for shape in ((), (1,)):
        yield case(polygamma_p, [typed("f64", *shape)], anything, Interval(0.3, 4.0), order=1)


def _gamma_points(rng: np.random.Generator, type: Type) -> Array:
    """From 0.3 to 6, and special values that no series is needed for."""
    chosen = rng.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, -1.0]), type.shape)
    return np.where(
        rng.random(type.shape) < 0.2, chosen.astype(storage_type(type).dtype), Interval(0.3, 6.0)(rng, type)
    )


def _unlisted() -> Iterator[Row]:
    """A row for each primitive that is one scalar operation and has no row of its own."""
    listed = {row.name for row in CASES}
    for primitive in ELEMENTWISE:
        if primitive.name not in listed and isinstance(primitive.lower, Pointwise | Compare):
            arity = primitive.lower.op.value[1].arity
            yield Row(primitive.name, arity, tuple(short for short in ALL if _takes(primitive, short, arity)))


def _takes(primitive: Primitive, short: str, arity: int) -> bool:
    try:
        primitive.infer(*[typed(short)] * arity)
    except DTypeError:
        return False
    return True


def _case(row: Row, short: str, shape: tuple[int, ...], literal: int | None = None) -> Case:
    types = [typed("bool", *shape)] * row.bools + [typed(short, *shape)] * (row.arity - row.bools)
    draws: list[Draw] = [anything] * row.arity
    if row.name in ("shift_left", "shift_right_logical", "shift_right_arithmetic"):
        draws[1] = Between(-2, 70)
    smooth: Draw = Interval(*DOMAINS.get(row.name, (0.2, 3.0)))
    literals = {} if literal is None else {literal: 1 if short in ("bool", *INTEGERS) else 1.25}
    return case(BY_NAME[row.name], types, draws, smooth if short in WIDE else None, literals=literals, **row.params)


# To floats, from integers of any bits: NaN of every payload among them.
BITS = (("u16", "f16"), ("i16", "bf16"), ("u32", "f32"), ("i32", "f32"), ("u64", "f64"), ("i64", "f64"), ("f32", "i32"),
        ("f16", "bf16"), ("f64", "i64"))  # fmt: skip
# Several elements as one, along the last axis; the way back takes it apart.
GROUPS = (("u8", 4, "u32"), ("u8", 4, "f32"), ("u8", 2, "f16"), ("i8", 2, "bf16"), ("u16", 4, "f64"), ("f32", 2, "f64"),
          ("u32", 2, "i64"), ("bf16", 2, "f32"), ("f16", 4, "u64"))  # fmt: skip


def _changes_of_bits() -> Iterator[Case]:
    convert_p, regroup_p = BY_NAME["bitcast_convert_type"], BY_NAME["bitcast_regroup"]
    for old, new in BITS:
        for shape in (LONG, (), (2, 0, 3)):
            yield case(convert_p, [typed(old, *shape)], _any_bits, new_dtype=BY_SHORT_NAME[new])
    for narrow, count, wide in GROUPS:
        for shape in ((67,), (), (0,), (3, 5)):
            for one, other, sizes in ((narrow, wide, (*shape, count)), (wide, narrow, shape)):
                yield case(regroup_p, [typed(one, *sizes)], _any_bits, new_dtype=BY_SHORT_NAME[other])


def _any_bits(rng: np.random.Generator, type: Type) -> Array:
    """Random bits, the special values of the dtype among them."""
    dtype = storage_type(type).dtype
    words = np.frombuffer(rng.bytes(size(type) * dtype.itemsize), dtype).reshape(type.shape)
    with np.errstate(invalid="ignore"):  # signalling NaN
        return np.where(rng.random(type.shape) < 0.3, anything(rng, type), words).astype(dtype)


def _choices() -> Iterator[Case]:
    """Selectors of other types and shapes, and cases that are keys."""
    select_p, select_n_p = BY_NAME["select"], BY_NAME["select_n"]
    for shape in ((), (1,), (2, 0), (37,), (2, 3), LARGE):
        for short in ("f64", "i8", "c128", "bool", "key"):
            operand = typed(short, *shape)
            smooth = direction if short in WIDE else None
            draws = None if smooth is None else [anything, smooth, smooth]
            yield case(select_p, [typed("bool"), operand, operand], anything, draws)
            for which, at in (("i32", shape), ("u8", ()), ("i64", shape)):
                draws = None if smooth is None else [Between(-1, 3), smooth, smooth, smooth]
                yield case(select_n_p, [typed(which, *at), *[operand] * 3], [Between(-1, 3), *[anything] * 3], draws)
    literals = {2: np.float64(2.5)}
    yield case(select_p, [typed("bool", 4), typed("f64", 4), typed("f64")], anything, direction, literals=literals)
