"""Verifier of the loop IR, run before a backend spells it.

`check_module` raises InternalError for the first defect, with its statement and function. `types` checks types,
`placement` the enclosing loops; this module checks names, scopes, buffers and calls.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NoReturn

from tracer.errors import InternalError, message
from tracer.ir import loop
from tracer.ir.loop import placement, types
from tracer.ir.loop.placement import Place
from tracer.ir.loop.text import Printer
from tracer.ir.loop.walk import (
    Access,
    accesses_of,
    blocks_of,
    buffers_of,
    operands_of,
    results_of,
    statements_of,
)

_ENTRY_SPACES = (loop.Space.INPUT, loop.Space.DONATED, loop.Space.OUTPUT, loop.Space.CONSTANT)
_READ_ONLY = (loop.Space.INPUT, loop.Space.CONSTANT)


def check_module(module: loop.Module) -> None:
    """Raise InternalError unless the module keeps every rule of the loop IR."""
    functions = {function.name: function for function in module.functions}
    names = [function.name for function in module.functions]
    if len(functions) != len(names):
        twice = next(name for i, name in enumerate(names) if name in names[:i])
        raise InternalError(message(f"loop IR: two functions are called '{twice}'"))
    if module.entry not in functions:
        raise InternalError(message(f"loop IR: the entry '{module.entry}' is missing"))
    for function in module.functions:
        FunctionCheck(module, functions, function).run()
    _check_calls(functions)


def _check_calls(functions: dict[str, loop.Function]) -> None:
    """Raise InternalError if a function calls itself, directly or indirectly."""
    calls = {
        name: [s.function for s in statements_of(function.body) if isinstance(s, loop.Invoke)]
        for name, function in functions.items()
    }
    settled: set[str] = set()
    for name in calls:
        path = [name]
        pending = [iter(calls[name])]
        while pending:
            callee = next(pending[-1], None)
            if callee is None:
                settled.add(path.pop())
                pending.pop()
            elif callee in path:
                cycle = [*path[path.index(callee) :], callee]
                raise InternalError(message(f"loop IR: recursion {' -> '.join(cycle)}"))
            elif callee not in settled:
                path.append(callee)
                pending.append(iter(calls[callee]))


class FunctionCheck:
    """Walk over one function; `registers` and `allocated` hold the names visible at the current statement."""

    def __init__(self, module: loop.Module, functions: dict[str, loop.Function], function: loop.Function) -> None:
        self.module, self.functions, self.function = module, functions, function
        self.parameters = {p for p in function.parameters if isinstance(p, loop.Buffer)}
        self.registers = {p for p in function.parameters if isinstance(p, loop.Register)}
        self.scope: list[loop.Register] = []  # the registers added in the open blocks
        self.assigned = set(self.registers)
        self.allocated: dict[loop.Buffer, int] = {}  # the number of block and thread loops around
        self.allocated_ever: set[loop.Buffer] = set()
        self.printer = Printer(function)

    def run(self) -> None:
        """Check the parameters, then the body."""
        self._each(None, self._signature())
        self._block(self.function.body, Place(), ())
        if self.function.body.yields and (self.parameters or self.function.name == self.module.entry):
            self._fail("a function that yields", None)

    def _fail(self, problem: str, statement: loop.Statement | None) -> NoReturn:
        lines = [] if statement is None else [f"at {self.printer.statement_lines(statement)[0]}"]
        summary = f"loop IR: {problem}, in function '{self.function.name}'"
        raise InternalError(message(summary, *lines, *self.printer.function_lines()))

    def _each(self, statement: loop.Statement | None, found: Iterable[str]) -> None:
        for problem in found:
            self._fail(problem, statement)

    # -- the function ------------------------------------------------------------------------------

    def _signature(self) -> Iterator[str]:
        if len(set(self.function.parameters)) != len(self.function.parameters):
            yield "a parameter is given twice"
        is_entry = self.function.name == self.module.entry
        for parameter in self.function.parameters:
            if isinstance(parameter, loop.Register):
                if is_entry:
                    yield f"the entry takes the register '{parameter.name}'"
            elif parameter.space not in (_ENTRY_SPACES if is_entry else (loop.Space.ARGUMENT,)):
                yield f"parameter '{parameter.name}' is {parameter.space.value}"
        names: set[str] = set()
        for buffer in buffers_of(self.function):
            if buffer.name in names:
                yield f"two buffers are called '{buffer.name}'"
            names.add(buffer.name)

    # -- statements --------------------------------------------------------------------------------

    def _block(self, block: loop.Block, place: Place, own: Iterable[loop.Register]) -> None:
        """Check a block that sees `own` besides the visible registers, and forget its definitions."""
        depth, allocated = len(self.scope), dict(self.allocated)
        self._show(own)
        for statement in block.statements:
            self._statement(statement, place)
        last = block.statements[-1] if block.statements else None
        for value in block.yields:
            self._seen(value, last)
        while len(self.scope) > depth:
            self.registers.discard(self.scope.pop())
        self.allocated = allocated

    def _statement(self, s: loop.Statement, place: Place) -> None:
        for operand in operands_of(s):
            self._seen(operand, s)
        for buffer, address, access in accesses_of(s):
            for register, _ in address.terms:
                self._seen(register, s)
            self._each(s, self._buffer(buffer, access, place))
        self._each(s, self._names(s))
        if isinstance(s, loop.Copy) and loop.LoopKind.BLOCK in place.loops:
            self._each(s, types.wide_problems(s))
        self._each(s, types.problems(s))
        self._each(s, placement.problems(s, place))
        own = _own_registers(s)
        self._assign(own, s)
        for block in blocks_of(s):
            self._block(block, place.inside(s), own)
        self._assign(results_of(s), s)
        self._show(results_of(s))

    def _seen(self, operand: loop.Operand, s: loop.Statement | None) -> None:
        if isinstance(operand, loop.Register) and operand not in self.registers:
            name = self.printer.shown(operand)
            if operand in self.assigned:
                self._fail(f"{name} is read outside the block that assigns it", s)
            self._fail(f"{name} is read before it is assigned", s)

    def _assign(self, registers: Iterable[loop.Register], s: loop.Statement) -> None:
        for register in registers:
            if register in self.assigned:
                self._fail(f"{self.printer.shown(register)} is assigned twice", s)
            self.assigned.add(register)

    def _show(self, registers: Iterable[loop.Register]) -> None:
        self.registers.update(registers)
        self.scope.extend(registers)

    # -- buffers and names -------------------------------------------------------------------------

    def _buffer(self, buffer: loop.Buffer, access: Access, place: Place) -> Iterator[str]:
        name, space = buffer.name, buffer.space
        if buffer.alignment < 1 or buffer.alignment & (buffer.alignment - 1):
            yield f"buffer '{name}' is aligned to {buffer.alignment} bytes, which is not a power of two"
        if access is Access.ALLOCATE:
            yield from self._allocate(buffer, place)
        elif space is loop.Space.ARENA:
            yield from self._arena(buffer)
        elif space in (loop.Space.LOCAL, loop.Space.SHARED):
            if buffer not in self.allocated:
                yield f"{space.value} buffer '{name}' is not allocated here"
            elif space is loop.Space.LOCAL and self.allocated[buffer] != place.threads:
                yield f"local buffer '{name}' belongs to the threads outside this loop"
        elif buffer not in self.parameters:
            yield f"{space.value} buffer '{name}' is not a parameter"
        elif access in (Access.WRITE, Access.UPDATE):
            if space in _READ_ONLY:
                yield f"{space.value} buffer '{name}' is read only"
            elif not buffer.written:
                yield f"parameter '{name}' is stored to, but not declared as written"

    def _allocate(self, buffer: loop.Buffer, place: Place) -> Iterator[str]:
        if buffer in self.allocated_ever:
            yield f"buffer '{buffer.name}' is allocated twice"
        self.allocated_ever.add(buffer)
        self.allocated[buffer] = place.threads

    def _arena(self, buffer: loop.Buffer) -> Iterator[str]:
        end = buffer.offset + buffer.size * buffer.dtype.itemsize
        if buffer.offset < 0 or end > self.module.arena:
            yield f"buffer '{buffer.name}' ends at byte {end} of an arena of {self.module.arena}"
        alignment = max(buffer.alignment, buffer.dtype.itemsize)
        if buffer.offset % alignment:
            yield f"buffer '{buffer.name}' at byte {buffer.offset} of the arena is not aligned to {alignment}"

    def _names(self, s: loop.Statement) -> Iterator[str]:
        """Yield a sentence for each stack or function that the statement names and that does not exist."""
        stacks = loop.StackPush | loop.StackPop | loop.StackRead | loop.StackWrite | loop.StackLength | loop.StackReset
        if isinstance(s, stacks) and not 0 <= s.stack < self.module.stacks:
            yield f"stack {s.stack} of {self.module.stacks}"
        if not isinstance(s, loop.Invoke):
            return
        for use in s.stacks:
            if not 0 <= use.stack < self.module.stacks:
                yield f"stack {use.stack} of {self.module.stacks}"
        callee = self.functions.get(s.function)
        if callee is None:
            yield f"'{s.function}' is not a function of the module"
        elif callee.name == self.module.entry:
            yield "the entry is invoked"
        else:
            yield from types.argument_problems(s, callee.parameters)
            yield from types.alignment_problems(s, callee.parameters)
            yield from self._written(s, callee)

    def _written(self, s: loop.Invoke, callee: loop.Function) -> Iterator[str]:
        """Yield a sentence for each read-only buffer that the callee writes."""
        for argument, parameter in zip(s.arguments, callee.parameters, strict=not (s.share or s.stacks)):
            if isinstance(argument, loop.View) and isinstance(parameter, loop.Buffer) and parameter.written:
                given = argument.buffer
                if given.space in _READ_ONLY:
                    yield f"'{s.function}' writes to {given.space.value} buffer '{given.name}'"
                elif given in self.parameters and not given.written:
                    yield f"'{s.function}' writes to '{given.name}', which is not declared as written"


def _own_registers(s: loop.Statement) -> tuple[loop.Register, ...]:
    """Return the registers that a statement defines for its own blocks."""
    match s:
        case loop.For():
            return (s.index, *(carry.register for carry in s.carries))
        case loop.While():
            return tuple([carry.register for carry in s.carries])
        case _:
            return ()
