"""Functions split in two steps, which the entry calls in place of one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tracer.ir.loop import Buffer, Function, Invoke, Module, Statement, View
from tracer.ir.loop.walk import with_statements

Steps = tuple[Function, Function, list[Buffer]]
"""Both steps of a split function, and the memory between them."""


def with_two_steps(module: Module, functions: Sequence[Function], split: Mapping[str, Steps], arena: int) -> Module:
    """Return the module with other functions, whose entry calls both steps in place of a split function."""

    def in_two_steps(s: Statement) -> Sequence[Statement]:
        if not isinstance(s, Invoke) or s.function not in split:
            return (s,)
        first, second, buffers = split[s.function]
        given = (*s.arguments, *map(View, buffers))
        return Invoke(first.name, given), Invoke(second.name, given)

    changed = tuple(
        replace(f, body=with_statements(f.body, in_two_steps)) if f.name == module.entry else f for f in functions
    )
    return replace(module, functions=changed, arena=arena)
