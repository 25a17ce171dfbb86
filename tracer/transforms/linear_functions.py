"""Linear functions returned by `vjp`, `linearize` and `linear_transpose`, as trees of the arrays that they hold.

As trees they leave jit and enter it, and are stacked by scan and vmap. Until it is taken apart, a linear function runs
the tape that it was made with. Taken apart, it is a linear program, which belongs to the structure, and its residuals.
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
from tracer.transforms.tangents import dense, match_tangents, tangent_array
from tracer.transforms.transpose import pull_back


class Typed:
    """Placeholder of a value: its type alone."""

    __slots__ = ("type",)

    def __init__(self, type: Any) -> None:
        self.type = type


class Derivative(ABC):
    """Derivative of a function at a point. inputs, outputs: its values there, or `Typed` placeholders.

    active: the inputs that have tangents.
    """

    def __init__(self, inputs: Sequence[Any], outputs: Sequence[Any], active: list[bool] | None = None) -> None:
        self.inputs = inputs
        self.outputs = outputs
        self.active = [is_differentiable(x.type) for x in inputs] if active is None else active
        self.moving = [is_differentiable(y.type) for y in outputs]

    @abstractmethod
    def linear(self) -> tuple[Program, Sequence[Any]]:
        """Return a linear program of (residuals..., tangents of active inputs...), and the residuals."""

    def parts(self) -> tuple[Program, Sequence[Any]]:
        """Return the program and residuals as `linear`, but with residuals that may leave the trace: no stacks."""
        return self.linear()

    def pull(self, cotangents: Sequence[Any]) -> list[Any]:
        """Return the gradients of every input; float0 for inputs without one."""
        results = iter(self._pulled([c for c, on in zip(cotangents, self.moving, strict=True) if on]))
        return [
            tangent_array(next(results) if on else Zero(tangent_type(x.type)), x.type)
            for x, on in zip(self.inputs, self.active, strict=True)
        ]

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """Return the tangents of every output."""
        program, residuals = self.linear()
        given = [dense(t) for t, on in zip(tangents, self.active, strict=True) if on]
        results = iter(evaluate(program, [*residuals, *given]))
        return [
            tangent_array(next(results) if on else Zero(tangent_type(y.type)), y.type)
            for y, on in zip(self.outputs, self.moving, strict=True)
        ]

    def _pulled(self, cotangents: Sequence[Operand]) -> Iterable[Tangent]:
        """Return the gradients of the active inputs, from the cotangents of the outputs that have one."""
        program, residuals = self.linear()
        linear = [i >= len(residuals) for i in range(len(program.inputs))]
        return pull_back(program, linear, residuals, cotangents)


@dataclass(frozen=True, slots=True)
class Form:
    """Static part of a linear function: equal for two that differ in their residuals alone.

    program: see `Derivative`. inputs, outputs: of the differentiated function. caller, name: the transform and that
    function, for errors. called: the names of the inputs in errors.
    """

    program: Program
    inputs: trees.Structure
    input_types: tuple[Type, ...]
    outputs: trees.Structure
    output_types: tuple[Type, ...]
    caller: str
    name: str = field(compare=False)
    called: tuple[str, ...] = field(compare=False)

    def __repr__(self) -> str:
        return f"{self.caller} of {self.name}"


class Known(Derivative):
    """Derivative with a known program and residuals, which may be any objects until it is used."""

    def __init__(self, program: Program, residuals: Sequence[Any], inputs: Any, outputs: Any, caller: str) -> None:
        super().__init__([Typed(t) for t in inputs], [Typed(t) for t in outputs])
        self.program = program
        self.residuals = residuals
        self.caller = caller

    def parts(self) -> tuple[Program, Sequence[Any]]:
        """Return the program and the residuals, unchecked."""
        return self.program, self.residuals

    def linear(self) -> tuple[Program, list[Array]]:
        """Return the program and the residuals as arrays. Raises ArgumentError for residuals of other types."""
        arrays = [as_array(x, f"{self.caller}: a residual of its result") for x in self.residuals]
        for array, type in zip(arrays, self.program.input_types, strict=False):
            if not same_up_to_weakness(array.type, type):
                raise ArgumentError(
                    message(
                        f"{self.caller}{here()}: a residual of its result has another type than it was made with",
                        f"expected {type}, got {array.type}",
                        help="call it under vmap if it was returned through one, as vmap(lambda f, x: f(x))(f, xs)",
                    )
                )
        return self.program, arrays


class LinearFunction:
    """Base of pullbacks and pushforwards. inputs, outputs: structures of the differentiated function.

    caller, name: see `Form`.
    """

    __slots__ = ("__weakref__", "_called", "_derivative", "_inputs", "_name", "_outputs", "_what")
    _direction = "linear function"

    def __init__(
        self, derivative: Derivative, inputs: trees.Structure, outputs: trees.Structure, caller: str, name: str,
        called: Callable[[], Sequence[str]] = tuple,
    ) -> None:  # fmt: skip
        self._derivative = derivative
        self._inputs = inputs
        self._outputs = outputs
        self._what = caller
        self._name = name
        self._called = called

    def __repr__(self) -> str:
        return f"<{self._direction} of {self._name}>"

    @classmethod
    def known(cls, form: Form, residuals: Sequence[Any]) -> Self:
        """Return the function of a form and residuals."""
        caller = f"{form.caller} of {form.name}"
        kept = [renewed(x) if isinstance(x, Array) else x for x in residuals]
        derivative = Known(form.program, kept, form.input_types, form.output_types, caller)
        return cls(derivative, form.inputs, form.outputs, form.caller, form.name, lambda: form.called)

    def taken_apart(self) -> tuple[tuple[Any, ...], Form]:
        """Return the residuals and the form."""
        derivative = self._derivative
        program, residuals = derivative.parts()
        types = [tuple(x.type for x in values) for values in (derivative.inputs, derivative.outputs)]
        called = tuple(self._called())
        form = Form(program, self._inputs, types[0], self._outputs, types[1], self._what, self._name, called)
        return tuple(renewed(x) if isinstance(x, Array) else x for x in residuals), form


class Pullback(LinearFunction):
    """Function from cotangents, a tree like the results, to a tuple with the cotangent of each argument.

    It may be called any number of times. It is a tree of the arrays that it keeps: jit, vmap and scan take and return
    it.
    """

    __slots__ = ()
    __name__ = _direction = "pullback"

    def __call__(self, *cotangents: Any) -> Any:
        where = f"{self._what} of {self._name}"
        arriving = _only(cotangents, self._what, self._name)
        given = match_tangents(arriving, self._derivative.outputs, self._outputs, where, "cotangents")
        return trees.unflatten(self._inputs, self._derivative.pull(given))


class Pushforward(LinearFunction):
    """Function from tangents, one argument for each differentiated one, to a tree like the results.

    It may be called any number of times. It is a tree of the arrays that it keeps: jit, vmap and scan take and return
    it.
    """

    __slots__ = ()
    __name__ = _direction = "pushforward"

    def __call__(self, *tangents: Any) -> Any:
        where = f"{self._what} of {self._name}"
        given = match_tangents(tangents, self._derivative.inputs, self._inputs, where, "tangents", self._called)
        return trees.unflatten(self._outputs, self._derivative.push(given))


def _only(cotangents: tuple[Any, ...], caller: str, name: str) -> Any:
    """Return the only argument of a pullback. Raises ArgumentError for any other number of them."""
    if len(cotangents) != 1:
        raise ArgumentError(
            message(
                f"{caller} of {name}{here()}: its pullback takes one argument, a tree like the result of {name}",
                f"got {len(cotangents)} arguments",
                help="pass a tuple for a function that returns one: pullback((a, b))",
            )
        )
    return cotangents[0]


for _kind in (Pullback, Pushforward):
    set_method_boundaries(_kind)
    trees.register(_kind, _kind.taken_apart, _kind.known)
