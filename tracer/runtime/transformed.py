"""Calls of what transforms make of the user's functions, and of loops over them, that come often outside `jit`.

`grad(f)(x)`, `vmap(f)(x)`, `scan(f, ...)` run f anew at every call. Where f depends on its arguments and on guarded
names alone (see `dependence`), a kind of calls that came a few times is traced once and replayed from then on, equation
by equation as eager execution runs them, so that values keep their bits; and compiled, where that keeps them, too: see
`replay`. What f may not do is decided by its code, before it is traced. Calls of many elements stay as they are: there
Python's time does not matter, and a compiled backward pass is better than one that is replayed.

What is known of a function is kept in its own `__dict__`, so that it goes away with it.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import replace
from functools import partial, update_wrapper, wraps
from types import FunctionType
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

import numpy as np

from tracer.errors import TracerError
from tracer.ir.types import ArrayType, size
from tracer.lazy import LazyModule
from tracer.runtime.eager.call_cache import is_plain, prepared_calls, simplified, step_of
from tracer.runtime.families import Family, family_of
from tracer.runtime.jit.argument_plan import make_plan
from tracer.runtime.jit.signature import Call, Key, call_of_arrays
from tracer.runtime.jit.trace_call import Traced, trace_call
from tracer.runtime.noticed import noticed
from tracer.runtime.system.locks import ForkSafeLock
from tracer.runtime.values.fresh_handles import another
from tracer.settings import gate
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.state import state
from tracer.trace.tracebacks import boundary
from tracer.transforms.functions import name_of

if TYPE_CHECKING:
    from tracer.runtime import compiled_plans, contents, dependence
else:
    compiled_plans = LazyModule("tracer.runtime.compiled_plans")
    contents = LazyModule("tracer.runtime.contents")
    dependence = LazyModule("tracer.runtime.dependence")

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)


class _Often:
    """When a kind of calls is worth tracing, and then compiling; how much of it is kept, and how large it may be."""

    calls = 3
    replays = 200
    kinds = 16  # of calls of one function
    ways = 8  # transforms of one function
    elements = 1 << 14  # of all values in a call
    changes = 6  # of what a function depends on, after which it is taken for one that stands among what changes
    own = 64  # calls of one function among others like it, after which it has plans of its own
    chain = 4


often = _Often()
_lock = ForkSafeLock()


class _Plan(NamedTuple):
    """A kind of calls. run: from leaves to the result. version: of the settings when it was made."""

    run: Callable[[Sequence[Any]], Any]
    containers: Sequence[contents.Snapshot]
    traced: Traced
    version: int

    def holds(self) -> bool:
        return self.version == gate.version and self.traced.is_valid and all(c.holds() for c in self.containers)


class Transformed:
    """A function of arrays that runs functions of the user's. `call` is the whole: compiled entries, then Python.

    converted: how many of its arguments become arrays before the user's function sees them, all of them if None. Python
    numbers among the others are numbers there, which `x ** n` for one makes a difference of.
    """

    def __init__(
        self, function: Function, of: Sequence[Function], converted: int | None = None, family: Family | None = None
    ) -> None:
        self.function = function
        self.of = of
        self.converted = converted
        self.family = family
        self._changes = self._calls = 0
        self._reset()

    def _reset(self) -> None:
        self._plans: dict[Key, _Plan | None] = {}
        self._counts: dict[Key, int] = {}
        self.call = self.slowly if self.family is None else self.by_family
        self._chained = 0

    def slowly(self, *args: Any, **kwargs: Any) -> Any:
        """A call by way of Python."""
        call = self._sorted(args, kwargs)
        if call is None:
            return self.function(*args, **kwargs)
        plan = self._plans.get(call.key)
        if plan is None:
            depends = self._depends(call) if self._is_due(call.key) else None
            result = self.function(*args, **kwargs)
            if depends is not None:
                self._make(call, args, kwargs, result, depends)
            return result
        if not plan.holds():
            with _lock:
                self._changes += 1
                self._reset()
            return self.function(*args, **kwargs)
        try:
            return plan.run(call.leaves)
        except Exception:
            pass
        return self.function(*args, **kwargs)  # which says what is wrong

    def by_family(self, *args: Any, **kwargs: Any) -> Any:
        """A call by way of what is known of other functions like this one."""
        family = self.family
        if family is None or family.over:
            self.call = self.function
            return self.function(*args, **kwargs)
        call = self._sorted(args, kwargs)
        if call is None:
            return self.function(*args, **kwargs)
        found = family.leaves(self.of, call)
        if found is not None:
            self._calls += 1
            if self._calls == often.own and self._changes <= often.changes and all(map(_is_kept, self.of)):
                self.family = None  # it is not made anew after all
                self._reset()
            run, leaves = found
            try:
                return run(leaves)
            except Exception:
                pass
            return self.function(*args, **kwargs)  # which says what is wrong
        before = family.before(self.of, call, self._has_numpys(call)) if family.is_due(call.key) else None
        result = self.function(*args, **kwargs)
        if before is not None:
            traced, run = partial(self._traced, call, result), partial(self._run, self._arrays(call))
            family.make(self.of, call, before, traced, run)
        return result

    def _run(self, numbers: int, traced: Traced, better: Callable[[Any], None]) -> Any:
        """How a program of such calls is run, and after a while run better."""

        def improve(run: Any, leaves: Sequence[Any]) -> None:
            staged = compiled_plans.Staged(traced.program, list(traced.captured), traced.structure)
            found = compiled_plans.compiled_plan(staged, run, [*map(as_array, leaves)], None, numbers)
            if found is not None:
                better(found.run)

        return _run(traced, improve)

    def _sorted(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call | None:
        """The arguments by kind; None where the call is to go by way of Python."""
        if state.innermost is not None or not gate.is_open_here:
            return None
        call = call_of_arrays(args, kwargs)
        if call is None:
            return None
        kinds = [*map(type, call.leaves[self._arrays(call) :])]  # which the user's function sees
        return call if all(kind is Array or kind is np.ndarray for kind in kinds) else None

    def _arrays(self, call: Call) -> int:
        """How many leaves become arrays."""
        if self.converted is None:
            return len(call.leaves)
        positional = call.key.structure.child(0)
        return sum(positional.child(n).num_leaves for n in range(min(self.converted, len(call.args))))

    def _is_due(self, key: Key) -> bool:
        """Count a call; whether there have been enough."""
        with _lock:
            if key in self._plans:  # there is to be none
                return False
            if len(self._counts) > often.kinds or len(self._plans) > often.kinds:
                self._reset()
            self._counts[key] = self._counts.get(key, 0) + 1
            return self._counts[key] >= often.calls and sys.gettrace() is None

    def _depends(self, call: Call) -> dependence.Dependence | None:
        """What the functions depend on before they run; None where there is to be no plan."""
        if not contents.is_plain_tree(call.key.structure):
            self._plans[call.key] = None
            return None
        depends = None if self._changes > often.changes else dependence.dependence_of(self.of)
        if depends is None:
            self._changes = often.changes + 1
            self.family = Family()
            self._reset()
        elif depends.tells_kinds and self._has_numpys(call):
            self._plans[call.key] = None
            return None
        return depends

    def _has_numpys(self, call: Call) -> bool:
        """Whether a user's function sees arrays of NumPy's, which it may write to or tell from ours."""
        return np.ndarray in map(type, call.leaves[self._arrays(call) :])

    def _make(
        self, call: Call, args: Sequence[Any], kwargs: dict[str, Any], result: Any, depends: dependence.Dependence
    ) -> None:
        version = gate.version
        self._plans[call.key] = None  # until there is one, or for good
        if not depends.is_untouched():
            return  # it would write once more
        traced = self._traced(call, result)
        if traced is None or not depends.is_untouched():
            return
        of_arguments = [guard for record in contents.records_of(call.key.structure) for guard in record.guards()]
        traced = replace(traced, guards=(*depends.guards, *of_arguments), values=(*traced.values, *depends.values))
        sees = self._arrays(call) < len(call.leaves) and (depends.tells_kinds or self._has_numpys(call))
        by_python = depends.containers or len(call.key.axes) > 1 or sees  # no entry would tell
        arguments = None if by_python else make_plan(args, kwargs, call)
        improve = partial(self._improve, call.key, traced, version, arguments, self._arrays(call))
        with _lock:
            self._plans[call.key] = _Plan(_run(traced, improve), depends.containers, traced, version)

    def _traced(self, call: Call, result: Any) -> Traced | None:
        """The call as a program, without guards; None where it must go by way of Python."""
        asked = state.asked
        try:
            with noticed() as warned:
                traced = trace_call(self.function, call, name_of(self.of[0]), "call")
        except (TracerError, TypeError):
            return None
        if warned or state.asked != asked or not traced.is_closed:
            return None
        program = simplified(traced.program)
        expected, wanted = trees.flatten(result)
        if traced.structure != wanted or not is_plain(program) or not all(type(x) is Array for x in expected):
            return None
        if [x.type for x in expected] != list(program.output_types) or not _is_small(program):
            return None
        return replace(traced, program=program, guards=())

    def _improve(
        self, key: Key, traced: Traced, version: int, arguments: Any, numbers: int, run: Any, leaves: Sequence[Any]
    ) -> None:
        """Put machine code in the place of a plan that came often, if that keeps every bit."""
        staged = compiled_plans.Staged(traced.program, list(traced.captured), traced.structure)
        found = compiled_plans.compiled_plan(staged, run, [*map(as_array, leaves)], arguments, numbers)
        if found is None:
            return
        with _lock:
            plan = self._plans.get(key)
            if plan is None or plan.traced is not traced:
                return
            self._plans[key] = plan._replace(run=found.run)
            if found.entry is not None and self._chained < often.chain:
                found.entry.watch(traced.guards, traced.values)
                found.entry.trust_settings(version)
                self.call = found.entry.entry(self.call)
                self._chained += 1


def _is_kept(function: Any) -> bool:
    """Whether what is known of a function can be kept with it."""
    return type(function) is FunctionType


def _is_small(program: Any) -> bool:
    types = [variable.type for equation in program.equations for variable in equation.outputs]
    return sum(size(t) for t in types if isinstance(t, ArrayType)) <= often.elements


def _run(traced: Traced, improve: Callable[..., None]) -> Callable[[Sequence[Any]], Any]:
    """The program, equation by equation, with captured arrays as they are when it is called."""
    captured, structure = traced.captured, traced.structure
    prepared, results = prepared_calls(traced.program)
    steps = [step_of(call, reads) for call, reads in prepared]
    inputs = len(traced.program.inputs)
    left = iter(range(often.replays, -1, -1))

    def run(leaves: Sequence[Any]) -> Any:
        if next(left, None) == 0:
            improve(run, leaves)
        known = [x if type(x) is Array else as_array(x) for x in (*captured, *leaves)]  # results may be views of them
        for step in steps:
            known += step(known)
        return trees.unflatten(structure, [another(known[n]) if n < inputs else known[n] for n in results])

    return run


# Where what is known of a function is kept

_NAME = "__tracer_transformed__"


class _Kept:
    """What is made of one function, by how. Copies of the function's `__dict__` are no copies of the function."""

    def __init__(self, owner: Any = None) -> None:
        self.owner = None if owner is None else weakref.ref(owner)
        self.made: dict[Hashable, Any] = {}
        self.is_over = False

    def __reduce__(self) -> Any:
        return _Kept, ()  # pickled with a function it is of no use


def kept(functions: Sequence[Any], how: tuple[Any, ...], make: Callable[[Family | None], Any]) -> Any:
    """What `make` makes, kept with the first function for the others and `how`; made anew where it cannot be.

    Functions that are made anew get what is known of others like them: see `families`.
    """
    first = functions[0]
    options = (*how, *map(type, how))
    key = (*functions[1:], *options)
    if not _can_be_hashed(key):
        return make(None)
    own = first.__dict__.get(_NAME) if type(first) is FunctionType else None
    if own is None or own.owner is None or own.owner() is not first:
        family = family_of(functions, options)
        if family is not None or type(first) is not FunctionType:
            return make(family)
        own = first.__dict__[_NAME] = _Kept(first)
    if own.is_over or not all(type(function) is FunctionType for function in functions[1:]):
        return make(family_of(functions, options))  # objects may be equal, and methods keep theirs alive
    found = own.made.get(key)
    if found is None:
        if len(own.made) >= often.ways:
            own.made.clear()
            own.is_over = len(functions) > 1  # others are made anew
        found = own.made[key] = make(None)
    return found


def _can_be_hashed(key: Any) -> bool:
    try:
        hash(key)
    except TypeError:
        return False
    return True


def everything(args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    """Transforms that make arrays of all arguments."""
    return None


def differentiated(args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
    """Those that make arrays of what `argnums` names: the first argument if nothing is said."""
    return 0 if args or "argnums" in kwargs else 1


def replayed_transform(
    transform: F, converted: Callable[[Sequence[Any], Mapping[str, Any]], int | None] = differentiated
) -> F:
    """The transform of a function, whose results' frequent calls are replayed.

    converted: from the transform's other arguments to how many of its result's become arrays: see `Transformed`.
    """

    @wraps(transform)
    def transformed(fun: Any, *args: Any, **kwargs: Any) -> Any:
        def make(family: Family | None) -> Any:
            if family is not None and family.is_valid:  # what it would say of its arguments was said before
                made: Function = _later(transform, fun, args, kwargs)
            else:
                made = transform(fun, *args, **kwargs)
                if family is not None:
                    family.is_valid = True
            calls = Transformed(made, (fun,), converted(args, kwargs), family)

            def result(*xs: Any, **named: Any) -> Any:
                call = calls.call if sys.gettrace() is None else calls.function  # debuggers see the user's run
                return call(*xs, **named)

            return update_wrapper(boundary(result), fun)

        return kept((fun,), (transform, *args, *kwargs.items()), make)

    return cast(F, transformed)


def _later(transform: Function, fun: Function, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Function:
    """The transformed function, made when it is called."""

    def run(*xs: Any, **named: Any) -> Any:
        return transform(fun, *args, **kwargs)(*xs, **named)

    return run


def called_over(function: Function, functions: Sequence[Function], options: tuple[Any, ...], *arrays: Any) -> Any:
    """`function(functions, *options, *arrays)`, whose frequent calls are replayed. options: what is no array."""
    if state.innermost is not None or sys.gettrace() is not None or not all(map(callable, functions)):
        return function(functions, *options, *arrays)

    def make(family: Family | None) -> Any:
        return Transformed(partial(function, functions, *options), functions, None, family)

    return kept(functions, (function, *options), make).call(*arrays)


def replayed_call(transform: F) -> F:
    """The transform, called with a function and arrays, whose frequent calls are replayed."""

    def run(functions: Sequence[Function], options: tuple[Any, ...], *arrays: Any) -> Any:
        return transform(*functions, *arrays, **dict(options))

    @wraps(transform)
    def transformed(fun: Any, *arrays: Any, **options: Any) -> Any:
        return called_over(run, (fun,), (tuple(options.items()),), *arrays)

    return cast(F, transformed)
