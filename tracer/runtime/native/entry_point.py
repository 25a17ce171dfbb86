"""Entry point of a compiled program: its machine code, and the facts that callers need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from tracer.codegen.llvm.toolchain.object_code import LoadedModule
from tracer.ir.types import Type

if TYPE_CHECKING:
    from tracer.schedule.elements.gather_bounds import FaultSite


@dataclass(frozen=True, slots=True, eq=False)
class EntryPoint:
    """Machine code with the types, sizes and constants of its calls. No compiler pass is needed to call it.

    work: of a call, see `cost.work_of`. donors: the inputs whose memory outputs take over, by output. sites: the
    faulting equations. arena, stacks: as in `Context`. callback: runs the callback of a slot, see `Compiled.call_back`.
    is_patient: whether calls begin to listen to Ctrl-C when they have taken long, see `polls.patient`.
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
