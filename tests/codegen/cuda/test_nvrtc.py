"""NVRTC's own errors, and the resources of kernels in its log."""

from __future__ import annotations

import pytest

from tracer.codegen.cuda import nvrtc
from tracer.errors import DeviceError, InternalError


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
