"""State of spelling one kernel: its lines, and the names of its registers and buffers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

from tracer.codegen.cuda.types import PREAMBLE, RESERVED, literal, type_name
from tracer.errors import InternalError
from tracer.ir.loop import Address, Buffer, Constant, Function, Operand, Register
from tracer.ir.loop.text import signed_term

_INDENT: Final = "  "
_TYPES: Final = frozenset(re.findall(r" (\w+);", PREAMBLE))


class Frame:
    """One kernel being spelled. helpers: the helpers that the module needs so far, unordered."""

    def __init__(self, function: Function, helpers: dict[str, None]) -> None:
        self.function = function
        self.helpers = helpers
        self.lines: list[str] = []
        self.depth = 0
        self.faults = False
        self._names: dict[Register | Buffer, str] = {}
        self._taken = set(RESERVED | _TYPES)
        self._next: dict[str, int] = {}

    def fail(self, problem: str) -> NoReturn:
        """Raise InternalError for a statement that this backend cannot spell: a bug of the schedule."""
        raise InternalError(f"cuda: {problem}, in function '{self.function.name}'")

    # -- lines ---------------------------------------------------------------------------------------

    def do(self, line: str) -> None:
        """Write a line."""
        self.lines.append(_INDENT * self.depth + line)

    @contextmanager
    def braces(self, head: str, tail: str = "}") -> Iterator[None]:
        """Write lines between braces."""
        self.do(f"{head} {{")
        self.depth += 1
        yield
        self.depth -= 1
        self.do(tail)

    # -- names ---------------------------------------------------------------------------------------

    def define(self, register: Register) -> str:
        """Name a register and return its declaration's beginning: the type and the name."""
        return f"{type_name(register.dtype)} {self.name(register)}"

    def name(self, named: Register | Buffer) -> str:
        """Return the name of a register or buffer: at first sight its own, made unique and valid in C++."""
        found = self._names.get(named)
        if found is None:
            hint = re.sub(r"\W", "_", named.name)
            if not hint or not (hint[0].isalpha() or hint[0] == "_") or hint.startswith(("tr_", "__")):
                hint = f"v{hint}" if isinstance(named, Register) else f"m{hint}"
            found = self._names[named] = self.fresh(hint)
        return found

    def alias(self, register: Register, name: str) -> None:
        """Give a register an existing name."""
        self._names[register] = name

    def fresh(self, hint: str) -> str:
        """Return an unused name."""
        name, number = hint, self._next.get(hint, 0)
        if hint == "v":
            name, number = f"v{number}", number + 1
        while name in self._taken:
            number += 1
            name = f"{hint}_{number}" if hint[-1].isdigit() else f"{hint}{number}"
        self._next[hint] = number
        self._taken.add(name)
        return name

    # -- operands ------------------------------------------------------------------------------------

    def operand(self, operand: Operand) -> str:
        """Return a register's name, or a literal."""
        return literal(operand) if isinstance(operand, Constant) else self.name(operand)

    def index(self, operand: Operand) -> str:
        """Return an i64 operand where a literal needs no type."""
        return str(int(operand.value)) if isinstance(operand, Constant) else self.name(operand)

    def element(self, buffer: Buffer, address: Address) -> str:
        """Return an element of a buffer."""
        return f"{self.name(buffer)}[{self.address(address)}]"

    def address(self, address: Address) -> str:
        """Return an address such as `4 * i - j + 1`."""
        text = ""
        for register, coefficient in address.terms:
            size, name = abs(coefficient), self.name(register)
            term = name if size == 1 else f"{size} * {name}"
            text += signed_term(coefficient < 0, term, first=not text)
        if address.constant or not text:
            text += signed_term(address.constant < 0, str(abs(address.constant)), first=not text)
        return text
