"""Storage folding: an array that only one nest writes and reads, row by row, becomes one row in a local buffer.

Fused nests pass whole arrays to each other in the arena. Where every row is written before it is read, memory for a
single row is enough. It stays in the nearest cache, and the arena shrinks.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from tracer.ir.loop import (
    Address,
    Alloc,
    Block,
    Buffer,
    For,
    Function,
    If,
    Invoke,
    Load,
    Module,
    Register,
    Space,
    Statement,
    Store,
    View,
    While,
    index_constant,
)  # fmt: skip
from tracer.ir.loop.walk import accesses_of, statements_of, with_statements
from tracer.schedule.loops.row_fusion import loop_over_rows, row_step
from tracer.schedule.terms.cost_model import trips

_MIN_ARRAY: Final = 1 << 16  # bytes; smaller ones are in a near cache anyway
_MAX_BYTES: Final = 1 << 16  # of a function's local rows: a part of its thread's stack
_ALIGNMENT: Final = 64


MayFold = Callable[[Function, Sequence[Buffer]], bool]
"""Whether several parameters of a function over rows may all be local, instead of this module's limits."""


def fold_storage(module: Module, may_fold: MayFold | None = None) -> Module:
    """Return the module in which arrays that only one nest reads, row by row, are one row in local buffers.

    may_fold: a machine's own choice. Then rows may also be single values.
    """
    functions = {f.name: f for f in module.functions}
    entry = functions[module.entry]
    statements = list(statements_of(entry.body))
    users: dict[Buffer, int] = {}
    calls: dict[str, list[Invoke]] = {}
    for s in statements:
        for buffer, _, _ in accesses_of(s):
            users[buffer] = users.get(buffer, 0) + 1
        if isinstance(s, Invoke):
            calls.setdefault(s.function, []).append(s)
    local: dict[str, dict[int, int]] = {}  # of a function: which parameters are local, and how long a row is
    for name, made in calls.items():
        found = _local_parameters(functions[name], made, users, may_fold)
        if found:
            local[name] = found
    if not local:
        return module
    entry = replace(entry, body=with_statements(entry.body, lambda s: _without(s, local)))
    changed = [_with_rows(f, local[f.name]) if f.name in local else f for f in module.functions if f.name != entry.name]
    return replace(module, functions=(*changed, entry))


def _local_parameters(
    function: Function, calls: list[Invoke], users: Mapping[Buffer, int], may_fold: MayFold | None
) -> dict[int, int]:
    """Return the parameters that may be local, with the elements of a row."""
    loop = loop_over_rows(function)
    found: dict[int, int] = {}
    if loop is None:
        return found
    room, folded = _MAX_BYTES, list[Buffer]()
    for number, parameter in enumerate(function.parameters):
        given = [call.arguments[number] for call in calls]
        if not isinstance(parameter, Buffer) or not all(_is_alone(view, users) for view in given):
            continue
        row = _row_written_first(parameter, loop, values=may_fold is not None)
        if row is None or row * trips(loop) != parameter.size:
            continue
        if may_fold is not None:
            if may_fold(function, [*folded, parameter]):
                folded.append(parameter)
                found[number] = row
            continue
        room -= row * parameter.dtype.itemsize
        if parameter.size * parameter.dtype.itemsize >= _MIN_ARRAY and room >= 0:
            found[number] = row
    return found


def _is_alone(view: object, users: Mapping[Buffer, int]) -> bool:
    """Whether a call is all that knows of an array in the arena."""
    if not isinstance(view, View) or view.buffer.space is not Space.ARENA or view.start != Address():
        return False
    return users[view.buffer] == 1


def _row_written_first(buffer: Buffer, loop: For, *, values: bool) -> int | None:
    """Return the length of a row if each row writes all of it before any other access, else None.

    values: whether a row may be a single value.
    """
    extents = {s.index: s for s in statements_of(loop.body) if isinstance(s, For)}
    steps = {row_step(address, loop.index, extents) for address in _addresses(loop.body, buffer)}
    row = steps.pop() if len(steps) == 1 else None
    if row is None:
        return None
    for s in loop.body.statements:
        inner = [s, *(statements_of(s.body) if isinstance(s, For) else ())]
        touching = [t for t in inner if any(b is buffer for b, _, _ in accesses_of(t))]
        if not touching:
            continue
        if isinstance(s, If | While) or not all(isinstance(t, Store) and t.mask is None for t in touching):
            return None
        stored = next(t for t in touching if isinstance(t, Store))
        if s is stored and values and row == 1:
            return row
        whole = isinstance(s, For) and any(stored is t for t in s.body.statements) and _fills(stored, s, loop, row)
        return row if whole else None
    return None


def _fills(s: Store, inner: For, loop: For, row: int) -> bool:
    """Whether a loop stores each element of the row."""
    terms = dict(s.address.terms)
    plain = s.address.constant == 0 and terms == {loop.index: row, inner.index: 1}
    return plain and inner.start == index_constant(0) and inner.step == 1 and trips(inner) == row


def _addresses(block: Block, buffer: Buffer) -> Iterator[Address]:
    for s in statements_of(block):
        yield from (address for b, address, _ in accesses_of(s) if b is buffer)


def _with_rows(function: Function, local: Mapping[int, int]) -> Function:
    """Return the function with local rows in the place of some parameters."""
    loop = loop_over_rows(function)
    assert loop is not None
    names: dict[Buffer, Buffer] = {}
    for number, row in local.items():
        old = function.parameters[number]
        assert isinstance(old, Buffer)
        names[old] = replace(old, name=f"row{number}", size=row, space=Space.LOCAL, alignment=_ALIGNMENT, written=True)
    body = with_statements(loop.body, lambda s: _moved(s, names, loop.index))
    body = Block((*map(Alloc, names.values()), *body.statements), body.yields)
    kept = tuple(p for number, p in enumerate(function.parameters) if number not in local)
    return replace(function, parameters=kept, body=Block((replace(loop, body=body),)))


def _moved(s: Statement, names: Mapping[Buffer, Buffer], row: Register) -> Sequence[Statement]:
    """Return an access to a buffer named moved to the local one, counted from the start of the row."""
    if not isinstance(s, Load | Store) or s.buffer not in names:
        return (s,)
    terms = tuple((r, c) for r, c in s.address.terms if r is not row)
    return (replace(s, buffer=names[s.buffer], address=Address(s.address.constant, terms)),)


def _without(s: Statement, local: Mapping[str, Mapping[int, int]]) -> Sequence[Statement]:
    """Return a call without the arguments that became local."""
    if not isinstance(s, Invoke) or s.function not in local:
        return (s,)
    return (replace(s, arguments=tuple(a for n, a in enumerate(s.arguments) if n not in local[s.function])),)
