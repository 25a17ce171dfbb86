"""LLVM's code generation level for a module: 0 for one that only calls routines and shared functions.

Another level would gain some 10 ns a call. LLVM takes 1.5 ms, rather than 8, for the sum of an array. A matrix product
takes 1, rather than 3. The level is LLVM's alone: it depends on how statements are spelled, and no other backend has
one, so the schedule does not choose it.
"""

from __future__ import annotations

from typing import Final

from tracer.ir import loop
from tracer.ir.loop.walk import statements_of

USUAL: Final = 2
_LONG: Final = 1 << 12  # iterations that take longer than a level is worth


def level(module: loop.Module) -> int:
    """Return the level for a module: 0 where its work is long and all in calls."""
    bodies = [function.body for function in module.functions if not function.body.yields]
    if not all(_hands_on(body) for body in bodies):
        return USUAL
    statements = [s for body in bodies for s in statements_of(body)]
    works = any(isinstance(s, loop.Library) or _iterations(s) >= _LONG for s in statements)
    return 0 if works else USUAL


def _iterations(s: loop.Statement) -> int:
    return int(s.stop.value) if isinstance(s, loop.For) and isinstance(s.stop, loop.Constant) else 0


def _hands_on(block: loop.Block) -> bool:
    """Whether calls do all of the block's work, in its loops too."""
    for s in block.statements:
        match s:
            case loop.For(kind=loop.LoopKind.VECTOR, outlined=outlined):
                if not outlined:
                    return False
            case loop.For():
                inner = any(isinstance(x, loop.For) for x in s.body.statements)
                if not inner or not _hands_on(s.body):
                    return False
            case loop.Library() | loop.Copy() | loop.Leave() | loop.Invoke():
                pass
            case loop.Compute() | loop.Load() | loop.Store():
                pass
            case _:
                return False
    return True
