"""Printer of programs: the text that `print(program)` shows and `tracer.ir.read` reads back.

    program  = name(inputs) -> types { equation... return atoms }
    equation = [outputs =] primitive(atoms, name=value...) [{ program... }]    [# file:line]
    input    = %name: type                              outputs likewise, separated by commas
    atom     = %name | literal                          literals are typed: 100.0:f32, 2.0:f64*, true:bool

Variables are named %a ... %z, %aa ... in the order of their definitions in the text, nested programs
included. Parameters keep the order in which the equation was given them; programs among them follow as
blocks, `cond(...)` or `branches[0](...)`, and leave `...` behind in tuples that hold other items too.

Nothing is lost but the directory and the function of a source, and `<opaque>` parameters. A NaN with an unusual sign
or payload shows its bits: `nan(0xffc00000):f32`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from typing import Any, NamedTuple

import numpy as np

from tracer.ir import dtypes
from tracer.ir.numerals import scalar_text
from tracer.ir.primitive import Primitive
from tracer.ir.program import Atom, Equation, Literal, Program, Source, Var
from tracer.ir.types import ArrayType, Float0Type, KeyType, StackType, Type

INDENT = "  "
SOURCE_COLUMN_LIMIT = 96  # longer lines do not push every comment to the right
_PLAIN_NAME = re.compile(r"(?:[^\W\d][\w.]*|<\w+>)(?:\[\d+\])?")
_LETTERS = "abcdefghijklmnopqrstuvwxyz"


class Kind(Enum):
    """Role of a token in a printed line; the HTML colours by it."""

    PLAIN = "plain"
    DEFINITION = "definition"  # of the variable that the text names
    USE = "use"
    TYPE = "type"
    LITERAL = "literal"
    PRIMITIVE = "primitive"
    PROGRAM = "program"
    PARAMETER = "parameter"
    VALUE = "value"


class Token(NamedTuple):
    """Piece of a printed line; `type` is the type of the variable that is defined or used.

    silent: whether it belongs to a parameter that a view for people may leave out, see `is_silent`.
    """

    text: str
    kind: Kind = Kind.PLAIN
    type: Type | None = None
    silent: bool = False


@dataclass(slots=True)
class Line:
    """Printed line. `opens` and `closes`: whether a program starts or ends with it."""

    depth: int
    tokens: list[Token] = field(default_factory=list)
    equation: Equation | None = None
    opens: bool = False
    closes: bool = False

    def __str__(self) -> str:
        return INDENT * self.depth + "".join([token.text for token in self.tokens])

    def short(self) -> str:
        """Return the line without the parameters that are a usual value, or repeat the result's type."""
        return INDENT * self.depth + "".join([token.text for token in self.tokens if not token.silent])

    @property
    def source(self) -> str | None:
        """Place of the equation in the user's code, such as `demo.py:15`."""
        return None if self.equation is None else source_text(self.equation.source)


def program_text(program: Program, *, sources: bool = True) -> str:
    """Return the program as text, without a newline at the end. sources: whether lines of the user's code are shown."""
    lines = program_lines(program)
    texts = list(map(str, lines))
    if not sources:
        return "\n".join(texts)
    comments = [line.source for line in lines]
    pairs = list(zip(texts, comments, strict=True))
    widths = [len(text) for text, comment in pairs if comment]
    column = max((width for width in widths if width <= SOURCE_COLUMN_LIMIT), default=0)
    return "\n".join(f"{text.ljust(column)} # {comment}" if comment else text for text, comment in pairs)


def program_lines(program: Program) -> list[Line]:
    """Return the lines of the printed program, in tokens."""
    printer = _Printer()
    printer.program(program, name_text(program.name), 0)
    return printer.lines


def equation_text(program: Program, equation: Equation) -> str:
    """Return the first line of one of the program's equations, its variables named as in `program_text(program)`."""
    line = next(line for line in program_lines(program) if line.equation is equation)
    text = "".join(token.text for token in line.tokens).removesuffix(" {")
    return f"{text} # {line.source}" if line.source else text


class _Printer:
    """Writes lines. Programs are closed, so each has a scope of its own; all draw from one row of names."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self.named = 0
        self.types: dict[Type, str] = {}

    def program(self, program: Program, label: str, depth: int) -> None:
        scope: dict[Var, str] = {}
        head = Line(depth, [Token(label, Kind.PROGRAM), Token("(")], opens=True)
        head.tokens += self.definitions(program.inputs, scope)
        head.tokens += [Token(") -> "), Token(self.result(program), Kind.TYPE), Token(" {")]
        self.lines.append(head)
        for equation in program.equations:
            self.equation(equation, depth + 1, scope)
        last = [Token("return")]
        if program.outputs:
            last += [Token(" "), *_separated(self.atom(atom, scope) for atom in program.outputs)]
        self.lines.append(Line(depth + 1, last))
        self.lines.append(Line(depth, [Token("}")], closes=True))

    def equation(self, equation: Equation, depth: int, scope: dict[Var, str]) -> None:
        operands = [self.atom(atom, scope) for atom in equation.inputs]  # before the outputs are named
        tokens = self.definitions(equation.outputs, scope)
        if equation.outputs:
            tokens.append(Token(" = "))
        tokens += [Token(equation.primitive.name, Kind.PRIMITIVE), Token("("), *_separated(operands)]
        comma = spoken = bool(operands)
        for name, value in equation.params.items():
            if _is_blocks(value):
                continue
            silent = is_silent(equation, value)
            if comma:
                tokens.append(Token(", ", silent=silent or not spoken))
            tokens += [Token(name, Kind.PARAMETER, silent=silent), Token("=", silent=silent)]
            tokens.append(Token(param_text(value), Kind.VALUE, silent=silent))
            comma, spoken = True, spoken or not silent
        nested = list(equation.nested())
        tokens.append(Token(") {" if nested else ")"))
        self.lines.append(Line(depth, tokens, equation))
        for label, program in nested:
            self.program(program, label, depth + 1)
        if nested:
            self.lines.append(Line(depth, [Token("}")]))

    def definitions(self, variables: Sequence[Var], scope: dict[Var, str]) -> list[Token]:
        tokens: list[Token] = []
        for variable in variables:
            if tokens:
                tokens.append(Token(", "))
            name = scope[variable] = variable_name(self.named)
            self.named += 1
            tokens.append(Token(f"%{name}", Kind.DEFINITION, variable.type))
            tokens += [Token(": "), Token(self.type(variable.type), Kind.TYPE)]
        return tokens

    def atom(self, atom: Atom, scope: Mapping[Var, str]) -> Token:
        if isinstance(atom, Literal):
            return Token(literal_text(atom), Kind.LITERAL)
        name = scope.get(atom, "?")  # the question mark shows a program that is not well formed
        return Token(f"%{name}", Kind.USE, atom.type)

    def result(self, program: Program) -> str:
        types = [self.type(type) for type in program.output_types]
        return types[0] if len(types) == 1 else f"({', '.join(types)})"

    def type(self, type: Type) -> str:
        text = self.types.get(type)
        if text is None:
            text = self.types[type] = str(type)
        return text


def _separated(tokens: Iterable[Token]) -> list[Token]:
    result: list[Token] = []
    for token in tokens:
        result += (_COMMA, token) if result else (token,)
    return result


_COMMA = Token(", ")


def variable_name(position: int) -> str:
    """Return a ... z, aa, ab ...: the position counted in letters.

    >>> [variable_name(n) for n in (0, 25, 26, 701, 702)]
    ['a', 'z', 'aa', 'zz', 'aaa']
    """
    name = ""
    position += 1
    while position:
        position, letter = divmod(position - 1, 26)
        name = _LETTERS[letter] + name
    return name


def name_text(name: str) -> str:
    """Return a program's name, quoted unless it reads as one word; `<lambda>` does."""
    return name if _PLAIN_NAME.fullmatch(name) else quoted(name)


def source_text(source: Source | None) -> str | None:
    """Return `demo.py:15`, or `demo.py:15 in attention/scores`, or None if the equation has no source."""
    if source is None:
        return None
    text = f"{source} in {source.scope}" if source.scope else str(source)
    return text if text.isprintable() else re.sub(r"[^ -~]", "?", text)


def quoted(text: str) -> str:
    """Return the text in double quotes, with JSON's escapes, on one line.

    >>> print(quoted('a "b"'))
    "a \\"b\\""
    """
    return json.dumps(text, ensure_ascii=not text.isprintable())


# Values


def literal_text(literal: Literal) -> str:
    """Return `100.0:f32`, or `2.0:f64*` for a weak literal."""
    star = "*" if literal.type.weak else ""
    return f"{scalar_text(literal.bits, literal.type.dtype)}:{dtypes.short_name(literal.type.dtype)}{star}"


def param_text(value: Any) -> str:
    """Return a parameter as text: scalars, strings, dtypes, types, enums, records of this package, and tuples of these.

    Any other value is opaque and prints in angle brackets, which the reader refuses.
    """
    if isinstance(value, tuple) and any(isinstance(item, Program) for item in value):
        return _tuple("..." if isinstance(item, Program) else _value(item) for item in value)
    return _value(value)


def is_silent(equation: Equation, value: Any) -> bool:
    """Whether a parameter is None, False or empty, or repeats the shape or dtype of the equation's one result."""
    if value is None or value is False or (isinstance(value, tuple | str) and not value):
        return True
    type = equation.outputs[0].type if len(equation.outputs) == 1 else None
    if not isinstance(type, ArrayType):
        return False
    if isinstance(value, np.dtype):
        return bool(value == type.dtype)
    is_shape = isinstance(value, tuple) and all(isinstance(size, int) for size in value)
    return is_shape and bool(equation.inputs) and value == type.shape


def _is_blocks(value: Any) -> bool:
    """Whether the parameter is printed as blocks alone."""
    if isinstance(value, tuple):
        return bool(value) and all(isinstance(item, Program) for item in value)
    return isinstance(value, Program)


def _value(value: Any) -> str:
    match value:
        case Enum():
            return f"{type(value).__name__}.{value.name}"
        case None | bool():
            return repr(value)
        case str():
            return quoted(value)
        case np.generic() if value.dtype in dtypes.SHORT_NAMES:
            return f"{scalar_text(value.tobytes(), value.dtype)}:{dtypes.short_name(value.dtype)}"
        case int():
            return str(int(value))
        case float() | complex():
            dtype = dtypes.F64 if isinstance(value, float) else dtypes.C128
            return scalar_text(np.asarray(value, dtype).tobytes(), dtype)
        case tuple() | list():
            return _tuple(map(_value, value))
        case dict():
            return f"{{{', '.join(f'{_value(key)}: {_value(item)}' for key, item in value.items())}}}"
        case np.dtype() if value in dtypes.SHORT_NAMES:
            return dtypes.short_name(value)
        case ArrayType() | KeyType() | Float0Type() | StackType():
            return str(value)
        case Primitive():
            return f"@{value.name}"
        case _ if is_dataclass(value) and _is_ours(value):
            return _record(value)
        case _:
            return _opaque(value)


def _record(value: Any) -> str:
    given = [(item.name, getattr(value, item.name)) for item in fields(value) if item.init and item.repr]
    return f"{type(value).__name__}({', '.join(f'{name}={_value(item)}' for name, item in given)})"


def _tuple(items: Iterable[str]) -> str:
    texts = list(items)
    return f"({texts[0]},)" if len(texts) == 1 else f"({', '.join(texts)})"


def _is_ours(value: object) -> bool:
    return not isinstance(value, type | Program | Equation) and type(value).__module__.startswith("tracer.")


def _opaque(value: object) -> str:
    """Return `<function name>` or `<class name>`, never an address."""
    name = getattr(value, "__name__", "") if callable(value) else ""
    words = re.findall(r"[\w.]+", f"{type(value).__name__} {name}")
    return f"<{' '.join(words)}>"
