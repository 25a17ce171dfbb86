"""Primitives: one record each, with every rule in it.

Rules take their context first, then the values, then the equation's parameters by keyword:

    infer(*types, **params) -> Type | tuple[Type, ...]
    reference(*arrays, **params) -> array | tuple               NumPy's or CuPy's arrays
    prepared(*types, **params) -> f | None                      f(*arrays) is the reference's result as a new array,
                                                                without NumPy's warnings, by a shorter way
    jvp(ctx, xs, dxs, **params) -> [dy, ...]                    tangents alone; ctx.outputs holds the ys
      or Joint(rule) with rule(ctx, xs, dxs, **params) -> ys, dys    where they are computed together
    linearize(ctx, xs, active, **params) -> Linearized          structured primitives only
    split(active, **params) -> Split | None                     the derivative as programs, where it does not change
    settle(xs, **params) -> xs, params                          for equations that may fault: operands and parameters
                                                                whose checks derivatives need not repeat
    transpose(ctx, cotangents, xs, **params) -> [cotangent of x | Onto | None, ...]    linear xs come as `Linear`
    batch(ctx, xs, axes, **params) -> [y, ...], [axis | None, ...]
    lower                                                       data: see the `Lowering` records

Rules compute with the public twins of the primitives, so they run eagerly and under any trace alike.
A tangent or cotangent that is zero by construction is a `Zero`, never an array of zeros.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, ClassVar, dataclass_transform

from tracer.ir.scalar import ScalarOp
from tracer.ir.types import Shape, Type

Rule = Callable[..., Any]  # signatures above; the parameters differ from primitive to primitive
Params = Mapping[str, Any]  # ints, floats, strings, dtypes, tuples, programs: see `ir.digest`


class Effect(Enum):
    """Effect of an equation besides computing its outputs."""

    FAULT = "fault"  # may report an error: may be dropped when unused, never hoisted or speculated
    IO = "io"  # ordered input and output: never dropped, repeated or moved past another


NO_EFFECTS: frozenset[Effect] = frozenset()
FAULTS: frozenset[Effect] = frozenset((Effect.FAULT,))
IO: frozenset[Effect] = frozenset((Effect.IO,))


@dataclass(frozen=True, slots=True)
class NoRule:
    """Rule that is absent on purpose; `why` becomes the user's error."""

    why: str


@dataclass(frozen=True, slots=True)
class Joint:
    """Jvp rule that returns outputs and tangents together."""

    rule: Rule


@dataclass(frozen=True, slots=True)
class Zero:
    """Tangent or cotangent that is zero by construction. `type` is the tangent's."""

    type: Type


@dataclass(frozen=True, slots=True)
class Onto:
    """Cotangent of a few elements of an operand, added to the operand's other cotangents, in place where possible.

    add(total) -> total. alone() -> the cotangent, if nothing else reaches the operand; by default it is added to zeros.
    The gradient of a loop that reads one element per step therefore costs no more than the loop.
    start, value: the first index and the content of the cotangent, if it is a box of the operand.
    """

    type: Type
    add: Callable[[Any], Any]
    alone: Callable[[], Any] | None = None
    start: Shape | None = None
    value: Any = None


@dataclass(frozen=True, slots=True)
class Linear:
    """Placeholder, in a transpose rule, of an operand in which the equation is linear."""

    type: Type


@dataclass(frozen=True, slots=True)
class Linearized:
    """Result of a `linearize` rule.

    outputs: the primal outputs. residuals: every value that the linear part reads.
    apply(residuals, dxs) -> dys, with dxs for the active operands only; it closes over no array.
    """

    outputs: Sequence[Any]
    residuals: Sequence[Any]
    apply: Callable[[Sequence[Any], Sequence[Any]], Sequence[Any]]


# Lowerings: how an equation becomes loop IR. The schedule reads them; no backend does.


@dataclass_transform(frozen_default=True)
class Data:
    """Record, equal to a record of its class with equal fields; a default is an attribute of the class.

    For records made while modules are imported: a dataclass writes and compiles its methods anew for each class.
    """

    _names: ClassVar[tuple[str, ...]]

    def __init_subclass__(cls) -> None:
        cls._names = tuple(vars(cls).get("__annotations__", ()))
        type.__setattr__(cls, "__match_args__", cls._names)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        given = dict(zip(self._names, args, strict=False), **kwargs)
        lacking = [name for name in self._names if name not in given and not hasattr(type(self), name)]
        if len(given) < len(args) + len(kwargs) or lacking or not given.keys() <= set(self._names):
            raise TypeError(f"{type(self).__name__} takes ({', '.join(self._names)})")
        self.__dict__.update(given)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__} is immutable")

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other._values() == self._values()

    def __hash__(self) -> int:
        return hash((type(self), *self._values()))

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names)
        return f"{type(self).__name__}({shown})"

    def _values(self) -> tuple[Any, ...]:
        return tuple([getattr(self, name) for name in self._names])


class Pointwise(Data):
    """Scalar operation at every element. For complex operands see `schedule.pointwise`."""

    op: ScalarOp


class Compare(Data):
    """Comparison at every element; complex values compare by parts (eq, ne only)."""

    op: ScalarOp


class Convert(Data):
    """Change of dtype at every element."""


class Parts(Data):
    """Complex number and its parts, at every element. kind: "imag" is one of them, "complex" is made of both."""

    kind: str


class Checked(Data):
    """First operand at every element, with a fault where it is not allowed and the second operand holds.

    kind: "indices" must be within `bounds`, a "divisor" must not be zero.
    """

    kind: str = "indices"


class IndexMap(Data):
    """One operand element for each output element.

    kind: "broadcast", "reshape", "squeeze", "transpose", "reverse", "slice" or "windows".
    """

    kind: str

    @property
    def keeps_order(self) -> bool:
        """Whether elements have the same positions in the result as in the operand."""
        return self.kind in ("reshape", "squeeze")

    @property
    def repeats(self) -> bool:
        """Whether an operand's element may be several of the result's."""
        return self.kind in ("broadcast", "windows")


class Generate(Data):
    """Value computed from the index, without operands (iota)."""


class Join(Data):
    """Choice among operands by index. kind: "concatenate" or "pad"."""

    kind: str


class Gather(Data):
    """Reads at computed indices. kind: "windows" at an array of indices, or one "slice"."""

    kind: str = "windows"


class Scatter(Data):
    """Writes or updates at computed indices, into a copy of the first operand. kind: as in `Gather`."""

    op: ScalarOp | None = None
    kind: str = "windows"


class Reduce(Data):
    """Reduction over axes."""

    op: ScalarOp


class ArgReduce(Data):
    """Index of the extreme element over one axis."""

    op: ScalarOp


class Scan(Data):
    """Reduction along an axis that keeps every partial result."""

    op: ScalarOp


class Library(Data):
    """Library routine: BLAS, LAPACK, FFT, sort."""

    kind: str

    @property
    def routine(self) -> str:
        """The kind."""
        return self.kind


class Structured(Data):
    """Control flow or call: the schedule has a case for each."""

    kind: str


class Composite(Data):
    """Composition of other primitives: expand(*operands, **params) -> output or outputs.

    has_nest(*types, **params): whether such operands have a schedule of their own instead.
    kind: the name of that schedule. computes: whether elements are computed, rather than moved.
    keeps(**params): bytes, at most, that a derivative of a loop keeps of its iterations.
    """

    expand: Rule
    has_nest: Rule | None = None
    kind: str = ""
    computes: bool = False
    keeps: Rule | None = None


class Alias(Data):
    """Output that is the operand, bit for bit. kind: "value", or "wrap" and "unwrap" for words of random keys."""

    kind: str = "value"


Lowering = (
    Pointwise | Compare | Convert | Parts | Checked | IndexMap | Generate | Join | Gather | Scatter | Reduce | ArgReduce
    | Scan | Library | Structured | Composite | Alias
)  # fmt: skip


class Eager(Enum):
    """Way in which the primitive runs outside any trace."""

    REFERENCE = "reference"  # at once, by NumPy; elementwise functions by compiled loops, see `runtime.eager`
    COMPILED = "compiled"  # through a cached compiled program


class Narrow(Enum):
    """Way in which the primitive computes on narrow dtypes, which are for storage."""

    WIDENED = "widened"  # in a wider dtype, the results rounded or wrapped
    UNSIGNED = "unsigned"  # widened if unsigned; a sign would fill the bits in front
    REFUSED = "refused"  # not at all: the result depends on the width of an element


@dataclass(frozen=True, slots=True, eq=False)
class Primitive:
    """Operation of the array IR, with every rule. See the module docstring for the rules' signatures.

    multiple: the rules return tuples of outputs. splat: a scalar literal stands for an array of the operands' shape.
    guard: the position of the predicate operand of a faulting equation. commutative: the first two operands
    may swap. part: the equation for some of the outputs, where each output belongs to one operand beside the first.
    narrow: the treatment of narrow dtypes, if the primitive computes.
    """

    name: str
    infer: Rule
    reference: Rule | NoRule
    jvp: Rule | Joint | NoRule
    transpose: Rule | NoRule
    batch: Rule | NoRule
    lower: Lowering | NoRule
    linearize: Rule | None = None
    split: Rule | None = None
    settle: Rule | None = None
    effects: Callable[[Params], frozenset[Effect]] | frozenset[Effect] = NO_EFFECTS
    multiple: bool = False
    splat: bool = False
    guard: int | None = None
    commutative: bool = False
    part: Rule | None = None
    eager: Eager = Eager.REFERENCE
    narrow: Narrow = Narrow.WIDENED
    prepared: Rule | None = None
    laws: Mapping[str, str] = field(default_factory=dict)  # a law that does not apply -> why

    def __repr__(self) -> str:
        return self.name

    @property
    def computes(self) -> bool:
        """Whether elements are computed from elements: on narrow dtypes, in the wide dtype."""
        match self.lower:
            case Pointwise(op):
                return op not in (ScalarOp.SELECT, ScalarOp.BITCAST)
            case Scatter(op):
                return op is not None
            case Composite(computes=computes):
                return computes
            case Checked(kind):
                return kind == "divisor"
            case Compare() | Generate() | Reduce() | ArgReduce() | Scan() | Library():
                return True
            case _:
                return False

    def effects_of(self, params: Params) -> frozenset[Effect]:
        return self.effects(params) if callable(self.effects) else self.effects
