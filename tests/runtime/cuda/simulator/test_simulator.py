"""The simulator: right kernels pass in every order, and kernels with one fault show it."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
import pytest

from tests.runtime.cuda.simulator.families import KERNELS, PRELUDE, TEXT, runs
from tests.runtime.cuda.simulator.mutants import built_together, mutants, pieces, what_shows
from tests.runtime.cuda.simulator.running import built_from_ptx
from tracer.runtime.cuda.simulator import kernels
from tracer.runtime.cuda.simulator.kernels import Order, built
from tracer.runtime.cuda.simulator.memory import DeviceMemory, KernelError
from tracer.settings import config

_ALIKE = "all lanes hold the warp's sum"
_LANE_0 = "only the first lane's sum is read, and it is the same"
_THREAD = "one thread is as good as another"
_SLOWER = "the last four elements go one by one"
EQUIVALENT: Final[Mapping[str, Mapping[str, str]]] = {
    "scaled": {"if (i + 4 < n) {": _SLOWER, "if (i + 5 <= n) {": _SLOWER},
    "centred": {
        "x = x + __shfl_down_sync": _LANE_0,
        "step = 17": "17, 8, 4, 2 and 1 reach all lanes too",
        "t % 33 == 0": _ALIKE,
        "t % 32 == 1": _ALIKE,
        "sums[t / 31]": "0, 32, 64, 96 give the same four places",
        "if (t == 1) mean": _THREAD,
    },
    "total": {
        "x = x + __shfl_down_sync": _LANE_0,
        "step = 17": "17, 8, 4, 2 and 1 reach all lanes too",
        "t % 33 == 0": _ALIKE,
        "t % 32 == 1": _ALIKE,
        "sums[t / 31]": "0 and 32 give the same two places",
        "if (t == 1) {": _THREAD,
    },
    "running": {
        "if (t == 1) order": _THREAD,
        ": 1;": "it counts beyond the last element only",
        "step <= 32": "no lane is 32 or more",
        "step < 33": "no lane is 32 or more",
        "step < 31": "16 is the last step",
        "sums[t / 33]": "31 and 63 give the same two places",
        "u64 word = tr_load_atomic(state, b - 0);": "the loop reads the right one",
        "word >> 31 == 0": "a stored word has bit 32 set",
        "(u64)2 << 32": "any bit above 31 will do",
        "(u64)1 << 33": "any bit above 31 will do",
    },
}
"""Changes that change nothing: a part of the changed line, and why."""


def test_a_text_is_built_once_on_a_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = 'extern "C" __global__ void f(double* x) {\n  x[threadIdx.x] = 2.0 * x[threadIdx.x];\n}\n'
    with config.using(kernel_dir=tmp_path):
        kernels.built.__wrapped__(text)
        monkeypatch.setattr(kernels, "_compile", None)
        again = kernels.built.__wrapped__(text)
    memory = DeviceMemory.holding(np.arange(3.0))
    again.launch("f", 1, 3, [memory])
    np.testing.assert_array_equal(memory.get(), 2.0 * np.arange(3.0))
    with pytest.raises(KernelError, match=r"read of x\[3\].*line 2: x\[threadIdx\.x\] = "):
        again.launch("f", 1, 4, [memory])


@pytest.mark.parametrize("order", Order)
@pytest.mark.parametrize("kernel", KERNELS)
def test_right_kernels_give_right_bits_in_every_order(kernel: str, order: Order) -> None:
    for run in runs(kernel):
        arguments = run.arguments()
        built(TEXT).launch(kernel, run.grid, run.block, arguments, order=order, cooperative=run.cooperative)
        np.testing.assert_array_equal(arguments[run.result].get(), run.wanted.ravel())


@pytest.mark.parametrize("arch", ["sm_80", "sm_90"])
def test_what_nvrtc_made_of_right_kernels_gives_right_bits_too(arch: str) -> None:
    kernels = built_from_ptx(TEXT, arch, PRELUDE)
    for run, order in product((run for kernel in KERNELS for run in runs(kernel)), Order):
        arguments = run.arguments()
        kernels.launch(run.kernel, run.grid, run.block, arguments, order=order, cooperative=run.cooperative)
        np.testing.assert_array_equal(arguments[run.result].get(), run.wanted.ravel(), err_msg=run.kernel)


def test_ptx_shows_a_read_through_the_cache_of_what_the_kernel_writes() -> None:
    text = kernel_of(
        "if (threadIdx.x == 0) out[0] = 1;", 'asm volatile("ld.global.nc.s32 %0, [%1];" : "=r"(out[1]) : "l"(out));'
    )
    with pytest.raises(KernelError, match="read of out, which the kernel writes, through the cache of constants"):
        built_from_ptx(text, "sm_90").launch("k", 1, 32, [DeviceMemory.empty(40, "i4")])


def test_ptx_that_is_not_known_is_refused() -> None:
    with pytest.raises(NotImplementedError, match=r"sin\.approx\.f32"):
        built_from_ptx(kernel_of("out[0] = __sinf(threadIdx.x);"), "sm_90")


@pytest.mark.parametrize("kernel", KERNELS)
def test_every_mutant_shows_itself_or_is_equivalent(kernel: str) -> None:
    head, text = pieces(TEXT, kernel)
    found, reasons = list(mutants(text, kernel)), EQUIVALENT.get(kernel, {})
    kernels, launches, used = built_together(head, kernel, found), runs(kernel), set()
    for number, mutant in enumerate(found):
        known = [part for part in reasons if part in mutant.name.partition(" -> ")[2]]
        used.update(known)
        shown = what_shows(kernels, f"{kernel}_{number}", launches)
        assert bool(shown) != bool(known), f"{mutant.name}: {shown or 'nothing shows it'}"
    assert used == set(reasons)


def test_the_mutants_are_some_three_hundred() -> None:
    assert sum(len(list(mutants(pieces(TEXT, kernel)[1], kernel))) for kernel in KERNELS) >= 300


def kernel_of(*lines: str, parameters: str = "i32* __restrict__ out") -> str:
    body = "".join(f"  {line}\n" for line in lines)
    return f'typedef int i32;\nextern "C" __global__ void __launch_bounds__(64) k({parameters}) {{\n{body}}}\n'


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("out[threadIdx.x] = 1;",), "write of out[40], which has 40 elements, by thread 40 of block 0, line 3: out["),
        (("out[0] = threadIdx.x;",), "race: write of out[0] after a write by thread 0 of block 0, by thread 1"),
        (("i32 x = out[3];",), "read of out[3], which nothing wrote"),
        (("if (threadIdx.x < 40) __syncthreads();",), "the thread ended, while others wait at __syncthreads of line 3"),
        (("if (threadIdx.x < 40) __syncthreads();", "else __syncthreads();"), "while other threads wait at line 3"),
        (("if (threadIdx.x < 40) __shfl_xor_sync(0xffffffffu, 1, 1);",), "the lane ended, while others of its warp"),
        (("__shfl_xor_sync(0xffffu, 1, 1);",), "line 3: a mask that is not all lanes: 0000ffff"),
        (("while (true) __nanosleep(20);",), "waits for ever in a loop that pauses, line 3"),
        (("while (true) __syncthreads();",), "the kernel does not end"),
        (("i32 m[4];", "i32 x = m[threadIdx.x % 4];"), "read of m[0], which nothing wrote"),
        (("i32 x = 7 / (i32)threadIdx.x;", "if (threadIdx.x < 40) out[threadIdx.x] = x;"), "divided by zero"),
        (("tr_grid_barrier(0);",), "a barrier of the grid in a launch that is not cooperative"),
    ],
)  # fmt: skip
def test_each_fault_is_named_with_its_thread_and_line(lines: tuple[str, ...], said: str) -> None:
    with pytest.raises(KernelError) as caught:
        built(kernel_of(*lines)).launch("k", 1, 64, [DeviceMemory.empty(40, "i4")], most=100_000)
    assert said in str(caught.value)


def test_arguments_that_overlap_a_written_one_are_refused() -> None:
    memory = DeviceMemory.holding(np.arange(64, dtype="i4"))
    parameters = "i32* __restrict__ out, const i32* __restrict__ a"
    kernels = built(kernel_of("out[threadIdx.x] = a[threadIdx.x];", parameters=parameters))
    with pytest.raises(KernelError, match="k: out, which it writes, shares memory with a"):
        kernels.launch("k", 1, 32, [memory[:32], memory[31:63]])


def test_launches_beyond_a_devices_limits_are_refused() -> None:
    kernels, out = built(kernel_of("out[0] = 1;")), DeviceMemory.empty(1, "i4")
    for grid, block in ((0, 32), (1, 1025), ((1, 65536), 32)):
        with pytest.raises(KernelError, match=r"a launch of nothing|threads a block|more blocks than a grid has"):
            kernels.launch("k", grid, block, [out])
