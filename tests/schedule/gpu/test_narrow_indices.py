"""32-bit indices: they reach addresses and loops of kernels wherever ranges show that they fit, and nowhere else."""

from __future__ import annotations

import numpy as np
import pytest

from tests.schedule.gpu.gpu_programs import PROGRAMS, program_of
from tracer.ir.dtypes import F32, I32, I64
from tracer.ir.loop import Buffer, Compute, For, Function, Load, LoopKind, Module, Register, Space
from tracer.ir.loop.build import Builder, address
from tracer.ir.loop.check import check_module
from tracer.ir.loop.walk import accesses_of, statements_of
from tracer.ir.scalar import ScalarOp
from tracer.ir.target import CUDA
from tracer.schedule.gpu.narrow_indices import narrow_indices
from tracer.schedule.pipeline import gpu_schedule


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_index_of_a_small_program_is_64_bits_wide(name: str) -> None:
    module = gpu_schedule(program_of(*PROGRAMS[name]), CUDA)[1].module
    check_module(module)
    for function in module.functions:
        if function.name == module.entry:
            continue
        for s in statements_of(function.body):
            assert not isinstance(s, For) or s.index.dtype == I32
            assert all(r.dtype == I32 for _, place, _ in accesses_of(s) for r, _ in place.terms)


def kernel_over(size: int, count: int, step: int) -> Module:
    """A kernel that copies every `step`-th element with a loop of `count` iterations."""
    a, out = Buffer("a", F32, size, Space.ARGUMENT), Buffer("out", F32, size, Space.ARGUMENT, written=True)
    b = Builder()
    with b.for_("b", 0, 1, kind=LoopKind.BLOCK), b.for_("t", 0, 32, kind=LoopKind.THREAD), b.for_("i", 0, count) as i:
        place = address((i.index, step))
        b.store(out, place, b.load(a, place))
    entry = [Buffer("a", F32, size, Space.INPUT), Buffer("out", F32, size, Space.OUTPUT, written=True)]
    e = Builder()
    e.invoke("copy", *entry)
    kernel = Function("copy", (a, out), b.finish())
    return Module((kernel, Function("main", tuple(entry), e.finish())), "main")


@pytest.mark.parametrize(
    ("count", "step", "index", "place"),
    [
        ((1 << 31) - 1, 1, I32, I32),  # the value that ends the loop fits too
        (1 << 31, 1, I64, I64),
        (1 << 20, 1 << 11, I32, I32),
        ((1 << 20) + 1, 1 << 11, I32, I64),  # the index fits, the address does not
    ],
)
def test_the_largest_value_decides(count: int, step: int, index: object, place: object) -> None:
    module = narrow_indices(kernel_over(count * step, count, step))
    check_module(module)
    found = list(statements_of(module.functions[0].body))
    assert [s.index.dtype for s in found if isinstance(s, For)][-1] == index
    (load,) = [s for s in found if isinstance(s, Load)]
    assert [r.dtype for r, _ in load.address.terms] == [place]


def test_values_of_the_program_keep_their_width() -> None:
    """A number of the user's may wrap in 64 bits, and a sum of indices is converted back for it."""
    a, out = Buffer("a", I64, 32, Space.ARGUMENT), Buffer("out", I64, 32, Space.ARGUMENT, written=True)
    b = Builder()
    with b.for_("b", 0, 1, kind=LoopKind.BLOCK), b.for_("t", 0, 32, kind=LoopKind.THREAD) as t:
        far = b.compute(ScalarOp.ADD, b.load(a, t.index), b.compute(ScalarOp.MUL, t.index, 3))
        b.store(out, t.index, far)
    entry = [Buffer("a", I64, 32, Space.INPUT), Buffer("out", I64, 32, Space.OUTPUT, written=True)]
    e = Builder()
    e.invoke("k", *entry)
    module = narrow_indices(
        Module((Function("k", (a, out), b.finish()), Function("main", tuple(entry), e.finish())), "main")
    )
    check_module(module)
    sums = [s for s in statements_of(module.functions[0].body) if isinstance(s, Compute)]
    assert [(s.op, s.result.dtype) for s in sums] == [
        (ScalarOp.MUL, I32), (ScalarOp.CONVERT, I64), (ScalarOp.ADD, I64),
    ]  # fmt: skip
    assert all(isinstance(o, Register) or o.value == np.int64(3) for s in sums for o in s.operands)
