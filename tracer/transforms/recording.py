"""A user's function run once at a point, with its derivative there: what gradients and Jacobians are made of.

Outside jit it runs with values, define by run; under jit into the program (see `tracer.transforms.run`).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.ir.primitive import Zero
from tracer.ir.program import Literal
from tracer.ir.types import is_differentiable, tangent_type
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import is_array_like
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.trace import Operand
from tracer.trace.tracebacks import call_user
from tracer.transforms.functions import (
    as_output,
    as_outputs,
)
from tracer.transforms.paths import dense, pull
from tracer.transforms.run import LinearTape, Tape, linear_tape, run_reverse
from tracer.transforms.tangents import tangent_array


class Flattened:
    """Flattens what a user's function returns, and keeps its structure. what: the transform and the function."""

    def __init__(self, has_aux: bool, what: str) -> None:
        self.has_aux = has_aux
        self.what = what
        self.structure: Any = None
        self.aux_structure: Any = None
        self.aux_others: list[tuple[Any] | None] = []  # of the leaves: those that are no arrays
        self.count = 0

    def flat(self, function: Callable[..., Any], structure: trees.Structure) -> Callable[[list[Any]], list[Operand]]:
        def run(leaves: list[Any]) -> list[Operand]:
            result = call_user(function, trees.unflatten(structure, leaves), {})
            aux_leaves: list[Any] = []
            if self.has_aux:
                if not isinstance(result, tuple) or len(result) != 2:
                    raise ArgumentError(
                        message(
                            f"{self.what}{here()}: has_aux=True wants a pair (result, aux)",
                            f"got {type(result).__name__}",
                            help="return a tuple of two, or leave has_aux out",
                        )
                    )
                result, aux = result
                found, self.aux_structure = trees.flatten(aux)
                self.aux_others = [None if _is_operand(leaf) else (leaf,) for leaf in found]
                aux_leaves = [as_output(leaf, self.what) for leaf in found if _is_operand(leaf)]
            outputs, self.structure = as_outputs(result, self.what)
            self.count = len(outputs)
            return [*outputs, *aux_leaves]

        return run

    def aux_value(self, leaves: Sequence[Any]) -> Any:
        """The auxiliary result, of the arrays in it; what is no array rides along as it is."""
        if not self.has_aux:
            return None
        given = iter(leaves)
        return trees.unflatten(self.aux_structure, [next(given) if o is None else o[0] for o in self.aux_others])


def _is_operand(leaf: Any) -> bool:
    return isinstance(leaf, Literal) or is_array_like(leaf) or hasattr(leaf, "__array__")


class Recorded:
    """A user's function run at a point, with its derivative there."""

    def __init__(
        self, leaves: list[Array], active: list[bool], holder: Flattened, outputs: list[Operand], run: Tape
    ) -> None:
        self.leaves = leaves
        self.active = active
        self.structure = holder.structure
        self.outputs: list[Any] = outputs[: holder.count]
        self.aux = holder.aux_value(outputs[holder.count :])
        self.run = run
        self._linear: LinearTape | None = None
        self.moving = [is_differentiable(y.type) for y in self.outputs]

    @property
    def tape(self) -> LinearTape:
        """The derivative as a linear program, written once."""
        if self._linear is None:
            self._linear = linear_tape(self.run)
        return self._linear

    def pull(self, cotangents: Sequence[Any]) -> list[Any]:
        """Gradients of every leaf; float0 for those without."""
        given = [c for c, on in zip(cotangents, self.moving, strict=True) if on]
        results = iter(pull(self.run, self._linear, given))
        return [
            tangent_array(next(results) if on else Zero(tangent_type(x.type)))
            for x, on in zip(self.leaves, self.active, strict=True)
        ]

    def push(self, tangents: Sequence[Any]) -> list[Any]:
        """Tangents of every output."""
        given = [dense(t) for t, on in zip(tangents, self.active, strict=True) if on]
        results = iter(evaluate(self.tape.program, [*self.tape.residuals, *given]))
        return [
            tangent_array(next(results) if on else Zero(tangent_type(y.type)))
            for y, on in zip(self.outputs, self.moving, strict=True)
        ]


def record(
    function: Callable[..., Any], leaves: list[Array], structure: trees.Structure, has_aux: bool, name: str, what: str
) -> Recorded:
    """Run a user's function on arrays, keeping what its derivative needs. what: the transform, for errors."""
    active = [is_differentiable(x.type) for x in leaves]
    holder = Flattened(has_aux, f"{what} of {name}")
    tape = run_reverse(holder.flat(function, structure), leaves, active, name)
    outputs = list(tape.outputs)
    del tape.outputs[holder.count :], tape.output_vars[holder.count :]
    return Recorded(leaves, active, holder, outputs, tape)
