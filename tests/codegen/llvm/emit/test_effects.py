"""Faults, interruption, callbacks, stacks, library calls, and object code that outlives its process."""

from __future__ import annotations

import ctypes
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm.llvm_programs import WIDTHS, at, constant, executable, integer, loop, main_of, module_of, run
from tests.counted_calls import python_calls
from tracer.codegen.llvm.emit import polls
from tracer.codegen.llvm.emit.module import emit_module
from tracer.codegen.llvm.toolchain.abi import Context, Status
from tracer.codegen.llvm.toolchain.object_code import assembly, compile_object, load_object
from tracer.errors import InternalError
from tracer.ir.dtypes import BOOL, C64, C128, F32, F64, I64, DType, short_name
from tracer.ir.loop import (
    Block,
    Buffer,
    Callback,
    Carry,
    Compute,
    Copy,
    Fault,
    Function,
    Invoke,
    Leave,
    Library,
    Load,
    Module,
    Register,
    Space,
    StackPop,
    StackPush,
    Statement,
    Store,
    View,
    While,
)  # fmt: skip
from tracer.ir.scalar import ScalarOp
from tracer.schedule.algorithms.library_kernels import choose_kernels
from tracer.settings import config

# -- faults ------------------------------------------------------------------------------------------------------


def checked(lanes: int, count: int) -> Module:
    """Two faulting equations in one loop: site 1 where a < 0, site 0 where b < 0; then a mark, unless it leaves."""

    def body(a: Any, b: Any, position: Any, mark: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            x, y, p, q, where = Register(I64), Register(I64), Register(BOOL), Register(BOOL), Register(I64)
            return [
                Load(x, a, at((i, 1))), Load(y, b, at((i, 1))), Load(where, position, at((i, 1))),
                Compute(p, ScalarOp.LT, (x, integer(0))), Fault(1, p, where, (x, integer(7))),
                Compute(q, ScalarOp.LT, (y, integer(0))), Fault(0, q, where, (y,)),
            ]  # fmt: skip

        return [loop(count, rounds, lanes=lanes), Leave(), Store(mark, at(), integer(1))]

    names = [("a", I64, count, False), ("b", I64, count, False), ("p", I64, count, False), ("m", I64, 1, True)]
    return module_of(names, body)


@pytest.mark.parametrize("lanes", [0, 4, 16])
def test_the_fault_of_the_lowest_site_and_position_is_reported(lanes: int) -> None:
    count = 27
    program = executable(checked(lanes, count))
    position = np.arange(count)[::-1].copy()  # the last iteration has the lowest position
    for bad_a, bad_b in (([], []), ([26], []), ([3, 4, 25], []), ([0], [5]), ([1, 2], [20, 9, 10])):
        a, b, mark = np.ones(count, np.int64), np.ones(count, np.int64), np.zeros(1, np.int64)
        a[bad_a], b[bad_b] = -10 - np.array(bad_a, np.int64), -50 - np.array(bad_b, np.int64)
        status, context = program.run([a, b, position, mark])
        if not bad_a and not bad_b:
            assert (status, context.fault_site, mark[0]) == (Status.DONE, -1, 1)
            continue
        first = max(bad_b or bad_a)
        assert (status, mark[0]) == (Status.FAULT, 0)
        assert (context.fault_site, context.fault_position) == (0 if bad_b else 1, count - 1 - first)
        expected = [-50 - first, 0, 0, 0] if bad_b else [-10 - first, 7, 0, 0]
        assert list(context.fault_values) == expected


def test_lanes_past_the_end_do_not_fault() -> None:
    def body(o: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            p = Register(BOOL)
            return [Compute(p, ScalarOp.GE, (i, integer(5))), Fault(0, p, i)]

        return [loop(5, rounds, lanes=8)]

    status, _ = run(module_of([("o", F32, 1, True)], body), [np.zeros(1, np.float32)])
    assert status is Status.DONE


# -- interruption ------------------------------------------------------------------------------------------------


def forever(inside: Any) -> Module:
    """A program whose nest never ends by itself; the entry marks its output only if it goes on after the nest."""
    output, argument = Buffer("o", I64, 1, Space.OUTPUT, written=True), Buffer("o", I64, 1, Space.ARGUMENT)
    nest = Function("nest", (argument,), Block(tuple(inside())))
    body = (Invoke("nest", (View(output),)), Leave(), Store(output, at(), integer(1)))
    return Module((nest, Function("main", (output,), Block(body))), "main")


def endless_while() -> list[Statement]:
    c, n, r, t = Register(I64), Register(I64), Register(I64), constant(True, BOOL)
    step = Block((Compute(n, ScalarOp.ADD, (c, integer(1))),), (n,))
    return [While((Carry(c, integer(0)),), Block((), (t,)), step, (r,))]


def endless_nest() -> list[Statement]:
    def innermost(k: Register) -> list[Statement]:
        return []

    def inner(j: Register) -> list[Statement]:
        return [loop(1000, innermost)]

    return [loop(1 << 60, lambda i: [loop(1000, inner)])]


@pytest.mark.parametrize("inside", [endless_while, endless_nest])
def test_the_stop_word_ends_any_loop(inside: Any) -> None:
    program, output, stop = executable(forever(inside)), np.zeros(1, np.int64), ctypes.c_int32(0)
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(program.run([output], stop=stop)), daemon=True)
    thread.start()
    time.sleep(0.02)
    assert not results
    stop.value = 1
    thread.join(5)
    assert results[0][0] is Status.INTERRUPTED
    assert output[0] == 0


def counted_while(rounds: int) -> Module:
    """Count to `rounds` by a loop of unknown length."""

    def body(o: Any) -> list[Statement]:
        c, n, more, r = Register(I64), Register(I64), Register(BOOL), Register(I64)
        condition = Block((Compute(more, ScalarOp.LT, (c, integer(rounds))),), (more,))
        step = Block((Compute(n, ScalarOp.ADD, (c, integer(1))),), (n,))
        return [While((Carry(c, integer(0)),), condition, step, (r,)), Store(o, at(), r)]

    return main_of([("o", I64, 1, True)], body)


@pytest.mark.parametrize(("still", "status"), [(0, Status.DONE), (1, Status.INTERRUPTED)])
def test_a_patient_loop_tells_its_steps_until_it_listens(still: int, status: Status) -> None:
    """`listen` is called at each round while the stop word is set. A word that is set after that ends the call."""
    program, output, told = executable(counted_while(1000)), np.zeros(1, np.int64), list[int]()
    word = ctypes.c_int32(1)

    @ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)
    def listen(address: int, steps: int) -> None:
        told.append(steps)
        context = Context.from_address(address)
        context.patience = max(context.patience - steps, 0)
        if context.patience == 0:
            word.value = still

    context, _memory = program._context(word, None, [])
    context.patience, context.listen = 100, ctypes.cast(listen, ctypes.c_void_p)
    pointers = (ctypes.c_void_p * 1)(output.ctypes.data)
    assert program._main(ctypes.addressof(pointers), ctypes.addressof(context)) == status
    assert output[0] == (1000 if status is Status.DONE else 0)
    assert sum(told[:-1]) < 100 <= sum(told)
    assert set(told) == {3}  # a comparison, an addition, and the poll


def test_only_loops_of_unknown_length_on_one_thread_are_patient() -> None:
    assert polls.patient(counted_while(3))
    assert not polls.patient(forever(endless_nest))
    assert not polls.patient(calling_back())


# -- callbacks ---------------------------------------------------------------------------------------------------


def calling_back() -> Module:
    def body(a: Any, o: Any) -> list[Statement]:
        return [
            Callback(3, (View(a), View(a, at(constant=2))), (View(o),)), Callback(5, (), ()),
            Copy(View(o, at(constant=1)), View(a), 1),
        ]  # fmt: skip

    return main_of([("a", F64, 4, False), ("o", F64, 2, True)], body)


def test_callbacks_read_inputs_and_write_outputs_in_order() -> None:
    seen = []

    def callback(slot: int, inputs: int, outputs: int) -> None:
        seen.append(slot)
        if slot == 3:
            pointers = ctypes.cast(inputs, ctypes.POINTER(ctypes.POINTER(ctypes.c_double)))
            result = ctypes.cast(outputs, ctypes.POINTER(ctypes.POINTER(ctypes.c_double)))
            result[0][0] = pointers[0][0] + pointers[1][0]

    a, out = np.array([1.0, 2.0, 30.0, 4.0]), np.zeros(2)
    status, _ = run(calling_back(), [a, out], callback=callback)
    assert (status, seen, out.tolist()) == (Status.DONE, [3, 5], [31.0, 1.0])


def test_an_exception_of_a_callback_ends_the_call_and_propagates() -> None:
    seen, error = [], KeyError("mine")

    def callback(slot: int, inputs: int, outputs: int) -> None:
        seen.append(slot)
        raise error

    out = np.zeros(2)
    with pytest.raises(KeyError) as caught:
        run(calling_back(), [np.ones(4), out], callback=callback)
    assert caught.value is error
    assert (seen, out.tolist()) == ([3], [0.0, 0.0])


# -- stacks ------------------------------------------------------------------------------------------------------


def test_stacks_grow_and_give_back_what_was_pushed_last_first() -> None:
    count, width = 3000, 5

    def body(a: Any, b: Any, o: Any) -> list[Statement]:
        def push(i: Register) -> list[Statement]:
            return [StackPush(1, View(a, at((i, width))), width), StackPush(0, View(b, at((i, 1))), 1)]

        def pop(i: Register) -> list[Statement]:
            return [StackPop(1, View(o, at((i, width))), width)]

        return [loop(count, push), loop(count, pop)]

    names = [("a", F64, count * width, False), ("b", BOOL, count, False), ("o", F64, count * width, True)]
    a, out = np.arange(count * width, dtype=np.float64), np.zeros(count * width)
    status, _ = run(module_of(names, body, stacks=2), [a, np.zeros(count, np.bool_), out])
    assert status is Status.DONE
    assert (out.reshape(count, width) == a.reshape(count, width)[::-1]).all()


def test_a_stack_that_cannot_grow_ends_the_call() -> None:
    def body(a: Any) -> list[Statement]:
        return [StackPush(0, View(a), 1 << 58)]

    status, _ = run(main_of([("a", F64, 1, False)], body, stacks=1), [np.zeros(1)])
    assert status is Status.NO_MEMORY


# -- library routines --------------------------------------------------------------------------------------------

REAL = {F32: F32, F64: F64, C64: F32, C128: F64}


def product(dtype: DType, batch: int, m: int, n: int, k: int, ta: bool, tb: bool, shared_b: bool = False) -> Module:
    return products(dtype, [(batch, m, n, k)], ta, tb, shared_b)


def products(
    dtype: DType, shapes: Sequence[tuple[int, int, int, int]], ta: bool, tb: bool, shared_b: bool = False
) -> Module:
    """A call for each shape, on two factors and an output of its own."""
    parts, names = dtype.itemsize // REAL[dtype].itemsize, []
    for number, (batch, m, n, k) in enumerate(shapes):
        sizes = (batch * m * k * parts, (1 if shared_b else batch) * k * n * parts, batch * m * n * parts)
        names += [(f"{name}{number}", REAL[dtype], size, name == "o") for name, size in zip("abo", sizes, strict=True)]

    def body(*buffers: Any) -> list[Statement]:
        calls: list[Statement] = []
        for number, (batch, m, n, k) in enumerate(shapes):
            numbers = (batch, m, n, k, int(ta), int(tb), m * k, 0 if shared_b else k * n)
            views = map(View, buffers[3 * number : 3 * number + 3])
            calls.append(Library(f"gemm_{short_name(dtype)}", (*views, *(integer(x) for x in numbers))))
        return calls

    return main_of(names, body)


SMALL = (
    (1, 3, 5, 7), (4, 2, 3, 1), (3, 1, 4, 6), (2, 5, 1, 4), (1, 1, 1, 3), (0, 2, 2, 2), (2, 0, 3, 4), (2, 3, 4, 0),
)  # fmt: skip


@pytest.mark.parametrize("dtype", [F32, F64, C64, C128], ids=short_name)
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False), (True, True)])
def test_products_are_numpys(dtype: DType, ta: bool, tb: bool) -> None:
    rng, flat, found = np.random.default_rng(3), [], []
    for batch, m, n, k in SMALL:
        a = rng.integers(-4, 5, (batch, m, k)) + (1j * rng.integers(-4, 5, (batch, m, k)) if dtype.kind == "c" else 0)
        b = rng.integers(-4, 5, (batch, k, n)) + (1j * rng.integers(-4, 5, (batch, k, n)) if dtype.kind == "c" else 0)
        stored_a = np.ascontiguousarray(a.swapaxes(1, 2) if ta else a).astype(dtype)
        stored_b = np.ascontiguousarray(b.swapaxes(1, 2) if tb else b).astype(dtype)
        out = np.full((batch, m, n), np.nan, dtype)
        flat += [x.reshape(-1).view(REAL[dtype]) for x in (stored_a, stored_b, out)]
        found.append((out, a @ b))
    run(products(dtype, SMALL, ta, tb), flat)
    for shape, (out, expected) in zip(SMALL, found, strict=True):
        assert (out == expected).all(), shape


LARGE = (
    (1, 330, 100, 90), (1, 100, 330, 90), (1, 3000, 1, 400), (6, 70, 80, 90), (400, 20, 20, 20), (1, 2000, 40, 120),
)  # fmt: skip


@pytest.mark.parametrize(("batch", "m", "n", "k"), LARGE)
@pytest.mark.parametrize(("ta", "tb"), [(False, False), (False, True), (True, False), (True, True)])
def test_large_products_are_panels_whose_bits_threads_do_not_change(
    batch: int, m: int, n: int, k: int, ta: bool, tb: bool
) -> None:
    rng = np.random.default_rng(4)
    a, b = rng.standard_normal((batch, m, k)), rng.standard_normal((batch, k, n))
    stored_a, stored_b = (np.ascontiguousarray(x.swapaxes(1, 2) if t else x).reshape(-1) for x, t in ((a, ta), (b, tb)))
    module = choose_kernels(product(F64, batch, m, n, k, ta, tb))
    shared = "tracer_product_shared_f64" if n > 1 else "library.split.gemm_f64"
    assert f"call void @{shared}(" in emit_module(module)
    runnable, outs = executable(module), []
    for threads in (1, 2, 3):
        outs.append(np.full((batch, m, n), np.nan))
        with config.using(threads=threads):
            runnable.run([stored_a, stored_b, outs[-1].reshape(-1)])
    np.testing.assert_allclose(outs[0], a @ b, rtol=0, atol=1e-12 * k)
    np.testing.assert_array_equal(outs[0], outs[1])
    np.testing.assert_array_equal(outs[0], outs[2])


def test_large_complex_products() -> None:
    rng = np.random.default_rng(5)
    a, b = (rng.standard_normal((200, 200)) + 1j * rng.standard_normal((200, 200)) for _ in range(2))
    out = np.zeros((200, 200), complex)
    run(product(C128, 1, 200, 200, 200, False, False), [x.reshape(-1).view(np.float64) for x in (a, b, out)])
    np.testing.assert_allclose(out, a @ b, atol=1e-10)


def test_a_product_may_share_one_factor_between_all() -> None:
    a, b, out = np.arange(12.0).reshape(2, 2, 3), np.arange(6.0).reshape(3, 2), np.zeros((2, 2, 2))
    module = product(F64, 2, 2, 2, 3, False, False, shared_b=True)
    run(module, [a.reshape(-1), b.reshape(-1), out.reshape(-1)])
    assert (out == a @ b).all()


def test_dimensions_that_blas_cannot_count_are_refused() -> None:
    with pytest.raises(InternalError, match="BLAS takes 32-bit sizes"):
        emit_module(product(F32, 1, 1 << 31, 1, 1, False, False))


# -- object code -------------------------------------------------------------------------------------------------


LOADER = """
import sys
import numpy as np
from tracer.codegen.llvm.toolchain.abi import MAIN_SYMBOL, Context
from tracer.codegen.llvm.toolchain.object_code import load_object
from tracer.codegen.llvm.kernels.routines import library_symbols
import ctypes
loaded = load_object(open(sys.argv[1], "rb").read(), library_symbols(["gemm_f64"]))
a, b, out = np.arange(6.0), np.arange(6.0), np.zeros(4)
context, stop = Context(fault_site=-1), ctypes.c_int32(0)
context.stop = ctypes.addressof(stop)
pointers = (ctypes.c_void_p * 3)(*(x.ctypes.data for x in (a, b, out)))
main = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)(loaded.address(MAIN_SYMBOL))
print(main(ctypes.addressof(pointers), ctypes.addressof(context)), out.tolist())
"""


def test_object_code_runs_in_another_process(tmp_path: Path) -> None:
    path = tmp_path / "program.o"
    path.write_bytes(compile_object(emit_module(product(F64, 1, 2, 2, 3, False, False))))
    done = subprocess.run(
        [sys.executable, "-c", LOADER, str(path)], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.stdout == "0 [10.0, 13.0, 28.0, 40.0]\n", done.stderr


def test_equal_modules_give_equal_text_and_equal_objects() -> None:
    texts = [emit_module(checked(16, 27)) for _ in range(2)]
    assert texts[0] == texts[1]
    assert compile_object(texts[0]) == compile_object(texts[1])
    assert emit_module(checked(16, 28)) != texts[0]


@pytest.mark.parametrize("bits", WIDTHS)
def test_vectors_are_as_wide_as_asked_for(bits: int) -> None:
    def body(a: Any, o: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            x, y = Register(F32), Register(F32)
            return [Load(x, a, at((i, 1))), Compute(y, ScalarOp.MUL, (x, x)), Store(o, at((i, 1)), y)]

        return [loop(64, rounds, lanes=16)]

    module = module_of([("a", F32, 64, False), ("o", F32, 64, True)], body)
    text = assembly(emit_module(module, vector_bits=bits), vector_bits=bits)
    assert ("%ymm" in text, "%zmm" in text) == (bits == 256, bits == 512)


def test_missing_symbols_and_invalid_text_are_internal_errors() -> None:
    obj = compile_object("declare void @absent()\ndefine i32 @tracer_main(ptr %a, ptr %b) {\n"
                         "  call void @absent()\n  ret i32 0\n}\n")  # fmt: skip
    with pytest.raises(InternalError, match="linking failed"):
        load_object(obj, {})
    with pytest.raises(InternalError, match="not valid"):
        compile_object("define i32 @tracer_main() {\n  ret i64 0\n}\n")


def test_ten_thousand_statements_do_not_recurse_and_are_written_in_linear_time() -> None:
    def chain(length: int) -> Module:
        def body(a: Any, o: Any) -> list[Statement]:
            x = Register(F64)
            statements: list[Statement] = [Load(x, a, at())]
            for _ in range(length):
                y = Register(F64)
                statements.append(Compute(y, ScalarOp.ADD, (x, constant(1.0, F64))))
                x = y
            return [*statements, Store(o, at(), x)]

        return module_of([("a", F64, 1, False), ("o", F64, 1, True)], body)

    module, short = chain(10_000), chain(2_500)
    assert 10_000 < python_calls(lambda: emit_module(module)) < 4.2 * python_calls(lambda: emit_module(short))
    out = np.zeros(1)
    run(module, [np.array([0.5]), out])
    assert out[0] == 10_000.5


def test_arrays_that_do_not_fit_are_refused_before_the_call() -> None:
    program = executable(calling_back())
    with pytest.raises(InternalError, match="parameter 'a' takes 4 contiguous float64"):
        program.run([np.zeros(3), np.zeros(2)])
    with pytest.raises(InternalError, match="1 arrays for 2 parameters"):
        program.run([np.zeros(4)])


def test_other_exported_functions_are_found_by_name() -> None:
    text = emit_module(checked(4, 5)) + "define i32 @second() {\n  ret i32 41\n}\n"
    loaded = load_object(compile_object(text), {})
    assert ctypes.CFUNCTYPE(ctypes.c_int32)(loaded.address("second"))() == 41
    with pytest.raises(InternalError, match="no symbol 'third'"):
        loaded.address("third")


def test_threads_may_compile_and_call_at_once() -> None:
    shared, results = executable(checked(4, 27)), []

    def work(number: int) -> None:
        own = executable(checked(8, 27))
        a, mark = np.ones(27, np.int64), np.zeros(1, np.int64)
        a[number] = -1
        for program in (own, shared) * 5:
            status, context = program.run([a, np.ones(27, np.int64), np.arange(27), mark])
            results.append((status, context.fault_position == number))

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert results == [(Status.FAULT, True)] * 40
