"""Loops and reductions: serial against vector, full rounds and masked ones, at every vector width."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.codegen.llvm.llvm_programs import (
    RNG,
    WIDTHS,
    at,
    constant,
    executable,
    integer,
    loop,
    module_of,
    run,
    same,
    values_of,
)
from tracer.codegen.llvm.emit.module import emit_module
from tracer.codegen.status import Status
from tracer.errors import InternalError
from tracer.ir.dtypes import BF16, BOOL, F16, F32, F64, I8, I32, I64, U32, DType, short_name
from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Carry,
    Compute,
    For,
    If,
    Load,
    LoopKind,
    Module,
    Register,
    Statement,
    Store,
    Update,
    While,
    index_constant,
)  # fmt: skip
from tracer.ir.scalar import ScalarOp

SIZES = (0, 1, 7, 16, 33, 64)


# -- reductions --------------------------------------------------------------------------------------------------


def halving(values: np.ndarray[Any, Any], lanes: int, op: Any, identity: Any, initial: Any) -> Any:
    """The rule of `tracer.ir.loop`, word for word."""
    partial = np.full(lanes, identity, values.dtype)
    for first in range(0, len(values), lanes):
        row = values[first : first + lanes]
        partial[: len(row)] = op(partial[: len(row)], row)
    while len(partial) > 1:
        half = len(partial) // 2
        partial = op(partial[:half], partial[half:])
    return op(np.asarray(initial, values.dtype), partial[0])


SUM = (ScalarOp.ADD, np.add, 0)
REDUCTIONS = [
    SUM, (ScalarOp.MUL, np.multiply, 1), (ScalarOp.MAX, np.maximum, -np.inf),
    (ScalarOp.MIN, np.minimum, np.inf),
]  # fmt: skip


def reduction(
    dtype: DType, size: int, lanes: int, initial: Any, *reductions: tuple[ScalarOp, Any, Any], known: bool = True
) -> Module:
    """Each reduction in a loop of its own, into an output of its own."""

    def reduced(a: Any, count: Register, o: Any, op: ScalarOp, identity: Any) -> list[Statement]:
        c, new, result = Register(dtype), Register(dtype), Register(dtype)
        carry = Carry(c, constant(initial, dtype), op, constant(identity, dtype))

        def rounds(i: Register) -> list[Statement]:
            x = Register(dtype)
            return [Load(x, a, at((i, 1))), Compute(new, op, (c, x))]

        stop: int | Register = size if known else count
        summing = loop(stop, rounds, lanes=lanes, carries=(carry,), yields=(new,), results=(result,))
        return [summing, Store(o, at(), result)]

    def body(a: Any, n: Any, *outputs: Any) -> list[Statement]:
        count = Register(I64)
        loops = [reduced(a, count, o, op, one) for o, (op, _, one) in zip(outputs, reductions, strict=True)]
        return [Load(count, n, at()), *(s for statements in loops for s in statements)]

    outputs = [(f"o{i}", dtype, 1, True) for i in range(len(reductions))]
    return module_of([("a", dtype, size, False), ("n", I64, 1, False), *outputs], body)


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("dtype", [F32, F64], ids=short_name)
@pytest.mark.parametrize("known", [True, False])
def test_reductions_follow_the_halving_rule_to_the_bit(dtype: DType, known: bool, bits: int) -> None:
    for lanes in (1, 4, 32):
        for most in SIZES if known else [max(SIZES)]:
            module = reduction(dtype, most, lanes, 0.5, *REDUCTIONS, known=known)
            runnable = executable(module, vector_bits=bits)
            for size in [most] if known else SIZES:
                values, found = values_of(dtype, most), [np.zeros(1, dtype) for _ in REDUCTIONS]
                runnable.run([values, np.array([size]), *found])
                for out, (op, reference, identity) in zip(found, REDUCTIONS, strict=True):
                    expected = halving(values[:size], lanes, reference, identity, 0.5)
                    assert same(out, np.array([expected])), (op, size, lanes)


def test_serial_reductions_join_the_initial_value_last() -> None:
    values, out = np.array([1e8, 1.0, -1e8], np.float32), np.zeros(1, np.float32)
    run(reduction(F32, 3, 0, 3.0, SUM), [values, np.array([3]), out])
    assert out[0] == np.float32(3.0) + ((np.float32(1e8) + np.float32(1.0)) + np.float32(-1e8))


@pytest.mark.parametrize("dtype", [F16, BF16], ids=short_name)
@pytest.mark.parametrize("lanes", [0, 8])
def test_short_floats_round_in_every_round_of_a_reduction(dtype: DType, lanes: int) -> None:
    values, out = values_of(dtype, 29), np.zeros(1, dtype)
    run(reduction(dtype, 29, lanes, 0.5, SUM), [values, np.array([29]), out])

    def add(a: Any, b: Any) -> Any:
        return np.asarray(np.asarray(a, np.float32) + np.asarray(b, np.float32)).astype(dtype)

    assert same(out, np.array([halving(values, lanes or 1, add, 0, 0.5)]).astype(dtype))


def test_boolean_reductions_join_with_and_and_or() -> None:
    for op, identity, expected in ((ScalarOp.AND, True, False), (ScalarOp.OR, False, True)):
        values, out = np.array([True] * 5 + [False] + [True] * 7), np.zeros(1, np.bool_)
        run(reduction(BOOL, 13, 4, identity, (op, None, identity)), [values, np.array([13]), out])
        assert out[0] == expected


# -- nests inside vector loops -----------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("lanes", [0, 8])
def test_an_inner_serial_loop_carries_one_value_a_lane(lanes: int, bits: int) -> None:
    rows, columns = 5, 19

    def body(a: Any, o: Any) -> list[Statement]:
        def outer(i: Register) -> list[Statement]:
            c, x, new, result, doubled = (Register(F64) for _ in range(5))

            def inner(k: Register) -> list[Statement]:
                return [Load(x, a, at((k, columns), (i, 1))), Compute(new, ScalarOp.ADD, (c, x))]

            carry = Carry(c, constant(1, F64))
            summing = loop(rows, inner, carries=(carry,), yields=(new,), results=(result,))
            return [
                summing, Compute(doubled, ScalarOp.ADD, (result, result)), Store(o, at((i, 1)), doubled),
            ]  # fmt: skip

        return [loop(columns, outer, lanes=lanes)]

    a, out = values_of(F64, rows * columns), np.zeros(columns)
    run(module_of([("a", F64, a.size, False), ("o", F64, columns, True)], body), [a, out], vector_bits=bits)
    expected = np.ones(columns)
    for row in a.reshape(rows, columns):
        expected = expected + row
    assert same(out, expected * 2)


def test_a_uniform_carry_that_turns_varying_is_found() -> None:
    """The first carry takes the second one's last value, which varies from the second round on."""

    def body(a: Any, o: Any) -> list[Statement]:
        def outer(i: Register) -> list[Statement]:
            p, q, x, p_out, q_out = (Register(F32) for _ in range(5))
            carries = (Carry(q, constant(5, F32)), Carry(p, constant(0, F32)))

            def inner(k: Register) -> list[Statement]:
                return [Load(x, a, at((i, 1)))]

            rounds = loop(3, inner, carries=carries, yields=(p, x), results=(q_out, p_out))
            return [rounds, Store(o, at((i, 1)), q_out)]

        return [loop(9, outer, lanes=4)]

    a, out = values_of(F32, 9), np.zeros(9, np.float32)
    run(module_of([("a", F32, 9, False), ("o", F32, 9, True)], body), [a, out])
    assert same(out, a)


@pytest.mark.parametrize("lanes", [0, 8])
def test_if_hands_over_uniform_and_varying_values(lanes: int) -> None:
    def body(a: Any, flag: Any, o: Any) -> list[Statement]:
        choice = Register(BOOL)

        def rounds(i: Register) -> list[Statement]:
            x, y, r = Register(F32), Register(F32), Register(F32)
            then = Block((Load(y, a, at((i, 1))),), (y,))
            return [
                Load(x, a, at()), If(choice, then, Block((), (x,)), (r,)), Store(o, at((i, 1)), r),
            ]  # fmt: skip

        return [Load(choice, flag, at()), loop(13, rounds, lanes=lanes)]

    names = [("a", F32, 13, False), ("f", BOOL, 1, False), ("o", F32, 13, True)]
    module, a = module_of(names, body), values_of(F32, 13)
    for flag in (True, False):
        out = np.zeros(13, np.float32)
        run(module, [a, np.array([flag]), out])
        assert same(out, a if flag else np.full(13, a[0]))


@pytest.mark.parametrize("lanes", [0, 8])
@pytest.mark.parametrize("masked", [False, True])
def test_updates_happen_in_order_even_on_one_element(lanes: int, masked: bool) -> None:
    count, bins = 29, 3
    indices, values = RNG.integers(0, bins, count), values_of(F32, count)
    keep = RNG.integers(0, 2, count).astype(np.bool_)

    def body(j: Any, v: Any, k: Any, o: Any, total: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            b, x, m = Register(I64), Register(F32), Register(BOOL)
            mask = m if masked else None
            return [
                Load(b, j, at((i, 1))), Load(x, v, at((i, 1))), Load(m, k, at((i, 1))),
                Update(o, at((b, 1)), ScalarOp.ADD, x, mask), Update(total, at(), ScalarOp.ADD, integer(2), mask),
            ]  # fmt: skip

        return [loop(count, rounds, lanes=lanes)]

    names = [("j", I64, count, False), ("v", F32, count, False), ("k", BOOL, count, False)]
    names += [("o", F32, bins, True), ("t", I64, 1, True)]
    out, total = np.zeros(bins, np.float32), np.zeros(1, np.int64)
    run(module_of(names, body), [indices, values, keep, out, total])
    expected = np.zeros(bins, np.float32)
    used = keep if masked else np.ones(count, np.bool_)
    for j, v in zip(indices[used], values[used], strict=True):
        expected[j] += v
    assert same(out, expected)
    assert total[0] == 2 * used.sum()


@pytest.mark.parametrize("lanes", [4, 8])
def test_updates_of_different_elements_stay_vectors(lanes: int) -> None:
    def body(v: Any, o: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            x = Register(I32)
            return [Load(x, v, at((i, 1))), Update(o, at((i, 2)), ScalarOp.IDIV, x)]

        return [loop(11, rounds, lanes=lanes)]

    v, out = np.arange(11, dtype=np.int32) - 3, np.full(22, 100, np.int32)
    run(module_of([("v", I32, 11, False), ("o", I32, 22, True)], body), [v, out])
    expected = [-1 if d == 0 else int(100 / d) for d in range(-3, 8)]
    assert out[::2].tolist() == expected
    assert (out[1::2] == 100).all()


@pytest.mark.parametrize("lanes", [1, 16, 32])
def test_the_index_itself_may_be_computed_with(lanes: int) -> None:
    def body(n: Any, o: Any) -> list[Statement]:
        count = Register(I64)

        def rounds(i: Register) -> list[Statement]:
            x, y = Register(I64), Register(F32)
            square = Compute(x, ScalarOp.MUL, (i, i))
            return [square, Compute(y, ScalarOp.CONVERT, (x,)), Store(o, at((i, 1)), y)]

        return [Load(count, n, at()), loop(count, rounds, lanes=lanes)]

    module = module_of([("n", I64, 1, False), ("o", F32, 70, True)], body)
    for count in (-3, 0, 1, 31, 32, 33, 70):
        out = np.full(70, -1, np.float32)
        run(module, [np.array([count]), out])
        assert out.tolist() == [i * i if i < count else -1 for i in range(70)]


@pytest.mark.parametrize("lanes", [1, 16, 64])
@pytest.mark.parametrize("dtype", [I8, I32, U32, I64], ids=short_name)
def test_what_counts_by_lane_is_counted_in_its_own_width(dtype: DType, lanes: int) -> None:
    def body(o: Any, q: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            further, back, narrow = Register(I64), Register(I64), Register(dtype)
            twice = Register(I64)
            return [
                Compute(further, ScalarOp.ADD, (integer(300), i)),
                Compute(narrow, ScalarOp.CONVERT, (further,)),
                Compute(twice, ScalarOp.ADD, (further, i)),
                Compute(back, ScalarOp.CONVERT, (narrow,)),
                Store(o, at((i, 1)), back),
                Store(q, at((i, 1)), twice),
            ]

        return [loop(150, rounds, lanes=lanes)]

    narrow, twice = np.zeros(150, np.int64), np.zeros(150, np.int64)
    run(module_of([("o", I64, 150, True), ("q", I64, 150, True)], body), [narrow, twice])
    assert same(narrow, np.arange(300, 450).astype(dtype).astype(np.int64))
    assert same(twice, 300 + 2 * np.arange(150))


def test_serial_loops_step_both_ways_and_may_be_empty() -> None:
    for start, stop, step in ((0, 10, 3), (9, -1, -2), (5, 5, 1), (6, 5, 1), (0, 5, -1), (-4, 3, 7)):

        def body(n: Any, o: Any, start: int = start, step: int = step) -> list[Statement]:
            end, c, new, result = (Register(I64) for _ in range(4))

            def rounds(i: Register) -> list[Statement]:
                thrice = Register(I64)
                return [Compute(thrice, ScalarOp.MUL, (c, integer(3))), Compute(new, ScalarOp.ADD, (thrice, i))]

            carry = Carry(c, integer(1))
            counting = loop(end, rounds, start=start, step=step, carries=(carry,), yields=(new,), results=(result,))
            return [Load(end, n, at()), counting, Store(o, at(), result)]

        out, expected = np.zeros(1, np.int64), 1
        run(module_of([("n", I64, 1, False), ("o", I64, 1, True)], body), [np.array([stop]), out])
        for k in range(start, stop, step):
            expected = expected * 3 + k
        assert out[0] == expected


def test_while_hands_its_carries_over_together() -> None:
    """Fibonacci: each carry's next value is computed from both old ones."""

    def body(n: Any, o: Any) -> list[Statement]:
        limit, a, b, s, more, ra, rb = (Register(I64) for _ in range(7))
        more = Register(BOOL)
        condition = Block((Compute(more, ScalarOp.LT, (a, limit)),), (more,))
        step = Block((Compute(s, ScalarOp.ADD, (a, b)),), (b, s))
        return [
            Load(limit, n, at()),
            While((Carry(a, integer(0)), Carry(b, integer(1))), condition, step, (ra, rb)),
            Store(o, at(), ra), Store(o, at(constant=1), rb),
        ]  # fmt: skip

    out = np.zeros(2, np.int64)
    run(module_of([("n", I64, 1, False), ("o", I64, 2, True)], body), [np.array([100]), out])
    assert out.tolist() == [144, 233]


def test_loops_three_deep_address_as_numpy_does() -> None:
    shape, strides = (3, 4, 21), (1, 63, 3)

    def body(a: Any, o: Any) -> list[Statement]:
        def first(i: Register) -> list[Statement]:
            def second(j: Register) -> list[Statement]:
                def third(k: Register) -> list[Statement]:
                    x = Register(F32)
                    where = at((i, strides[0]), (j, strides[1]), (k, strides[2]))
                    return [Load(x, a, where), Store(o, at((i, 84), (j, 21), (k, 1)), x)]

                return [loop(shape[2], third, lanes=8)]

            return [loop(shape[1], second)]

        return [loop(shape[0], first)]

    a, out = values_of(F32, 252), np.zeros(252, np.float32)
    run(module_of([("a", F32, 252, False), ("o", F32, 252, True)], body), [a, out])
    assert same(out.reshape(shape), np.ascontiguousarray(a.reshape(4, 21, 3).transpose(2, 0, 1)))


def test_products_and_sums_are_not_contracted() -> None:
    a = np.array([1 + 2.0**-12] * 16, np.float32)

    def body(x: Any, o: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            p, q, r = Register(F32), Register(F32), Register(F32)
            minus = constant(-(1 + 2.0**-11), F32)
            return [
                Load(p, x, at((i, 1))), Compute(q, ScalarOp.MUL, (p, p)), Compute(r, ScalarOp.ADD, (q, minus)),
                Store(o, at((i, 1)), r),
            ]  # fmt: skip

        return [loop(16, rounds, lanes=16)]

    out = np.ones(16, np.float32)
    run(module_of([("a", F32, 16, False), ("o", F32, 16, True)], body), [a, out])
    assert (out == 0).all()


# -- refusals ----------------------------------------------------------------------------------------------------


def refused(body: Any) -> str:
    with pytest.raises(InternalError) as error:
        emit_module(module_of([("o", F32, 4, True)], body))
    return str(error.value)


def test_what_a_cpu_cannot_run_is_refused() -> None:
    def nested(i: Register) -> list[Statement]:
        return [loop(4, lambda j: [], lanes=4)]

    assert "a vector loop inside a vector loop" in refused(lambda o: [loop(4, nested, lanes=4)])
    block = For(Register(I64, "b"), index_constant(0), index_constant(4), Block(()), LoopKind.BLOCK)
    assert "block loop is for GPUs" in refused(lambda o: [block])
    x = Register(F32)
    assert "exp of f32 should have been expanded" in refused(lambda o: [Compute(x, ScalarOp.EXP, (constant(1, F32),))])


def test_stores_under_a_predicate_that_varies_by_lane_are_refused() -> None:
    def rounds(o: Buffer) -> Callable[[Register], list[Statement]]:
        def body(i: Register) -> list[Statement]:
            p = Register(BOOL)
            store = Store(o, Address(), constant(1, o.dtype))
            return [Compute(p, ScalarOp.LT, (i, integer(2))), If(p, Block((store,)))]

        return body

    assert "an If whose predicate varies by lane" in refused(lambda o: [loop(4, rounds(o), lanes=4)])


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("first", [0, 3, 100])
def test_a_predicate_that_varies_by_lane_chooses_by_lane(bits: int, first: int) -> None:
    """Lanes from `first` on take the arm that computes; none of them does where that is 100."""

    def body(o: Buffer) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            p, square, result = Register(BOOL), Register(I64), Register(I64)
            then = Block((Compute(square, ScalarOp.MUL, (i, i)),), (square,))
            return [
                Compute(p, ScalarOp.LE, (integer(first), i)),
                If(p, then, Block((), (i,)), (result,)),
                Store(o, at((i, 1)), result),
            ]

        return [loop(11, rounds, lanes=4)]

    out = np.zeros(11, np.int64)
    assert run(module_of([("o", I64, 11, True)], body), [out], vector_bits=bits)[0] == Status.DONE
    i = np.arange(11)
    np.testing.assert_array_equal(out, np.where(i >= first, i * i, i))


@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("count", [32, 45])
@pytest.mark.parametrize("first", [0, 30, 100])
def test_a_long_arm_of_a_wide_loop_is_written_for_some_lanes_at_a_time(bits: int, count: int, first: int) -> None:
    """Twenty additions of the square of an element and a number that all lanes share, from `first` on."""

    def body(o: Buffer, x: Buffer) -> list[Statement]:
        shared = Register(F64)

        def rounds(i: Register) -> list[Statement]:
            p, value, square, result, other = Register(BOOL), Register(F64), Register(F64), Register(F64), Register(F64)
            steps: list[Statement] = [Compute(square, ScalarOp.MUL, (value, value))]
            total = square
            for _ in range(20):
                following = Register(F64)
                steps.append(Compute(following, ScalarOp.ADD, (total, shared)))
                total = following
            usual = Block((), (value, constant(5, F64)))
            arm = If(p, Block(tuple(steps), (total, square)), usual, (result, other), outlined=True)
            return [
                Load(value, x, at((i, 1))),
                Compute(p, ScalarOp.LE, (constant(first, F64), value)),
                arm,
                Store(o, at((i, 2)), result),
                Store(o, Address(1, ((i, 2),)), other),
            ]

        return [Load(shared, x, Address(1)), loop(count, rounds, lanes=32)]

    x, out = np.arange(count, dtype=np.float64), np.zeros(2 * count)
    module = module_of([("o", F64, 2 * count, True), ("x", F64, count, False)], body)
    assert re.search(r"^part\S*:$", emit_module(module, vector_bits=bits), re.MULTILINE)
    assert run(module, [out, x], vector_bits=bits)[0] == Status.DONE
    np.testing.assert_array_equal(out[::2], np.where(x >= first, x * x + 20, x))
    np.testing.assert_array_equal(out[1::2], np.where(x >= first, x * x, 5))


@pytest.mark.parametrize("n", [3, 10, 24, 1000])
def test_short_loops_are_written_out_where_they_are_called(n: int) -> None:
    """Elementwise over (2, n) after a reduction of it, neither a power of two nor a multiple of the lanes."""
    x = np.random.default_rng(n).standard_normal((2, n))
    f = tracer.jit(lambda x: x / tnp.sum(x * x, axis=1, keepdims=True) - 1)
    text = str(f.lower(x).llvm())
    assert ("= phi i64" in text, text.count("define internal")) == ((True, 1) if n == 1000 else (False, 0))
    np.testing.assert_allclose(np.asarray(f(x)), x / np.sum(x * x, axis=1, keepdims=True) - 1, rtol=1e-14)
