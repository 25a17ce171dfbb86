"""The interpreter of loop IR: values, lanes, threads, effects, and the faults of programs that it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm import llvm_programs
from tests.ir.loop.programs import (
    elementwise,
    gather,
    module_of,
    newton,
    operand,
    result,
    row_sums,
    softmax,
)  # fmt: skip
from tracer.codegen.reference.frame import FaultRecord
from tracer.codegen.reference.interpreter import Order, Outcome, interpret
from tracer.codegen.status import Status
from tracer.errors import InternalError
from tracer.ir.dtypes import BOOL, C64, F32, F64, I32, I64
from tracer.ir.loop import Buffer, Function, LoopKind, Module, ShuffleKind, Space, index_constant
from tracer.ir.loop.build import Builder, address, carry, constant, reduction, view
from tracer.ir.scalar import ScalarOp

Array = np.ndarray[Any, Any]
ADD, MUL, LT, EQ, IREM = ScalarOp.ADD, ScalarOp.MUL, ScalarOp.LT, ScalarOp.EQ, ScalarOp.IREM
DONE = Outcome(Status.DONE)
VECTOR, BLOCK, THREAD, PARALLEL = LoopKind.VECTOR, LoopKind.BLOCK, LoopKind.THREAD, LoopKind.PARALLEL


def violation(module: Module, arrays: Sequence[Array], **options: Any) -> str:
    """What the interpreter says of a program that it stops."""
    with pytest.raises(InternalError) as caught:
        interpret(module, arrays, **options)
    return str(caught.value)


# -- whole programs ----------------------------------------------------------------------------------


def test_an_elementwise_nest_with_a_masked_tail(rng: np.random.Generator) -> None:
    a, row = rng.standard_normal((3, 21), np.float32), rng.standard_normal(21, np.float32)
    out = np.zeros((3, 21), np.float32)
    assert interpret(elementwise(3, 21), [a, row, out]) == DONE
    exact = a.astype(np.float64) * row.astype(np.float64) + 1
    np.testing.assert_array_equal(out, exact.astype(np.float32))


def test_softmax_reduces_each_row_and_normalises_it(rng: np.random.Generator) -> None:
    x = rng.standard_normal((4, 19), np.float32)
    out = np.zeros_like(x)
    assert interpret(softmax(4, 19), [x, out]) == DONE
    e = np.exp(x.astype(np.float64) - x.max(1, keepdims=True))
    np.testing.assert_allclose(out, e / e.sum(1, keepdims=True), rtol=1e-6)


def test_newton_takes_as_many_rounds_as_each_element_needs() -> None:
    a, out, rounds = np.array([1.0, 9.0, 1e10]), np.zeros(3), np.zeros(3, np.int64)
    assert interpret(newton(3), [a, out, rounds]) == DONE
    np.testing.assert_allclose(out, np.sqrt(a), rtol=1e-14)
    assert rounds.tolist() == [0, 6, 21]


def test_a_gather_in_bounds_is_done_and_one_out_of_bounds_is_a_fault() -> None:
    table, out, done = np.arange(4.0), np.zeros(5), np.zeros(1, np.bool_)
    assert interpret(gather(5, 4), [table, np.array([3, 0, 2, 2, 1]), out, done]) == DONE
    assert (out.tolist(), done.tolist()) == ([3, 0, 2, 2, 1], [True])
    outcome = interpret(gather(5, 4), [table, np.array([3, 0, -7, 2, 4]), out, done])
    assert outcome == Outcome(Status.FAULT, FaultRecord(site=0, position=2, values=(-7, 4)))
    assert (out.tolist(), done.tolist()) == ([3, 0, 0, 2, 0], [False])


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize(("rows", "columns", "threads"), [(3, 100, 64), (2, 7, 32), (1, 0, 96)])
def test_row_sums_by_blocks_of_threads(
    rows: int, columns: int, threads: int, order: Order, rng: np.random.Generator
) -> None:
    x, out = rng.standard_normal((rows, columns), np.float32), np.zeros(rows, np.float32)
    assert interpret(row_sums(rows, columns, threads), [x, out], order=order) == DONE
    np.testing.assert_allclose(out, x.sum(1, dtype=np.float64), rtol=1e-5, atol=1e-5)


def reduction_of(op: ScalarOp, size: int, lanes: int, initial: float) -> Module:
    a, out = operand("a", size), result("out", 1)

    def body(b: Builder) -> None:
        carries = [reduction(op, constant(initial, F32))]
        with b.for_("i", 0, size, kind=VECTOR, lanes=lanes, carries=carries) as i:
            i.yields(b.compute(op, i.carries[0], b.load(a, i.index)))
        b.store(out, 0, i.results[0])

    return module_of(a, out, body=body)


@pytest.mark.parametrize("size", [0, 1, 8, 21, 64])
def test_partial_results_are_joined_by_halving_and_the_initial_value_comes_last(
    size: int, rng: np.random.Generator
) -> None:
    a, out = rng.standard_normal(size, np.float32), np.zeros(1, np.float32)
    assert interpret(reduction_of(ADD, size, 8, 0.5), [a, out]) == DONE
    lanes = [np.float32(-0.0)] * 8
    for i, x in enumerate(a):
        lanes[i % 8] += x
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [x + y for x, y in zip(lanes[:half], lanes[half:], strict=True)]
    assert out[0] == np.float32(0.5) + lanes[0]


PROGRAMS: list[tuple[Callable[[], Module], Sequence[tuple[tuple[int, ...], type]]]] = [
    (lambda: elementwise(3, 21), [((63,), np.float32), ((21,), np.float32)]),
    (lambda: reduction_of(ADD, 77, 16, 0.1), [((77,), np.float32)]),
    (lambda: reduction_of(ScalarOp.MAX, 13, 4, -9.0), [((13,), np.float32)]),
    (lambda: newton(5), [((5,), np.float64)]),
]


@pytest.mark.parametrize("program", range(len(PROGRAMS)))
def test_compiled_programs_give_the_same_bits(program: int, rng: np.random.Generator) -> None:
    make, shapes = PROGRAMS[program]
    module = make()
    inputs = [np.abs(rng.standard_normal(shape)).astype(dtype) for shape, dtype in shapes]
    outputs = [np.zeros(p.size, p.dtype) for p in module.functions[-1].parameters[len(inputs) :]]
    compiled = [x.copy() for x in outputs]
    assert interpret(module, [*inputs, *outputs]).status is Status.DONE
    llvm_programs.run(module, [*inputs, *compiled])
    for ours, theirs in zip(outputs, compiled, strict=True):
        assert ours.tobytes() == theirs.tobytes()


# -- memory ------------------------------------------------------------------------------------------


def shifted(offset: int, *, lanes: int = 1) -> Module:
    """out[i] = a[i + offset], of four elements."""
    a, out = operand("a", 4), result("out", 4)

    def body(b: Builder) -> None:
        kind = LoopKind.SERIAL if lanes == 1 else VECTOR
        with b.for_("i", 0, 4, kind=kind, lanes=lanes) as i:
            b.store(out, i.index, b.load(a, address(i.index, offset), name="x"))

    return module_of(a, out, body=body)


@pytest.mark.parametrize(("offset", "lanes", "index", "verb"), [
    (1, 1, 4, "reads"), (-1, 1, -1, "reads"), (1, 4, 4, "accesses"), (-2, 8, -2, "accesses"),
])  # fmt: skip
def test_an_index_out_of_bounds_is_found(offset: int, lanes: int, index: int, verb: str) -> None:
    arrays = [np.zeros(4, np.float32), np.zeros(4, np.float32)]
    text = f"{'+' if offset > 0 else '-'} {abs(offset)}"
    assert violation(shifted(offset, lanes=lanes), arrays) == (
        f"loop IR: {verb} 'a' at {index} of 4, in function 'main'\n  at %x: f32 = load a[%i {text}]"
    )


def test_masked_lanes_touch_no_memory() -> None:
    a, flags, out = operand("a", 4), operand("flags", 4, BOOL), result("out", 4)

    def body(b: Builder) -> None:
        with b.for_("i", 0, 4, kind=VECTOR, lanes=8) as i:
            on = b.load(flags, i.index)
            x = b.load(a, address((i.index, 100)), mask=on, fill=7.0)
            b.store(out, address((i.index, 100)), 9.0, mask=on)
            b.store(out, i.index, x)

    out_array = np.zeros(4, np.float32)
    arrays = [np.arange(4, dtype=np.float32), np.array([True, False, False, False]), out_array]
    assert interpret(module_of(a, flags, out, body=body), arrays) == DONE
    assert out_array.tolist() == [0, 7, 7, 7]


def test_a_read_before_any_write_is_found() -> None:
    out, local = result("out", 2), Buffer("local", F32, 4, Space.LOCAL)

    def body(b: Builder) -> None:
        b.alloc(local)
        b.store(local, 0, 1.0)
        b.store(out, 0, b.load(local, 0))
        b.store(out, 1, b.load(local, 1, name="x"))

    assert violation(module_of(out, body=body), [np.zeros(2, np.float32)]) == (
        "loop IR: reads 'local' at 1 before anything was written there, in function 'main'\n"
        "  at %x: f32 = load local[1]"
    )


def test_a_value_overwritten_before_its_last_reader_is_found() -> None:
    out = result("out", 1, F64)
    first = Buffer("first", F64, 2, Space.ARENA, 0)
    second = Buffer("second", F32, 1, Space.ARENA, 12)  # the upper half of first[1]

    def body(b: Builder) -> None:
        b.store(first, 0, 1.0)
        b.store(first, 1, 2.0)
        b.store(second, 0, 3.0)
        b.store(out, 0, b.load(first, 0))
        b.store(out, 0, b.load(first, 1, name="x"))

    assert violation(module_of(out, body=body, arena=16), [np.zeros(1)]) == (
        "loop IR: reads 'first' at 1, which was overwritten through 'second', in function 'main'\n"
        "  at %x: f64 = load first[1]"
    )


def test_a_bool_is_one_byte_zero_or_one() -> None:
    a, out = operand("a", 1, BOOL), result("out", 1, BOOL)
    module = module_of(a, out, body=lambda b: b.store(out, 0, b.load(a, 0)))
    strange = np.array([2], np.uint8).view(np.bool_)
    assert violation(module, [strange, np.zeros(1, np.bool_)]).startswith("loop IR: reads 'a', of bool, and finds 2")


def test_updates_go_in_order_of_iteration() -> None:
    values, keys, sums = operand("values", 6), operand("keys", 6, I64), result("sums", 2)

    def body(b: Builder) -> None:
        b.store(sums, 0, 0.0)
        b.store(sums, 1, 0.0)
        with b.for_("i", 0, 6, kind=VECTOR, lanes=4) as i:
            b.update(sums, b.load(keys, i.index), ADD, b.load(values, i.index))

    given, out = np.array([1e8, 1, -1e8, 5, 1, 2], np.float32), np.zeros(2, np.float32)
    assert interpret(module_of(values, keys, sums, body=body), [given, np.array([0, 0, 0, 1, 0, 1]), out]) == DONE
    assert out.tolist() == [1, 7]  # (1e8 + 1) - 1e8 is 0 in f32, in this order


def test_arguments_that_overlap_where_one_is_written_are_found() -> None:
    source = Buffer("source", F32, 2, Space.ARGUMENT)
    target = Buffer("target", F32, 2, Space.ARGUMENT, written=True)
    nest = Function("nest", (source, target), Builder().finish())
    out, b = result("out", 4), Builder()
    b.invoke("nest", view(out, 1), out)
    module = Module((nest, Function("main", (out,), b.finish())), "main")
    assert violation(module, [np.zeros(4, np.float32)]) == (
        "loop IR: hands 'nest' the overlapping 'source' and 'target', in function 'main'\n"
        "  at invoke nest(out[1 ..], out)"
    )


# -- threads -----------------------------------------------------------------------------------------


def reversal(*, barrier: bool, threads: int = 8, blocks: int = 2, update: bool = False) -> Module:
    """Each block reverses its stretch of `a` through shared memory."""
    a, out = operand("a", threads * blocks), result("out", threads * blocks)
    shared = Buffer("shared", F32, threads, Space.SHARED)

    def body(b: Builder) -> None:
        with b.for_("block", 0, blocks, kind=BLOCK) as block:
            b.alloc(shared)
            with b.for_("t", 0, threads, kind=THREAD) as t:
                b.store(shared, t.index, b.load(a, address((block.index, threads), t.index)))
                if barrier:
                    b.barrier()
                x = b.load(shared, address((t.index, -1), threads - 1), name="x")
                b.store(out, address((block.index, threads), t.index), x)

    return module_of(a, out, body=body)


def test_threads_exchange_values_through_shared_memory() -> None:
    a, out = np.arange(16, dtype=np.float32), np.zeros(16, np.float32)
    assert interpret(reversal(barrier=True), [a, out]) == DONE
    assert out.reshape(2, 8).tolist() == a.reshape(2, 8)[:, ::-1].tolist()


def test_a_missing_barrier_is_a_race() -> None:
    arrays = [np.zeros(16, np.float32), np.zeros(16, np.float32)]
    assert violation(reversal(barrier=False), arrays) == (
        "loop IR: reads 'shared' at 7 while another thread may access it, in function 'main'\n"
        "  at %x: f32 = load shared[-%t + 7]"
    )


@pytest.mark.parametrize("kind", [BLOCK, PARALLEL])
def test_blocks_and_parallel_iterations_that_write_one_cell_race(kind: LoopKind) -> None:
    out = result("out", 4)

    def body(b: Builder) -> None:
        with b.for_("i", 0, 4, kind=kind) as i:
            b.store(out, b.compute(ScalarOp.IDIV, i.index, 2), 1.0)

    assert violation(module_of(out, body=body), [np.zeros(4, np.float32)]).startswith(
        "loop IR: writes 'out' at 0 while another thread may access it"
    )


@pytest.mark.parametrize(("kind", "races"), [(BLOCK, False), (PARALLEL, True)])
def test_updates_are_atomic_on_a_gpu_only(kind: LoopKind, races: bool) -> None:
    out = result("out", 1)

    def body(b: Builder) -> None:
        b.store(out, 0, 0.0)
        with b.for_("i", 0, 4, kind=kind):
            b.update(out, 0, ADD, 1.0)

    array = np.zeros(1, np.float32)
    if races:
        assert violation(module_of(out, body=body), [array]).startswith("loop IR: writes 'out' at 0 while another")
    else:
        assert interpret(module_of(out, body=body), [array]) == DONE
        assert array[0] == 4


def test_what_ran_in_parallel_may_be_read_afterwards() -> None:
    out, total = result("out", 8), result("total", 1)

    def body(b: Builder) -> None:
        for _ in range(2):
            with b.for_("i", 0, 8, kind=PARALLEL) as i:
                b.store(out, i.index, b.convert(i.index, F32))
        b.store(total, 0, b.load(out, 7))

    arrays = [np.zeros(8, np.float32), np.zeros(1, np.float32)]
    assert interpret(module_of(out, total, body=body), arrays, order=Order.SHUFFLED) == DONE
    assert arrays[1][0] == 7


def test_each_thread_has_local_memory_registers_and_trip_counts_of_its_own() -> None:
    out = result("out", 12, I64)
    own = Buffer("own", I64, 1, Space.LOCAL)

    def body(b: Builder) -> None:
        with (
            b.for_("block", 0, 1, kind=BLOCK),
            b.for_("y", 0, 3, kind=THREAD) as y,
            b.for_("x", 0, 4, kind=THREAD) as x,
        ):
            b.alloc(own)
            b.store(own, 0, 0)
            with b.for_("k", 0, x.index) as k:  # 0, 1, 2 or 3 rounds
                b.store(own, 0, b.compute(ADD, b.load(own, 0), k.index))
            loop = b.while_(carry(y.index, "n"))  # doubles until it is 5 or more
            with loop.condition as condition:
                more = b.compute(LT, b.compute(ScalarOp.SUB, loop.carries[0], 1), 4)
                condition.yields(b.compute(ScalarOp.AND, more, b.compute(ScalarOp.GT, y.index, 0)))
            with loop.body as inner:
                inner.yields(b.compute(ADD, loop.carries[0], loop.carries[0]))
            with b.if_(b.compute(EQ, x.index, 2)) as branch:
                branch.yields(index_constant(100))
            with branch.otherwise as otherwise:
                otherwise.yields(b.load(own, 0))
            total = b.compute(ADD, branch.results[0], b.compute(MUL, loop.results[0], 1000))
            b.store(out, address((y.index, 4), x.index), total)

    array = np.zeros(12, np.int64)
    assert interpret(module_of(out, body=body), [array]) == DONE
    doubled = np.array([0, 8, 8])[:, None] * 1000
    assert (array.reshape(3, 4) == doubled + np.array([0, 0, 100, 3])).all()


@pytest.mark.parametrize(("kind", "offset"), [(ShuffleKind.XOR, 5), (ShuffleKind.DOWN, 3)])
def test_shuffles_stay_within_warps_of_32_consecutive_threads(kind: ShuffleKind, offset: int) -> None:
    out = result("out", 64, I64)

    def body(b: Builder) -> None:
        with (
            b.for_("block", 0, 1, kind=BLOCK),
            b.for_("y", 0, 4, kind=THREAD) as y,
            b.for_("x", 0, 16, kind=THREAD) as x,
        ):
            number = b.compute(ADD, b.compute(MUL, y.index, 16), x.index)
            b.store(out, number, b.shuffle(number, offset, kind))

    array = np.zeros(64, np.int64)
    assert interpret(module_of(out, body=body), [array]) == DONE
    for thread, seen in enumerate(array.tolist()):
        lane = thread % 32
        other = lane ^ offset if kind is ShuffleKind.XOR else lane + offset
        assert seen == (thread - lane + other if other < 32 else thread)


def test_the_partial_results_of_threads_are_joined_by_halving() -> None:
    a, out = operand("a", 16), result("out", 1)

    def body(b: Builder) -> None:
        with b.for_("block", 0, 1, kind=BLOCK):
            carries = [reduction(ADD, constant(1.0, F32))]
            with b.for_("t", 0, 16, kind=THREAD, carries=carries) as t:
                t.yields(b.compute(ADD, t.carries[0], b.load(a, t.index)))
            b.store(out, 0, t.results[0])

    values, array = np.random.default_rng(3).standard_normal(16).astype(np.float32), np.zeros(1, np.float32)
    assert interpret(module_of(a, out, body=body), [values, array]) == DONE
    lanes = values
    while len(lanes) > 1:
        lanes = lanes[: len(lanes) // 2] + lanes[len(lanes) // 2 :]
    assert array[0] == np.float32(1.0) + lanes[0]


def test_a_vector_loop_inside_a_thread_masks_each_thread_by_its_own_count() -> None:
    out = result("out", 3 * 10, I64)

    def body(b: Builder) -> None:
        with b.for_("i", 0, 30) as i:
            b.store(out, i.index, -1)
        with b.for_("block", 0, 1, kind=BLOCK), b.for_("t", 0, 3, kind=THREAD) as t:
            count = b.compute(MUL, t.index, 4)
            with b.for_("j", 0, count, kind=VECTOR, lanes=4) as j:
                b.store(out, address((t.index, 10), j.index), j.index)

    array = np.zeros(30, np.int64)
    assert interpret(module_of(out, body=body), [array]) == DONE
    expected = [[j if j < 4 * t else -1 for j in range(10)] for t in range(3)]
    assert array.reshape(3, 10).tolist() == expected


# -- effects -----------------------------------------------------------------------------------------


def test_the_lowest_site_and_then_the_lowest_position_is_reported() -> None:
    a = operand("a", 9, I64)

    def body(b: Builder) -> None:
        with b.for_("i", 0, 9, kind=VECTOR, lanes=4) as i:
            x = b.load(a, i.index)
            reverse = b.compute(ScalarOp.SUB, 8, i.index)
            b.fault(1, b.compute(LT, x, 0), i.index, x)
            b.fault(0, b.compute(EQ, x, 5), reverse, x, 77)

    outcome = interpret(module_of(a, body=body), [np.array([1, -1, 5, 0, -2, 5, 3, 3, 3])])
    assert outcome.fault == FaultRecord(0, 3, (5, 77))


def test_callbacks_read_and_write_flat_arrays() -> None:
    a, out = operand("a", 4), result("out", 3)
    module = module_of(a, out, body=lambda b: b.callback(1, [view(a, 1)], [out]))
    seen = []

    def double(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        seen.append(inputs[0].tolist())
        outputs[0][...] = 2 * inputs[0]

    array = np.zeros(3, np.float32)
    assert interpret(module, [np.arange(4, dtype=np.float32), array], callbacks=[print, double]) == DONE
    assert (seen, array.tolist()) == ([[1, 2, 3]], [2, 4, 6])


def test_what_a_callback_raises_ends_its_function() -> None:
    out, error = result("out", 1), KeyError("mine")

    def fail(inputs: Sequence[Array], outputs: Sequence[Array]) -> None:
        raise error

    def body(b: Builder) -> None:
        b.callback(0, [], [])
        b.store(out, 0, 1.0)

    array = np.zeros(1, np.float32)
    assert interpret(module_of(out, body=body), [array], callbacks=[fail]) == Outcome(Status.RAISED, None, error)
    assert array[0] == 0


def test_stacks_give_back_what_was_pushed_last() -> None:
    a, out = operand("a", 6), result("out", 6)

    def body(b: Builder) -> None:
        with b.for_("i", 0, 3) as i:
            b.push(0, view(a, (i.index, 2)), 2)
        with b.for_("i", 0, 3) as i:
            b.pop(0, view(out, (i.index, 2)), 2)

    module = module_of(a, out, body=body, stacks=1)
    values, array = np.arange(6, dtype=np.float32), np.zeros(6, np.float32)
    assert interpret(module, [values, array]) == DONE
    assert array.tolist() == [4, 5, 2, 3, 0, 1]
    assert interpret(module, [values, array], stack_limit=20).status is Status.NO_MEMORY


def test_a_stack_holds_zeros_below_what_was_pushed() -> None:
    out = result("out", 2)
    module = module_of(out, body=lambda b: b.pop(0, out, 2), stacks=1)
    array = np.ones(2, np.float32)
    assert interpret(module, [array]).status is Status.DONE
    np.testing.assert_array_equal(array, [0, 0])


def test_items_of_a_stack_are_written_and_read_anywhere() -> None:
    values, out = operand("values", 2), result("out", 8)

    def body(b: Builder) -> None:
        b.reset(0)
        b.write_item(0, 2, values, 2)
        for item in range(4):
            b.read_item(0, item, view(out, 2 * item), 2)

    module = module_of(values, out, body=body, stacks=1)
    array = np.ones(8, np.float32)
    assert interpret(module, [np.array([3, 4], np.float32), array]).status is Status.DONE
    np.testing.assert_array_equal(array, [0, 0, 0, 0, 3, 4, 0, 0])


def test_the_stop_word_ends_a_loop_without_end() -> None:
    def body(b: Builder) -> None:
        loop = b.while_()
        with loop.condition as condition:
            condition.yields(constant(True, BOOL))
        with loop.body:
            pass

    polls = iter([False, False, True])
    assert interpret(module_of(body=body), [], stop=lambda: next(polls)).status is Status.INTERRUPTED


@pytest.mark.parametrize("transposed", [(0, 0), (1, 0), (0, 1), (1, 1)])
@pytest.mark.parametrize(("dtype", "parts"), [(F64, F64), (C64, C64), (C64, F32)], ids=["f64", "c64", "pairs"])
def test_gemm_multiplies_batches_of_matrices(
    dtype: Any, parts: Any, transposed: tuple[int, int], rng: np.random.Generator
) -> None:
    batch, m, n, k = 3, 2, 4, 5
    wide = 2 if parts != dtype else 1
    a, b = rng.standard_normal((batch, m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    name = "gemm_f64" if dtype == F64 else "gemm_c64"
    buffers = [operand("a", wide * a.size, parts), operand("b", wide * b.size, parts)]
    out = result("out", wide * batch * m * n, parts)
    module = module_of(
        *buffers, out, body=lambda w: w.library(name, *buffers, out, batch, m, n, k, *transposed, m * k, 0)
    )
    stored = [np.ascontiguousarray(x.swapaxes(-1, -2)) if t else x for x, t in zip((a, b), transposed, strict=True)]
    array = np.zeros((batch, m, n), dtype)
    assert interpret(module, [x.view(parts) for x in (*stored, array)]) == DONE
    np.testing.assert_allclose(array, a @ b, rtol=1e-5)


def test_a_product_over_nothing_is_zero() -> None:
    a, out = operand("a", 0), result("out", 6)
    module = module_of(a, out, body=lambda b: b.library("gemm_f32", a, a, out, 1, 2, 3, 0, 0, 0, 0, 0))
    array = np.ones(6, np.float32)
    assert interpret(module, [np.zeros(0, np.float32), array]) == DONE
    assert array.tolist() == [0] * 6


def test_arrays_must_fit_the_parameters() -> None:
    module = module_of(operand("a", 4), body=lambda b: None)
    assert violation(module, [np.zeros(3, np.float32)]) == ("interpret: 'a' of 'main' is float32[4], got float32[3]")
    assert violation(module, []) == "interpret: 1 arrays expected, got 0"
    assert violation(module, [np.zeros(8, np.float32)[::2]]) == (
        "interpret: 'a' of 'main' is float32[4], got float32[4], not contiguous"
    )


def test_a_module_that_the_verifier_refuses_is_not_run() -> None:
    out = result("out", 1)
    module = module_of(out, body=lambda b: b.store(out, 0, constant(1, I32)))
    assert violation(module, [np.zeros(1, np.float32)]).startswith("loop IR: the value is i32, expected f32")
