"""Printer of the loop IR, for `f.lower(x).loops()`.

    sum_of_squares(a: input f32[100], out: output f32[1]) {
      %acc1: f32 = for %i in 0..100 vector(16) carry(%acc: f32 = 0.0 combine add) {
        %x: f32 = load a[%i]
        %0: f32 = fma %x, %x, %acc
        yield %0
      }
      store out[0] = %acc1
    }

Registers have the names of their hints, made unique within the function by a number; a register without a hint is a
number. Arena buffers are listed at the head of the function that names them. Literals carry their type, unless it is
i64 by their position (bounds, addresses, faults) or their neighbour shows it (carries).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import assert_never

from tracer.errors import InternalError
from tracer.ir import loop
from tracer.ir.dtypes import BOOL, I64, short_name
from tracer.ir.loop.walk import buffers_of
from tracer.ir.numerals import scalar_text
from tracer.ir.reductions import identity
from tracer.ir.scalar import ScalarOp

INDENT = "  "
_Whole = loop.Function | loop.Statement


def loop_text(module: loop.Module) -> str:
    """Return the text of a module: the entry, the scratch memory of a call, then the functions in order."""
    head = f"module entry {module.entry}"
    if module.arena:
        head += f", arena {module.arena} bytes"
    if module.stacks:
        head += f", {module.stacks} {'stack' if module.stacks == 1 else 'stacks'}"
    return "\n\n".join([head, *(function_text(f) for f in module.functions)]) + "\n"


def statements_by_line(module: loop.Module) -> list[loop.Function | loop.Statement | None]:
    """Return the function or statement that each line of `loop_text(module)` prints, None for the module's own lines.

    The lines that end a loop, and the lines of its yields, count as the loop's.
    """
    found: list[loop.Function | loop.Statement | None] = [None]
    for function in module.functions:
        declared = sum(buffer.space is loop.Space.ARENA for buffer in buffers_of(function))
        found += [None, *[function] * (1 + declared), *_of_block(function.body, function), function]
    return found


def _of_block(block: loop.Block, around: _Whole) -> Iterator[_Whole]:
    for s in block.statements:
        yield s
        match s:
            case loop.For():
                yield from (*_of_block(s.body, s), s)
            case loop.While():
                for inner in (s.condition, s.body):
                    yield from (s, *_of_block(inner, s), s)
                yield s
            case loop.If():
                yield from (*_of_block(s.then, s), s)
                if s.otherwise.statements or s.otherwise.yields:
                    yield from (*_of_block(s.otherwise, s), s)
            case _:
                pass
    if block.yields:
        yield around


def function_text(function: loop.Function) -> str:
    """Return the text of one function, without a newline at its end."""
    return "\n".join(Printer(function).function_lines())


class Printer:
    """Printer of one function, and of single statements of it with equal names."""

    def __init__(self, function: loop.Function) -> None:
        self.function = function
        self._names: dict[loop.Register, str] = {}
        self._taken: set[str] = set()
        self._next: dict[str, int] = {}  # by hint, the number that its next register tries first
        self._lines: list[str] | None = None

    def function_lines(self) -> list[str]:
        """Return the lines of the function."""
        if self._lines is None:
            f = self.function
            head = f"{f.name}({', '.join([self._parameter(p) for p in f.parameters])}){' plain' * f.plain} {{"
            arena = [b for b in buffers_of(f) if b.space is loop.Space.ARENA]
            arena.sort(key=lambda b: (b.offset, b.name))
            declared = [f"{INDENT}{_declaration(b)} at {b.offset}" for b in arena]
            self._lines = [head, *declared, *self._block(f.body), "}"]
        return self._lines

    def statement_lines(self, statement: loop.Statement) -> list[str]:
        """Return the lines of one statement of the function."""
        self.function_lines()
        return list(self._statement(statement))

    def block_lines(self, block: loop.Block) -> list[str]:
        """Return the lines of a block of the function, the outermost without indentation."""
        self.function_lines()
        return [line.removeprefix(INDENT) for line in self._block(block)]

    def shown(self, register: loop.Register) -> str:
        """Return the register's name in the printed function."""
        self.function_lines()
        return self.name(register)

    # -- operands ----------------------------------------------------------------------------------

    def name(self, register: loop.Register) -> str:
        """Return the register's name; a new register gets a new name."""
        found = self._names.get(register)
        if found is None:
            found = self._names[register] = "%" + self._fresh(register.name)
        return found

    def _fresh(self, hint: str) -> str:
        number = self._next.get(hint, 0 if hint else -1)
        name = hint
        while not name or name in self._taken:
            number += 1
            name = f"{hint}_{number}" if hint[-1:].isdigit() else f"{hint}{number}"
        self._next[hint] = number
        self._taken.add(name)
        return name

    def operand(self, operand: loop.Operand) -> str:
        """Return a register's name, or a literal with its type."""
        if isinstance(operand, loop.Register):
            return self.name(operand)
        text = self.plain(operand)
        return text if operand.dtype == BOOL else f"{text}:{short_name(operand.dtype)}"

    def plain(self, operand: loop.Operand) -> str:
        """Return a register's name, or a literal without its type."""
        if isinstance(operand, loop.Register):
            return self.name(operand)
        return scalar_text(operand.bits, operand.dtype)

    def _index(self, operand: loop.Operand) -> str:
        return self.plain(operand) if operand.dtype == I64 else self.operand(operand)

    def _typed(self, register: loop.Register) -> str:
        return f"{self.name(register)}: {short_name(register.dtype)}"

    def _parameter(self, parameter: loop.Buffer | loop.Register) -> str:
        return self._typed(parameter) if isinstance(parameter, loop.Register) else _declaration(parameter)

    def _results(self, registers: Sequence[loop.Register]) -> str:
        return ", ".join([self._typed(r) for r in registers]) + " = " if registers else ""

    def address(self, address: loop.Address) -> str:
        """Return an address as text: `4*%i - %j + 1`."""
        text = ""
        for register, coefficient in address.terms:
            size = abs(coefficient)
            term = self.name(register) if size == 1 else f"{size}*{self.name(register)}"
            text += signed_term(coefficient < 0, term, first=not text)
        if address.constant or not text:
            text += signed_term(address.constant < 0, str(abs(address.constant)), first=not text)
        return text

    def _element(self, buffer: loop.Buffer, address: loop.Address) -> str:
        return f"{buffer.name}[{self.address(address)}]"

    def _view(self, view: loop.View) -> str:
        start = self.address(view.start)
        return view.buffer.name if start == "0" else f"{view.buffer.name}[{start} ..]"

    def _arguments(self, arguments: Iterable[loop.View | loop.Operand]) -> str:
        return ", ".join([self._view(a) if isinstance(a, loop.View) else self.operand(a) for a in arguments])

    # -- statements --------------------------------------------------------------------------------

    def _block(self, block: loop.Block) -> Iterator[str]:
        for statement in block.statements:
            for line in self._statement(statement):
                yield INDENT + line
        if block.yields:
            yield f"{INDENT}yield {', '.join([self.operand(v) for v in block.yields])}"

    def _statement(self, s: loop.Statement) -> Iterator[str]:
        match s:
            case loop.For():
                return self._for(s)
            case loop.While():
                return self._while(s)
            case loop.If():
                return self._if(s)
            case _:
                return iter((self._line(s),))

    def _line(self, s: loop.Statement) -> str:
        match s:
            case loop.Compute():
                operands = ", ".join([self.operand(o) for o in s.operands])
                return f"{self._typed(s.result)} = {s.op.label} {operands}"
            case loop.Load():
                where = self._where(s.mask)
                if s.mask is not None and s.fill is not None:
                    where += f" else {self.plain(s.fill)}"
                return f"{self._typed(s.result)} = load {self._element(s.buffer, s.address)}{where}"
            case loop.Store():
                where = self._where(s.mask)
                past = " past caches" if s.past else ""
                return f"store {self._element(s.buffer, s.address)} = {self.operand(s.value)}{where}{past}"
            case loop.Update():
                element, value = self._element(s.buffer, s.address), self.operand(s.value)
                return f"update {element} {s.op.label} {value}{self._where(s.mask)}"
            case loop.Shuffle():
                how = f"{s.kind.value} {s.offset}"
                return f"{self._typed(s.result)} = shuffle {self.operand(s.value)} {how}"
            case loop.Prefix():
                results = f"{self._typed(s.result)}, {self._typed(s.last)}"
                return f"{results} = prefix {s.op.label} {self.operand(s.value)} from {self.operand(s.before)}"
            case loop.Fault():
                values = f" with {', '.join([self._index(v) for v in s.values])}" if s.values else ""
                at = self._index(s.position)
                return f"fault {s.site} where {self.operand(s.predicate)} at {at}{values}"
            case loop.Alloc():
                return f"alloc {_declaration(s.buffer)}"
            case loop.Copy():
                return f"copy {s.count} from {self._view(s.source)} to {self._view(s.target)}"
            case loop.Transpose():
                size = f"{self._index(s.rows)} by {self._index(s.columns)}"
                source = f"{self._view(s.source)} stride {s.source_stride}"
                past = " past caches" if s.past else ""
                return f"transpose {size} from {source} to {self._view(s.target)} stride {s.target_stride}{past}"
            case loop.StackPush():
                return f"push {s.count} from {self._view(s.source)} to stack {s.stack}"
            case loop.StackPop():
                return f"pop {s.count} from stack {s.stack} to {self._view(s.target)}"
            case loop.StackRead():
                return f"read {s.count} of item {self._index(s.index)} of stack {s.stack} to {self._view(s.target)}"
            case loop.StackWrite():
                return f"write {s.count} from {self._view(s.source)} to item {self._index(s.index)} of stack {s.stack}"
            case loop.StackLength():
                return f"{self._typed(s.result)} = length of stack {s.stack} in items of {s.size} bytes"
            case loop.StackReset():
                return f"reset stack {s.stack}"
            case loop.Invoke():
                shared = "" if s.share is None else f" share 0..{s.share.count} by {s.share.grain}"
                used = "".join([f" {self._use(use)}" for use in s.stacks])
                return f"invoke {s.function}({self._arguments(s.arguments)}){shared}{' inlined' * s.inlined}{used}"
            case loop.Library():
                return f"library {s.name}({self._arguments(s.arguments)}){_kernel(s.kernel)}"
            case loop.Callback():
                return f"callback {s.slot}({self._arguments(s.inputs)}) -> ({self._arguments(s.outputs)})"
            case loop.Leave():
                return "leave"
            case loop.Barrier():
                return "barrier"
            case loop.For() | loop.While() | loop.If():
                return next(self._statement(s))
            case _:
                assert_never(s)

    def _use(self, use: loop.StackUse) -> str:
        room = f" room {use.room}" if use.room else ""
        rounds = "" if use.rounds is None else f" a round of {self._index(use.rounds)}"
        return f"stack {use.stack} in items of {use.size} bytes{room}{rounds}"

    def _where(self, mask: loop.Operand | None) -> str:
        return "" if mask is None else f" where {self.operand(mask)}"

    def _for(self, s: loop.For) -> Iterator[str]:
        bounds = f"{self._index(s.start)}..{self._index(s.stop)}"
        text = f"for {self.name(s.index)} in {bounds}"
        if s.step != 1:
            text += f" step {s.step}"
        if s.kind is loop.LoopKind.VECTOR:
            text += f" vector({s.lanes}){' outlined' * s.outlined}{' multiplying roots' * s.multiplies_roots}"
        elif s.kind is not loop.LoopKind.SERIAL:
            text += f" {s.kind.value}"
        carries = self._carries(s.carries)
        yield f"{self._results(s.results)}{text}{' unrolled' * s.unrolled}{carries} {{"
        yield from self._block(s.body)
        yield "}"

    def _while(self, s: loop.While) -> Iterator[str]:
        carries = self._carries(s.carries)
        yield f"{self._results(s.results)}while{carries} {{"
        for label, block in (("condition", s.condition), ("body", s.body)):
            yield f"{INDENT}{label} {{"
            for line in self._block(block):
                yield INDENT + line
            yield f"{INDENT}}}"
        yield "}"

    def _if(self, s: loop.If) -> Iterator[str]:
        predicate = self.operand(s.predicate)
        yield f"{self._results(s.results)}if {predicate}{' outlined' * s.outlined} {{"
        yield from self._block(s.then)
        if s.otherwise.statements or s.otherwise.yields:
            yield "} else {"
            yield from self._block(s.otherwise)
        yield "}"

    def _carries(self, carries: Sequence[loop.Carry]) -> str:
        return f" carry({', '.join([self._carry(c) for c in carries])})" if carries else ""

    def _carry(self, carry: loop.Carry) -> str:
        text = f"{self._typed(carry.register)} = {self.plain(carry.initial)}"
        if carry.combine is None:
            return text
        text += f" combine {carry.combine.label}"
        if carry.identity is None or carry.identity == _usual(carry.combine, carry.register):
            return text
        return f"{text} from {self.plain(carry.identity)}"


def _usual(op: ScalarOp, register: loop.Register) -> loop.Constant | None:
    try:
        return loop.Constant(identity(op, register.dtype), register.dtype)
    except InternalError:  # a module with defects must be printable
        return None


def signed_term(negative: bool, term: str, *, first: bool) -> str:
    """Return a term of a sum with its sign before it."""
    if first:
        return f"-{term}" if negative else term
    return f" - {term}" if negative else f" + {term}"


def _declaration(buffer: loop.Buffer) -> str:
    """Return `name: space dtype[size]`, without the space for an argument."""
    space = "" if buffer.space is loop.Space.ARGUMENT else f"{buffer.space.value} "
    text = f"{buffer.name}: {space}{short_name(buffer.dtype)}[{buffer.size}]"
    if buffer.space is loop.Space.ARGUMENT and buffer.written:
        text += " written"
    return text if buffer.alignment == 1 else f"{text} align {buffer.alignment}"


def _kernel(kernel: loop.Kernel) -> str:
    """Spell a kernel as the end of a library call's line: "" for the plain one in one call."""
    name, split = f" by {kernel.name}" if kernel.name else "", kernel.split
    if split is None:
        return name
    return f"{name} share {split.along.value} {split.count} x {split.width}, {split.at_once} at once"
