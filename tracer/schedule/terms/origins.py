"""Origins: the line of the user's code that each register, function and buffer of loop IR comes from.

Kept beside the loop IR, only where a reader asks for it. So no statement is larger for it, and no result depends on it.
A line in each statement would have to pass through every loop pass, and be ignored wherever nests are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise

from tracer.ir import loop
from tracer.ir.loop.walk import accesses_of, blocks_of, operands_of, results_of, statements_of
from tracer.ir.program import Source

Lines = tuple[Source, ...]


@dataclass(slots=True)
class Origins:
    """Table of origins, filled while loops are written.

    registers: the line of the equation whose element or sum a register holds. functions: by name, the lines of the
    steps that call it. memory: by a buffer's name, the order in which buffers were first written, and the line.
    """

    registers: dict[loop.Register, Source] = field(default_factory=dict)
    functions: dict[str, dict[Source, None]] = field(default_factory=dict)
    memory: dict[str, tuple[int, Source]] = field(default_factory=dict)

    def computes(self, source: Source | None, statements: Iterable[loop.Statement]) -> None:
        """Record the line of the registers that statements assign, except registers recorded before."""
        if source is not None:
            for statement in statements:
                for register in results_of(statement):
                    self.registers.setdefault(register, source)

    def calls(self, name: str, lines: Iterable[Source | None]) -> None:
        """Record the lines of a step that calls a function."""
        self.functions.setdefault(name, {}).update({line: None for line in lines if line is not None})

    def writes(self, buffer: loop.Buffer, source: Source | None) -> None:
        """Record the line of the value that a buffer is for, once."""
        if source is not None:
            self.memory.setdefault(buffer.name, (len(self.memory), source))


def lines_of_module(module: loop.Module, origins: Origins) -> Mapping[int, Lines]:
    """Return the user's lines of every function and statement, by its `id`.

    A recorded register decides. A register that a loop pass made has the lines of the statements that read it. A call
    has the lines of its function. A statement without results has the lines of its value, or of the newest buffer that
    it names. A loop has the lines of its body. Other statements have the lines of the function.
    """
    bodies = _Bodies(module, origins)
    for function in module.functions:
        bodies.of(function.name)
    return bodies.found


class _Bodies:
    """Lines of the functions of a module, each found once."""

    def __init__(self, module: loop.Module, origins: Origins) -> None:
        self.origins = origins
        self.functions = {function.name: function for function in module.functions}
        self.found: dict[int, Lines] = {}

    def of(self, name: str) -> Lines:
        """Return the lines of a function, and record the lines of its statements.

        It may call other functions, but not itself.
        """
        function = self.functions[name]
        if id(function) not in self.found:
            whole = self.origins.functions.get(name) or self.origins.functions.get(name.partition(".")[0]) or {}
            lines = _Walk(self).block(function.body, {})
            own = self.found[id(function)] = tuple({**lines, **whole})
            for statement in statements_of(function.body):
                self.found[id(statement)] = self.found[id(statement)] or own
        return self.found[id(function)]


class _Walk:
    """Walk of one function, from its last statement to its first: readers of a register come before its definition."""

    def __init__(self, bodies: _Bodies) -> None:
        self.origins = bodies.origins
        self.found = bodies.found
        self.bodies = bodies
        self.read: dict[loop.Register, dict[Source, None]] = {}

    def block(self, block: loop.Block, results: Mapping[loop.Register, Lines]) -> dict[Source, None]:
        """Return the lines of a block. results: lines of the registers that it yields."""
        for register, own in results.items():
            self.note_read(register, own)
        lines: dict[Source, None] = {}
        for statement in reversed(block.statements):
            lines.update(dict.fromkeys(self.statement(statement)))
        for before, statement in pairwise(block.statements):
            if isinstance(statement, loop.Leave):  # where `before` failed
                self.found[id(statement)] = self.found[id(before)]
        return lines

    def statement(self, s: loop.Statement) -> Lines:
        """Return the lines of a statement, and record them with the lines of the blocks within it."""
        results = {register: self.of_register(register) for register in results_of(s)}
        lines = dict.fromkeys(line for own in results.values() for line in own)
        if isinstance(s, loop.For | loop.While):
            for carry, result in zip(s.carries, s.results, strict=False):
                self.note_read(carry.initial, results[result])
                self.note_read(carry.register, results[result])
        for inner in blocks_of(s):
            pairs = zip(inner.yields, results, strict=False)
            lines.update(self.block(inner, {v: results[r] for v, r in pairs if isinstance(v, loop.Register)}))
        own = self.found[id(s)] = tuple(lines or self.effect(s))
        for operand in (*operands_of(s), *(register for _, at, _ in accesses_of(s) for register, _ in at.terms)):
            self.note_read(operand, own)
        return own

    def note_read(self, operand: loop.Operand, lines: Lines) -> None:
        if isinstance(operand, loop.Register):
            self.read.setdefault(operand, {}).update(dict.fromkeys(lines))

    def of_register(self, register: loop.Register) -> Lines:
        first: loop.Register | None = register
        while first is not None:
            own = self.origins.registers.get(first)
            if own is not None:
                return (own,)
            first = first.copied
        return tuple(self.read.get(register, ()))

    def effect(self, s: loop.Statement) -> Lines:
        """Return the lines of a statement without results."""
        if isinstance(s, loop.Invoke):
            return self.bodies.of(s.function)
        if isinstance(s, loop.Store | loop.Update) and isinstance(s.value, loop.Register):
            own = self.of_register(s.value)
            if own:
                return own
        known = [self.origins.memory[b.name] for b, _, _ in accesses_of(s) if b.name in self.origins.memory]
        return (max(known)[1],) if known else ()
