"""The operation that a NaN in a result comes from, found by running the program again, equation by equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tracer.ir import dtypes
from tracer.ir.program import Atom, Equation, Literal, Program, Source, Var
from tracer.ir.types import ArrayType
from tracer.primitives.base.reference import fitted, interpreted_by, reference_outputs, run_reference
from tracer.runtime.jit.jit import JitFunction, jit
from tracer.trace.array import Array
from tracer.trace.state import state

_SHOWN = 4  # operands in a report


@dataclass(frozen=True, slots=True)
class NonFinite:
    """Origin of elements that are not finite. Prints as a text.

    operation: the primitive's name, or "argument". source: the user's line; None for arguments. name: of the argument.
    kind: "NaN" or "infinite". count, size: how many of its result's elements are so, and how many there are. operands:
    a text for each, with type and range.
    """

    operation: str
    source: Source | None
    kind: str
    count: int
    size: int
    operands: tuple[str, ...] = ()
    name: str = ""

    def __str__(self) -> str:
        place = f" at {self.source}" if self.source else ""
        scope = f" in {self.source.scope}" if self.source and self.source.scope else ""
        head = f"{self.name or self.operation}{place}{scope}"
        return "\n  ".join([f"{head}: {self.count} of {self.size} elements are {self.kind}", *self.operands])

    __repr__ = __str__


def first_nan(f: Callable[..., Any], *args: Any, **kwargs: Any) -> NonFinite | None:
    """Return the operation where a NaN of the results of `f(*args, **kwargs)` comes from; None if there is none.

    f: a function, jitted or not; args, kwargs: as it takes them, of any shapes and dtypes; none is donated. The program
    is traced and runs once more, each operation by NumPy, through calls, branches and loops. A NaN that a `where` drops
    is passed over. Where results are infinite and none is NaN, the origin of an infinity is returned. A step of a
    training may be given whole. Its gradients have the lines of the operations that they belong to.

    >>> def loss(x):
    ...     scale = tnp.sqrt(x - 1)
    ...     return (x / scale).sum()
    >>> print(tracer.debug.first_nan(loss, tnp.asarray([0.5, 2.0])))  # doctest: +ELLIPSIS
    sqrt at ...:2: 1 of 2 elements are NaN
      operand f64[2] in [-0.5, 1]
    """
    lowered = (f if isinstance(f, JitFunction) else jit(f)).lower(*args, **kwargs)
    program = lowered.program()
    captured = lowered._traced.captured
    values = [_value(x) for x in (*captured, *lowered._call.leaves)]
    call = lowered._call
    names = [f"captured {n}" for n in range(len(captured))]
    names += lowered._signature.leaf_names(call.args, call.kwargs, call.key.statics)
    fitting = [fitted(x, v.type, "argument") for x, v in zip(values, program.inputs, strict=True)]
    for kind, test in (("NaN", np.isnan), ("infinite", np.isinf)):
        found = _Search(kind, test, names).first(program, fitting)
        if found is not None:
            return found
    return None


def _value(leaf: Any) -> Any:
    return leaf._value if isinstance(leaf, Array) else np.asarray(leaf)


class _Search:
    """Interpreter of programs that remembers where elements of a kind came from."""

    def __init__(self, kind: str, test: Callable[[Any], Any], names: Sequence[str]) -> None:
        self._kind, self._test, self._names = kind, test, names
        self._inner: NonFinite | None = None  # the first origin within the equation that runs

    def first(self, program: Program, values: Sequence[Any]) -> NonFinite | None:
        """Return the origin for the first output that has such elements."""
        outer_source = state.source
        try:
            with interpreted_by(self._run):
                run_reference(program, values)
        finally:
            state.source = outer_source
        if self._inner is not None:
            return self._inner
        for variable, value, name in zip(program.inputs, values, self._names, strict=True):
            if (count := self._count(variable, value)) and variable in program.outputs:
                return NonFinite("argument", None, self._kind, count, int(np.size(value)), name=name)
        return None

    def _run(self, program: Program, values: Sequence[Any]) -> list[Any]:
        environment: dict[Var, Any] = dict(zip(program.inputs, values, strict=True))
        origins: dict[Var, NonFinite | None] = {v: None for v, x in environment.items() if self._count(v, x)}
        last = {atom: n for n, equation in enumerate(program.equations) for atom in equation.inputs}
        kept = set(program.outputs)
        for number, equation in enumerate(program.equations):
            operands = [_read(environment, atom) for atom in equation.inputs]
            results, inner = self._applied(equation, operands)
            for variable, result in zip(equation.outputs, results, strict=True):
                value = environment[variable] = fitted(result, variable.type, equation.primitive.name)
                if count := self._count(variable, value):
                    before = [atom for atom in equation.inputs if atom in origins]
                    known = next((origins[atom] for atom in before if isinstance(atom, Var)), None)
                    made = inner or self._origin(equation, operands, count, int(np.size(value)))
                    origins[variable] = known if before else made
            for atom in set(equation.inputs):
                if isinstance(atom, Var) and last[atom] == number and atom not in kept:
                    del environment[atom]
        if self._inner is None:
            outputs = [atom for atom in program.outputs if isinstance(atom, Var)]
            self._inner = next((found for atom in outputs if (found := origins.get(atom)) is not None), None)
        return [_read(environment, atom) for atom in program.outputs]

    def _applied(self, equation: Equation, operands: Sequence[Any]) -> tuple[Sequence[Any], NonFinite | None]:
        """Return an equation's results, and the origin that the programs inside it found."""
        outer = self._inner
        self._inner = None
        results = reference_outputs(equation.primitive, operands, equation.params, equation.source)
        found = self._inner
        self._inner = outer
        return results, found

    def _count(self, variable: Var, value: Any) -> int:
        type = variable.type
        if not isinstance(type, ArrayType) or not dtypes.is_inexact(type.dtype):
            return 0
        return int(np.count_nonzero(self._test(value)))

    def _origin(self, equation: Equation, operands: Sequence[Any], count: int, size: int) -> NonFinite:
        texts = [_text(atom, value) for atom, value in zip(equation.inputs, operands, strict=True)]
        more = [f"and {len(texts) - _SHOWN} operands more"] if len(texts) > _SHOWN else []
        return NonFinite(
            equation.primitive.name, equation.source, self._kind, count, size, (*texts[:_SHOWN], *more)
        )  # fmt: skip


def _read(environment: dict[Var, Any], atom: Atom) -> Any:
    return np.asarray(atom.value, atom.type.dtype) if isinstance(atom, Literal) else environment[atom]


def _text(atom: Atom, value: Any) -> str:
    """Return an operand's type and range."""
    type = atom.type
    if not isinstance(type, ArrayType) or not np.size(value) or dtypes.is_complex(type.dtype):
        return f"operand {type}"
    wide = np.asarray(value, np.float64)
    rest = wide[~np.isnan(wide)]
    nans = f", {wide.size - rest.size} NaN" if rest.size < wide.size else ""
    return f"operand {type} in [{rest.min():.4g}, {rest.max():.4g}]{nans}" if rest.size else f"operand {type}{nans}"
