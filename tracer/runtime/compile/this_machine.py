"""Machine that this process runs on: its target, and the settings that depend on its instructions."""

from __future__ import annotations

from tracer.codegen.llvm.kernels.gemm.amx import in_use
from tracer.codegen.llvm.kernels.gemm.bf16_dot import has_dots
from tracer.codegen.llvm.toolchain.target import fuses_products, splits_floats
from tracer.ir.target import Target, cpu
from tracer.settings import config


def this_cpu() -> Target:
    """Return the target of the machine that this process runs on."""
    return cpu(bf16=has_dots(), tiles=in_use(), root_estimates=splits_floats())


def contracts() -> bool:
    """Whether programs of `jit` contract products and sums: the setting asks for it, and this machine can."""
    return config.fp_contract and fuses_products()
