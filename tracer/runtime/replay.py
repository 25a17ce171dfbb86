"""Calls of public functions that come often, replayed without their Python.

What a function does to concrete arrays depends on their types and on its other arguments, not on the elements. So a
call that came often enough is staged once for those, and from then on its equations run one after another as eager
execution runs them, each by the same reference or kernel: results have the same bits as before. Nothing is fused.
What comes more often still is compiled, unless it adds up floats, which NumPy does in another order.

This holds only for functions that look at no elements on the way; `replayed` is for them alone.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Hashable, Sequence
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tracer.errors import TracerError
from tracer.ir import dtypes
from tracer.ir.primitive import (
    Alias,
    ArgReduce,
    Compare,
    Convert,
    Effect,
    Gather,
    Generate,
    IndexMap,
    Join,
    Pointwise,
    Reduce,
    Scan,
    Scatter,
)
from tracer.ir.program import Atom, Equation, Literal, Program
from tracer.ir.types import ArrayType
from tracer.runtime.eager import prepare
from tracer.runtime.handles import apart
from tracer.runtime.lazy import LazyModule
from tracer.runtime.locks import ForkSafeLock
from tracer.settings import gate
from tracer.trace import trees
from tracer.trace.array import Array, concrete
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.tracebacks import tidy

if TYPE_CHECKING:
    from tracer.passes import dce
    from tracer.runtime import jit as jits
else:
    dce = LazyModule("tracer.passes.dce")
    jits = LazyModule("tracer.runtime.jit")

T = TypeVar("T", bound=type)
Function = Callable[..., Any]
Plan = Callable[[list[Array]], Any]


class _Often:
    """When a kind of calls is worth a plan, when a plan is worth compiling, and how many kinds a function knows."""

    calls = 32  # staging costs as much as some hundred calls
    replays = 500  # compiling, as some thousand
    kinds = 256


often = _Often()
_STATIC = {int, float, bool, str, type(None), type(Ellipsis), type}


class _UnknownError(Exception):
    """A call with an argument that plans do not know."""


class _Calls:
    """How often kinds of calls came, and the plans of those that came often."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.lock = ForkSafeLock()
        self.plans: dict[Hashable, Plan | None] = {}
        self.counts: dict[Hashable, int] = {}
        self.version = gate.version

    def note(self, key: Hashable, args: Sequence[Any], kwargs: dict[str, Any], result: Any) -> None:
        """One more call of a kind that has no plan yet."""
        with self.lock:
            if self.version != gate.version or len(self.counts) > often.kinds:
                self.plans, self.counts, self.version = {}, {}, gate.version
            count = self.counts[key] = self.counts.get(key, 0) + 1
            plans = self.plans
        if count == often.calls:
            plan = _planned(self.function, args, kwargs, result, lambda better: plans.update({key: better}))
            if plan is not None:
                plans[key] = plan


def static(cls: T) -> T:
    """A decorator: values of the class may be arguments of replayed functions, and are told apart by their hashes."""
    _STATIC.add(cls)
    return cls


def replayed(function: Function) -> Function:
    """The function, a boundary for tracebacks, whose frequent kinds of calls are replayed.

    What it does must depend on the types of arrays alone, and on the values of its other arguments. Its results are
    handles of their own.
    """
    calls = _Calls(function)

    @wraps(function)
    def outermost(*args: Any, **kwargs: Any) -> Any:
        try:
            if state.innermost is not None:
                return apart(function(*args, **kwargs), args, kwargs)
            key: list[Any] = []
            arrays: list[Array] = []
            try:
                for x in args:
                    _describe(x, key, arrays)
                for name, x in kwargs.items():
                    key.append(name)
                    _describe(x, key, arrays)
                kind = tuple(key)
                plan = calls.plans.get(kind)
            except (_UnknownError, TypeError):
                return apart(function(*args, **kwargs), args, kwargs)
            if plan is not None and calls.version == gate.version and gate.is_open_here:
                try:
                    return plan(arrays)
                except Exception:
                    return function(*args, **kwargs)  # which says what is wrong
            result = apart(function(*args, **kwargs), args, kwargs)
            if gate.is_open_here:
                calls.note(kind, args, kwargs, result)
            return result
        except BaseException as error:
            error.__traceback__ = tidy(error)
            raise

    return outermost


def _describe(x: Any, key: list[Any], arrays: list[Array]) -> None:
    """Add to the key what a plan depends on: types of arrays, which are listed, and values of all else."""
    kind = type(x)
    if kind is Array:
        if x._trace is not None or (x._type is not None and type(x._type) is not ArrayType):
            raise _UnknownError
        value = x._value
        key += (Array, value.dtype, value.shape, x._weak)
        arrays.append(x)
    elif kind in _STATIC:
        key += (kind, x or repr(x))  # 0.0 is not -0.0
    elif kind is slice:
        key += (slice, x.start, x.stop, x.step)
        if not {type(x.start), type(x.stop), type(x.step)} <= {int, type(None)}:
            raise _UnknownError
    elif kind is tuple or kind is list:
        key += (kind, len(x))
        for item in x:
            _describe(item, key, arrays)
    elif isinstance(x, np.dtype):
        key += (np.dtype, x)
    else:
        raise _UnknownError


def _planned(
    function: Function, args: Sequence[Any], kwargs: dict[str, Any], result: Any, replace: Callable[[Plan], None]
) -> Plan | None:
    """The plan of a call; None where it must go by way of Python. `replace` puts a better one in its place."""
    leaves, structure = trees.flatten((args, kwargs))
    places = [n for n, leaf in enumerate(leaves) if type(leaf) is Array]
    shape: list[trees.Structure] = []

    def flat(inputs: list[Array]) -> list[Any]:
        given = list(leaves)
        for place, x in zip(places, inputs, strict=True):
            given[place] = x
        positional, keywords = trees.unflatten(structure, given)
        outputs, found = trees.flatten(function(*positional, **keywords))
        shape.append(found)
        return outputs

    try:
        staged = stage(flat, [leaves[place].type for place in places], name=function.__name__)
    except (TracerError, TypeError):
        return None
    program = dce.dce(staged.program)
    expected, wanted = trees.flatten(result)
    if shape != [wanted] or not _is_plain(program) or not all(type(x) is Array for x in expected):
        return None
    if [x.type for x in expected] != list(program.output_types):
        return None
    better = partial(_compiled, program, staged.constants, wanted) if _is_exact(program) else None
    return _plan(program, staged.constants, wanted, lambda: replace(better()) if better is not None else None)


def _is_exact(program: Program) -> bool:
    """Whether compiled code has the bits of eager execution."""
    return all(isinstance(e.primitive.lower, _EXACT) or _is_exact_reduction(e) for e in program.equations)


_EXACT = (Pointwise, Compare, Convert, IndexMap, Generate, Join, Gather, ArgReduce, Alias)


def _is_exact_reduction(equation: Equation) -> bool:
    """Whether the equation combines integers or bools, or moves elements alone."""
    lower, types = equation.primitive.lower, [x.type for x in (*equation.inputs, *equation.outputs)]
    if isinstance(lower, Scatter) and lower.op is None:
        return True
    floats = any(isinstance(type, ArrayType) and dtypes.is_inexact(type.dtype) for type in types)
    return isinstance(lower, Reduce | Scan | Scatter) and not floats


def _compiled(program: Program, constants: Sequence[Array], structure: trees.Structure) -> Plan:
    def replayed_call(*arrays: Array) -> Any:
        return trees.unflatten(structure, evaluate(program, [*constants, *arrays]))

    replayed_call.__name__ = program.name
    call = jits.jit(replayed_call)
    return lambda arrays: call(*arrays)


def _is_plain(program: Program) -> bool:
    """Whether every equation stands for itself, and every output is a new array."""
    for equation in program.equations:
        if equation.effects - {Effect.FAULT} or any(True for _ in equation.nested()):
            return False
        if not all(isinstance(x.type, ArrayType) for x in (*equation.inputs, *equation.outputs)):
            return False
    made = {variable for equation in program.equations for variable in equation.outputs}
    outputs = set(program.outputs)
    return bool(outputs) and len(outputs) == len(program.outputs) and made >= outputs


def _plan(
    program: Program, constants: Sequence[Array], structure: trees.Structure, improve: Callable[[], None]
) -> Plan:
    places = {variable: n for n, variable in enumerate(program.inputs)}
    fixed, steps = list(constants), []
    for equation in program.equations:
        reads = [_place(atom, places) for atom in equation.inputs]
        steps.append(_step(equation, reads))
        for variable in equation.outputs:
            places[variable] = len(places)
    results = [places[variable] for variable in program.outputs]  # type: ignore[index]  # no literals
    single = results[0] if structure.is_leaf() else None
    left = itertools.count(often.replays, -1)

    def run(arrays: list[Array]) -> Any:
        if next(left) == 0:
            improve()
        known = [*fixed, *arrays]
        for step in steps:
            known += step(known)
        if single is not None:
            return known[single]
        return trees.unflatten(structure, [known[n] for n in results])

    return run


def _place(atom: Atom, places: dict[Any, int]) -> int | Literal:
    return atom if isinstance(atom, Literal) else places[atom]


def _step(equation: Equation, reads: Sequence[int | Literal]) -> Callable[[list[Any]], Sequence[Array]]:
    """One equation, from everything known to its outputs."""
    atoms = equation.inputs
    samples = [read if isinstance(read, Literal) else _sample(x.type) for read, x in zip(reads, atoms, strict=True)]
    call = prepare(equation.primitive, samples, equation.params)
    match reads:
        case [int() as only]:
            return lambda known: call(known[only])
        case [int() as first, int() as second]:
            return lambda known: call(known[first], known[second])
        case _:
            return lambda known: call(*[read if isinstance(read, Literal) else known[read] for read in reads])


def _sample(type: Any) -> Array:
    return concrete(np.zeros(type.shape, type.dtype), type.weak)
