"""Loops over lanes as programs, and their nests in loop IR."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tracer.ir.loop import Copy, For, Invoke, Load, LoopKind, Module, Store, While
from tracer.ir.loop.walk import blocks_of, statements_of
from tracer.ir.program import Program
from tracer.ir.types import array_type
from tracer.primitives.base.reference import run_reference
from tracer.trace.stage import stage
from tracer.tree_util import tree_leaves

TABLE = np.array([0.5, 3.0, 0.25, 1.5, 7.0])


def axis(n: int, low: float = -2.0, high: float = 1.0) -> np.ndarray[Any, Any]:
    return np.linspace(low, high, n)


def traced(function: Callable[..., Any], *arrays: Any) -> tuple[Program, list[np.ndarray[Any, Any]]]:
    """The function's program and all of its operands: the constants of the function, and the arrays."""
    given = [np.asarray(a) for a in arrays]
    found = stage(lambda xs: tree_leaves(function(*xs)), [array_type(a.dtype, a.shape) for a in given])
    return found.program, [*map(np.asarray, found.constants), *given]


def bits(x: Any) -> bytes:
    return np.ascontiguousarray(x).tobytes()


def expected(p: Program, arrays: Sequence[Any]) -> list[bytes]:
    """What all lanes together give, masked: by NumPy, operation by operation."""
    return list(map(bits, run_reference(p, list(arrays))))


def nests_of_lanes(module: Module) -> list[For]:
    """The vector loops that hold a loop."""
    found = [s for f in module.functions for s in statements_of(f.body) if isinstance(s, For)]
    vectors = [s for s in found if s.kind is LoopKind.VECTOR]
    return [s for s in vectors if any(isinstance(x, While | For) for x in s.body.statements)]


def entry_loops(module: Module) -> list[While | For]:
    entry = next(f for f in module.functions if f.name == module.entry)
    return [s for s in statements_of(entry.body) if isinstance(s, While | For)]


def has_arrays(loop: While | For) -> bool:
    """Whether a loop runs through memory, or calls nests that do."""
    return any(isinstance(s, Load | Store | Invoke | Copy) for block in blocks_of(loop) for s in statements_of(block))
