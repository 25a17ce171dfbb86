"""What `vjp`, `linearize` and `linear_transpose` return: linear functions, trees of the arrays that they hold.

So they leave jit and enter it, and are stacked by scan and vmap. As long as nobody takes one apart, it runs the tape
that it was made with; taken apart, it is a linear program, which belongs to the structure, and its residuals.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from tracer.errors import ArgumentError, message
from tracer.ir.primitive import Zero
from tracer.ir.program import Program
from tracer.ir.types import Type, is_differentiable, same_up_to_weakness, tangent_type
from tracer.trace import trees
from tracer.trace.array import Array, renewed
from tracer.trace.convert import as_array
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.trace import Operand
from tracer.trace.tracebacks import set_method_boundaries
from tracer.transforms.context import Tangent
from tracer.transforms.paths import dense
from tracer.transforms.tangents import match_tangents, tangent_array
from tracer.transforms.transpose import pull_back


class Typed:
    """Stands for a value of which only the type is known."""

    __slots__ = ("type",)

    def __init__(self, type: Any) -> None:
        self.type = type


class Derivative(ABC):
    """The derivative of a function at a point. inputs, outputs: its values there, or `Typed` in their place."""

    def __init__(self, inputs: Sequence[Any], outputs: Sequence[Any]) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.active = [is_differentiable(x.type) for x in inputs]
        self.moving = [is_differentiable(y.type) for y in outputs]

    @abstractmethod
    def linear(self) -> tuple[Program, Sequence[Any]]:
        """A linear program of (residuals..., tangents of active inputs...), and the residuals."""

    def parts(self) -> tuple[Program, Sequence[Any]]:
        """The same, with residuals that may go anywhere."""
        return self.linear()

    def pull(self, cotangents: Sequence[Any]) -> list[Any]:
        """Gradients of every input; float0 for those without."""
        results = iter(self._pulled([c for c, on in zip(cotangents, self.moving, strict=True) if on]))
        return [
            tangent_array(next(results) if on else Zero(tangent_type(x.type)), x.type)
            for x, on in zip(self.inputs, self.active, strict=True)
        ]

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """Tangents of every output."""
        program, residuals = self.linear()
        given = [dense(t) for t, on in zip(tangents, self.active, strict=True) if on]
        results = iter(evaluate(program, [*residuals, *given]))
        return [
            tangent_array(next(results) if on else Zero(tangent_type(y.type)), y.type)
            for y, on in zip(self.outputs, self.moving, strict=True)
        ]

    def _pulled(self, cotangents: Sequence[Operand]) -> Iterable[Tangent]:
        """Gradients of the active inputs, from the cotangents of the outputs that have one."""
        program, residuals = self.linear()
        linear = [i >= len(residuals) for i in range(len(program.inputs))]
        return pull_back(program, linear, residuals, cotangents)


@dataclass(frozen=True, slots=True)
class Form:
    """What of a linear function is no array: equal for two that differ in their residuals alone.

    program: see `Derivative`. inputs, outputs: of the function that it is the derivative of. what, name: the
    transform and that function, for errors, and called: what these call the inputs.
    """

    program: Program
    inputs: trees.Structure
    input_types: tuple[Type, ...]
    outputs: trees.Structure
    output_types: tuple[Type, ...]
    what: str
    name: str = field(compare=False)
    called: tuple[str, ...] = field(compare=False)

    def __repr__(self) -> str:
        return f"{self.what} of {self.name}"


class Known(Derivative):
    """A derivative of which the program and the residuals are known; these may be anything until it is asked."""

    def __init__(self, program: Program, residuals: Sequence[Any], inputs: Any, outputs: Any, what: str) -> None:
        super().__init__([Typed(t) for t in inputs], [Typed(t) for t in outputs])
        self.program = program
        self.residuals = residuals
        self.what = what

    def parts(self) -> tuple[Program, Sequence[Any]]:
        """As said there: whatever the residuals are."""
        return self.program, self.residuals

    def linear(self) -> tuple[Program, list[Array]]:
        """As said there. Raises ArgumentError for residuals of other types than the program takes."""
        arrays = [as_array(x, f"{self.what}: a residual of what it returned") for x in self.residuals]
        for array, type in zip(arrays, self.program.input_types, strict=False):
            if not same_up_to_weakness(array.type, type):
                raise ArgumentError(
                    message(
                        f"{self.what}{here()}: a residual of what it returned has another type than it was made with",
                        f"expected {type}, got {array.type}",
                        help="call it under vmap if it was returned through one, as vmap(lambda f, x: f(x))(f, xs)",
                    )
                )
        return self.program, arrays


class LinearFunction:
    """What both directions share. inputs, outputs: structures, of what was differentiated. what, name: see `Form`."""

    __slots__ = ("__weakref__", "_called", "_derivative", "_inputs", "_name", "_outputs", "_what")
    _direction = "linear function"

    def __init__(
        self, derivative: Derivative, inputs: trees.Structure, outputs: trees.Structure, what: str, name: str,
        called: Callable[[], Sequence[str]] = tuple,
    ) -> None:  # fmt: skip
        self._derivative = derivative
        self._inputs = inputs
        self._outputs = outputs
        self._what = what
        self._name = name
        self._called = called

    def __repr__(self) -> str:
        return f"<{self._direction} of {self._name}>"

    @classmethod
    def known(cls, form: Form, residuals: Sequence[Any]) -> Self:
        """The function of a form and residuals."""
        what = f"{form.what} of {form.name}"
        kept = [renewed(x) if isinstance(x, Array) else x for x in residuals]
        derivative = Known(form.program, kept, form.input_types, form.output_types, what)
        return cls(derivative, form.inputs, form.outputs, form.what, form.name, lambda: form.called)

    def taken_apart(self) -> tuple[tuple[Any, ...], Form]:
        """Its residuals, and its form."""
        derivative = self._derivative
        program, residuals = derivative.parts()
        types = [tuple(x.type for x in values) for values in (derivative.inputs, derivative.outputs)]
        called = tuple(self._called())
        form = Form(program, self._inputs, types[0], self._outputs, types[1], self._what, self._name, called)
        return tuple(renewed(x) if isinstance(x, Array) else x for x in residuals), form


class Pullback(LinearFunction):
    """From cotangents, a tree like the results, to a tuple with the cotangent of each argument. It may be called any
    number of times, and is a tree of the arrays that it keeps: jit, vmap and scan take it and return it."""

    __slots__ = ()
    __name__ = _direction = "pullback"

    def __call__(self, *cotangents: Any) -> Any:
        where = f"{self._what} of {self._name}"
        arriving = _only(cotangents, self._what, self._name)
        given = match_tangents(arriving, self._derivative.outputs, self._outputs, where, "cotangents")
        return trees.unflatten(self._inputs, self._derivative.pull(given))


class Pushforward(LinearFunction):
    """From tangents, one argument for each that was differentiated, to a tree like the results. It may be called any
    number of times, and is a tree of the arrays that it keeps: jit, vmap and scan take it and return it."""

    __slots__ = ()
    __name__ = _direction = "pushforward"

    def __call__(self, *tangents: Any) -> Any:
        where = f"{self._what} of {self._name}"
        given = match_tangents(tangents, self._derivative.inputs, self._inputs, where, "tangents", self._called)
        return trees.unflatten(self._outputs, self._derivative.push(given))


def _only(cotangents: tuple[Any, ...], what: str, name: str) -> Any:
    """The one argument of a pullback. Raises ArgumentError for any other number of them."""
    if len(cotangents) != 1:
        raise ArgumentError(
            message(
                f"{what} of {name}{here()}: what it returns takes one argument, a tree like the result of {name}",
                f"got {len(cotangents)} arguments",
                help="pass a tuple for a function that returns one: pullback((a, b))",
            )
        )
    return cotangents[0]


for _kind in (Pullback, Pushforward):
    set_method_boundaries(_kind)
    trees.register(_kind, _kind.taken_apart, _kind.known)
