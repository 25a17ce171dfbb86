"""Texts that kernels of lines share: words of a plan and of a thread's part, and memory. See `plans`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.codegen.llvm.kernels.gemm.kernel_shapes import Shape

_PLAN: Final = ("h", "n1", "n2", "first", "second", "starts", "lanes", "halves", "chirped", "chirp", "spectrum")
_NUMBERS: Final = ("h", "n1", "n2", "chirped")


def planned(*names: str) -> str:
    """Load words of the plan under their names."""
    return "\n".join(
        f"  %plan.{name} = getelementptr i64, ptr %plan, i64 {_PLAN.index(name)}\n"
        f"  %{name} = load {'i64' if name in _NUMBERS else 'ptr'}, ptr %plan.{name}, align 8"
        for name in names
    )


def plan_offsets() -> dict[str, int | str]:
    """Return the offsets in bytes of a plan's words, as `Plan.word`."""
    return {f"Plan.{name}": 8 * n for n, name in enumerate(_PLAN)}


GIVEN: Final = (
    "ptr %source", "ptr %target", "i64 %kind", "i64 %count", "i64 %inner", "i64 %inputs", "i64 %outputs",
    "i64 %bits", "ptr %plan", "ptr %work", "i64 %grain",
)  # fmt: skip

C_NAMES: Final = ("malloc", "free")
_STACKED: Final = 1 << 14
"""Numbers that stand on the stack; threads of some systems have half a megabyte."""


FAR_BYTES: Final = 1 << 20
"""Bytes of arrays that are fetched ahead: half of a second cache."""


def given_scale(element: str, given: Sequence[str]) -> str:
    """Begin an entry: memory for the words `given` to its jobs, and `%bits`, the address of `%scale` as an element."""
    scale = "%scale" if element == "double" else "%scale.narrow"
    return f"""\
  %given = alloca [{len(given)} x i64], align 8
  %scale.narrow = fptrunc double %scale to float
  %factor = alloca {element}, align 8
  store {element} {scale}, ptr %factor, align 8
  %bits = ptrtoint ptr %factor to i64"""


def fetched(name: str, element: str, base: str, row: str, ahead: int, *, write: bool) -> str:
    """Fetch the line of the cache that holds a number, at `row` plus `ahead` numbers from `base`."""
    return f"""\
  {name}.skip = add i64 {row}, {ahead}
  {name} = getelementptr {element}, ptr {base}, i64 {name}.skip
  call void @llvm.prefetch.p0(ptr {name}, i32 {int(write)}, i32 2, i32 1)"""


def memory(s: Shape, name: str, numbers: str) -> str:
    """Point `name` to memory for numbers, until `freed`."""
    return f"""\
  %{name}.is.long = icmp sgt i64 {numbers}, {_STACKED}
  %{name}.stacked = select i1 %{name}.is.long, i64 0, i64 {numbers}
  %{name}.stack = alloca {s.element}, i64 %{name}.stacked, align 64
  %{name}.size = sub i64 {numbers}, %{name}.stacked
  %{name}.bytes = mul i64 %{name}.size, {s.size}
  %{name}.heap = call ptr @malloc(i64 %{name}.bytes)
  %{name} = select i1 %{name}.is.long, ptr %{name}.heap, ptr %{name}.stack"""


def freed(name: str) -> str:
    """Free the memory that `memory` gave."""
    return f"  call void @free(ptr %{name}.heap)"
