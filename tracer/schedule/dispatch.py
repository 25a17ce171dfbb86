"""The schedules: every way in which an equation becomes loop IR, or is expanded before."""

from __future__ import annotations

from typing import Final

from tracer.schedule.algorithms.convolutions import CONVOLUTION
from tracer.schedule.algorithms.cumulative_tiles import CUMULATIVE
from tracer.schedule.algorithms.decompositions import DECOMPOSITIONS
from tracer.schedule.algorithms.factorizations import CHOLESKY, LU, TRIANGULAR_SOLVE
from tracer.schedule.algorithms.fourier import FFT
from tracer.schedule.algorithms.matmul import DOT
from tracer.schedule.algorithms.sort_passes import SORT
from tracer.schedule.algorithms.top_k import TOP_K
from tracer.schedule.elements.maps import (
    ARG_REDUCE,
    CALL,
    CHECKED,
    COMPARE,
    COMPOSITE,
    CONVERT,
    COUNTER,
    CUSTOM_JVP,
    CUSTOM_VJP,
    GATHER,
    INDEX_MAP,
    PARTS,
    POINTWISE,
)
from tracer.schedule.terms.schedules import Schedule, Schedules
from tracer.schedule.write.concatenate_pad import CONCATENATE, PAD
from tracer.schedule.write.control_flow import COND, FOR, SCAN, WHILE
from tracer.schedule.write.effects import CALLBACK, CHECK, PROGRESS
from tracer.schedule.write.scatters import ALIAS, SCATTER, UPDATE_SLICE
from tracer.schedule.write.serial_reductions import REDUCE
from tracer.schedule.write.stacks import (
    STACK_ADD_AT,
    STACK_EMPTY,
    STACK_ITEM,
    STACK_POP,
    STACK_PUSH,
    STACK_PUT,
    STACK_SPREAD,
    STACK_SUM,
)

SCHEDULES: Final[tuple[Schedule, ...]] = (
    POINTWISE, COMPARE, CHECKED, CONVERT, PARTS, INDEX_MAP, COUNTER, GATHER, ALIAS,
    REDUCE, CUMULATIVE, CONCATENATE, PAD, SCATTER, UPDATE_SLICE,
    WHILE, FOR, SCAN, COND, CALLBACK, CHECK, PROGRESS,
    STACK_EMPTY, STACK_SPREAD, STACK_PUSH, STACK_POP, STACK_ITEM, STACK_PUT, STACK_ADD_AT, STACK_SUM,
    DOT, CONVOLUTION, SORT, TOP_K, CHOLESKY, LU, TRIANGULAR_SOLVE, FFT, *DECOMPOSITIONS,
    COMPOSITE, ARG_REDUCE, CALL, CUSTOM_JVP, CUSTOM_VJP,
)  # fmt: skip
ALL: Final = Schedules(SCHEDULES)
