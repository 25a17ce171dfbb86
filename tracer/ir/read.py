"""Reader of printed programs: `read_program(program_text(p), primitives)` equals `p`.

The grammar is in `tracer.ir.text`. White space and line breaks do not matter, with one exception. A comment
`# file:line` gives its place to the equation before it on the line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from enum import Enum
from typing import Any

from tracer.ir import dtypes
from tracer.ir.cursor import Cursor, Token
from tracer.ir.numerals import DIGITS, is_complex_text, is_integer_text, scalar_value
from tracer.ir.primitive import Primitive
from tracer.ir.program import Atom, Equation, Literal, Program, Source, Var
from tracer.ir.types import ArrayType, Float0Type, KeyType, StackType, Type, array_type

_PLACE = re.compile(r"# ?(.*):(\d{1,18})(?: in (.*)|\s*)")


def read_program(
    text: str,
    primitives: Mapping[str, Primitive],
    *,
    enums: Mapping[str, type[Enum]] | None = None,
    records: Mapping[str, Callable[..., Any]] | None = None,
) -> Program:
    """Return the program that `program_text` printed.

    primitives: by name. enums: the classes of parameters such as `Mode.CLIP`, by name. records: the constructors of
    parameters such as `Window(size=3)`. Verifies grammar and names only; `check_program` verifies types. Raises
    ProgramTextError with the line, the column and the expected text.
    """
    reader = _Reader(text, primitives, enums or {}, records or {})
    try:
        program = reader.program()[1]
    except RecursionError:
        reader.fail("values and programs that are nested less deeply")
    if reader.token.kind != "end":
        reader.fail("the end of the text")
    return program


_HOLE = object()  # `...`: a program that follows as a block


class _Reader(Cursor):
    """Recursive descent over the tokens, one method for each rule of the grammar."""

    def __init__(
        self,
        text: str,
        primitives: Mapping[str, Primitive],
        enums: Mapping[str, type[Enum]],
        records: Mapping[str, Callable[..., Any]],
    ) -> None:
        super().__init__(text)
        self.primitives, self.enums, self.records = primitives, enums, records

    # programs

    def program(self) -> tuple[tuple[str, int | None, Token], Program]:
        """Read a program. Return its label, as name, index and token, and the program."""
        label = self.label()
        scope: dict[str, Var] = {}
        self.expect("(")
        inputs = tuple(self.definition(scope) for _ in self.separated(")"))
        self.expect("->")
        place = self.token
        types = tuple(self.type() for _ in self.separated(")")) if self.take("(") else (self.type(),)
        self.expect("{")
        equations = []
        while self.token.text != "return":
            equations.append(self.equation(scope))
        self.advance()
        outputs: list[Atom] = []
        for _ in self.separated("}"):
            outputs.append(self.atom(scope))
        got = tuple(atom.type for atom in outputs)
        if got != types:
            self.fail(f"the types of the outputs, {_listed(got)}", place, got=_listed(types))
        name = label[0] if label[1] is None else f"{label[0]}[{label[1]}]"
        return label, Program(inputs, tuple(equations), tuple(outputs), name)

    def label(self) -> tuple[str, int | None, Token]:
        token = self.token
        if token.kind not in ("word", "string", "opaque"):
            self.fail("the name of a program")
        self.advance()
        name = self.string(token) if token.kind == "string" else token.text
        if not self.take("["):
            return name, None, token
        index = self.integer()
        self.expect("]")
        return name, index, token

    def definition(self, scope: dict[str, Var]) -> Var:
        token = self.next("variable", "a variable")
        self.expect(":")
        if token.text in scope:
            self.fail("a new variable", token, help="every variable is defined once")
        variable = scope[token.text] = Var(self.type())
        return variable

    def equation(self, scope: dict[str, Var]) -> Equation:
        defined: dict[str, Var] = {}
        outputs: list[Var] = []
        while self.token.kind == "variable":
            if self.token.text in scope:
                self.fail("a new variable", help="every variable is defined once")
            outputs.append(self.definition(defined))
            if not self.take(","):
                self.expect("=")
                break
        name = self.next("word", "a primitive" if outputs else 'an equation or "return"')
        primitive: Primitive = self.lookup(self.primitives, "a primitive", name)
        inputs: list[Atom] = []
        params: dict[str, Any] = {}
        self.expect("(")
        for _ in self.separated(")"):
            if self.token.kind == "word" and self.ahead("="):
                self.parameter(params)
            elif params:
                self.fail("a parameter")
            else:
                inputs.append(self.atom(scope))
        has_blocks = self.take("{")
        source = self.source()
        if has_blocks:
            self.blocks(params)
        if any(_HOLE in value for value in params.values() if isinstance(value, tuple)):
            self.fail("a program for every ... among the parameters", self.tokens[self.position - 1])
        scope.update(defined)
        return Equation(primitive, tuple(inputs), params, tuple(outputs), source)

    def source(self) -> Source | None:
        """Return the place in the comment after the last token, if there is one."""
        place = _PLACE.fullmatch(self.comments.get(self.position - 1, ""))
        return Source(place[1], int(place[2]), "", place[3] or "") if place else None

    def atom(self, scope: Mapping[str, Var]) -> Atom:
        token = self.token
        if token.kind == "variable":
            self.advance()
            if token.text not in scope:
                self.fail("a variable that is defined above, in the same program", token)
            return scope[token.text]
        if token.kind == "literal":
            weak = token.text.endswith("*")
            value = self.literal()
            return Literal(value, array_type(value.dtype, (), weak))
        return self.fail("a variable or a typed literal such as 2.0:f32")

    # parameters

    def parameter(self, params: dict[str, Any]) -> None:
        name = self.advance()
        self.expect("=")
        if name.text in params:
            self.fail("a new parameter", name)
        params[name.text] = self.value(depth=0)

    def blocks(self, params: dict[str, Any]) -> None:
        """Read the programs between the braces, and put them among the parameters."""
        listed: dict[str, list[Program]] = {}
        while not self.take("}"):
            (name, index, token), program = self.program()
            given = params.get(name)
            if index is None:
                fits = name not in params
                params[name] = program
            elif name in listed or name not in params:
                fits = index == len(listed.setdefault(name, []))
                listed[name].append(program)
                params[name] = tuple(listed[name])
            else:
                fits = isinstance(given, tuple) and index < len(given) and given[index] is _HOLE
                if fits:
                    params[name] = (*given[:index], program, *given[index + 1 :])  # type: ignore[index]  # it is one
            if not fits:
                self.fail("another program", token, help="tuples count from 0, other names occur once")

    def value(self, depth: int = 2) -> Any:
        """Read a parameter; `...` is valid only right inside a tuple (depth 1)."""
        token = self.token
        match token.kind:
            case "literal":
                return self.literal()
            case "scalar":
                return self.number(self.advance())
            case "string":
                return self.string(self.advance())
            case "word":
                return self.word()
            case "opaque":
                help = f"{token.text} is opaque: a program that holds it cannot be read back"
                return self.fail("a value", help=help)
            case _:
                return self.composite(depth)

    def composite(self, depth: int) -> Any:
        """Read a value that begins with a mark."""
        if depth == 1 and self.take("..."):
            return _HOLE
        if self.take("("):
            return tuple([self.value(depth + 1) for _ in self.separated(")")])
        if self.take("{"):
            return dict([self.entry() for _ in self.separated("}")])
        if self.take("@"):
            return self.lookup(self.primitives, "a primitive", self.next("word", "a primitive"))
        return self.fail("a value")

    def entry(self) -> tuple[Any, Any]:
        key = self.value()
        self.expect(":")
        return key, self.value()

    def word(self) -> Any:
        token = self.token
        if token.text in _CONSTANTS:
            self.advance()
            return _CONSTANTS[token.text]
        if self.ahead("[") or self.ahead("*"):
            return self.type()
        self.advance()
        if self.take("("):
            record = self.lookup(self.records, "a record that was passed to read_program(records=...)", token)
            fields = dict([self.field() for _ in self.separated(")")])
            try:
                return record(**fields)
            except (TypeError, ValueError) as error:
                return self.fail(f"the fields of {token.text} ({error})", token)
        kind, dot, member = token.text.partition(".")
        if dot:
            enum = self.lookup(self.enums, "an enum that was passed to read_program(enums=...)", token, kind)
            return self.lookup(enum.__members__, f"a member of {kind}", token, member)
        return self.lookup(dtypes.BY_SHORT_NAME, "a dtype", token)

    def field(self) -> tuple[str, Any]:
        name = self.next("word", "a field").text
        self.expect("=")
        return name, self.value()

    # types and numbers

    def type(self) -> Type:
        start = self.token
        name = self.next("word", "a type")
        if name.text == "stack":
            self.expect("[")
            item = self.type()
            if not isinstance(item, ArrayType | KeyType):
                self.fail("the type of an array or of keys", start)
            self.expect("]")
            return StackType(item)
        dtype = None if name.text in ("key", "float0") else self.lookup(dtypes.BY_SHORT_NAME, "a type", name)
        weak = dtype is not None and self.take("*")
        self.expect("[")
        shape = tuple([self.integer() for _ in self.separated("]")])
        if dtype is None:
            return KeyType(shape) if name.text == "key" else Float0Type(shape)
        return array_type(dtype, shape, weak)

    def integer(self) -> int:
        token = self.next("scalar", "a number")
        if not token.text.isdecimal() or len(token.text) > DIGITS:
            self.fail("a whole number, 0 or more", token)
        return int(token.text)

    def literal(self) -> Any:
        """Read a typed literal such as `100.0:f32`, as a NumPy scalar."""
        token = self.advance()
        scalar, _, name = token.text.rpartition(":")
        dtype = self.lookup(dtypes.BY_SHORT_NAME, "a dtype", token, name.removesuffix("*"))
        value = scalar_value(scalar, dtype)
        if value is None:
            self.fail(f"a value of {dtypes.short_name(dtype)}", token)
        return value

    def number(self, token: Token) -> int | float | complex:
        if is_integer_text(token.text) and len(token.text) <= DIGITS:
            return int(token.text)
        is_complex = is_complex_text(token.text)
        value = scalar_value(token.text, dtypes.C128 if is_complex else dtypes.F64)
        if value is None:
            self.fail("a number", token)
        return complex(value) if is_complex else float(value)

    def string(self, token: Token) -> str:
        try:
            return str(json.loads(token.text))
        except json.JSONDecodeError:
            self.fail("a string with JSON's escapes", token)


_CONSTANTS = {"None": None, "True": True, "False": False}


def _listed(types: tuple[Type, ...]) -> str:
    return str(types[0]) if len(types) == 1 else f"({', '.join(map(str, types))})"
