"""Programs: typed, closed, in A-normal form.

    Program  = inputs (Var...), equations, outputs (Atom...)
    Equation = primitive, inputs (Atom...), parameters, outputs (Var...), the user's source line, effects
    Atom     = Var | Literal

A program has no free variables and no constants but scalar literals. Captured arrays are inputs, and an equation with
nested programs passes the values that they read as operands. Every variable is defined once, by an input or an
equation.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from tracer.errors import StorageDTypeError, message
from tracer.ir import dtypes
from tracer.ir.cells import cell_name
from tracer.ir.digest import encode
from tracer.ir.primitive import Effect, Primitive
from tracer.ir.types import ArrayType, Type, array_type, type_text, with_shape
from tracer.lazy import LazyModule

if TYPE_CHECKING:
    import hashlib
else:
    hashlib = LazyModule("hashlib")


class Source(NamedTuple):
    """Place in the user's code.

    scope: the names given by `named_scope`, separated by slashes. derivative: whether the equation belongs to a
    derivative of the line, forward or in reverse.
    """

    file: str
    line: int
    function: str
    scope: str = ""
    derivative: bool = False

    def __str__(self) -> str:
        name = cell_name(self.file) or self.file.replace("\\", "/").rsplit("/", 1)[-1]
        return f"{name}:{self.line}"


class Var:
    """Value of the program. Identity is the object; printing gives it a name."""

    __slots__ = ("type",)

    def __init__(self, type: Type) -> None:
        self.type = type

    def __repr__(self) -> str:
        return f"Var({self.type})"


@dataclass(frozen=True, slots=True, eq=False)
class Literal:
    """Scalar written in the program; as an operand of a pointwise equation it stands for a full array."""

    value: Any  # np.generic; ml_dtypes scalars are not a subclass that typing knows
    type: ArrayType

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and self.type == other.type and self.bits == other.bits

    def __hash__(self) -> int:
        return hash((self.type, self.bits))

    @property
    def bits(self) -> bytes:
        return np.asarray(self.value, self.type.dtype).tobytes()


Atom = Var | Literal


def literal(value: Any, dtype: np.dtype[Any], weak: bool = False) -> Literal:
    """Return a literal of the given dtype: `literal(2, F32)` is `2.0:f32`."""
    return Literal(np.asarray(value, dtype)[()], array_type(dtype, (), weak))


@dataclass(frozen=True, slots=True, eq=False)
class Equation:
    """Application of a primitive: outputs = primitive(inputs, **params)."""

    primitive: Primitive
    inputs: tuple[Atom, ...]
    params: Mapping[str, Any]
    outputs: tuple[Var, ...]
    source: Source | None = None

    @property
    def effects(self) -> frozenset[Effect]:
        return self.primitive.effects_of(self.params)

    def nested(self) -> Iterator[tuple[str, Program]]:
        """Yield the programs among the parameters, each with its label."""
        for name, value in self.params.items():
            if isinstance(value, Program):
                yield name, value
            elif isinstance(value, tuple):
                for position, item in enumerate(value):
                    if isinstance(item, Program):
                        yield f"{name}[{position}]", item


@dataclass(frozen=True, eq=False)
class Program:
    """Closed function on arrays. Immutable; rewrites return the same object when nothing changed.

    `==` and `hash` are structural: names and source lines do not count.
    """

    inputs: tuple[Var, ...]
    equations: tuple[Equation, ...]
    outputs: tuple[Atom, ...]
    name: str = "f"

    @property
    def input_types(self) -> tuple[Type, ...]:
        return tuple(v.type for v in self.inputs)

    @property
    def output_types(self) -> tuple[Type, ...]:
        return tuple(a.type for a in self.outputs)

    @cached_property
    def effects(self) -> frozenset[Effect]:
        """Union of the equations' effects, nested programs included."""
        return frozenset(effect for equation in self.equations for effect in equation.effects)

    @cached_property
    def holders(self) -> tuple[int, ...]:
        """Positions of the equations that have programs among their parameters."""
        found = []
        for position, equation in enumerate(self.equations):
            for value in equation.params.values():
                kind = type(value)
                if kind is Program or (kind is tuple and any(type(item) is Program for item in value)):
                    found.append(position)
                    break
        return tuple(found)

    @property
    def holds_programs(self) -> bool:
        """Whether any equation has programs among its parameters."""
        return bool(self.holders)

    @cached_property
    def digest(self) -> bytes:
        """Structural hash of 16 bytes: independent of names and lines, equal in every process.

        An opaque parameter, such as the Python function of a custom rule, counts by its identity.
        """
        numbers: dict[Var, int] = {}
        parts: list[str] = []

        def define(variables: tuple[Var, ...]) -> None:
            for variable in variables:
                numbers[variable] = len(numbers)
                parts.append(type_text(variable.type))

        def atom_text(atom: Atom) -> str:
            if type(atom) is Var:
                return f"%{numbers[atom]}"
            return f"{type_text(atom.type)}={atom.bits.hex()}"  # type: ignore[union-attr]

        define(self.inputs)
        for equation in self.equations:
            parts.append(equation.primitive.name)
            parts.extend(map(atom_text, equation.inputs))
            for name in sorted(equation.params):
                parts += (name, encode(equation.params[name]))
            parts.append("->")
            define(equation.outputs)
        parts.append("return")
        parts.extend(map(atom_text, self.outputs))
        return hashlib.blake2b("\x1f".join(parts).encode(), digest_size=16).digest()

    def __tracer_digest__(self) -> str:
        return f"<{self.digest.hex()}>"

    @cached_property
    def lines(self) -> bytes:
        """Hash of the source lines, which `==` leaves out; nested programs included."""
        hasher = hashlib.blake2b(digest_size=16)
        for equation in self.equations:
            hasher.update(repr(equation.source).encode() if equation.source is not None else b"-")
            for _, nested in equation.nested():
                hasher.update(nested.lines)
        return hasher.digest()

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Program) and self.digest == other.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __str__(self) -> str:
        from tracer.ir.text import program_text  # noqa: PLC0415  # the printer needs the classes of this module

        return program_text(self)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        from tracer.ir.html import program_html  # noqa: PLC0415  # as above

        return program_html(self)


def infer_types(primitive: Primitive, inputs: Sequence[Atom], params: Mapping[str, Any]) -> tuple[Type, ...]:
    """Return the output types of an equation. Scalar literals of `splat` primitives take the shape of the variables.

    Raises StorageDTypeError as `check_widths`, and the errors of the primitive's `infer`.
    """
    types = [atom.type for atom in inputs]
    if primitive.splat:
        shape = next((a.type.shape for a in inputs if isinstance(a, Var)), ())
        types = [with_shape(a.type, shape) if isinstance(a, Literal) else a.type for a in inputs]
    check_widths(primitive, types, params)
    result = primitive.infer(*types, **params)
    return tuple(result) if primitive.multiple else (result,)


def check_widths(primitive: Primitive, types: Sequence[Type], params: Mapping[str, Any]) -> None:
    """Raise StorageDTypeError if a primitive would compute on a narrow dtype, or to one."""
    narrow = [t.dtype for t in types if type(t) is ArrayType and dtypes.is_narrow(t.dtype)]
    narrow += [value for value in params.values() if isinstance(value, np.dtype) and dtypes.is_narrow(value)]
    if narrow and primitive.computes:
        raise StorageDTypeError(
            message(
                f"{primitive.name} does not compute on {dtypes.short_name(narrow[0])}, which is for storage",
                help="cast the operand with .astype(...)",
            )
        )
