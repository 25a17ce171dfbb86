"""Loops of few iterations that are written out, and short functions that are written where they are called.

Both shorten compilation, and change no bit. LLVM takes 1 ms or more for a loop and 0.3 ms for a function. It takes less
for some dozen instructions. An entry that mostly calls is marked, too: see `_mostly_calls`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from tracer.ir import loop
from tracer.ir.loop.walk import statements_of, with_bodies, with_statements

_FEW: Final = 4  # iterations of an unrolled loop
_SHORT: Final = 64  # statements of an unrolled loop or an inlined function, counted by the vector registers of each
_REGISTER_BYTES: Final = 64
_LONG: Final = 256  # statements of an entry that is worth compiling without optimisations


def unroll_and_inline(module: loop.Module) -> loop.Module:
    """Mark loops to unroll, calls to inline, and an entry that mostly calls."""
    module = with_bodies(module, partial(with_statements, change=_unrolled))
    module = _with_plain_entry(module)
    from_plain = (s for f in module.functions if f.plain for s in statements_of(f.body))
    plain = {s.function for s in from_plain if isinstance(s, loop.Invoke)}
    short = {f.name for f in module.functions if _length(f.body) is not None}
    inlined = _called_once(module) & short - plain  # 512-bit code in a plain function would fail
    return with_bodies(module, partial(with_statements, change=partial(_inlined, functions=inlined)))


def _unrolled(s: loop.Statement) -> Sequence[loop.Statement]:
    return (replace(s, unrolled=True),) if isinstance(s, loop.For) and not s.unrolled and _pays(s) else (s,)


def _pays(s: loop.For) -> bool:
    kinds = (loop.LoopKind.SERIAL, loop.LoopKind.PARALLEL, loop.LoopKind.VECTOR)
    length = _length(s.body)
    if s.kind not in kinds or s.outlined or length is None or s.step == 0:
        return False
    count = _count(s)
    return 0 < count <= _FEW and count * length * _registers(s) <= _SHORT


def _count(s: loop.For) -> int:
    """Return the number of full iterations, in steps of all lanes; 0 where it is not constant."""
    if not isinstance(s.start, loop.Constant) or not isinstance(s.stop, loop.Constant):
        return 0
    lanes = s.lanes if s.kind is loop.LoopKind.VECTOR else 1
    return len(range(int(s.start.value), int(s.stop.value), s.step * lanes))


def _registers(s: loop.For) -> int:
    """Return the number of 64-byte registers that the lanes of a vector loop fill."""
    if s.kind is not loop.LoopKind.VECTOR:
        return 1
    results = [x.result for x in s.body.statements if isinstance(x, loop.Compute | loop.Load)]
    widest = max([x.dtype.itemsize for x in results], default=1)
    return max(1, s.lanes * widest // _REGISTER_BYTES)


def _length(block: loop.Block) -> int | None:
    """Return the number of statements with unrolled loops written out; None for long or other blocks."""
    total = 0
    for s in block.statements:
        match s:
            case loop.Compute() | loop.Load() | loop.Store() | loop.Copy():
                total += 1
            case loop.For(unrolled=True):
                total += _count(s) * (_length(s.body) or 0) * _registers(s) + len(s.carries)
            case _:
                return None
    return total if total <= _SHORT else None


def _called_once(module: loop.Module) -> set[str]:
    """Return the functions with one call, which no threads share."""
    calls = Counter[str]()
    for function in module.functions:
        for s in statements_of(function.body):
            if isinstance(s, loop.Invoke):
                calls[s.function] += 1 if s.share is None else 2
    return {name for name, count in calls.items() if count == 1}


def _inlined(s: loop.Statement, functions: set[str]) -> Sequence[loop.Statement]:
    if isinstance(s, loop.Invoke) and not s.inlined and s.function in functions:
        return (replace(s, inlined=True),)
    return (s,)


def _with_plain_entry(module: loop.Module) -> loop.Module:
    def marked(function: loop.Function) -> loop.Function:
        is_plain = function.name == module.entry and not function.plain and _mostly_calls(function.body)
        return replace(function, plain=True) if is_plain else function

    functions = tuple([marked(function) for function in module.functions])
    same = all(new is old for new, old in zip(functions, module.functions, strict=True))
    return module if same else replace(module, functions=functions)


def _mostly_calls(body: loop.Block) -> bool:
    """Whether an entry is worth compiling without optimisations: it is long, or shares work, and mostly calls.

    LLVM's time grows faster than the length of the function, for no benefit. 3,600 calls take 0.5 s, and 0.3 s
    unoptimised. The maximum of 1e6 elements compiles in 0.88 of the time. A short function that shares nothing runs in
    200 ns or so, and would lose 10. AdamW of 144 arrays has 70 calls, 300 statements for scalars, and saves 50 ms.
    """
    statements = list(statements_of(body))
    invoked = [s for s in statements if isinstance(s, loop.Invoke)]
    if len(body.statements) < _LONG and all(s.share is None for s in invoked):
        return False
    return 8 * len(invoked) >= len(statements) and not any(isinstance(s, loop.For | loop.While) for s in statements)
