"""Builder of loop IR, statement by statement, and constructors of its operands.

    b = Builder()
    with b.for_("i", 0, n, kind=LoopKind.VECTOR, lanes=16, carries=[reduction(ScalarOp.ADD, zero)]) as loop:
        x = b.load(a, loop.index)
        loop.yields(b.compute(ScalarOp.ADD, loop.carries[0], x))
    b.store(out, 0, loop.results[0])
    function = Function("sum", (a, out), b.finish())

A Python scalar may stand for any operand. It takes the dtype of the operands beside it, i64 in addresses and bounds.
Arithmetic on i64 constants is folded, so that index expressions may be written without regard to static values.
Arithmetic on floats is never folded.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import numpy as np

from tracer.errors import InternalError
from tracer.ir import loop
from tracer.ir.dtypes import BOOL, I64, DType
from tracer.ir.loop.scopes import Blocks, Branch, Loop, Scope, WhileLoop
from tracer.ir.reductions import identity
from tracer.ir.scalar import ScalarOp

Number = bool | int | float
Value = loop.Operand | Number
Term = loop.Address | loop.Operand | int | tuple[loop.Operand, int]
Memory = loop.View | loop.Buffer  # a buffer stands for the view from its start


def constant(value: Any, dtype: DType) -> loop.Constant:
    """Return a typed constant; `value` is anything that NumPy converts to the dtype.

    >>> constant(2, np.dtype("float32"))
    Constant(value=np.float32(2.0), dtype=dtype('float32'))
    """
    return loop.Constant(np.asarray(value, dtype)[()], dtype)


def address(*terms: Term) -> loop.Address:
    """Return the sum of the terms; equal registers are gathered, constants added up.

    A term is another address, an operand, an integer, or (operand, coefficient).
    """
    offset = 0
    coefficients: dict[loop.Register, int] = {}
    for term in terms:
        for operand, factor in _parts(term):
            if type(operand) is loop.Register:
                coefficients[operand] = coefficients.get(operand, 0) + factor
            else:
                offset += factor * (int(operand.value) if isinstance(operand, loop.Constant) else 1)
    return loop.Address(offset, tuple([(r, c) for r, c in coefficients.items() if c]))


def _parts(term: Term) -> Iterable[tuple[loop.Operand | None, int]]:
    """Return the registers and constants of a term with their factors; None stands for 1."""
    if isinstance(term, loop.Address):
        return ((None, term.constant), *term.terms)
    if isinstance(term, tuple):
        return (term,)
    return ((term, 1),) if isinstance(term, loop.Register | loop.Constant) else ((None, term),)


def view(buffer: loop.Buffer, *terms: Term) -> loop.View:
    """Return the part of the buffer that starts at the sum of the terms."""
    return loop.View(buffer, address(*terms))


def carry(initial: loop.Operand, name: str = "") -> loop.Carry:
    """Return a serial carry with a fresh register."""
    return loop.Carry(loop.Register(initial.dtype, name), initial)


def reduction(op: ScalarOp, initial: loop.Operand, name: str = "acc") -> loop.Carry:
    """Return a carry of partial results that `op` combines, with a fresh register and the operation's identity."""
    return loop.Carry(
        loop.Register(initial.dtype, name), initial, op, constant(identity(op, initial.dtype), initial.dtype)
    )


class Builder(Blocks):
    """Collector of the statements of a block and of the blocks within it."""

    __slots__ = ()

    def finish(self, *yields: loop.Operand) -> loop.Block:
        """Return the block. Raises InternalError if an inner block is still open."""
        if self.depth:
            raise InternalError(f"loop IR: finished with {self.depth} inner blocks still open")
        return loop.Block(tuple(self.statements), yields)

    def add(self, statement: loop.Statement) -> None:
        """Append a statement made elsewhere."""
        self.statements.append(statement)

    # -- scalars -----------------------------------------------------------------------------------

    def compute(self, op: ScalarOp, *operands: Value, dtype: DType | None = None, name: str = "") -> loop.Operand:
        """Compute op(*operands). `dtype` is the target of CONVERT and BITCAST.

        Return a register, or a constant where i64 arithmetic folds. `apply` never folds.
        """
        typed = _typed(op, operands)
        if typed[-1].dtype == I64 and op in _FOLDED:
            folded = _fold(op, typed[0], typed[1])
            if folded is not None:
                return folded
        return self.apply(op, *typed, dtype=dtype, name=name)

    def apply(self, op: ScalarOp, *operands: loop.Operand, dtype: DType | None = None, name: str = "") -> loop.Register:
        """Compute op(*operands) into a fresh register, nothing folded or converted."""
        kind = op.signature.result
        if kind == "same":
            dtype = operands[-1].dtype
        elif kind == "bool":
            dtype = BOOL
        elif dtype is None:
            raise InternalError(f"loop IR: {op.label} needs the dtype of its result")
        result = loop.Register(dtype, name)
        self.statements.append(loop.Compute(result, op, operands))
        return result

    def convert(self, value: loop.Operand, dtype: DType, name: str = "") -> loop.Operand:
        """Convert the value to `dtype`; return it unchanged if it has that dtype."""
        return value if value.dtype == dtype else self.apply(ScalarOp.CONVERT, value, dtype=dtype, name=name)

    def bitcast(self, value: loop.Operand, dtype: DType, name: str = "") -> loop.Operand:
        """Reinterpret the value's bits as `dtype`; return it unchanged if it has that dtype."""
        return value if value.dtype == dtype else self.apply(ScalarOp.BITCAST, value, dtype=dtype, name=name)

    def select(self, predicate: loop.Operand, then: Value, otherwise: Value, name: str = "") -> loop.Operand:
        """Choose `then` where the predicate holds, else `otherwise`."""
        return self.compute(ScalarOp.SELECT, predicate, then, otherwise, name=name)

    def choose(
        self, predicate: loop.Operand, then: Sequence[loop.Operand], otherwise: Sequence[loop.Operand]
    ) -> tuple[loop.Operand, ...]:
        """Choose between values of several parts: `then` where the predicate holds, else `otherwise`."""
        return tuple(self.select(predicate, x, y) for x, y in zip(then, otherwise, strict=True))

    # -- memory ------------------------------------------------------------------------------------

    def load(
        self,
        buffer: loop.Buffer,
        at: Term,
        *,
        mask: loop.Operand | None = None,
        fill: Value | None = None,
        name: str = "",
    ) -> loop.Register:
        """Load buffer[at], or `fill` where `mask` is false."""
        result = loop.Register(buffer.dtype, name)
        filler = None if fill is None else _operand(fill, buffer.dtype)
        self.statements.append(loop.Load(result, buffer, _address(at), mask, filler))
        return result

    def store(self, buffer: loop.Buffer, at: Term, value: Value, *, mask: loop.Operand | None = None) -> None:
        """Store buffer[at] = value, where `mask` is true or absent."""
        self.statements.append(loop.Store(buffer, _address(at), _operand(value, buffer.dtype), mask))

    def update(
        self, buffer: loop.Buffer, at: Term, op: ScalarOp, value: Value, *, mask: loop.Operand | None = None
    ) -> None:
        """Update buffer[at] = op(buffer[at], value), where `mask` is true or absent."""
        self.statements.append(loop.Update(buffer, _address(at), op, _operand(value, buffer.dtype), mask))

    def alloc(self, buffer: loop.Buffer) -> loop.Buffer:
        """Allocate a LOCAL or SHARED buffer; return it."""
        self.statements.append(loop.Alloc(buffer))
        return buffer

    def copy(self, target: Memory, source: Memory, count: int) -> None:
        """Copy target[: count] = source[: count]."""
        self.statements.append(loop.Copy(_view(target), _view(source), count))

    def push(self, stack: int, source: Memory, count: int) -> None:
        """Append source[: count] to a growable stack."""
        self.statements.append(loop.StackPush(stack, _view(source), count))

    def pop(self, stack: int, target: Memory, count: int) -> None:
        """Move the last `count` elements of a growable stack into the target."""
        self.statements.append(loop.StackPop(stack, _view(target), count))

    def read_item(self, stack: int, index: Value, target: Memory, count: int) -> None:
        """Read an item of a growable stack into target[: count], zeros beyond its end."""
        self.statements.append(loop.StackRead(stack, _operand(index, I64), _view(target), count))

    def write_item(self, stack: int, index: Value, source: Memory, count: int) -> None:
        """Write source[: count] to an item of a growable stack."""
        self.statements.append(loop.StackWrite(stack, _operand(index, I64), _view(source), count))

    def length(self, stack: int, size: int) -> loop.Register:
        """Count the items of `size` bytes in a growable stack."""
        result = loop.Register(I64, "length")
        self.statements.append(loop.StackLength(result, stack, size))
        return result

    def reset(self, stack: int) -> None:
        """Empty a growable stack."""
        self.statements.append(loop.StackReset(stack))

    # -- control -----------------------------------------------------------------------------------

    def for_(
        self,
        name: str,
        start: Value,
        stop: Value,
        *,
        kind: loop.LoopKind = loop.LoopKind.SERIAL,
        step: int = 1,
        lanes: int = 1,
        carries: Sequence[loop.Carry] = (),
    ) -> Loop:
        """Open a loop over range(start, stop, step) whose index register is called `name`."""
        index = loop.Register(I64, name)
        first, end = _operand(start, I64), _operand(stop, I64)

        def done() -> None:
            self.statements.append(
                loop.For(index, first, end, scope.block, kind, step, lanes, tuple(carries), scope.results)
            )

        scope = Loop(self, done, index, carries)
        return scope

    def while_(self, *carries: loop.Carry) -> WhileLoop:
        """Open a loop that runs while its condition yields true; write `condition`, then `body`."""

        def done() -> None:
            self.statements.append(loop.While(carries, scope.condition.block, scope.body.block, scope.results))

        scope = WhileLoop(self, done, carries)
        return scope

    def if_(self, predicate: loop.Operand) -> Branch:
        """Open a branch; its results take the dtypes of its first arm's yields."""
        place = [0]

        def then_done() -> None:
            branch.results = tuple([loop.Register(v.dtype) for v in branch.block.yields])
            place[0] = len(self.statements)
            self.statements.append(loop.If(predicate, branch.block, loop.Block(()), branch.results))

        def otherwise_done() -> None:
            whole = loop.If(predicate, branch.block, branch.otherwise.block, branch.results)
            self.statements[place[0]] = whole

        branch = Branch(self, then_done, Scope(self, otherwise_done))
        return branch

    # -- effects and calls -------------------------------------------------------------------------

    def fault(self, site: int, predicate: loop.Operand, position: Value, *values: Value) -> None:
        """Record a fault where the predicate holds."""
        position, *rest = (_operand(v, I64) for v in (position, *values))
        self.statements.append(loop.Fault(site, predicate, position, tuple(rest)))

    def leave(self) -> None:
        """Return from the function if a fault was recorded or a callback raised."""
        self.statements.append(loop.Leave())

    def invoke(self, function: str, *arguments: Memory | Value) -> None:
        """Run another function of the module."""
        self.statements.append(loop.Invoke(function, tuple([_argument(a) for a in arguments])))

    def library(self, name: str, *arguments: Memory | Value) -> None:
        """Run a library routine."""
        self.statements.append(loop.Library(name, tuple([_argument(a) for a in arguments])))

    def callback(self, slot: int, inputs: Iterable[Memory], outputs: Iterable[Memory]) -> None:
        """Call back into Python."""
        self.statements.append(
            loop.Callback(slot, tuple([_view(v) for v in inputs]), tuple([_view(v) for v in outputs]))
        )

    def barrier(self) -> None:
        """Let all threads of the block meet."""
        self.statements.append(loop.Barrier())

    def shuffle(
        self, value: loop.Operand, offset: int, kind: loop.ShuffleKind = loop.ShuffleKind.XOR, name: str = ""
    ) -> loop.Register:
        """Return the value of another lane of the warp."""
        result = loop.Register(value.dtype, name)
        self.statements.append(loop.Shuffle(result, value, offset, kind))
        return result

    def prefix(self, op: ScalarOp, value: loop.Operand, before: loop.Register) -> tuple[loop.Register, loop.Register]:
        """Return op(before, the lanes up to this one), and its value in the last lane."""
        result, last = loop.Register(value.dtype, "so_far"), loop.Register(value.dtype, "last")
        self.statements.append(loop.Prefix(result, last, op, value, before))
        return result, last


# -- operands ----------------------------------------------------------------------------------------


def _operand(value: Value, dtype: DType) -> loop.Operand:
    if type(value) is loop.Register or type(value) is loop.Constant:
        return value
    return loop.index_constant(int(value)) if dtype == I64 else constant(value, dtype)  # type: ignore[arg-type]


def _address(at: Term) -> loop.Address:
    if type(at) is loop.Address:
        return at
    if type(at) is loop.Register:
        return loop.Address(0, ((at, 1),))
    return address(at)


def _view(memory: Memory) -> loop.View:
    return memory if isinstance(memory, loop.View) else loop.View(memory)


def _argument(value: Memory | Value) -> loop.View | loop.Operand:
    if isinstance(value, loop.View | loop.Buffer):
        return _view(value)
    return _operand(value, I64)


def _typed(op: ScalarOp, operands: tuple[Value, ...]) -> tuple[loop.Operand, ...]:
    """Return the operands, with Python scalars as constants of the dtype of the typed operands.

    The predicate of SELECT has a dtype of its own. Raises InternalError if every operand is a scalar.
    """
    model: DType | None = None
    numbers = False
    for operand in operands[1:] if op is ScalarOp.SELECT else operands:
        if type(operand) is loop.Register or type(operand) is loop.Constant:
            model = operand.dtype
        else:
            numbers = True
    if not numbers:
        return operands  # type: ignore[return-value]  # all are registers or constants
    if model is None:
        raise InternalError(f"loop IR: {op.label} of numbers alone has no dtype")
    return tuple([_operand(operand, model) for operand in operands])


_FOLDED: Final = frozenset((ScalarOp.ADD, ScalarOp.SUB, ScalarOp.MUL))
_NEUTRAL: Final = {ScalarOp.ADD: 0, ScalarOp.SUB: 0, ScalarOp.MUL: 1}
_LIMIT: Final = 1 << 63


def _fold(op: ScalarOp, a: loop.Operand, b: loop.Operand) -> loop.Operand | None:
    """Return the result of i64 arithmetic if it needs no statement; None if it does, or would wrap."""
    left = int(a.value) if isinstance(a, loop.Constant) else None
    right = int(b.value) if isinstance(b, loop.Constant) else None
    if left is not None and right is not None:
        result = {ScalarOp.ADD: left + right, ScalarOp.SUB: left - right, ScalarOp.MUL: left * right}[op]
        return loop.index_constant(result) if -_LIMIT <= result < _LIMIT else None
    if right == _NEUTRAL[op]:
        return a
    if left == _NEUTRAL[op] and op is not ScalarOp.SUB:
        return b
    if op is ScalarOp.MUL and (left == 0 or right == 0):
        return loop.index_constant(0)
    return None
