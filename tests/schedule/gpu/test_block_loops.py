"""Loops and branches in one block of threads: the bits of the loops on the host, any trip count, and faults."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.laws.cases import Case, cases_of
from tests.laws.sampling import generator
from tests.runtime.cuda.simulator.running import run, simulated
from tests.runtime.programs import call_host
from tracer import grad, jit, lax, vmap
from tracer.codegen.cuda.emit import emit_cuda
from tracer.codegen.reference.interpreter import interpret
from tracer.codegen.status import Status
from tracer.ir.dtypes import F64, I64
from tracer.ir.loop import Buffer, For, Function, If, Invoke, Load, Module, Space, View, While
from tracer.ir.loop.build import Builder, address
from tracer.ir.loop.check import check_module
from tracer.ir.loop.walk import statements_of
from tracer.ir.program import Program
from tracer.ir.target import CUDA
from tracer.ir.types import array_type
from tracer.passes.pipeline import optimize
from tracer.runtime.cuda.simulator.driver import SimulatedDriver
from tracer.runtime.cuda.simulator.kernels import Order
from tracer.schedule.gpu.block_loops import loops_to_kernels
from tracer.schedule.pipeline import GPU_PIPELINE, gpu_schedule
from tracer.trace.stage import stage

HOST = tuple(each for each in GPU_PIPELINE if each.name != "loops_to_kernels")
CASES = [c for name in ("cond", "while_loop", "for_loop", "scan", "loop_push") for c in cases_of(name)]
X = np.linspace(-1.0, 1.0, 24).reshape(4, 6)


def entry_of(module: Module) -> Function:
    return next(f for f in module.functions if f.name == module.entry)


def decisions(module: Module) -> set[str]:
    """Loops and branches of the host, and the values that it waits for."""
    return {type(s).__name__ for s in statements_of(entry_of(module).body) if isinstance(s, For | While | If | Load)}


def both(program: Program, inputs: Sequence[Any]) -> tuple[Module, Module, list[Any]]:
    """A program with its loops on the host and in blocks, and all flat operands."""
    found, host = gpu_schedule(program, CUDA, HOST)
    block = gpu_schedule(program, CUDA)[1].module
    check_module(block)
    given = [p for p in entry_of(block).parameters if isinstance(p, Buffer) and p.space is not Space.OUTPUT]
    values = [*inputs, *found.constants]
    return (
        host.module,
        block,
        [np.ascontiguousarray(x).ravel().view(p.dtype) for x, p in zip(values, given, strict=True)],
    )


def agree(program: Program, inputs: Sequence[Any]) -> Module:
    """The module with loops in blocks, which gives the bits of the host's loops in any order of threads."""
    host, block, flat = both(program, inputs)
    wanted = [x.tobytes() for x in run(emit_cuda(host), flat, simulated())[0]]
    for order in Order:
        assert [x.tobytes() for x in run(emit_cuda(block), flat, simulated(order))[0]] == wanted
    return block


def program_of(function: Callable[..., Any], *inputs: Any) -> Program:
    types = [array_type(np.asarray(x).dtype, np.shape(x)) for x in inputs]
    return optimize(stage(lambda xs: tracer.tree.leaves(function(*xs)), types).program, CUDA)


@pytest.mark.parametrize("case", CASES[::9], ids=lambda case: case.primitive.name)
@pytest.mark.rung("simulator", of="loops")
def test_every_loop_and_branch_has_the_bits_of_the_host_s(case: Case) -> None:
    program = optimize(case.program, CUDA)
    assert decisions(agree(program, [np.asarray(x) for x in case.draw(generator(1, case))])) == set()


def rows(x: Any) -> Any:
    """Rows, columns, cumulative sums and a branch in each iteration: kernels of several blocks, and with barriers."""

    def step(c: Any, n: Any) -> Any:
        e = tnp.exp(c - c.max(1, keepdims=True))
        c = e / e.sum(1, keepdims=True) + tnp.cumsum(c, 1) - c.mean(0)
        return lax.cond(c[0, 0] > n, lambda c: 0.5 * c, lambda c: c + 1.0, c), (c.sum(1), c[:, 0].max())

    return lax.scan(step, x, tnp.arange(3.0))


@pytest.mark.parametrize("shape", [(5, 40), (3, 200), (40, 33)])
def test_kernels_of_several_blocks_take_turns(shape: tuple[int, int], rng: np.random.Generator) -> None:
    x = rng.standard_normal(shape)
    block = agree(program_of(rows, x), [x])
    assert decisions(block) == set()
    outputs = [np.zeros(p.size, p.dtype) for p in entry_of(block).parameters if p.space is Space.OUTPUT]  # type: ignore[union-attr]
    assert interpret(block, [x.ravel(), *outputs]).status is Status.DONE


def test_reverse_loops_of_known_length_are_kernels() -> None:
    program = program_of(grad(lambda x: lax.scan(lambda c, r: (tnp.sin(c + r), c * r), x[0], x)[0].sum()), X)
    assert decisions(agree(program, [X])) == set()


def newton(x: Any, limit: Any) -> Any:
    """Iterations until a limit, of a number, and of an array as an array."""
    return lax.while_loop(lambda c: c[0] < limit, lambda c: (c[0] + 1, 0.5 * (c[1] + x / c[1])), (0 * limit, x + 1.0))


@pytest.mark.parametrize(
    "x", [np.array([2.0, 3.0]), np.float64(2.0), np.ones((2, 0))], ids=["array", "number", "empty"]
)
@pytest.mark.parametrize("trips", [0, 1, 2, 100_000])
def test_any_trip_count_gives_the_bits_of_the_cpu(trips: int, x: Any) -> None:
    got = jit(newton)(tracer.device_put(x, "cuda-sim"), trips)
    wanted = jit(newton)(x, trips)
    assert [np.asarray(v).tobytes() for v in got] == [np.asarray(v).tobytes() for v in wanted]


def climbed(step: Callable[[Any], Any], x: Any, limit: float) -> Any:
    return lax.while_loop(lambda x: x.sum() < limit, step, x)


STACKS: dict[str, Callable[[Any], Any]] = {
    "an array": grad(lambda x: climbed(lambda x: x + tnp.cos(x), x, 9).sum()),
    "a number": lambda x: grad(lambda x: climbed(lambda x: x + tnp.cos(x), x, 1.5))(x[0, 0]),
    "a branch": grad(
        lambda x: climbed(lambda x: lax.cond(x.sum() > 3, tnp.exp, lambda x: x + tnp.cos(x), x), x, 9).sum()
    ),
    "lanes": vmap(grad(lambda x: climbed(lambda x: x + tnp.cos(x), x**2, 3).sum())),
}


@pytest.mark.parametrize("name", STACKS)
@pytest.mark.rung("interpreter", "simulator", "PTX", of="loops")
def test_reverse_loops_with_stacks_are_kernels(name: str) -> None:
    program = program_of(STACKS[name], X)
    assert decisions(agree(program, [X])) == set()
    _, block, flat = both(program, [X])
    source = emit_cuda(block)
    assert any(s.stacks for s in statements_of(source.entry.body) if isinstance(s, Invoke))
    wanted = [x.tobytes() for x in run(source, flat, simulated())[0]]
    outputs = [np.zeros(p.size, p.dtype) for p in source.parameters if p.space is Space.OUTPUT]
    assert interpret(block, [*flat, *outputs]).status is Status.DONE
    assert [x.tobytes() for x in outputs] == wanted
    if name == "a number":
        assert [x.tobytes() for x in run(source, flat, simulated(arch="sm_90"))[0]] == wanted


@pytest.mark.parametrize(("trips", "launches"), [(0, 1), (1, 1), (2, 1), (20_000, 3)])
@pytest.mark.rung("device", of="loops")
def test_a_gradient_launches_again_only_for_more_room(
    trips: int, launches: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """20,000 items of 8 bytes double the room for 8,192 of them twice."""

    def steps(a: Any) -> Any:
        return lax.while_loop(lambda c: c[0] < trips, lambda c: (c[0] + 1, c[1] * (1.0 - a * c[1])), (0, a))[1]

    slope = jit(grad(steps))
    launched: list[str] = []
    launch = SimulatedDriver.launch

    def noted(driver: SimulatedDriver, module: Any, kernel: Any, arguments: Sequence[Any]) -> None:
        launched.append(kernel.name)
        launch(driver, module, kernel, arguments)

    monkeypatch.setattr(SimulatedDriver, "launch", noted)
    got = slope(tracer.device_put(0.3, "cuda-sim"))
    assert np.asarray(got).tobytes() == np.asarray(slope(0.3)).tobytes()
    assert [launched.count(name) for name in ("loop0", "loop1")] == [launches, 1]


def test_every_step_on_a_stack_is_a_kernel_s() -> None:
    given = Buffer("in0", F64, 6, Space.INPUT)
    outputs = [Buffer(f"out{i}", F64 if i < 2 else I64, 8, Space.OUTPUT, written=True) for i in range(3)]
    held, b = Buffer("t", F64, 2, Space.ARENA, written=True), Builder()
    b.reset(0)
    with b.for_("i", 0, 3) as each:
        b.push(0, View(given, address((each.index, 2))), 2)
        b.push(0, given, 2)
        b.pop(0, held, 2)
        b.read_item(0, each.index, View(outputs[0], address((each.index, 2))), 2)
        b.store(outputs[2], each.index, b.length(0, 16))
    b.read_item(0, 3, View(outputs[0], address(6)), 2)
    with b.for_("i", 0, 4) as each:
        b.pop(0, View(outputs[1], address((each.index, 2))), 2)
    with b.for_("i", 3, 8) as each:
        b.push(0, given, 2)
        b.store(outputs[2], each.index, b.length(0, 16))
        b.reset(0)
    module = Module((Function("main", (given, *outputs), b.finish()),), "main", 16, 1)
    block = loops_to_kernels(module)
    check_module(block)
    assert decisions(block) == set()
    x = np.arange(1.0, 7.0)
    wanted = [[*x, 0, 0], [*x[4:], *x[2:4], *x[:2], 0, 0], [1, 2, 3, 1, 1, 1, 1, 1]]
    for order in Order:
        assert [list(v) for v in run(emit_cuda(block), [x], simulated(order))[0]] == wanted
    arrays = [np.zeros(8, p.dtype) for p in outputs]
    for each_module in (module, block):
        assert interpret(each_module, [x, *arrays]).status is Status.DONE
        assert [list(v) for v in arrays] == wanted


@pytest.mark.parametrize("trips", [0, 1, 2])
def test_any_length_of_a_scan_gives_the_bits_of_the_host_s(trips: int) -> None:
    x = X[0, :, None] * np.ones(trips)
    agree(program_of(lambda x: lax.scan(lambda c, r: (tnp.sin(c + r), c * r), x.sum(1), x.T), x), [x])


@pytest.mark.parametrize("i", [np.array([0, 1, 2]), np.int64(2)], ids=["a block", "a thread"])
def test_a_fault_ends_a_loop_that_its_garbage_never_would(i: Any) -> None:
    def climb(x: Any, i: Any) -> Any:
        """Up to 5 behind the end, where a clamped index finds 4 for ever."""
        return lax.while_loop(lambda c: tnp.sum(c[1]) < 5 * i.size, lambda c: (c[0] + 1, x[c[0]]), (i, x[i]))

    x = np.arange(5.0)
    host, block, flat = both(program_of(climb, x, i), [x, i])
    assert decisions(block) == set()
    assert "u64* fault" in emit_cuda(block).text  # not restricted: NVRTC would keep the word across barriers
    wanted = run(emit_cuda(host), flat, simulated())[1]
    assert wanted is not None
    for order in Order:
        assert run(emit_cuda(block), flat, simulated(order, most=100_000))[1] == wanted
    with pytest.raises(IndexError, match="out of bounds"):
        np.asarray(jit(climb)(tracer.device_put(x, "cuda-sim"), i)[0])


def test_loops_of_scalars_are_one_thread_s() -> None:
    """Nothing but registers goes from one iteration to the next, and the host looks at no branch."""

    def f(x: Any) -> Any:
        y = lax.fori_loop(0, 9, lambda i, y: lax.cond(y > i, lambda y: y - 0.5, lambda y: 2.0 * y, y), x)
        return lax.cond(y > x, tnp.sin, tnp.cos, y)

    module = gpu_schedule(program_of(f, 0.7), CUDA, HOST)[1].module
    assert decisions(module) == set()
    every = [s for f in module.functions for s in statements_of(f.body)]
    (loop,) = (s for s in every if isinstance(s, For) and s.carries)
    assert not any(isinstance(s, Load) for s in statements_of(loop.body))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: lax.fori_loop(0, 3, lambda _, x: call_host(np.sin, x), x),
        lambda x: lax.fori_loop(0, 3, lambda _, x: tnp.sin(x[::-1]), tnp.arange(16385.0) * x[0, 0]),
        grad(lambda x: climbed(lambda x: climbed(lambda x: x + tnp.cos(x), x, 9), x, 40).sum()),
    ],
    ids=["callbacks", "more elements than a block takes", "pushes in a loop within"],
)
def test_loops_with_steps_of_the_host_stay_there(function: Callable[[Any], Any]) -> None:
    module = gpu_schedule(program_of(function, X), CUDA)[1].module
    assert decisions(module) & {"For", "While"}
