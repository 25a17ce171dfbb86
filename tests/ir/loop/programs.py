"""Small modules of loop IR, written by hand: what the tests of the text, the verifier and the interpreter share."""

from __future__ import annotations

from collections.abc import Callable

from tracer.ir.dtypes import BOOL, F32, F64, I64, DType
from tracer.ir.loop import Buffer, Function, LoopKind, Module, Operand, ShuffleKind, Space
from tracer.ir.loop.build import Builder, address, carry, constant, reduction
from tracer.ir.scalar import ScalarOp

ADD, SUB, MUL, DIV, FMA = ScalarOp.ADD, ScalarOp.SUB, ScalarOp.MUL, ScalarOp.DIV, ScalarOp.FMA
LT, GE, AND, NOT = ScalarOp.LT, ScalarOp.GE, ScalarOp.AND, ScalarOp.NOT


def operand(name: str, size: int, dtype: DType = F32) -> Buffer:
    return Buffer(name, dtype, size, Space.INPUT)


def result(name: str, size: int, dtype: DType = F32) -> Buffer:
    return Buffer(name, dtype, size, Space.OUTPUT, written=True)


def module_of(
    *parameters: Buffer, body: Callable[[Builder], None], arena: int = 0, stacks: int = 0, name: str = "main"
) -> Module:
    """A module whose entry is all there is."""
    b = Builder()
    body(b)
    return Module((Function(name, parameters, b.finish()),), name, arena, stacks)


def elementwise(rows: int, columns: int, lanes: int = 8) -> Module:
    """out[i, j] = a[i, j] * row[j] + 1, as a nest that the entry invokes; its last lanes are masked."""
    size = rows * columns
    a, row = (Buffer(n, F32, s, Space.ARGUMENT) for n, s in (("a", size), ("row", columns)))
    out = Buffer("out", F32, size, Space.ARGUMENT, written=True)
    b = Builder()
    with (
        b.for_("i", 0, rows) as i,
        b.for_("j", 0, columns, kind=LoopKind.VECTOR, lanes=lanes) as j,
    ):
        at = address((i.index, columns), j.index)
        x, y = b.load(a, at, name="x"), b.load(row, j.index, name="y")
        b.store(out, at, b.compute(FMA, x, y, 1.0))
    nest = Function("scale", (a, row, out), b.finish())
    outer = (operand("a", size), operand("row", columns), result("out", size))
    b = Builder()
    b.invoke("scale", *outer)
    return Module((nest, Function("main", outer, b.finish())), "main")


def softmax(rows: int, columns: int, lanes: int = 4) -> Module:
    """The softmax of each row: its maximum, the sum of the exponentials, which wait in the arena, the quotients."""
    x, out = operand("x", rows * columns), result("out", rows * columns)
    scratch = Buffer("exponentials", F32, columns, Space.ARENA, 64)

    def body(b: Builder) -> None:
        with b.for_("i", 0, rows) as i:
            top = constant(float("-inf"), F32)
            most = reduction(ScalarOp.MAX, top, "most")
            with b.for_("j", 0, columns, kind=LoopKind.VECTOR, lanes=lanes, carries=[most]) as j:
                value = b.load(x, address((i.index, columns), j.index), name="value")
                j.yields(b.compute(ScalarOp.MAX, j.carries[0], value))
            (highest,) = j.results
            total = reduction(ADD, constant(0.0, F32), "total")
            with b.for_("j", 0, columns, kind=LoopKind.VECTOR, lanes=lanes, carries=[total]) as j:
                value = b.load(x, address((i.index, columns), j.index), name="value")
                e = b.compute(ScalarOp.EXP, b.compute(SUB, value, highest), name="e")
                b.store(scratch, j.index, e)
                j.yields(b.compute(ADD, j.carries[0], e))
            (normal,) = j.results
            with b.for_("j", 0, columns, kind=LoopKind.VECTOR, lanes=lanes) as j:
                e = b.load(scratch, j.index, name="e")
                b.store(out, address((i.index, columns), j.index), b.compute(DIV, e, normal))

    return module_of(x, out, body=body, arena=64 + 4 * columns)


def newton(count: int) -> Module:
    """Square roots by Newton's method, each in as many rounds as it needs; how many goes to `rounds`."""
    a, out, rounds = operand("a", count, F64), result("out", count, F64), result("rounds", count, I64)

    def body(b: Builder) -> None:
        with b.for_("i", 0, count) as i:
            target = b.load(a, i.index, name="target")
            loop = b.while_(carry(target, "x"), carry(constant(0, I64), "n"))
            x, n = loop.carries
            with loop.condition as condition:
                error = b.compute(SUB, b.compute(MUL, x, x), target, name="error")
                bound = b.compute(MUL, target, 1e-14)
                condition.yields(b.compute(ScalarOp.GT, b.compute(ScalarOp.ABS, error), bound))
            with loop.body as inner:
                better = b.compute(MUL, b.compute(ADD, x, b.compute(DIV, target, x)), 0.5, name="better")
                inner.yields(better, b.compute(ADD, n, 1))
            b.store(out, i.index, loop.results[0])
            b.store(rounds, i.index, loop.results[1])

    return module_of(a, out, rounds, body=body)


def gather(count: int, size: int, lanes: int = 4) -> Module:
    """out[i] = table[index[i]]; an index out of bounds is a fault, and then `done` stays false."""
    table, index = operand("table", size, F64), operand("index", count, I64)
    out, done = result("out", count, F64), result("done", 1, BOOL)

    def body(b: Builder) -> None:
        b.store(done, 0, False)
        with b.for_("i", 0, count, kind=LoopKind.VECTOR, lanes=lanes) as i:
            k = b.load(index, i.index, name="k")
            inside = b.compute(AND, b.compute(GE, k, 0), b.compute(LT, k, size), name="inside")
            b.fault(0, b.compute(NOT, inside), i.index, k, size)
            b.store(out, i.index, b.load(table, k, mask=inside, fill=0.0, name="value"))
        b.leave()
        b.store(done, 0, True)

    return module_of(table, index, out, done, body=body)


def row_sums(rows: int, columns: int, threads: int = 64) -> Module:
    """The sum of each row by one block: strided partial sums, shuffles within warps, shared memory between them."""
    x, out = operand("x", rows * columns), result("out", rows)
    shared = Buffer("partial", F32, threads // 32, Space.SHARED, written=True)

    def body(b: Builder) -> None:
        with b.for_("row", 0, rows, kind=LoopKind.BLOCK) as block:
            b.alloc(shared)
            with b.for_("t", 0, threads, kind=LoopKind.THREAD) as thread:
                t = thread.index
                total = carry(constant(0.0, F32), "sum")
                with b.for_("k", t, columns, step=threads, carries=[total]) as k:
                    value = b.load(x, address((block.index, columns), k.index), name="value")
                    k.yields(b.compute(ADD, k.carries[0], value))
                _sum_of_warps(b, k.results[0], t, shared, threads)
                with b.if_(b.compute(ScalarOp.EQ, t, 0)):
                    with b.for_("w", 0, threads // 32, carries=[carry(constant(0.0, F32), "all")]) as w:
                        w.yields(b.compute(ADD, w.carries[0], b.load(shared, w.index)))
                    b.store(out, block.index, w.results[0])

    return module_of(x, out, body=body)


def _sum_of_warps(b: Builder, value: Operand, t: Operand, shared: Buffer, threads: int) -> None:
    """The sum over each warp to `shared`, which all threads may read afterwards."""
    for offset in (16, 8, 4, 2, 1):
        value = b.compute(ADD, value, b.shuffle(value, offset, ShuffleKind.XOR, name="other"), name="warp")
    first = b.compute(ScalarOp.EQ, b.compute(ScalarOp.IREM, t, 32), 0, name="first")
    with b.if_(first):
        b.store(shared, b.compute(ScalarOp.IDIV, t, 32), value)
    b.barrier()
