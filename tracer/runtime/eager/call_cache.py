"""Calls of public functions that come often, replayed without their Python.

What a function does to concrete arrays depends on their types and on its other arguments, not on the elements. So a
call that came often enough is staged once for those, and from then on its equations run one after another as eager
execution runs them, each by the same reference or kernel: results have the same bits as before. Nothing is fused.
What comes more often still is compiled where that keeps every bit, and recognised by compiled entries before any Python
runs: see `compiled_plans` and `exact`.

This holds only for functions that look at no elements on the way; `replayed` is for them alone. A call that asks for
elements of its arrays while it is staged, to check them or to go one way or another, gets no plan.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from functools import wraps
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from tracer.errors import TracerError
from tracer.ir.primitive import Eager, Effect
from tracer.ir.program import Atom, Equation, Literal, Program, Var
from tracer.ir.types import ArrayType, KeyType, storage_type
from tracer.lazy import LazyModule
from tracer.runtime.eager.execute import execute, prepare
from tracer.runtime.system.locks import ForkSafeLock
from tracer.runtime.values.fresh_handles import another, apart
from tracer.settings import gate
from tracer.trace import trees
from tracer.trace.array import Array, concrete
from tracer.trace.convert import as_array
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.tracebacks import NO_OPTIONS, Options, name_caller, tidy

if TYPE_CHECKING:
    from tracer.passes import dce
    from tracer.passes import inline as inlining
    from tracer.runtime import compiled_plans
else:
    compiled_plans = LazyModule("tracer.runtime.compiled_plans")
    dce = LazyModule("tracer.passes.dce")
    inlining = LazyModule("tracer.passes.inline")

T = TypeVar("T", bound=type)
Function = Callable[..., Any]
Plan = Callable[[list[Array]], Any]


class _Often:
    """When a kind of calls is worth a plan, when a plan is worth compiling, and how many kinds a function knows."""

    calls = 32  # staging costs as much as some hundred calls
    replays = 500  # compiling, as some thousand
    kinds = 256
    short = 1e-4  # seconds: a call of twice as long counts for two more
    chain = 16  # kinds that are looked for in compiled code, one after another


often = _Often()
_STATIC = {int, float, bool, str, type(None), type(Ellipsis), type}


class _UnknownError(Exception):
    """A call with an argument that plans do not know."""


def _untried(arrays: list[Array]) -> Any:
    """In the place of plans of kinds that did not come often yet."""
    raise AssertionError(arrays)


class Calls:
    """How often kinds of calls came, and the plans of those that came often.

    `call` is the whole: a chain of compiled entries, each for one kind, and the way through Python at its end.
    """

    def __init__(self, function: Function) -> None:
        self.function = function
        self.lock = ForkSafeLock()
        self._reset()

    def _reset(self) -> None:
        self.plans: dict[Hashable, Plan | None] = {}
        self.counts: dict[Hashable, int] = {}
        self.version = gate.version
        self.call: Function = self.slowly
        self.chained = 0

    def slowly(self, *args: Any, **kwargs: Any) -> Any:
        """A call by way of Python."""
        function = self.function
        if state.innermost is not None:
            return apart(function(*args, **kwargs), args, kwargs)
        kind: Hashable = None
        key: list[Any] = []
        arrays: list[Any] = []  # NumPy's among them
        try:
            for x in args:
                _describe(x, key, arrays)
            for name in sorted(kwargs) if len(kwargs) > 1 else kwargs:  # in the order of the program's inputs
                key.append(name)
                _describe(kwargs[name], key, arrays)
            found = tuple(key)
            plan, kind = self.plans.get(found, _untried), found
        except (_UnknownError, TypeError):
            plan = None
        if kind is None:  # not where the exception is handled, which would be shown above errors of the function's own
            return apart(function(*args, **kwargs), args, kwargs)
        if plan is None and self.version == gate.version:  # there is none for good, or another thread makes it
            return apart(function(*args, **kwargs), args, kwargs)
        if plan is not None and plan is not _untried and self.version == gate.version and gate.is_open_here:
            try:
                return plan([*map(as_array, arrays)] if np.ndarray in map(type, arrays) else arrays)
            except Exception:
                pass
            return function(*args, **kwargs)  # which says what is wrong
        start = perf_counter()
        result = apart(function(*args, **kwargs), args, kwargs)
        if gate.is_open_here:
            self.note(kind, args, kwargs, result, int((perf_counter() - start) / often.short))
        return result

    def note(self, key: Hashable, args: Sequence[Any], kwargs: dict[str, Any], result: Any, length: int) -> None:
        """One more call of a kind that has no plan yet. length: in short ones; long ones count for more."""
        with self.lock:
            if self.version != gate.version or len(self.plans) > often.kinds:
                self._reset()
            if len(self.counts) > often.kinds:
                self.counts = {}
            count = self.counts[key] = self.counts.get(key, 0) + 1 + min(length, often.calls // 4)
            plans, version = self.plans, self.version
            if count < often.calls or key in plans:
                return
            plans[key] = None  # until there is one, or for good
        staged = _staged(self.function, args, kwargs, result)
        if staged is not None:
            improve = self._improve(key, plans, version, args, kwargs, staged)
            plans[key] = _plan(staged, improve, often.replays // (1 + length))

    def _improve(
        self, key: Hashable, plans: dict[Hashable, Plan | None], version: int, args: Sequence[Any],
        kwargs: dict[str, Any], staged: compiled_plans.Staged,
    ) -> Callable[[Plan, list[Array]], None]:  # fmt: skip
        """What puts a compiled plan in the place of one that came often, called with it and the arrays at hand."""
        arguments = compiled_plans.arguments_plan(args, kwargs)

        def improve(run: Plan, arrays: list[Array]) -> None:
            found = compiled_plans.compiled_plan(staged, run, arrays, arguments)
            if found is None:
                return
            plans[key] = found.run
            if found.entry is None:
                return
            found.entry.trust_settings(version)
            with self.lock:
                if self.version == version and self.chained < often.chain:
                    self.call = found.entry.entry(self.call)
                    self.chained += 1

        return improve


def static(cls: T) -> T:
    """A decorator: values of the class may be arguments of replayed functions, and are told apart by their hashes."""
    _STATIC.add(cls)
    return cls


def replayed(function: Function, *, named: bool = True, options: Options = NO_OPTIONS) -> Function:
    """The function, a boundary for tracebacks, whose frequent kinds of calls are replayed.

    What it does must depend on the types of arrays alone, and on the values of its other arguments. Its results are
    handles of their own. named, options: as those of `boundary`.
    """
    calls = Calls(function)
    names, optioned, place = options.names, options.call, options.place

    @wraps(function)
    def outermost(*args: Any, **kwargs: Any) -> Any:
        try:
            if len(args) > place or (kwargs and not names.isdisjoint(kwargs)):
                return optioned(calls.call, args, kwargs)
            return calls.call(*args, **kwargs)
        except BaseException as error:
            if named:
                name_caller(error, function.__name__)
            error.__traceback__ = tidy(error)
            raise

    return outermost


def _describe(x: Any, key: list[Any], arrays: list[Any]) -> None:
    """Add to the key what a plan depends on: types of arrays, which are listed, and values of all else."""
    kind = type(x)
    if kind is Array:
        if x._trace is not None:
            raise _UnknownError
        if x._type is None:
            value = x._value
            key += (Array, value.dtype, value.shape, x._weak)
        elif type(x._type) in _KINDS:
            key.append(x._type)
        else:
            raise _UnknownError
        arrays.append(x)
    elif kind is np.ndarray:
        key += (kind, x.dtype, x.shape)
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


_KINDS = (ArrayType, KeyType)


def _staged(
    function: Function, args: Sequence[Any], kwargs: dict[str, Any], result: Any
) -> compiled_plans.Staged | None:
    """A call as a program; None where it must go by way of Python."""
    leaves, structure = trees.flatten((args, kwargs))
    leaves = [as_array(leaf) if type(leaf) is np.ndarray else leaf for leaf in leaves]
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

    asked = state.asked
    try:
        staged = stage(flat, [leaves[place].type for place in places], name=getattr(function, "__name__", "call"))
    except (TracerError, TypeError):
        return None
    if state.asked != asked:
        return None
    program = simplified(staged.program)
    expected, wanted = trees.flatten(result)
    if shape != [wanted] or not is_plain(program) or not all(type(x) is Array for x in expected):
        return None
    if [x.type for x in expected] != list(program.output_types):
        return None
    return compiled_plans.Staged(program, staged.constants, wanted)


def simplified(program: Program) -> Program:
    """The program without calls, and without what nobody reads."""
    return dce.dce(inlining.inline(program))


def is_plain(program: Program) -> bool:
    """Whether every equation stands for itself, and every output is another value."""
    for equation in program.equations:
        if equation.effects - {Effect.FAULT}:
            return False
        if equation.primitive.eager is not Eager.COMPILED and any(True for _ in equation.nested()):
            return False
        if not all(isinstance(x.type, _KINDS) for x in (*equation.inputs, *equation.outputs)):
            return False
    outputs = program.outputs
    return bool(outputs) and len(set(outputs)) == len(outputs) and not any(isinstance(x, Literal) for x in outputs)


def _plan(staged: compiled_plans.Staged, improve: Callable[[Plan, list[Array]], None], replays: int) -> Plan:
    program, structure = staged.program, staged.structure
    known, equations = _folded(program, staged.constants)
    fixed = list(known.values())
    inputs = [*known, *program.inputs[len(staged.constants) :]]
    prepared, results = prepared_calls(replace(program, inputs=tuple(inputs), equations=tuple(equations)))
    steps = [step_of(call, reads) for call, reads in prepared]
    given = len(inputs)
    single = results[0] if structure.is_leaf() and results[0] >= given else None
    left = itertools.count(replays, -1)
    alone = None
    if single is not None and len(steps) == 1 and not fixed:
        call, reads = prepared[0]
        alone = call if reads == list(range(given)) else None

    def run(arrays: list[Array]) -> Any:
        if next(left) == 0:
            improve(run, arrays)
        if alone is not None:
            return alone(*arrays)[0]
        known = [*fixed, *arrays]
        for step in steps:
            known += step(known)
        if single is not None:
            return known[single]
        return trees.unflatten(structure, [another(known[n]) if n < given else known[n] for n in results])

    return run


Prepared = Callable[..., Sequence[Array]]
Reads = list[int | Literal]


def prepared_calls(program: Program) -> tuple[list[tuple[Prepared, Reads]], list[int]]:
    """Every equation as a function of its operands, which are literals or numbers of values; and the results' numbers.

    Values are numbered as they come: inputs, then outputs of equations.
    """
    places = {variable: n for n, variable in enumerate(program.inputs)}
    prepared = []
    for equation in program.equations:
        reads = [_place(atom, places) for atom in equation.inputs]
        prepared.append((_prepared(equation, reads), reads))
        for variable in equation.outputs:
            places[variable] = len(places)
    return prepared, [places[variable] for variable in program.outputs if isinstance(variable, Var)]


def _folded(program: Program, constants: Sequence[Any]) -> tuple[dict[Any, Array], list[Equation]]:
    """What small values are known before a call, by variable, and the equations that are left."""
    known: dict[Any, Array] = dict(zip(program.inputs, constants, strict=False))
    left = []
    for equation in program.equations:
        ready = all(isinstance(atom, Literal) or atom in known for atom in equation.inputs)
        small = all(isinstance(x.type, ArrayType) and math.prod(x.type.shape) <= _MOST_KEPT for x in equation.outputs)
        if not (ready and small) or equation.effects or not set(equation.outputs).isdisjoint(program.outputs):
            left.append(equation)
            continue
        operands = [atom if isinstance(atom, Literal) else known[atom] for atom in equation.inputs]
        known |= zip(equation.outputs, execute(equation.primitive, operands, equation.params), strict=True)
    return known, left


_MOST_KEPT = 1 << 10  # elements of a value that a plan keeps


def _place(atom: Atom, places: dict[Any, int]) -> int | Literal:
    return atom if isinstance(atom, Literal) else places[atom]


def _prepared(equation: Equation, reads: Sequence[int | Literal]) -> Callable[..., Sequence[Array]]:
    """One equation, from its operands to its outputs."""
    atoms = equation.inputs
    samples = [read if isinstance(read, Literal) else _sample(x.type) for read, x in zip(reads, atoms, strict=True)]
    return prepare(equation.primitive, samples, equation.params)


def step_of(call: Prepared, reads: Reads) -> Callable[[list[Any]], Sequence[Array]]:
    """One such function, of everything known."""
    match reads:
        case [int() as only]:
            return lambda known: call(known[only])
        case [int() as first, int() as second]:
            return lambda known: call(known[first], known[second])
        case _:
            return lambda known: call(*[read if isinstance(read, Literal) else known[read] for read in reads])


def _sample(type: Any) -> Array:
    storage = storage_type(type)
    zeros = np.zeros(storage.shape, storage.dtype)
    return concrete(zeros, type.weak) if storage is type else concrete(zeros, False, type)
