"""Memory in loops: every stride, masked accesses, ends of pages, buffers that live in a loop."""

from __future__ import annotations

import ctypes
import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from tests.codegen.llvm.llvm_programs import (
    RNG,
    WIDTHS,
    at,
    constant,
    loop,
    main_of,
    module_of,
    run,
    same,
    values_of,
)
from tests.grids import covering
from tracer.ir.dtypes import BF16, BOOL, F16, F32, F64, I8, I16, I32, I64, DType
from tracer.ir.loop import (
    Alloc,
    Buffer,
    Compute,
    Copy,
    Load,
    Register,
    Space,
    Statement,
    Store,
    View,
)  # fmt: skip
from tracer.ir.scalar import ScalarOp


@pytest.mark.parametrize(("dtype", "bits"), covering([BOOL, I8, F16, F32, I64], WIDTHS), ids=str)
def test_lanes_load_with_every_stride(dtype: DType, bits: int) -> None:
    for stride in (-3, -2, -1, 0, 1, 2, 3, 4, 5, 8, 9):
        loops = [(count, lanes) for count in (1, 16, 21) for lanes in (8, 16)]
        extents = [abs(stride) * (count - 1) + 1 for count, _ in loops]
        bases = [extent - 1 if stride < 0 else 0 for extent in extents]
        sources = [values_of(dtype, extent) for extent in extents]
        outs = loads_of(dtype, [(*of, stride, base) for of, base in zip(loops, bases, strict=True)], sources, bits)
        for (count, lanes), base, source, out in zip(loops, bases, sources, outs, strict=True):
            assert same(out, source[[base + stride * k for k in range(count)]]), (stride, count, lanes)


def loads_of(
    dtype: DType, loops: Sequence[tuple[int, int, int, int]], sources: Sequence[Any], bits: int
) -> list[np.ndarray[Any, Any]]:
    """What loops of one program load, each by its count, lanes, stride and base, from an array of its own."""

    def body(*buffers: Any) -> list[Statement]:
        written = []
        for a, o, (count, lanes, stride, base) in zip(buffers[::2], buffers[1::2], loops, strict=True):

            def rounds(i: Register, a: Any = a, o: Any = o, stride: int = stride, base: int = base) -> list[Statement]:
                x = Register(dtype)
                where = at((i, stride), constant=base) if stride else at(constant=base)
                return [Load(x, a, where), Store(o, at((i, 1)), x)]

            written.append(loop(count, rounds, lanes=lanes))
        return written

    outs = [np.zeros(count, dtype) for count, *_ in loops]
    both = [x for pair in zip(sources, outs, strict=True) for x in pair]
    run(module_of([(f"x{n}", dtype, x.size, n % 2 == 1) for n, x in enumerate(both)], body), both, vector_bits=bits)
    return outs


def _before_a_page_nobody_may_read(values: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """A copy whose last byte is the last of its page."""
    page = mmap.PAGESIZE
    whole = -(-values.nbytes // page) * page
    memory = np.frombuffer(mmap.mmap(-1, whole + page), np.uint8)
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(memory.ctypes.data + whole), page, 0) == 0
    copied = memory[whole - values.nbytes : whole].view(values.dtype)
    copied[:] = values
    return copied


@pytest.mark.skipif(os.name != "posix", reason="protects a page with mprotect")
@pytest.mark.parametrize("bits", WIDTHS)
@pytest.mark.parametrize("lanes", [2, 8, 16])
def test_strided_loads_end_at_the_last_element(lanes: int, bits: int) -> None:
    for stride in (2, 3, 8):
        loops = [(count, lanes, stride, 0) for count in (1, 2, 3, 6, 7, 13, 16, 21)]
        sources = [_before_a_page_nobody_may_read(values_of(F32, stride * (n - 1) + 1)) for n, *_ in loops]
        for source, out in zip(sources, loads_of(F32, loops, sources, bits), strict=True):
            assert same(out, source[::stride]), (stride, out.size)


@pytest.mark.parametrize(("dtype", "bits"), covering([BOOL, I8, BF16, F32, F64], WIDTHS), ids=str)
def test_lanes_store_with_every_stride_and_touch_nothing_else(dtype: DType, bits: int) -> None:
    for stride in (-2, -1, 0, 1, 2, 3):
        for count in (1, 16, 21):
            extent = max(abs(stride), 1) * count + 3
            base = extent - 1 if stride < 0 else 1
            source, before = values_of(dtype, count), values_of(dtype, extent)

            def body(a: Any, o: Any, stride: int = stride, base: int = base, count: int = count) -> list[Statement]:
                def rounds(i: Register) -> list[Statement]:
                    x = Register(dtype)
                    where = at((i, stride), constant=base) if stride else at(constant=base)
                    return [Load(x, a, at((i, 1))), Store(o, where, x)]

                return [loop(count, rounds, lanes=8)]

            out, expected = before.copy(), before.copy()
            for k in range(count):
                expected[base + stride * k] = source[k]
            names = [("a", dtype, count, False), ("o", dtype, extent, True)]
            run(module_of(names, body), [source, out], vector_bits=bits)
            assert same(out, expected), stride


@pytest.mark.parametrize(("dtype", "lanes", "bits"), covering([BOOL, F16, F32, I64], [0, 8], WIDTHS, least=12), ids=str)
def test_a_false_mask_neither_loads_nor_stores(dtype: DType, lanes: int, bits: int) -> None:
    """Masked addresses lie far outside of memory."""
    count, far = 21, 1 << 40
    indices = RNG.permutation(count)
    keep = RNG.integers(0, 2, count).astype(np.bool_)
    offsets = np.where(keep, indices, far)
    source, before = values_of(dtype, count), values_of(dtype, count)
    fill = constant(1, dtype)

    def body(a: Any, k: Any, at_: Any, contiguous: Any, o: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            m, j, x, y = Register(BOOL), Register(I64), Register(dtype), Register(dtype)
            return [
                Load(m, k, at((i, 1))), Load(j, at_, at((i, 1))),
                Load(x, a, at((j, 1)), mask=m, fill=fill), Store(contiguous, at((i, 1)), x),
                Load(y, a, at((i, 1)), mask=m, fill=fill), Store(o, at((j, 1)), y, mask=m),
            ]  # fmt: skip

        return [loop(count, rounds, lanes=lanes)]

    loaded, stored, expected = before.copy(), before.copy(), before.copy()
    names = [("a", dtype, count, False), ("k", BOOL, count, False), ("j", I64, count, False)]
    names += [("loaded", dtype, count, True), ("stored", dtype, count, True)]
    run(module_of(names, body), [source, keep, offsets, loaded, stored], vector_bits=bits)
    assert same(loaded, np.where(keep, source[indices], np.ones(count, dtype)))
    expected[indices[keep]] = source[keep]
    assert same(stored, expected)


@pytest.mark.parametrize("lanes", [0, 8])
def test_lanes_that_are_all_masked_do_not_touch_a_shared_address(lanes: int) -> None:
    def body(a: Any, k: Any, o: Any) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            m, x = Register(BOOL), Register(F32)
            far = at(constant=1 << 40)
            return [
                Load(m, k, at((i, 1))), Load(x, a, far, mask=m, fill=constant(3, F32)),
                Store(a, far, constant(1, F32), mask=m), Store(o, at((i, 1)), x),
            ]  # fmt: skip

        return [loop(11, rounds, lanes=lanes)]

    out = np.zeros(11, np.float32)
    names = [("a", F32, 1, True), ("k", BOOL, 11, False), ("o", F32, 11, True)]
    run(module_of(names, body), [np.zeros(1, np.float32), np.zeros(11, np.bool_), out])
    assert (out == 3).all()


def test_locals_arena_and_copies_hold_what_was_put_there() -> None:
    local, scratch = Buffer("l", F32, 8, Space.LOCAL), Buffer("s", F32, 8, Space.ARENA, offset=64)

    def body(a: Any, o: Any) -> list[Statement]:
        return [
            Alloc(local), Copy(View(local), View(a, at(constant=2)), 8), Copy(View(scratch), View(local), 8),
            Copy(View(o), View(scratch), 8), Copy(View(o, at(constant=8)), View(o), 0), Copy(View(o), View(o), 8),
        ]  # fmt: skip

    a, out = values_of(F32, 10), np.zeros(8, np.float32)
    run(main_of([("a", F32, 10, False), ("o", F32, 8, True)], body, arena=128), [a, out])
    assert same(out, a[2:])


@pytest.mark.parametrize(("dtype", "bits", "step"), covering([I8, I16, BF16], WIDTHS, [1, -1], least=9), ids=str)
def test_a_last_round_of_one_lane_stores_one_element(dtype: DType, bits: int, step: int) -> None:
    """Narrowed in that round: LLVM 22 stores four bytes where it sees the mask."""
    wide = F32 if dtype == BF16 else I32

    def body(a: Buffer, o: Buffer) -> list[Statement]:
        def rounds(i: Register) -> list[Statement]:
            x, y = Register(wide), Register(dtype)
            place = at((i, step), constant=4 if step > 0 else 20)
            return [Load(x, a, at((i, 1))), Compute(y, ScalarOp.CONVERT, (x,)), Store(o, place, y)]

        return [loop(17, rounds, lanes=16)]

    values, out = values_of(wide, 17), np.full(25, 77, dtype)
    run(module_of([("a", wide, 17, False), ("o", dtype, 25, True)], body), [values, out], vector_bits=bits)
    expected = np.full(25, 77, dtype)
    expected[4:21] = values.astype(dtype)[::step]
    assert same(out, expected)
