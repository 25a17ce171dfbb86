"""Targets that tests compile for."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from tracer.ir.target import CPU, Machine, Target, VarianceBlocks

TINY: Final[Target] = replace(
    CPU,
    blocks=replace(CPU.blocks, reduction=16, cumulative=128, variance=VarianceBlocks(128, 32, 1024, 2, 0)),
    machine=Machine(streamed_bytes=128, split_bytes=0, shared_work=0.0, grain_work=0.0),
)
"""A CPU where everything is cut and shared that can be, so that small arrays take every way."""
