"""From programs to CUDA: the text that people see, and the errors."""

from __future__ import annotations

from typing import Any

import pytest

from tests.schedule.gpu.gpu_programs import PROGRAMS, program_of
from tests.schedule.gpu.test_mapping import MATRICES, product
from tracer.errors import CheckError, DeviceError
from tracer.ir.program import Source
from tracer.ir.target import cuda
from tracer.runtime.compile.cuda import cuda_program, fault_error
from tracer.schedule.elements.gather_bounds import FaultSite


def test_the_text_says_where_it_is_meant_to_run_and_that_it_did_not() -> None:
    program = program_of(*PROGRAMS["softmax"], "softmax")
    text = cuda_program(program, cuda("sm_80")).text
    assert text.startswith("// softmax for sm_80: 1 kernel, not yet run on a device\ntypedef")
    assert text.endswith(cuda_program(program).source.text)


def test_the_text_names_the_equations_that_have_no_kernel() -> None:
    head = cuda_program(program_of(product, MATRICES, "product")).text.split("typedef")[0].splitlines()
    assert head[:3] == [
        "// product for sm_90: 1 kernel, not yet run on a device",
        "// not on the GPU yet:",
        "//   main: the library routine gemm_f32",
    ]
    assert head[3].startswith("//   dot_general at test_mapping.py:")


@pytest.mark.parametrize("arch", ["hopper", "sm_", ""])
def test_an_architecture_goes_by_its_number(arch: str) -> None:
    with pytest.raises(DeviceError) as caught:
        cuda(arch)
    assert str(caught.value) == f'cuda: no architecture {arch!r}\n  help: name one such as "sm_80" or "sm_90"'


def test_faults_become_the_users_errors() -> None:
    source: Any = Source("/home/user/demo.py", 15, "f")
    assert str(fault_error(FaultSite("bounds", source), 77)) == (
        "index out of bounds at demo.py:15\n  for element 77 of the result\n  help: the CPU names the index"
    )
    error = fault_error(FaultSite("check", source, "x must be positive"), 0)
    assert isinstance(error, CheckError)
    assert str(error) == "x must be positive"
