"""The verifier of loop IR: sound modules pass, each seeded defect is found by its own message."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from tests.grids import each
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
from tracer.errors import InternalError
from tracer.ir.dtypes import BOOL, C64, F16, F32, F64, I32, I64, U8, DType
from tracer.ir.loop import (
    Address,
    Alloc,
    Barrier,
    Block,
    Buffer,
    Carry,
    Compute,
    Constant,
    Copy,
    Fault,
    For,
    Function,
    If,
    Invoke,
    Leave,
    Load,
    LoopKind,
    Module,
    Prefix,
    Register,
    Shuffle,
    Space,
    StackPush,
    StackUse,
    Statement,
    Store,
    Update,
    View,
    While,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.build import Builder, carry, constant, reduction
from tracer.ir.loop.check import check_module
from tracer.ir.scalar import ScalarOp

IX = Register(I64, "i")
X, Y, P = Register(F32, "x"), Register(F32, "y"), Register(BOOL, "p")
A, OUT = operand("a", 4), result("out", 4)
ZERO, ONE, TRUE = constant(0.0, F32), constant(1.0, F32), constant(True, BOOL)
N = index_constant(4)
LAST, SERIAL = Register(F32, "last"), Carry(Register(F32, "so_far"), ZERO)


def module(*statements: Statement, functions: tuple[Function, ...] = (), stacks: int = 0) -> Module:
    """The statements as the entry, which has the buffers A and OUT."""
    return Module((*functions, Function("main", (A, OUT), Block(statements))), "main", 64, stacks)


def loop(*body: Statement, kind: LoopKind = LoopKind.SERIAL, yields: tuple[Register | Constant, ...] = (), **fields):  # type: ignore[no-untyped-def]
    """A loop over IX from 0 to 4; `fields` override."""
    values = {"index": IX, "start": index_constant(0), "stop": N, "body": Block(body, yields), "kind": kind}
    return For(**{**values, **fields})


def problem(m: Module) -> str:
    """The first line of what the verifier says."""
    with pytest.raises(InternalError) as caught:
        check_module(m)
    return str(caught.value).splitlines()[0].removeprefix("loop IR: ").removesuffix(", in function 'main'")


@pytest.mark.parametrize(
    "sound",
    [elementwise(3, 21), softmax(2, 6), newton(2), gather(3, 4), row_sums(2, 100)],
    ids=lambda m: m.entry,
)
def test_sound_modules_pass(sound: Module) -> None:
    check_module(sound)


def test_the_message_shows_the_statement_and_the_function() -> None:
    add = Compute(X, ScalarOp.ADD, (ONE, constant(2.0, F64)))
    with pytest.raises(InternalError) as caught:
        check_module(module(loop(add, Store(OUT, Address(0, ((IX, 1),)), X))))
    assert (
        str(caught.value)
        == """\
loop IR: add of f32 and f64, in function 'main'
  at %x: f32 = add 1.0:f32, 2.0:f64
  main(a: input f32[4], out: output f32[4]) {
    for %i in 0..4 {
      %x: f32 = add 1.0:f32, 2.0:f64
      store out[%i] = %x
    }
  }"""
    )


def test_a_register_read_outside_its_block_is_shown_where_it_is_read() -> None:
    with pytest.raises(InternalError) as caught:
        check_module(module(loop(Load(X, A, Address(0, ((IX, 1),)))), Store(OUT, Address(), X)))
    assert (
        str(caught.value)
        == """\
loop IR: %x is read outside the block that assigns it, in function 'main'
  at store out[0] = %x
  main(a: input f32[4], out: output f32[4]) {
    for %i in 0..4 {
      %x: f32 = load a[%i]
    }
    store out[0] = %x
  }"""
    )


LOAD = Load(X, A, Address())
COMPUTE_DEFECTS: list[tuple[Compute, str]] = [
    (Compute(X, ScalarOp.ADD, (ONE,)), "add takes 2 operands, got 1"),
    (Compute(P, ScalarOp.ADD, (TRUE, TRUE)), "add takes integers and floats, got bool"),
    (Compute(X, ScalarOp.AND, (ONE, ONE)), "and takes bool and integers, got f32"),
    (Compute(Y, ScalarOp.SELECT, (ONE, ONE, ONE)), "the predicate of select is f32, expected bool"),
    (Compute(X, ScalarOp.LT, (ONE, ONE)), "the result is f32, expected bool"),
    (Compute(Register(F64), ScalarOp.ADD, (ONE, ONE)), "the result is f64, expected f32"),
    (Compute(IX, ScalarOp.SHL, (N, constant(1, I32))), "shl of i64 and i32"),
    (Compute(Register(F64), ScalarOp.BITCAST, (ONE,)), "bitcast from f32 to f64, which has another width"),
    (Compute(P, ScalarOp.BITCAST, (constant(1, U8),)), "bitcast to bool"),
    (
        Compute(Register(C64), ScalarOp.CONVERT, (ONE,)),
        "a register of c64: complex numbers are pairs of floats here",
    ),
    (
        Compute(X, ScalarOp.NEG, (Constant(np.float64(1), F32),)),
        "a constant of f32 whose value is float64",
    ),
]  # fmt: skip


@each(("statement", "expected"), COMPUTE_DEFECTS, ids=[e for _, e in COMPUTE_DEFECTS])
def test_an_operation_takes_what_its_signature_says(statement: Compute, expected: str) -> None:
    assert problem(module(statement)) == expected


def carried(*, initial: Constant = ZERO, dtype: DType = F32, **fields):  # type: ignore[no-untyped-def]
    """A loop with a reduction over `dtype`."""
    acc, total = Register(dtype, "acc"), Register(dtype, "total")
    given = Carry(acc, initial, fields.pop("combine", ScalarOp.ADD), fields.pop("identity", constant(-0.0, dtype)))
    return loop(**{"carries": (given,), "results": (total,), "yields": (acc,), **fields})


def in_lanes(*body: Statement, **fields):  # type: ignore[no-untyped-def]
    return loop(*body, kind=LoopKind.VECTOR, **{"lanes": 4, **fields})


def in_threads(*body: Statement) -> For:
    """The statements in the threads of a block."""
    return loop(loop(*body, kind=LoopKind.THREAD, index=Register(I64, "t")), kind=LoopKind.BLOCK)


LOADED = Load(P, operand("flags", 4, BOOL), Address(0, ((IX, 1),)))
VARIES = Compute(P, ScalarOp.LT, (IX, N))
INNER = Register(I64, "j")

STATEMENT_DEFECTS: list[tuple[str, Statement | tuple[Statement, ...]]] = [
    # registers
    ("%x is assigned twice", (LOAD, LOAD)),
    ("%x is read before it is assigned", Store(OUT, Address(), X)),
    ("%i is read before it is assigned", Load(X, A, Address(0, ((IX, 1),)))),
    ("%x is read outside the block that assigns it", (If(TRUE, Block((LOAD,))), Store(OUT, Address(), X))),
    # memory
    ("an address with a register of f32, not i64 or i32", (LOAD, Load(Y, A, Address(0, ((X, 1),))))),
    ("an address with a coefficient of 0", loop(Load(X, A, Address(0, ((IX, 0),))))),
    ("the result is f64, expected f32", Load(Register(F64), A, Address())),
    ("the fill is f64, expected f32", Load(X, A, Address(), TRUE, constant(0.0, F64))),
    ("the mask is f32, expected bool", Load(X, A, Address(), ONE)),
    ("the value is f16, expected f32", Store(OUT, Address(), constant(1.0, F16))),
    ("an update of f32 with lt", Update(OUT, Address(), ScalarOp.LT, ONE)),
    ("an update of f32 with and", Update(OUT, Address(), ScalarOp.AND, ONE)),
    ("input buffer 'a' is read only", Store(A, Address(), ONE)),
    ("input buffer 'b' is not a parameter", Load(X, operand("b", 4), Address())),
    ("local buffer 'l' is not allocated here", Load(X, Buffer("l", F32, 4, Space.LOCAL), Address())),
    ("input buffer 'a' cannot be allocated", Alloc(A)),
    ("a copy from f32 to f64", Copy(View(Buffer("t", F64, 4, Space.ARENA)), View(A), 4)),
    ("a count of -1", Copy(View(OUT), View(A), -1)),
    (
        "buffer 't' ends at byte 80 of an arena of 64",
        Store(Buffer("t", F32, 4, Space.ARENA, 64), Address(), ONE),
    ),
    (
        "buffer 't' at byte 2 of the arena is not aligned to 4",
        Store(Buffer("t", F32, 4, Space.ARENA, 2), Address(), ONE),
    ),
    (
        "buffer 't' is aligned to 3 bytes, which is not a power of two",
        Store(Buffer("t", F32, 4, Space.ARENA, 0, 3), Address(), ONE),
    ),
    # loops
    ("a step of 0", loop(step=0)),
    ("the stop is f32, expected i64", loop(stop=ONE)),
    ("the body yields (), the carries are (f32)", carried(yields=())),
    ("the body yields (f64), the carries are (f32)", carried(yields=(constant(1.0, F64),))),
    ("the results are (), the carries are (f32)", carried(results=())),
    ("the initial value of a carry is f64, expected f32", carried(initial=constant(0.0, F64))),
    ("a reduction with add lacks an identity", carried(identity=None)),
    ("1.0 is not an identity of add: -0.0 is", carried(identity=ONE)),
    ("a reduction with sub; it may be add, mul, min, max, and, or, xor", carried(combine=ScalarOp.SUB)),
    ("a reduction with or of f32", carried(combine=ScalarOp.OR)),
    ("a serial carry with an identity", carried(combine=None)),
    ("the body yields (f32), the carries are ()", loop(yields=(ONE,))),
    ("a serial loop of 4 lanes", loop(lanes=4)),
    ("a vector loop of 3 lanes, which is not a power of two", in_lanes(lanes=3)),
    ("a vector loop that does not count from 0 by 1", in_lanes(step=2)),
    ("a vector loop that does not count from 0 by 1", in_lanes(start=index_constant(1))),
    (
        "a vector loop with a serial carry that varies by lane",
        in_lanes(Load(X, A, Address(0, ((IX, 1),))), yields=(X,), carries=(SERIAL,), results=(Register(F32, "t"),)),
    ),
    ("Prefix not directly in a vector loop", loop(Prefix(X, LAST, ScalarOp.ADD, ONE, ONE))),
    ("Prefix not directly in a vector loop", in_lanes(loop(Prefix(X, LAST, ScalarOp.ADD, ONE, ONE), index=INNER))),
    (
        "Prefix after a value that varies by lane",
        in_lanes(Load(X, A, Address(0, ((IX, 1),))), Prefix(Register(F32), LAST, ScalarOp.ADD, ONE, X)),
    ),
    ("the value before is f64, expected f32", in_lanes(Prefix(X, LAST, ScalarOp.ADD, ONE, constant(1.0, F64)))),
    (
        "a prefix with sub; it may be add, mul, min, max, and, or, xor",
        in_lanes(Prefix(X, LAST, ScalarOp.SUB, ONE, ONE)),
    ),
    ("a vector loop inside a vector loop", in_lanes(in_lanes(index=INNER))),
    ("a parallel loop with a serial carry", carried(kind=LoopKind.PARALLEL, combine=None, identity=None)),
    (
        "a parallel loop that reduces floats with add: the order would show",
        carried(kind=LoopKind.PARALLEL),
    ),
    ("a block loop with carries: blocks do not meet", carried(kind=LoopKind.BLOCK)),
    ("a thread loop outside a block loop", loop(kind=LoopKind.THREAD)),
    (
        "a parallel loop inside a block loop",
        loop(loop(kind=LoopKind.PARALLEL, index=INNER), kind=LoopKind.BLOCK),
    ),
    (
        "a thread loop's carries are reductions over a constant power of two of threads",
        loop(carried(kind=LoopKind.THREAD, index=INNER, stop=index_constant(3)), kind=LoopKind.BLOCK),
    ),
    ("the condition yields 0 values, not one", While((), Block(()), Block(()), ())),
    ("the yield of the condition is f32, expected bool", While((), Block((), (ONE,)), Block(()), ())),
    (
        "a while loop with a reduction",
        While((reduction(ScalarOp.ADD, ZERO),), Block((), (TRUE,)), Block((), (ONE,)), (X,)),
    ),
    # branches
    ("the predicate is f32, expected bool", If(ONE, Block(()))),
    ("the other arm yields (), the results are (f32)", If(TRUE, Block((), (ONE,)), Block(()), (X,))),
    ("the first arm yields (f32), the results are ()", If(TRUE, Block((), (ONE,)))),
    (
        "an If whose predicate varies by lane, and whose arms do more than compute",
        in_lanes(VARIES, If(P, Block((Store(OUT, Address(), ONE),)))),
    ),
    ("a loop whose range varies by lane", in_lanes(loop(index=INNER, stop=IX))),
    # threads
    ("Barrier outside a thread loop", loop(Barrier(), kind=LoopKind.BLOCK)),
    ("an offset of 32, which is not from 1 to 31", in_threads(Shuffle(X, ONE, 32))),
    ("Leave inside a parallel loop", loop(Leave(), kind=LoopKind.PARALLEL)),
    ("a shared buffer outside a block loop", Alloc(Buffer("s", F32, 4, Space.SHARED))),
    # effects
    ("the position is f32, expected i64", Fault(0, TRUE, ONE)),
    ("a site of -1", Fault(-1, TRUE, N)),
    ("stack 0 of 0", StackPush(0, View(A), 1)),
    ("'nest' is not a function of the module", Invoke("nest", ())),
    ("the entry is invoked", Invoke("main", (View(A), View(OUT)))),
]  # fmt: skip


def test_what_is_stored_to_is_declared_as_written() -> None:
    unwritten = replace(OUT, written=False)
    entry = Function("main", (unwritten,), Block((Store(unwritten, Address(), ONE),)))
    assert problem(Module((entry,), "main")) == "parameter 'out' is stored to, but not declared as written"


@each(("expected", "defect"), STATEMENT_DEFECTS, ids=[e for e, _ in STATEMENT_DEFECTS])
def test_each_seeded_defect_is_found(expected: str, defect: Statement | tuple[Statement, ...]) -> None:
    assert problem(module(*(defect if isinstance(defect, tuple) else (defect,)))) == expected


DIVERGENT = "Barrier under a condition that varies by thread"


@pytest.mark.parametrize("skipped", [Barrier(), Leave()], ids=["barrier", "leave"])
def test_a_barrier_or_an_end_that_some_threads_skip_is_refused(skipped: Statement) -> None:
    t = Register(I64, "t")
    lower = Compute(P, ScalarOp.LT, (t, N))
    threads = loop(lower, If(P, Block((skipped,))), kind=LoopKind.THREAD, index=t)
    assert problem(module(loop(threads, kind=LoopKind.BLOCK))) == DIVERGENT.replace("Barrier", type(skipped).__name__)


def test_a_barrier_in_a_loop_of_as_many_rounds_as_the_thread_says_is_refused() -> None:
    t = Register(I64, "t")
    threads = loop(loop(Barrier(), index=INNER, stop=t), kind=LoopKind.THREAD, index=t)
    assert problem(module(loop(threads, kind=LoopKind.BLOCK))) == DIVERGENT


def test_variation_comes_round_through_carries() -> None:
    t, c, n, r = (Register(I64, name) for name in "tcnr")
    p = Register(BOOL, "p")
    test = Compute(p, ScalarOp.LT, (c, N))  # c is 0 in the first round, and t in the second
    inner = loop(
        test, If(p, Block((Barrier(),))), Compute(n, ScalarOp.ADD, (c, t)), index=INNER, yields=(n,),
        carries=(Carry(c, index_constant(0)),), results=(r,),
    )  # fmt: skip
    threads = loop(inner, kind=LoopKind.THREAD, index=t)
    assert problem(module(loop(threads, kind=LoopKind.BLOCK))) == DIVERGENT


def test_what_a_thread_keeps_to_itself_varies_by_thread() -> None:
    own = Buffer("own", BOOL, 1, Space.LOCAL)
    body = (Alloc(own), Load(P, own, Address()), If(P, Block((Barrier(),))))
    assert problem(module(in_threads(*body))) == DIVERGENT


def test_local_memory_is_not_shared_between_threads() -> None:
    own = Buffer("own", F32, 1, Space.LOCAL)
    threads = loop(Store(own, Address(), ONE), kind=LoopKind.THREAD, index=INNER)
    assert problem(module(loop(Alloc(own), threads, kind=LoopKind.BLOCK))) == (
        "local buffer 'own' belongs to the threads outside this loop"
    )


def test_a_buffer_allocated_in_a_block_is_not_seen_after_it() -> None:
    own = Buffer("own", F32, 1, Space.LOCAL)
    assert problem(module(If(TRUE, Block((Alloc(own),))), Store(own, Address(), ONE))) == (
        "local buffer 'own' is not allocated here"
    )
    assert problem(module(Alloc(own), Alloc(own))) == "buffer 'own' is allocated twice"


# -- modules and calls -------------------------------------------------------------------------------


def nest(name: str, *parameters: Buffer | Register, calls: str | None = None) -> Function:
    return Function(name, parameters, Block((Invoke(calls, ()),) if calls else ()))


def test_functions_do_not_recurse() -> None:
    functions = (nest("f", calls="g"), nest("g", calls="h"), nest("h", calls="g"))
    assert problem(module(functions=functions)) == "recursion g -> h -> g"
    shared = (nest("f", calls="h"), nest("g", calls="h"), nest("h"))
    check_module(module(functions=shared))


ARGUMENT_DEFECTS: list[tuple[str, Callable[[], Invoke]]] = [
    ("'nest' takes 2 arguments, got 1", lambda: Invoke("nest", (View(OUT),))),
    ("'nest' takes a view for 'o'", lambda: Invoke("nest", (ONE, ONE))),
    ("'nest' takes an operand for 'x'", lambda: Invoke("nest", (View(OUT), View(A)))),
    ("'nest' takes f32 for 'x', got i64", lambda: Invoke("nest", (View(OUT), N))),
    ("'nest' writes to input buffer 'a'", lambda: Invoke("nest", (View(A), ONE))),
    ("stack 3 of 0", lambda: Invoke("nest", (), stacks=(StackUse(3, 8),))),
]


@each(("expected", "call"), ARGUMENT_DEFECTS, ids=[e for e, _ in ARGUMENT_DEFECTS])
def test_arguments_match_parameters(expected: str, call: Callable[[], Invoke]) -> None:
    parameter = Buffer("o", F32, 4, Space.ARGUMENT, written=True)
    assert problem(module(call(), functions=(nest("nest", parameter, Register(F32, "x")),))) == expected


def test_the_entry_takes_arrays_and_nests_take_arguments() -> None:
    assert problem(Module((Function("main", (X,), Block(())),), "main")) == "the entry takes the register 'x'"
    assert problem(Module((nest("n", A), nest("main")), "main")) == "parameter 'a' is input, in function 'n'"
    assert problem(Module((nest("n"),), "main")) == "the entry 'main' is missing"
    assert problem(Module((nest("n"), nest("n")), "n")) == "two functions are called 'n'"


def test_buffers_of_one_function_have_names_of_their_own() -> None:
    assert problem(module(Load(X, Buffer("a", F32, 4, Space.ARENA), Address()))) == "two buffers are called 'a'"


def test_thousands_of_statements_are_no_matter() -> None:
    def body(b: Builder) -> None:
        value = b.load(A, 0)
        for _ in range(5000):
            value = b.apply(ScalarOp.ADD, value, ONE)
        loop = b.while_(carry(value))
        with loop.condition as condition:
            condition.yields(constant(False, BOOL))
        with loop.body as inner:
            inner.yields(loop.carries[0])
        b.store(OUT, 0, loop.results[0])

    check_module(module_of(A, OUT, body=body))
