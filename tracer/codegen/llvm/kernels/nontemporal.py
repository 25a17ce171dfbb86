"""The routine that copies to memory past the caches."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tracer.codegen.llvm.toolchain.native_text import expanded, routines
from tracer.codegen.llvm.toolchain.target import is_x86

NAME: Final = "library.stream"
LINE: Final = 64
"""Bytes of a cache line. A store may bypass the caches if it fills whole lines."""
FENCE: Final = "@llvm.x86.sse.sfence"


def stream_definition() -> str:
    """Return the routine that copies to[: count] = from[: count]. size: bytes of an element."""
    fence = (f"declare void {FENCE}()", f"call void {FENCE}()") if is_x86() else ("", "")
    values = {"Stream.fence_declaration": fence[0], "Stream.fence": fence[1]}
    return expanded(routines(Path(__file__).with_name("ll"), ("stream",)), values)
