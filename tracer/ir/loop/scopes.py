"""Scopes of loop IR while it is written: the context managers that `Builder.for_`, `while_` and `if_` return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import TracebackType

from tracer.ir.loop import Block, Carry, Operand, Register, Statement


class Blocks:
    """Statements of the innermost open block, and of the blocks around it."""

    __slots__ = ("_around", "statements")

    def __init__(self) -> None:
        self.statements: list[Statement] = []
        self._around: list[list[Statement]] = []

    @property
    def depth(self) -> int:
        """Number of open inner blocks."""
        return len(self._around)

    def open(self) -> None:
        """Begin an inner block."""
        self._around.append(self.statements)
        self.statements = []

    def close(self) -> tuple[Statement, ...]:
        """End the innermost block. Return its statements."""
        statements = tuple(self.statements)
        self.statements = self._around.pop()
        return statements


class Scope:
    """Block being written, as a context manager; `yields` sets the operands that it hands on."""

    __slots__ = ("_blocks", "_done", "_yields", "block")

    def __init__(self, blocks: Blocks, done: Callable[[], None]) -> None:
        self._blocks = blocks
        self._done = done
        self._yields: tuple[Operand, ...] = ()
        self.block = Block(())

    def __enter__(self) -> Scope:
        self._blocks.open()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.block = Block(self._blocks.close(), self._yields)
            self._done()

    def yields(self, *values: Operand) -> None:
        """Hand the operands to the enclosing statement, at the end of the block."""
        self._yields = values


class Loop(Scope):
    """`For` being written. Its body reads `index` and `carries`; statements after it read `results`."""

    __slots__ = ("carries", "index", "results")

    def __init__(self, blocks: Blocks, done: Callable[[], None], index: Register, carries: Sequence[Carry]) -> None:
        super().__init__(blocks, done)
        self.index = index
        self.carries = tuple([c.register for c in carries])
        self.results = _results(carries)

    def __enter__(self) -> Loop:
        self._blocks.open()
        return self


class Branch(Scope):
    """`If` being written: its own block is the arm that runs where the predicate holds.

    otherwise: the other arm, a scope to enter afterwards. results: set once the first arm is closed.
    """

    __slots__ = ("otherwise", "results")

    def __init__(self, blocks: Blocks, done: Callable[[], None], otherwise: Scope) -> None:
        super().__init__(blocks, done)
        self.otherwise = otherwise
        self.results: tuple[Register, ...] = ()

    def __enter__(self) -> Branch:
        self._blocks.open()
        return self


class WhileLoop:
    """`While` being written: enter `condition`, then `body`. Both read `carries`."""

    __slots__ = ("body", "carries", "condition", "results")

    def __init__(self, blocks: Blocks, done: Callable[[], None], carries: Sequence[Carry]) -> None:
        self.carries = tuple([c.register for c in carries])
        self.results = _results(carries)
        self.condition = Scope(blocks, _nothing)
        self.body = Scope(blocks, done)


def _results(carries: Sequence[Carry]) -> tuple[Register, ...]:
    return tuple([Register(c.register.dtype, c.register.name) for c in carries])


def _nothing() -> None:
    pass
