"""User's function run once at a point, with its derivative there, for gradients and Jacobians.

Outside jit it runs with values; under jit it runs into the program (see `tracer.transforms.run`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import nullcontext
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.ir.program import Literal, Program
from tracer.ir.types import is_differentiable
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import is_array_like
from tracer.trace.source import here
from tracer.trace.state import Level, state
from tracer.trace.trace import Operand
from tracer.trace.tracebacks import call_user
from tracer.transforms.backward import pull
from tracer.transforms.context import Tangent
from tracer.transforms.functions import as_output, as_outputs
from tracer.transforms.linear_functions import Derivative
from tracer.transforms.run import LinearTape, Tape, linear_tape, run_reverse
from tracer.transforms.unstacked import without_stacks


class Flattened:
    """Flattening of a user's function, which keeps the structure of the result.

    caller: names the transform and the function in errors.
    """

    def __init__(self, has_aux: bool, caller: str) -> None:
        self.has_aux = has_aux
        self.caller = caller
        self.structure: Any = None
        self.aux_structure: Any = None
        self.aux_others: list[tuple[Any] | None] = []  # per leaf of aux: (leaf,), None if it is an array
        self.count = 0

    def flat(self, function: Callable[..., Any], structure: trees.Structure) -> Callable[[list[Any]], list[Operand]]:
        def run(leaves: list[Any]) -> list[Operand]:
            result = call_user(function, trees.unflatten(structure, leaves), {})
            aux_leaves: list[Any] = []
            if self.has_aux:
                if not isinstance(result, tuple) or len(result) != 2:
                    raise ArgumentError(
                        message(
                            f"{self.caller}{here()}: has_aux=True wants a pair (result, aux)",
                            f"got {type(result).__name__}",
                            help="return a tuple of two, or leave has_aux out",
                        )
                    )
                result, aux = result
                found, self.aux_structure = trees.flatten(aux)
                self.aux_others = [None if _is_operand(leaf) else (leaf,) for leaf in found]
                aux_leaves = [as_output(leaf, self.caller) for leaf in found if _is_operand(leaf)]
            outputs, self.structure = as_outputs(result, self.caller)
            self.count = len(outputs)
            return [*outputs, *aux_leaves]

        return run

    def aux_value(self, leaves: Sequence[Any]) -> Any:
        """Return the auxiliary result with `leaves` as its arrays; other leaves are returned unchanged."""
        if not self.has_aux:
            return None
        given = iter(leaves)
        return trees.unflatten(self.aux_structure, [next(given) if o is None else o[0] for o in self.aux_others])


def _is_operand(leaf: Any) -> bool:
    """Whether a leaf of the auxiliary result becomes an array. Python scalars stay Python scalars, as in JAX."""
    if type(leaf) in _NUMBERS:
        return False
    return isinstance(leaf, Literal) or is_array_like(leaf) or hasattr(leaf, "__array__")


_NUMBERS = frozenset((bool, int, float, complex))


class Recorded(Derivative):
    """User's function run at a point, with its derivative there."""

    outputs: list[Any]

    def __init__(
        self, leaves: list[Array], holder: Flattened, outputs: list[Operand], run: Tape,
        active: list[bool] | None = None,
    ) -> None:  # fmt: skip
        super().__init__(leaves, outputs[: holder.count], active)
        self.structure = holder.structure
        self.aux = holder.aux_value(outputs[holder.count :])
        self.run = run
        self._level = Level.current()
        self._written: dict[bool, LinearTape] = {}

    @property
    def tape(self) -> LinearTape:
        """Derivative as a linear program, written once."""
        return self._write(loose=False)

    def linear(self) -> tuple[Program, Sequence[Any]]:
        """Return the derivative as a linear program with its residuals."""
        return self.tape

    def parts(self) -> tuple[Program, Sequence[Any]]:
        """Return the linear program and its residuals without run-time stacks, so that other programs can call it."""
        return self._write(loose=True)

    def _write(self, *, loose: bool) -> LinearTape:
        """Return the linear program, without run-time stacks if `loose`.

        It is written at the level where the function ran, since its residuals may be read anywhere within that level.
        Once the level is closed, it is written at the current one.
        """
        found = self._written.get(loose)
        if found is None:
            is_open = self._level.is_open
            with self._level.entered() if is_open else nullcontext():
                found = LinearTape(*without_stacks(*self.tape)) if loose else linear_tape(self.run)
            if is_open or state.innermost is None:
                self._written[loose] = found
        return found

    def _pulled(self, cotangents: Sequence[Operand]) -> Iterable[Tangent]:
        return pull(self.run, self._written.get(False), cotangents)


def record(
    function: Callable[..., Any], leaves: list[Array], structure: trees.Structure, has_aux: bool, name: str, caller: str
) -> Recorded:
    """Run a user's function on arrays, and record its derivative. caller: names the transform in errors."""
    active = [is_differentiable(x._type or x.type) for x in leaves]
    holder = Flattened(has_aux, f"{caller} of {name}")
    tape = run_reverse(holder.flat(function, structure), leaves, active, name)
    outputs = list(tape.outputs)
    del tape.outputs[holder.count :], tape.output_vars[holder.count :]
    return Recorded(leaves, holder, outputs, tape, active)
