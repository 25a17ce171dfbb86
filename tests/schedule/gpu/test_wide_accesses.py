"""Wide accesses: which kernels move several elements at once, the proof that they may, and the results."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import THOROUGH
from tests.runtime.cuda.simulator.running import outputs_of, run, simulated, traffic_of
from tests.schedule.gpu.gpu_programs import Types, program_of
from tests.schedule.gpu.test_mapping import mapped
from tracer import nn
from tracer.codegen.cuda.emit import emit_cuda
from tracer.codegen.cuda.nvrtc import compile_cuda
from tracer.codegen.reference.interpreter import interpret
from tracer.codegen.status import Status
from tracer.errors import InternalError
from tracer.ir.loop import Address, Copy, Function, Load, Module, Space, Statement, Store
from tracer.ir.loop.check import check_module
from tracer.ir.loop.walk import statements_of, with_statements
from tracer.ir.target import CUDA
from tracer.primitives.base.reference import run_reference
from tracer.runtime.cuda.simulator.kernels import Order
from tracer.runtime.cuda.simulator.memory import DeviceMemory, KernelError
from tracer.schedule.pipeline import gpu_schedule

TALL = (257, 256)  # more elements than are mapped one by one


def chain(x: Any, y: Any) -> list[Any]:
    return [x * y + 1, x > y]


def spread(x: Any, b: Any) -> list[Any]:
    """A value a row, one a column, and the column's number."""
    return [x + b[:, None], x * tnp.arange(x.shape[1], dtype=x.dtype)]


def norm(x: Any) -> list[Any]:
    return [(x - tnp.mean(x, axis=1, keepdims=True)) / tnp.sqrt(tnp.mean(x * x, axis=1, keepdims=True) + 1)]


WIDE: dict[str, tuple[Callable[..., Sequence[Any]], Types, str]] = {
    "f32": (chain, [("float32", TALL)] * 2, "v4.f32"),
    "f64": (chain, [("float64", TALL)] * 2, "v2.f64"),
    "f16": (chain, [("float16", TALL)] * 2, "v4.u32"),
    "i8": (lambda x, y: [x + y], [("int8", TALL)] * 2, "v4.u32"),
    "two widths": (lambda x, y: [x + y.astype("float64")], [("float64", TALL), ("float32", TALL)], "v2.f32"),
    "spread": (spread, [("float32", TALL), ("float32", TALL[:1])], "v4.f32"),
    "joined parts": (lambda x: [tnp.concatenate([x, -x], 0)], [("float32", TALL)], "v4.f32"),
    "rows": (lambda x: [nn.softmax(x, axis=1)], [("float32", (3, 300))], "v4.f32"),
    "short rows of halves": (lambda x: [nn.softmax(x, axis=1)], [("float16", (3, 200))], "v4.u16"),
    "rows of two passes": (norm, [("float64", (2, 130))], "v2.f64"),
    "total": (lambda x: [tnp.sum(x)], [("float32", (8192,))], "v4.f32"),
}


def inputs_of(types: Types, rng: np.random.Generator) -> list[Any]:
    return [(10 * rng.random(shape)).astype(dtype) for dtype, shape in types]


@pytest.mark.parametrize("name", WIDE)
@pytest.mark.rung("NVRTC", "simulator", "PTX", "meter", of="accesses")
def test_groups_of_elements_are_one_access_each(name: str, rng: np.random.Generator) -> None:
    function, types, instruction = WIDE[name]
    program, inputs = program_of(function, types), inputs_of(types, rng)
    module = gpu_schedule(program, CUDA)[1].module
    check_module(module)
    found = emit_cuda(module).text
    assert re.search(r"  tr_load_wide<\d+>\(", found)
    for arch in ("sm_80", "sm_90"):
        compiled = compile_cuda(found, arch)
        assert re.search(rf"ld\.global(\.nc)?\.{instruction}", compiled.ptx)
        assert all(r.stack == r.spill_stores == r.spill_loads == 0 for r in compiled.resources.values())
    turn = list(WIDE).index(name)
    orders = list(Order) if THOROUGH else [Order.FORWARD, (Order.BACKWARD, Order.BY_CHANCE)[turn % 2]]
    got = [outputs_of(module, inputs, order) for order in orders]
    got.append(outputs_of(module, inputs, arch="sm_90"))
    for wanted, *runs in zip(run_reference(program, inputs), *got, strict=True):
        close = 1e-2 if wanted.dtype == np.float16 else 1e-5 if wanted.dtype == np.float32 else 1e-12
        np.testing.assert_allclose(runs[0].reshape(wanted.shape), wanted, rtol=close, atol=close)
        assert len({array.tobytes() for array in runs}) == 1
    counts = traffic_of(module, inputs).values()
    assert sum(c.sectors for c in counts) <= 1.12 * sum(c.least for c in counts)


@pytest.mark.parametrize("name", ["f16", "spread", "rows of two passes", "total"])
@pytest.mark.rung("interpreter", of="accesses")
def test_the_interpreter_finds_no_race_and_no_wrong_place(name: str, rng: np.random.Generator) -> None:
    function, types, _ = WIDE[name]
    module, inputs = mapped(program_of(function, types)).module, inputs_of(types, rng)
    parameters = module.entry_function.parameters
    outputs = [np.zeros(p.size, p.dtype) for p in parameters if getattr(p, "space", None) is Space.OUTPUT]
    assert interpret(module, [*(x.ravel() for x in inputs), *outputs]).status is Status.DONE
    for a, b in zip(outputs, outputs_of(module, inputs), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    ("function", "types"),
    [
        (chain, [("float32", (255, 257))] * 2),  # elements left over
        (chain, [("float32", (64, 64))] * 2),  # a launch takes longer
        (lambda x: [x[1:] + x[:-1]], [("float32", (1 << 16) + 1)]),  # one beside the other
        (lambda x: [tnp.exp(x[:, 1:])], [("float32", (64, 1025))]),
        (lambda x, i: [x[i]], [("float32", (9,)), ("int64", (1 << 16,))]),
        (lambda x: [nn.softmax(x[:, 1:], axis=1)], [("float32", (3, 257))]),
        (lambda x: [nn.softmax(x, axis=1)], [("float32", (3, 301))]),
    ],
)
def test_places_that_are_not_known_to_be_aligned_are_accessed_one_by_one(function: Any, types: Any) -> None:
    types = [(dtype, shape if isinstance(shape, tuple) else (shape,)) for dtype, shape in types]
    module = mapped(program_of(function, types)).module
    assert not any(isinstance(s, Copy) for f in module.functions for s in statements_of(f.body))


def copying() -> tuple[Module, Function, Copy]:
    module = mapped(program_of(*WIDE["f32"][:2])).module
    kernel = next(f for f in module.functions if f.name != module.entry)
    return module, kernel, next(s for s in statements_of(kernel.body) if isinstance(s, Copy))


def changed(module: Module, kernel: Function, old: Statement, new: Statement) -> Module:
    body = with_statements(kernel.body, lambda s: (new,) if s is old else (s,))
    others = [f for f in module.functions if f is not kernel]
    return Module((Function(kernel.name, kernel.parameters, body), *others), module.entry, module.arena)


def test_the_verifier_repeats_the_proof() -> None:
    module, kernel, copy = copying()
    beside = Copy(copy.target, type(copy.source)(copy.source.buffer, Address(1, copy.source.start.terms)), copy.count)
    with pytest.raises(InternalError, match="a copy of 16 bytes at once, aligned to 4"):
        check_module(changed(module, kernel, copy, beside))
    with pytest.raises(InternalError, match="a copy of 12 bytes in a kernel, not of 2, 4, 8, 16"):
        check_module(changed(module, kernel, copy, Copy(copy.target, copy.source, 3)))
    call = module.entry_function.body.statements[0]
    moved = [type(v)(v.buffer, Address(2)) for v in call.arguments]  # type: ignore[union-attr]
    entry = with_statements(module.entry_function.body, lambda s: (type(s)(s.function, tuple(moved)),))  # type: ignore[union-attr, arg-type, call-arg]
    functions = (kernel, Function(module.entry, module.entry_function.parameters, entry))
    with pytest.raises(InternalError, match="'nest0' takes 'a0' aligned to 16, got 8"):
        check_module(Module(functions, module.entry))


def test_the_simulator_checks_alignment(rng: np.random.Generator) -> None:
    program = program_of(*WIDE["f32"][:2])
    source = emit_cuda(gpu_schedule(program, CUDA)[1].module)
    wrong = type(source)(source.text.replace("a2, 4 * i", "a2, 4 * i + 1"), source.kernels, source.entry, source.arena)
    assert wrong.text != source.text
    with pytest.raises(KernelError, match=r"16 bytes at once of a2\[1\], which is not aligned to them"):
        run(wrong, inputs_of(WIDE["f32"][1], rng), simulated())


def test_operands_that_begin_elsewhere_are_copied(rng: np.random.Generator) -> None:
    whole = tracer.device_put(rng.random(65541).astype("float32"), "cuda-sim")
    part = tnp.from_dlpack(np.from_dlpack(whole)[1:-4], device="cuda-sim")
    held = part._value.memory
    part._value.memory = moved = DeviceMemory.holding(np.zeros(held.nbytes + 4, np.uint8))[4:]
    moved.values[...] = held.values
    assert moved.address % 16
    np.testing.assert_array_equal(np.asarray(tracer.jit(lambda x: x + 1)(part)), np.asarray(whole)[1:-4] + 1)


def test_a_group_loads_values_before_it_stores_to_their_place() -> None:
    """Values that are read and written in place are one group's."""
    module = mapped(program_of(*WIDE["f32"][:2])).module
    for kernel in module.functions:
        stored = False
        for s in statements_of(kernel.body):
            stored |= isinstance(s, Copy) and s.target.buffer.space is not Space.LOCAL
            assert not (stored and isinstance(s, Load | Store))
