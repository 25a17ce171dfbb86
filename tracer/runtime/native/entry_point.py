"""Entry point of a compiled program: its machine code, and the facts that callers need."""

from __future__ import annotations

import ctypes
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.codegen.llvm.toolchain.object_code import LoadedModule
from tracer.ir.types import Type
from tracer.once import once

if TYPE_CHECKING:
    from tracer.schedule.elements.gather_bounds import FaultSite


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class EntryPoint:
    """Machine code with the types, sizes and constants of its calls. No compiler pass is needed to call it.

    work: of a call, see `cost.work_of`. donors: the inputs whose memory outputs take over, by output. sites: the
    faulting equations. arena, stacks: as in `Context`. callback: runs the callback of a slot, see `Compiled.call_back`.
    is_patient: whether calls begin to listen to Ctrl-C when they have taken long, see `polls.patient`. spare: the arena
    that the last call left, of all entries.
    """

    loaded: LoadedModule
    input_types: tuple[Type, ...]
    output_types: tuple[Type, ...]
    work: float
    constants: tuple[np.ndarray[Any, Any], ...] = ()
    donors: Mapping[int, int] = field(default_factory=dict)
    sites: Sequence[FaultSite] = ()
    arena: int = 0
    stacks: int = 0
    callback: Callable[[int, int, int], None] | None = None
    is_repeatable: bool = True
    is_patient: bool = False
    spare: ctypes.c_void_p = field(default_factory=ctypes.c_void_p)

    def __post_init__(self) -> None:
        weakref.finalize(self, _free, self.spare).atexit = False


def _free(spare: ctypes.c_void_p) -> None:
    _c_free()(spare)


@once
def _c_free() -> Callable[[ctypes.c_void_p], None]:
    """Return C's `free`. Every `CDLL` makes a class, which only the collector frees."""
    free = ctypes.CDLL(None).free
    free.argtypes, free.restype = [ctypes.c_void_p], None
    return free
