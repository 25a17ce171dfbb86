"""Run-time helpers from `ll/` that compiled modules carry along: recording faults, growable stacks."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Final

from tracer.codegen.llvm.toolchain.abi import FAULT_VALUES, Context, Stack, Status
from tracer.codegen.llvm.toolchain.native_text import expanded, fields, routines

HELPERS: Final = (
    "fault", "fault_lanes", "stack_write", "stack_push", "stack_read", "stack_pop", "stack_length", "stack_reset",
)  # fmt: skip
"""In the order in which a module carries them; `fault_lanes` needs `fault`, `stack_push` `stack_write`."""

DECLARATIONS: Final[dict[str, str]] = {
    "@llvm.memcpy.p0.p0.i64": "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)",
    "@llvm.memset.p0.i64": "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)",
    "@llvm.smax.i64": "declare i64 @llvm.smax.i64(i64, i64)",
}


@cache
def helper_text(name: str) -> str:
    """Return the text of one of `HELPERS`."""
    values = fields(Context, Stack) | {f"Status.{status.name}": int(status) for status in Status}
    values |= {f"Context.fault_value{i}": Context.fault_values.offset + 8 * i for i in range(FAULT_VALUES)}
    return expanded(routines(Path(__file__).with_name("ll"), (name,)), values)
