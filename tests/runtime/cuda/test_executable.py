"""Executables on the simulated device: buffers, faults, and programs on a real one where there is one."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

from tests.codegen.cuda.test_emit import CHECKED, gpu_module
from tests.runtime.cuda.simulator.running import run, simulated
from tests.schedule.gpu.gpu_programs import PROGRAMS, inputs_of, program_of
from tracer.codegen.cuda.emit import emit_cuda
from tracer.errors import DeviceError, InternalError
from tracer.ir.loop import Space
from tracer.primitives.base.reference import run_reference
from tracer.runtime.cuda.driver import CupyDriver, load_cupy
from tracer.runtime.cuda.executable import Executable


def test_the_lowest_fault_is_reported() -> None:
    source = emit_cuda(gpu_module(program_of(*CHECKED)))
    x, indices = np.arange(9, dtype=np.float32), np.arange(600) % 9
    outputs, fault = run(source, [x, indices], simulated())
    assert fault is None
    np.testing.assert_array_equal(outputs[0], x[indices])
    indices[[400, 77]] = 9, -10
    assert run(source, [x, indices], simulated())[1] == (0, 77)


def test_an_input_of_another_size_is_refused() -> None:
    source, driver = emit_cuda(gpu_module(program_of(*PROGRAMS["converted"]))), simulated()
    with pytest.raises(InternalError) as caught:
        Executable(source, driver).run([driver.upload(np.zeros(33))])
    assert str(caught.value) == "cuda: 'in0' is float32[33], got 264 bytes"


@pytest.mark.skipif(importlib.util.find_spec("cupy") is not None, reason="CuPy is here")
def test_without_cupy_the_error_names_the_command() -> None:
    with pytest.raises(DeviceError) as caught:
        load_cupy()
    assert str(caught.value) == ("CuPy, which launches kernels, is not installed\n  help: pip install 'tracer[cuda]'")


def has_device() -> bool:
    try:
        load_cupy()
    except DeviceError:
        return False
    return True


@pytest.mark.skipif(not has_device(), reason="needs CuPy and a CUDA device")
@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.rung("card")
def test_programs_on_a_device_equal_the_reference(name: str, rng: np.random.Generator) -> None:
    program, inputs, driver = program_of(*PROGRAMS[name]), inputs_of(name, rng), CupyDriver(0)
    source = emit_cuda(gpu_module(program))
    outcome = Executable(source, driver).run([driver.upload(np.ascontiguousarray(x)) for x in inputs])
    dtypes = [p.dtype for p in source.parameters if p.space is Space.OUTPUT]
    for memory, dtype, wanted in zip(outcome.outputs, dtypes, run_reference(program, inputs), strict=True):
        close = 2e-2 if wanted.dtype.itemsize == 2 else 2e-5
        values = driver.download(memory, dtype).view(wanted.dtype).reshape(wanted.shape).astype(np.float64)
        np.testing.assert_allclose(values, wanted.astype(np.float64), rtol=close, atol=close)
