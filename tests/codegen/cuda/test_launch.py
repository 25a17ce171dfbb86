"""Launching: buffers, arguments and faults, with the machine's compiler in place of CuPy; NVRTC's own errors."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from tests.codegen.cuda.test_emit import CHECKED, gpu_module
from tests.cudasim.cupy_like import simulated
from tests.runtime.programs import count_to
from tests.schedule.gpu.gpu_programs import PROGRAMS, inputs_of, program_of
from tracer.codegen.cuda import nvrtc
from tracer.codegen.cuda.emit import emit_cuda
from tracer.codegen.cuda.launch import load_cupy, run
from tracer.errors import DeviceError, InternalError
from tracer.ir.target import CUDA
from tracer.primitives.base.reference import run_reference
from tracer.schedule.gpu.mapping import map_to_gpu
from tracer.schedule.pipeline import loops


def test_the_lowest_fault_is_reported() -> None:
    source = emit_cuda(gpu_module(program_of(*CHECKED)))
    x, indices = np.arange(9, dtype=np.float32), np.arange(600) % 9
    outcome = run(source, [x, indices], cupy=simulated())
    assert outcome.fault is None
    np.testing.assert_array_equal(outcome.outputs[0].get(), x[indices])
    indices[[400, 77]] = 9, -10
    assert run(source, [x, indices], cupy=simulated()).fault == (0, 77)


def test_an_input_of_another_type_is_refused() -> None:
    source = emit_cuda(gpu_module(program_of(*PROGRAMS["converted"])))
    with pytest.raises(InternalError) as caught:
        run(source, [np.zeros(33)], cupy=simulated())
    assert str(caught.value) == "cuda: 'in0' is float32[33], got float64[33]"


def test_steps_that_need_the_host_are_refused() -> None:
    program = program_of(lambda x: [count_to(9.0)(x)], [("float64", ())])
    source = emit_cuda(map_to_gpu(loops(program, CUDA).module).module)
    with pytest.raises(DeviceError, match=r"these steps do not run on a GPU yet\n(.|\n)*  while\n"):
        run(source, [np.zeros(())], cupy=simulated())


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is here")
def test_without_cupy_the_error_names_the_command() -> None:
    with pytest.raises(DeviceError) as caught:
        load_cupy()
    assert str(caught.value) == ("CuPy, which launches kernels, is not installed\n  help: pip install 'tracer[cuda]'")


def test_without_nvrtc_the_error_names_the_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nvrtc, "_library", nvrtc._library.__wrapped__)  # what a process makes once, made anew
    monkeypatch.setattr(nvrtc, "_library_path", lambda: None)
    with pytest.raises(DeviceError) as caught:
        nvrtc.compile_cuda("")
    assert str(caught.value) == (
        "NVRTC, which compiles CUDA, is not installed\n  help: pip install 'nvidia-cuda-nvrtc==13.0.*'"
    )


def test_wrong_source_is_a_bug_with_the_log() -> None:
    with pytest.raises(InternalError, match=r'NVRTC refuses what was written for sm_90\n.*expected a ";"'):
        nvrtc.compile_cuda("__global__ void f() { int x = 1 }")


def test_an_unknown_architecture_is_named() -> None:
    with pytest.raises(DeviceError, match="NVRTC compiles for no sm_12\n"):
        nvrtc.compile_cuda("__global__ void f() {}", "sm_12")


def test_products_are_not_contracted_and_fma_is() -> None:
    text = 'extern "C" __global__ void f(float* x) { x[0] = x[0] * x[1] + x[2]; x[3] = fmaf(x[0], x[1], x[2]); }'
    ptx = nvrtc.compile_cuda(text).ptx
    assert [ptx.count(name) for name in ("mul.rn.f32", "add.rn.f32", "fma.rn.f32")] == [1, 1, 1]


def test_the_resources_of_every_kernel_are_read_from_the_log() -> None:
    log = """ptxas info    : Compiling entry function 'nest1' for 'sm_90'
ptxas info    : Function properties for nest1
    8 bytes stack frame, 4 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 27 registers, used 1 barriers, 16 bytes smem
ptxas info    : Compiling entry function 'nest0' for 'sm_90'
ptxas info    : Used 12 registers
"""
    assert nvrtc.parse_resources(log) == {
        "nest1": nvrtc.Resources(registers=27, stack=8, spill_stores=4, spill_loads=12, shared=16),
        "nest0": nvrtc.Resources(registers=12, stack=0, spill_stores=0, spill_loads=0, shared=0),
    }


# -- on a device -----------------------------------------------------------------------------------------


def has_device() -> bool:
    try:
        load_cupy()
    except DeviceError:
        return False
    return True


@pytest.mark.skipif(not has_device(), reason="needs CuPy and a CUDA device")
@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_on_a_device_equal_the_reference(name: str, rng: np.random.Generator) -> None:
    program, inputs = program_of(*PROGRAMS[name]), inputs_of(name, rng)
    outcome = run(emit_cuda(gpu_module(program)), inputs)
    for got, wanted in zip(outcome.outputs, run_reference(program, inputs), strict=True):
        close = 2e-2 if wanted.dtype.itemsize == 2 else 2e-5
        values = got.get().view(wanted.dtype).reshape(wanted.shape).astype(np.float64)
        np.testing.assert_allclose(values, wanted.astype(np.float64), rtol=close, atol=close)
