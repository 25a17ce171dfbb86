"""The printed loop IR, whole."""

from __future__ import annotations

import numpy as np

from tests.ir.loop.programs import elementwise, module_of, newton, operand, result, row_sums
from tracer.ir.dtypes import BF16, BOOL, F32, F64, I32, I64, U8
from tracer.ir.loop import (
    Address,
    Block,
    Buffer,
    Carry,
    Constant,
    For,
    Function,
    LoopKind,
    Module,
    Register,
    Space,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.build import Builder, constant, reduction, view
from tracer.ir.loop.text import Printer, function_text, loop_text
from tracer.ir.scalar import ScalarOp


def body_of(module: Module) -> str:
    """The lines of a one-function module's body."""
    return "\n".join(line[2:] for line in loop_text(module).splitlines()[3:-1])


def test_a_nest_and_the_entry_that_invokes_it() -> None:
    text = loop_text(elementwise(3, 21))
    assert (
        text
        == """\
module entry main

scale(a: f32[63], row: f32[21], out: f32[63] written) {
  for %i in 0..3 {
    for %j in 0..21 vector(8) {
      %x: f32 = load a[21*%i + %j]
      %y: f32 = load row[%j]
      %0: f32 = fma %x, %y, 1.0:f32
      store out[21*%i + %j] = %0
    }
  }
}

main(a: input f32[63], row: input f32[21], out: output f32[63]) {
  invoke scale(a, row, out)
}
"""
    )


def test_a_while_loop_with_its_condition_and_body() -> None:
    text = body_of(newton(2))
    assert (
        text
        == """\
for %i in 0..2 {
  %target: f64 = load a[%i]
  %x1: f64, %n1: i64 = while carry(%x: f64 = %target, %n: i64 = 0) {
    condition {
      %0: f64 = mul %x, %x
      %error: f64 = sub %0, %target
      %1: f64 = mul %target, 1e-14:f64
      %2: f64 = abs %error
      %3: bool = gt %2, %1
      yield %3
    }
    body {
      %4: f64 = div %target, %x
      %5: f64 = add %x, %4
      %better: f64 = mul %5, 0.5:f64
      %6: i64 = add %n, 1:i64
      yield %better, %6
    }
  }
  store out[%i] = %x1
  store rounds[%i] = %n1
}"""
    )


def test_blocks_threads_shuffles_and_barriers() -> None:
    lines = body_of(row_sums(2, 100, threads=32)).splitlines()
    assert lines[:8] == [
        "for %row in 0..2 block {",
        "  alloc partial: shared f32[1]",
        "  for %t in 0..32 thread {",
        "    %sum1: f32 = for %k in %t..100 step 32 carry(%sum: f32 = 0.0) {",
        "      %value: f32 = load x[100*%row + %k]",
        "      %0: f32 = add %sum, %value",
        "      yield %0",
        "    }",
    ]
    assert "    %other: f32 = shuffle %sum1 xor 16" in lines
    assert "    barrier" in lines


def test_reductions_masks_and_updates() -> None:
    a, out, seen = operand("a", 10), result("out", 1), operand("seen", 10, BOOL)

    def body(b: Builder) -> None:
        carries = [
            reduction(ScalarOp.ADD, constant(0.0, F32), "a"),
            reduction(ScalarOp.MIN, constant(9.0, F32), "b"),
        ]
        with b.for_("i", 0, 9, kind=LoopKind.VECTOR, lanes=4, carries=carries) as i:
            on = b.load(seen, i.index, name="on")
            x = b.load(a, i.index, mask=on, fill=-0.0, name="x")
            i.yields(b.compute(ScalarOp.ADD, i.carries[0], x), x)
        b.update(out, 0, ScalarOp.MAX, i.results[1], mask=constant(True, BOOL))

    text = body_of(module_of(a, seen, out, body=body))
    assert (
        text
        == """\
%a1: f32, %b1: f32 = for %i in 0..9 vector(4) carry(%a: f32 = 0.0 combine add, %b: f32 = 9.0 combine min) {
  %on: bool = load seen[%i]
  %x: f32 = load a[%i] where %on else -0.0
  %0: f32 = add %a, %x
  yield %0, %x
}
update out[0] max %b1 where true"""
    )


def test_an_identity_other_than_the_usual_one_is_shown() -> None:
    index, acc, total = Register(I64, "i"), Register(F32, "acc"), Register(F32)
    zero = constant(0.0, F32)
    loop = For(
        index, index_constant(0), index_constant(3), Block((), (acc,)), results=(total,),
        carries=(Carry(acc, zero, ScalarOp.ADD, zero),),
    )  # fmt: skip
    text = function_text(Function("f", (), Block((loop,))))
    assert text.splitlines()[1] == "  %0: f32 = for %i in 0..3 carry(%acc: f32 = 0.0 combine add from 0.0) {"


def test_effects_calls_and_stacks() -> None:
    a, out = operand("a", 8), result("out", 8)
    scratch = Buffer("scratch", F32, 4, Space.LOCAL, alignment=16)

    def body(b: Builder) -> None:
        b.alloc(scratch)
        b.copy(scratch, view(a, 4), 4)
        b.push(0, scratch, 4)
        b.pop(0, view(out, 2), 4)
        b.library("gemm_f32", a, scratch, out, 1, 2, 2, 2, 0, 0, 4, 4)
        b.callback(3, [a], [view(out, 1)])
        b.fault(2, constant(False, BOOL), 5)
        b.leave()

    module = module_of(a, out, body=body, stacks=1, arena=128)
    text = loop_text(module)
    assert (
        text
        == """\
module entry main, arena 128 bytes, 1 stack

main(a: input f32[8], out: output f32[8]) {
  alloc scratch: local f32[4] align 16
  copy 4 from a[4 ..] to scratch
  push 4 from scratch to stack 0
  pop 4 from stack 0 to out[2 ..]
  library gemm_f32(a, scratch, out, 1:i64, 2:i64, 2:i64, 2:i64, 0:i64, 0:i64, 4:i64, 4:i64)
  callback 3(a) -> (out[1 ..])
  fault 2 where false at 5
  leave
}
"""
    )


def test_branches_with_and_without_another_arm() -> None:
    def body(b: Builder) -> None:
        with b.if_(constant(True, BOOL)) as branch:
            branch.yields(constant(1, U8))
        with branch.otherwise as otherwise:
            otherwise.yields(constant(255, U8))
        with b.if_(constant(False, BOOL)):
            b.leave()

    text = body_of(module_of(body=body))
    assert (
        text
        == """\
%0: u8 = if true {
  yield 1:u8
} else {
  yield 255:u8
}
if false {
  leave
}"""
    )


def test_addresses_read_as_mathematics() -> None:
    i, j = Register(I64, "i"), Register(I64, "j")
    printer = Printer(Function("f", (i, j), Block(())))
    printer.function_lines()
    addresses = [
        Address(), Address(-3), Address(0, ((i, 1),)), Address(2, ((i, -1),)), Address(-1, ((i, 4), (j, -7))),
    ]  # fmt: skip
    assert [printer.address(a) for a in addresses] == ["0", "-3", "%i", "-%i + 2", "4*%i - 7*%j - 1"]


def test_names_are_unique_by_order_whatever_the_hints() -> None:
    registers = [Register(F32, hint) for hint in ("x", "x", "x1", "x", "", "x1", "", "2")]
    printer = Printer(Function("f", tuple(registers), Block(())))
    printer.function_lines()
    assert [printer.name(r) for r in registers] == [
        "%x", "%x1", "%x1_1", "%x2", "%0", "%x1_2", "%1", "%2",
    ]  # fmt: skip


def test_literals_show_what_they_are_bit_for_bit() -> None:
    printer = Printer(Function("f", (), Block(())))
    quiet = np.uint32(0xFFC00001).view(np.float32)
    literals = [
        constant(0.1, F32), constant(-0.0, F64), constant(float("inf"), BF16), constant(-7, I32),
        Constant(quiet, F32), constant(True, BOOL),
    ]  # fmt: skip
    assert [printer.operand(c) for c in literals] == [
        "0.1:f32", "-0.0:f64", "inf:bf16", "-7:i32", "nan(0xffc00001):f32", "true",
    ]  # fmt: skip
