"""One program for every rule of `simplify`, and some where a rule must not apply."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from tests.passes.programs import array, c128, f32, f64, flag, i32, i64
from tracer.ir import dtypes
from tracer.ir.types import KeyType, Type
from tracer.primitives.arrays.dynamic_slice import dynamic_slice_p, dynamic_update_slice
from tracer.primitives.arrays.indexing.checked_indices import checked_indices
from tracer.primitives.arrays.indexing.dimension_numbers import Bound, GatherDimensionNumbers, ScatterDimensionNumbers
from tracer.primitives.arrays.indexing.gather import gather, scatter_add
from tracer.primitives.arrays.indexing.scatter import scatter
from tracer.primitives.arrays.random import random_unwrap, random_wrap
from tracer.primitives.arrays.reductions.reductions import argmax, reduce_max, reduce_or, reduce_prod
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, pad, slice
from tracer.primitives.arrays.sliding_windows import sliding_windows
from tracer.primitives.base.broadcasting import broadcast_in_dim, full, reduce_sum
from tracer.primitives.base.shapes import copy, reshape_p, rev_p, squeeze, transpose, transpose_p
from tracer.primitives.control.effects import check_p
from tracer.primitives.elementwise.arithmetic import add, clamp, div, max, min, mul, neg, sub
from tracer.primitives.elementwise.bits import (
    and_,
    not_,
    or_,
    shift_left,
    shift_right_arithmetic,
    shift_right_logical,
    xor,
)
from tracer.primitives.elementwise.comparison import eq, ge, gt, le, lt, ne, select
from tracer.primitives.elementwise.complex import abs, complex, conj, imag, real
from tracer.primitives.elementwise.conversion import bitcast_convert_type, convert_element_type
from tracer.primitives.elementwise.powers import integer_pow
from tracer.primitives.elementwise.rounding import ceil, floor, rem
from tracer.primitives.linalg.dot_general import dot_general
from tracer.trace.trace import as_literal, bind, bind_all

U8 = dtypes.BY_SHORT_NAME["u8"]
I8 = dtypes.I8


class Case(NamedTuple):
    title: str
    function: Callable[..., Any]
    types: tuple[Type, ...]


def reshape(x: Any, *sizes: int) -> Any:
    return bind(reshape_p, x, new_sizes=sizes)


def permute(x: Any, *order: int) -> Any:
    return bind(transpose_p, x, permutation=order)


def turn(x: Any, *axes: int) -> Any:
    return bind(rev_p, x, dimensions=axes)


def window(x: Any, *starts: Any, sizes: tuple[int, ...]) -> Any:
    literals = [as_literal(s, dtypes.I32) if isinstance(s, int) else s for s in starts]
    return bind(dynamic_slice_p, x, *literals, slice_sizes=sizes)


ROWS = GatherDimensionNumbers(offset_dims=(1,), collapsed_slice_dims=(0,), start_index_map=(0,))
POINT = GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0, 1), start_index_map=(0, 1))
LANES = ScatterDimensionNumbers((), (1,), (1,), (0,), (0,))
ADD_ROWS = ScatterDimensionNumbers((1,), (0,), (0,))


def pick_row(x: Any, at: int, **options: Any) -> Any:
    return gather(x, full((2, 1), at, dtypes.I64), ROWS, (1, 3), **options)


def pick_point(x: Any) -> Any:
    place = concatenate([full((1,), 1, dtypes.I64), full((1,), 2, dtypes.I64)], 0)
    return gather(x, place, POINT, (1, 1))


def number(p: Any) -> Any:
    return convert_element_type(p, dtypes.I32)


def by_lane(mask: Any) -> Any:
    return broadcast_in_dim(mask, (3, 5), (0,))


def put(x: Any, n: Any, u: Any, mode: str = "clip", **options: Any) -> Any:
    return scatter(x, n, u, LANES, mode=mode, **options)


def add_to(x: Any, n: Any, u: Any) -> Any:
    return scatter_add(x, n, u, LANES, mode="fill")


def check_true(x: Any) -> Any:
    bind_all(check_p, [as_literal(True), as_literal(True)], {"text": "never"})
    return x


ARITHMETIC = (
    Case("zero added to integers", lambda x: (add(x, 0), add(0, x), sub(x, 0)), (i64(8),)),
    Case("minus zero added to floats", lambda x: (add(x, -0.0), add(-0.0, x), sub(x, 0.0)), (f64(13),)),
    Case("plus zero added to floats stays", lambda x: (add(x, 0.0), sub(x, -0.0)), (f64(13),)),
    Case("complex zeros", lambda z: (add(z, builtins.complex(-0.0, -0.0)), sub(z, 0j), mul(z, 1 + 0j)), (c128(49),)),
    Case("integers less themselves", lambda x: (sub(x, x), sub(0, x)), (i32(8),)),
    Case("floats less themselves stay", lambda x: (sub(x, x), sub(0.0, x), mul(x, 0.0)), (f64(13),)),
    Case("ones", lambda x, n: (mul(x, 1.0), mul(1.0, x), div(x, 1.0), div(n, 1)), (f32(13), i64(8))),
    Case("integers by zero", lambda x: (mul(x, 0), mul(0, x)), (i64(8),)),
    Case("halves and quarters", lambda x: (div(x, 4.0), div(x, -0.5), div(x, 3.0), div(x, 0.0)), (f64(13),)),
    Case("a power of two without a reciprocal stays", lambda x: div(x, 2.0**-1040), (f64(13),)),
    Case("signs undone", lambda x, p, z: (neg(neg(x)), not_(not_(p)), conj(conj(z))), (f64(13), flag(5), c128(9))),
    Case("rounded twice", lambda x: (floor(floor(x)), ceil(floor(x))), (f64(13),)),
    Case("sizes", lambda x: (abs(abs(x)), abs(neg(x))), (f64(13),)),
    Case("extremes", lambda x, n: (max(x, x), max(x, -np.inf), min(x, np.inf), max(n, 0)), (f64(13), array(U8, 8))),
    Case("clamped by nothing", lambda x: clamp(-np.inf, x, np.inf), (f64(13),)),
    Case("powers 0 and 1", lambda x: (integer_pow(x, 0), integer_pow(x, 1)), (f64(13),)),
    Case("bits and none", lambda n: (and_(n, 0), or_(0, n), xor(n, 0)), (i64(8),)),
    Case("bits and all", lambda n, p: (and_(n, -1), or_(-1, n), xor(n, -1), and_(p, True)), (i64(8), flag(5))),
    Case("bits and the same", lambda n: (and_(n, n), or_(n, n), xor(n, n)), (i64(8),)),
    Case(
        "shifts by nothing",
        lambda n: (shift_left(n, 0), shift_right_logical(n, 0), shift_right_arithmetic(n, 0)), (i64(8),),
    ),
)  # fmt: skip

SELECT_RULES = (
    Case("integers compared with themselves", lambda n: (eq(n, n), ne(n, n), lt(n, n), ge(n, n)), (i64(8),)),
    Case("floats compared with themselves", lambda x: (eq(x, x), lt(x, x), ne(x, x)), (f64(13),)),
    Case("compared with limits", lambda n: (lt(n, 0), ge(n, 0), gt(n, 255), le(n, 255), lt(n, 1)), (array(U8, 8),)),
    Case("chosen for certain", lambda p, x: (select(p, x, x), select(p, 1.5, 1.5)), (flag(13), f64(13))),
    Case("chosen by negation", lambda p, x, y: select(not_(p), x, y), (flag(13), f64(13), f64(13))),
    Case(
        "chosen by a negation that is broadcast",
        lambda p, x, y: select(broadcast_in_dim(not_(p), (3, 5), (0,)), x, y), (flag(3), f64(3, 5), f64(3, 5)),
    ),
    Case(
        "flags as numbers",
        lambda p: [eq(min(max(number(p), 0), 1), n) for n in (0, 1, 2)] + [ne(0, number(p)), ne(number(p), 1)],
        (flag(5),),
    ),
    Case("extremes of flags that stay", lambda p: (max(number(p), 1), min(0, number(p))), (flag(5),)),
    Case("truth chosen", lambda p, q: (select(p, eq(q, q), False), select(p, False, True)), (flag(5), i32(5))),
    Case("chosen again", lambda p, x, y: select(p, select(p, x, y), select(p, 2.0, x)), (flag(13), f64(13), f64(13))),
    Case("conversions to the same", lambda x: convert_element_type(add(x, 1.0), dtypes.F64), (f64(13),)),
    Case(
        "conversions that lose nothing",
        lambda n, x: (
            convert_element_type(convert_element_type(n, dtypes.F64), dtypes.F32),
            convert_element_type(convert_element_type(n, dtypes.F64), dtypes.I32),
            convert_element_type(convert_element_type(x, dtypes.C64), dtypes.I32),
        ), (i32(8), f32(13)),
    ),
    Case(
        "conversions that lose stay",
        lambda n, x: (
            convert_element_type(convert_element_type(n, dtypes.F64), dtypes.I8),  # saturates, where i32 to i8 wraps
            convert_element_type(convert_element_type(n, dtypes.F32), dtypes.F64),
            convert_element_type(convert_element_type(x, dtypes.F32), dtypes.F16),
        ), (i32(8), f64(13)),
    ),
    Case(
        "bits read again",
        lambda x: (
            bitcast_convert_type(bitcast_convert_type(x, np.int64), np.float64),
            bitcast_convert_type(bitcast_convert_type(x, np.int64), np.uint64),
        ), (f64(13),),
    ),
    Case(
        "parts of parts",
        lambda x, y: (real(complex(x, y)), imag(complex(x, y)), imag(complex(x, 0.0))), (f64(9), f64(9)),
    ),
    Case("parts put together", lambda z: complex(real(z), imag(z)), (c128(49),)),
)  # fmt: skip

LAYOUTS = (
    Case(
        "one value moved",
        lambda x: (reshape(full((4, 3), 1.5), 12), permute(broadcast_in_dim(x, (2, 3), ()), 1, 0)), (f64(),),
    ),
    Case("nothing moved", lambda x: reshape(x, 0, 5), (f64(5, 0),)),
    Case("a copy", copy, (f64(13),)),
    Case("keys", lambda k: random_wrap(random_unwrap(k)), (KeyType((3,)),)),
    Case("reshapes", lambda x: (reshape(reshape(x, 6), 3, 2), reshape(reshape(x, 6), 2, 3)), (f64(2, 3),)),
    Case("ones inserted and dropped", lambda x: (reshape(x, 2, 1, 3), reshape(reshape(x, 1, 6, 1), 6)), (f64(2, 3),)),
    Case("ones in other places", lambda x: reshape(x, 3, 1), (f64(1, 3),)),
    Case("broadcasts", lambda x: broadcast_in_dim(broadcast_in_dim(x, (3, 2), (0,)), (4, 3, 2), (1, 2)), (f64(3),)),
    Case("squeezes", lambda x: squeeze(squeeze(x, (0,)), (1,)), (f64(1, 3, 1),)),
    Case("a squeeze of a reshape", lambda x: squeeze(reshape(x, 1, 6), (0,)), (f64(2, 3),)),
    Case(
        "a squeeze of a broadcast",
        lambda x, y: (
            squeeze(broadcast_in_dim(x, (3, 1), (0,)), (1,)),
            squeeze(broadcast_in_dim(y, (1, 5), (0, 1)), (0,)),
        ), (f64(3), f64(1, 1)),
    ),
    Case(
        "transposes",
        lambda x: (permute(permute(x, 1, 2, 0), 1, 2, 0), permute(permute(x, 1, 0, 2), 1, 0, 2)), (f64(2, 3, 2),),
    ),
    Case("a transpose of a broadcast", lambda x: permute(broadcast_in_dim(x, (2, 3), (1,)), 1, 0), (f64(3),)),
    Case(
        "a transpose that turns a broadcast's axes stays",
        lambda x: permute(broadcast_in_dim(x, (4, 2, 3), (1, 2)), 2, 0, 1), (f64(2, 3),),
    ),
    Case(
        "a transpose of inserted axes",
        lambda x: permute(broadcast_in_dim(x, (2, 1, 3), (0, 2)), 2, 1, 0), (f64(2, 3),),
    ),
    Case("windows of a transpose", lambda x: sliding_windows(permute(x, 1, 0), (1,), (2,), (1,), (1,)), (f64(5, 3),)),
    Case("long windows", lambda x: sliding_windows(x, (0, 1), (6, 5), (1, 1), (2, 2)), (f64(13, 11),)),
    Case("windows that end early stay", lambda x: sliding_windows(x, (0,), (3,), (7,), (1,)), (f64(12),)),
    Case("a transpose of ones", lambda x: transpose(x, (1, 0, 2)), (f64(1, 3, 2),)),
    Case("turned twice", lambda x: (turn(turn(x, 0), 0), turn(turn(x, 0), 0, 1), turn(x, 2, 1)), (f64(2, 3, 1),)),
    Case("slices", lambda x: slice(slice(x, (1,), (11,), (2,)), (1,), (5,), (3,)), (f64(13),)),
    Case("a slice of all", lambda x: slice(x, (0,), (13,)), (f64(13,),)),
    Case("a slice of a part", lambda x, y: slice(concatenate([x, y], 0), (4,), (6,)), (f64(3), f64(4))),
    Case("a slice of two parts stays", lambda x, y: slice(concatenate([x, y], 0), (2,), (6,)), (f64(3), f64(4))),
    Case("empty parts", lambda x, y: (concatenate([x, y, x], 0), concatenate([x, y], 0)), (f64(3), f64(0))),
    Case("parts of one value", lambda: concatenate([full((2,), 1.5), full((3,), 1.5)], 0), ()),
    Case("parts put together", lambda x: concatenate([slice(x, (0,), (2,)), slice(x, (2,), (13,))], 0), (f64(13),)),
    Case("padded by nothing", lambda x: (pad(x, 0.0, [(0, 0, 0)]), pad(x, 0.0, [(-1, -2, 0)])), (f64(13),)),
    Case("padded with itself", lambda: pad(full((2,), 1.5), 1.5, [(1, 2, 3)]), ()),
)  # fmt: skip

INDEXING = (
    Case("a dynamic slice of all", lambda x, n: window(x, n, n, sizes=(2, 3)), (f64(2, 3), i64())),
    Case("a dynamic slice at literals", lambda x, n: window(x, 1, n, sizes=(1, 3)), (f64(2, 3), i64())),
    Case("a dynamic slice beyond the end", lambda x: window(x, 9, sizes=(2,)), (f64(5),)),
    Case("all updated", lambda x, y, n: dynamic_update_slice(x, y, [n]), (f64(5), f64(5), i64())),
    Case(
        "a gather at a literal",
        lambda x: (pick_row(x, 1), pick_row(x, 7, mode="clip"), pick_row(x, 7, mode="fill")), (f64(2, 3),),
    ),
    Case("a gather of a point", pick_point, (f64(2, 3),)),
    Case("a gather of nothing", lambda x, n: gather(x, n, ROWS, (1, 3), predicate=False), (f64(2, 3), i64(4, 1))),
    Case(
        "a scatter of nothing",
        lambda x, n, u: scatter_add(x, n, u, ADD_ROWS, predicate=False), (f64(2, 3), i64(4, 1), f64(4, 3)),
    ),
    Case(
        "lanes of updates",
        lambda m, x, n, u: (
            select(by_lane(m), put(x, n, u), x), select(not_(by_lane(m)), x, add_to(put(x, n, u), n, u)),
        ),
        (flag(3), f64(3, 5), i64(3, 2, 1), f64(3, 2)),
    ),
    Case(
        "updates where more than the choice holds",
        lambda m, p, x, n, u: select(
            by_lane(m),
            put(x, clamp(0, n, 4), u, mode="checked", predicate=and_(p, broadcast_in_dim(m, (3, 2), (0,)))), x,
        ),
        (flag(3), flag(3, 2), f64(3, 5), i64(3, 2, 1), f64(3, 2)),
    ),
    Case(
        "updates where a predicate holds",
        lambda m, p, q, x, n, u: (
            select(by_lane(m), put(x, n, u, predicate=p), x), select(by_lane(m), put(x, n, u, predicate=q), x),
            select(q, put(x, n, u, predicate=p), x), select(q, put(x, n, u, predicate=q), x),
        ),
        (flag(3), flag(3, 2), flag(), f64(3, 5), i64(3, 2, 1), f64(3, 2)),
    ),
    Case(
        "choices within updates, of checked ones and between others stay",
        lambda m, w, x, n, u: (
            select(w, put(x, n, u), x), select(by_lane(m), put(x, clamp(0, n, 4), u, mode="checked"), x),
            select(by_lane(m), put(x, n, u), add(x, 1.0)), select(by_lane(m), x, put(x, n, u)),
        ),
        (flag(3), flag(3, 5), f64(3, 5), i64(3, 2, 1), f64(3, 2)),
    ),
    Case("a check that holds", check_true, (f64(3),)),
)  # fmt: skip

TRIVIAL_REDUCTIONS = (
    Case(
        "one element reduced",
        lambda x: (reduce_sum(x, (1,)), reduce_prod(x, (1,)), reduce_max(x, (1, 2))), (f64(13, 1, 1),),
    ),
    Case("one integer summed", lambda n: reduce_sum(n, (0,)), (i64(1, 8),)),
    Case("sums of sums of floats stay", lambda x: reduce_sum(reduce_sum(x, (2,)), (0,)), (f64(2, 3, 2),)),
    Case(
        "extremes of broadcasts",
        lambda x, p: (
            reduce_max(broadcast_in_dim(x, (4, 3), (1,)), (0,)),
            reduce_or(broadcast_in_dim(p, (4, 5), (0,)), (0, 1)),
        ), (f64(3), flag(4)),
    ),
    Case("the place of one", lambda x: argmax(x, 1), (f64(3, 1),)),
)  # fmt: skip

TRANSPOSE_FOLDING = (
    Case(
        "a product of transposes",
        lambda x, y: dot_general(permute(x, 1, 0), permute(y, 1, 0), (((1,), (0,)), ((), ()))), (f64(3, 2), f64(4, 3)),
    ),
    Case(
        "a product of transposed stacks",
        lambda x, y: dot_general(x, permute(y, 0, 2, 1), (((2,), (1,)), ((0,), (0,)))), (f64(5, 2, 3), f64(5, 4, 3)),
    ),
    Case(
        "a product of what is transposed otherwise stays",
        lambda x, y: dot_general(permute(x, 2, 1, 0), y, (((2,), (1,)), ((0,), (0,)))), (f64(3, 2, 5), f64(5, 3, 4)),
    ),
)  # fmt: skip

COLUMN = GatherDimensionNumbers(offset_dims=(), collapsed_slice_dims=(0,), start_index_map=(0,))


def within(n: Any, last: int) -> Any:
    return min(last, max(0, n))


def from_end(n: Any, size: int) -> Any:
    return select(lt(n, 0), add(n, size), n)


def pairs(n: Any, m: Any) -> Any:
    return concatenate([reshape(n, *n.shape, 1), reshape(m, *m.shape, 1)], n.ndim)


def take(x: Any, n: Any, **options: Any) -> Any:
    return gather(x, reshape(n, *n.shape, 1), COLUMN, (1,), **options)


RANGES = (
    Case(
        "comparisons that ranges decide",
        lambda n, b: (
            lt(within(n, 4), 0), le(0, within(n, 4)), gt(within(n, 4), 4), ge(5, within(n, 4)),
            eq(convert_element_type(b, dtypes.I64), -1), ne(rem(n, 3), 3),
        ),
        (i64(8), array(U8, 4)),
    ),
    Case(
        "comparisons at the ends of ranges stay",
        lambda n: (
            lt(within(n, 4), 1), le(1, within(n, 4)), gt(within(n, 4), 3), ge(3, within(n, 4)), eq(within(n, 4), 4),
            ne(rem(n, 3), -2), lt(rem(n, 3), 0),
        ),
        (i64(8),),
    ),
    Case(
        "sums that may wrap are of any size",
        lambda n, m: (lt(add(max(n, 0), 1), 0), gt(neg(min(n, 0)), -1), lt(sub(max(m, 0), 1), 0), lt(mul(m, m), 0)),
        (i64(8), i32(8)),
    ),
    Case("extremes within ranges", lambda n: (max(within(n, 4), 0), min(7, within(n, 4)), max(n, 7)), (i64(8),)),
    Case(
        "indices within bounds",
        lambda x, n, b: (
            take(x, within(n, 4)), take(x, from_end(rem(n, 5), 5)), take(x, and_(n, 3)), take(x, rem(max(n, 0), 5)),
            take(x, convert_element_type(and_(b, U8.type(3)), dtypes.I64)),
        ),
        (f64(5), i64(8), array(U8, 4)),
    ),
    Case(
        "pairs of indices within bounds",
        lambda x, n: gather(x, pairs(within(n, 2), within(n, 4)), POINT, (1, 1)), (f64(3, 5), i64(8)),
    ),
    Case(
        "updates at indices within bounds",
        lambda x, n, u: scatter_add(x, reshape(within(n, 2), 8, 1), u, ADD_ROWS), (f64(3, 5), i64(8), f64(8, 5)),
    ),
    Case(
        "checked indices within bounds",
        lambda n, p: checked_indices(reshape(within(n, 2), 8, 1), p, (Bound(2, 0, 3),)), (i64(8), flag()),
    ),
)  # fmt: skip

CASES = (*ARITHMETIC, *SELECT_RULES, *LAYOUTS, *INDEXING, *TRIVIAL_REDUCTIONS, *TRANSPOSE_FOLDING, *RANGES)
