"""A stand-in for CuPy that compiles the emitted CUDA with the machine's C++ compiler: see cuda_on_cpu.h."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import tempfile
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from tracer.codegen.cuda.emit import emit_cuda
from tracer.codegen.cuda.helpers import HELPERS
from tracer.codegen.cuda.launch import run
from tracer.ir.loop import Module, Space

COMPILER = shutil.which("g++")
_HEADER = Path(__file__).with_name("cuda_on_cpu.h")
_KERNEL = re.compile(r"__launch_bounds__\(\d+\) (\w+)\((.*)\) \{")
_HALF = {
    "widen_f16": "static f32 tr_widen_f16(f16 x) { return (f32)bits<_Float16>(x); }\n",
    "shorten_f16": "static f16 tr_shorten_f16(f32 x) { return bits<f16>((_Float16)x); }\n",
}  # in place of the machine's own instructions


class CpuModule:
    """What `cupy.RawModule` is, on the CPU."""

    def __init__(self, *, code: str, backend: str, options: tuple[str, ...]) -> None:
        assert backend == "nvrtc"
        assert "--fmad=false" in options
        self.library = _compiled(code)

    def get_function(self, name: str) -> Any:
        """The kernel, to be called with a grid, a block and arguments."""
        launch = getattr(self.library, f"launch_{name}")

        def call(grid: tuple[int], block: tuple[int], arguments: tuple[Any, ...]) -> None:
            scalars = [np.array(a) for a in arguments if not isinstance(a, np.ndarray)]
            rest = iter(scalars)
            arrays = [a if isinstance(a, np.ndarray) else next(rest) for a in arguments]
            pointers = (ctypes.c_void_p * len(arrays))(*[a.ctypes.data for a in arrays])
            launch(grid[0], block[0], pointers)

        return call


@cache
def _compiled(code: str) -> ctypes.CDLL:
    for name, text in _HALF.items():
        code = code.replace(HELPERS[name], text)
    with tempfile.TemporaryDirectory() as folder:
        source, library = Path(folder, "kernels.cpp"), Path(folder, "kernels.so")
        source.write_text(f'#include "{_HEADER}"\n{code}\n' + "".join(map(_launcher, _KERNEL.findall(code))))
        command = [COMPILER or "g++", "-std=c++17", "-O0", "-ffp-contract=off", "-w", "-shared", "-fPIC"]
        subprocess.run([*command, str(source), "-o", str(library)], check=True)
        return ctypes.CDLL(str(library))


def _launcher(kernel: tuple[str, str]) -> str:
    name, parameters = kernel
    arguments = []
    for i, parameter in enumerate(parameters.split(", ")):
        kind = parameter.rpartition(" ")[0].replace("__restrict__", "").strip()
        arguments.append(f"({kind})p[{i}]" if kind.endswith("*") else f"*({kind}*)p[{i}]")
    call = f"{name}({', '.join(arguments)})"
    return f'extern "C" void launch_{name}(unsigned g, unsigned b, void** p) {{ run_grid(g, b, [=] {{ {call}; }}); }}\n'


CPU_CUPY = SimpleNamespace(
    RawModule=CpuModule, asarray=np.asarray, ascontiguousarray=np.ascontiguousarray, copyto=np.copyto,
    empty=np.empty, full=np.full,
)  # fmt: skip


def outputs_of(module: Module, inputs: list[Any]) -> list[Any]:
    """The entry's outputs, of their own dtypes, from the emitted source."""
    source = emit_cuda(module)
    outcome = run(source, inputs, cupy=CPU_CUPY)
    dtypes = [p.dtype for p in source.parameters if p.space is Space.OUTPUT]
    return [array.view(dtype) for array, dtype in zip(outcome.outputs, dtypes, strict=True)]
