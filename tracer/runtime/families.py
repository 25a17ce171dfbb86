"""Calls of functions that are made anew from the same code, or stand among what changes, replayed.

A lambda made in a loop, a method of an object whose arrays are replaced, a function of a list that is written to: each
call finds another function, or other arrays. A plan is kept for the code, for what stands around it (`surroundings`),
and for the types of the arguments; arrays that the functions stand among are operands of the program, beside the
arguments. All else, and every error, goes by way of Python.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import replace
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Any, NamedTuple

from tracer.lazy import LazyModule
from tracer.runtime.jit.signature import Call, Key
from tracer.runtime.jit.trace_call import Traced
from tracer.runtime.system.locks import ForkSafeLock
from tracer.settings import gate
from tracer.trace.array import PROTECTED, Array
from tracer.trace.convert import as_array
from tracer.trace.source import is_ours

if TYPE_CHECKING:
    from tracer.runtime import contents, following
    from tracer.runtime.surroundings import Surroundings
else:
    contents = LazyModule("tracer.runtime.contents")
    following = LazyModule("tracer.runtime.following")

Function = Callable[..., Any]
Run = Callable[[Sequence[Any]], Any]


class _Often:
    """When a kind of calls is worth tracing; how many kinds are kept for arguments of the same types, and families."""

    made = 3  # functions of one code
    calls = 3
    kinds = 4
    traced = 8
    misses = 64  # one after another, after which there is no use in looking
    families = 256


often = _Often()
_lock = ForkSafeLock()


class Kind(NamedTuple):
    """Calls of functions that stand among such things. reads: which of the operands the program takes."""

    around: Surroundings
    reads: Sequence[int]
    run: Run
    version: int
    records: Sequence[contents.Record]  # of the arguments


class Before(NamedTuple):
    """What functions stood among before they ran."""

    around: Surroundings
    operands: Sequence[Array]
    version: int
    records: Sequence[contents.Record]

    def holds(self, functions: Sequence[Function]) -> bool:
        """Whether everything is as it was."""
        now = self.around.operands(functions)
        same = now is not None and [*map(id, now)] == [*map(id, self.operands)]
        return same and self.version == gate.version and all(record.holds() for record in self.records)


class Family:
    """The calls of functions of one code by one transform. Once it is `over`, nothing is looked for any more."""

    def __init__(self, codes: Sequence[Any] = ()) -> None:
        self.codes = codes  # kept alive: families are found by their ids
        self.over = False
        self.is_valid = False  # whether the transform took a function of it
        self._kinds: dict[Key, list[Kind]] = {}
        self._counts: dict[Key, int] = {}
        self._traced: dict[Key, int] = {}
        self._misses = 0

    def leaves(self, functions: Sequence[Function], call: Call) -> tuple[Run, Sequence[Any]] | None:
        """The plan for a call, and what it takes; None where there is none."""
        for kind in self._kinds.get(call.key, ()):
            if kind.version != gate.version:
                continue
            operands = kind.around.operands(functions)
            if operands is not None and all(record.holds() for record in kind.records):
                self._misses = 0
                return kind.run, [*[operands[n] for n in kind.reads], *call.leaves]
        return None

    def is_due(self, key: Key) -> bool:
        """Count a call that found no plan; whether there have been enough."""
        with _lock:
            self._misses += 1
            if self._misses > often.misses or len(self._counts) > 16 * often.kinds:
                self.over = True
                return False
            self._counts[key] = self._counts.get(key, 0) + 1
            if self._counts[key] < often.calls or self._traced.get(key, 0) >= often.traced:
                return False
            self._traced[key] = self._traced.get(key, 0) + 1
            return True

    def before(self, functions: Sequence[Function], call: Call, has_numpys: bool) -> Before | None:
        """What functions stand among before they run; None where there is to be no plan.

        has_numpys: whether the functions see arrays of NumPy's among their arguments.
        """
        around = following.surroundings_of(functions) if contents.is_plain_tree(call.key.structure) else None
        operands = None if around is None else around.operands(functions)
        if around is None or operands is None:
            self.over = True
            return None
        if around.tells_kinds and has_numpys:
            return None
        return Before(around, operands, gate.version, contents.records_of(call.key.structure))

    def make(
        self, functions: Sequence[Function], call: Call, before: Before, trace: Callable[[], Traced | None],
        plan: Callable[[Traced, Callable[[Run], None]], Run],
    ) -> None:  # fmt: skip
        """Trace a call for later ones. plan: from a program of (captured..., operands..., leaves...), and what to do
        with a better one, to how it is run."""
        around, operands, version, records = before
        traced = trace() if before.holds(functions) else None  # which would write once more
        taken = _with_operands(traced, operands) if traced is not None and before.holds(functions) else None
        if taken is None:
            self.over = True  # it goes by values, or changes what it reads
            return
        traced, reads = taken

        def better(run: Run) -> None:
            with _lock:
                kinds = self._kinds[call.key]
                self._kinds[call.key] = [k._replace(run=run) if k.run is made.run else k for k in kinds]

        made = Kind(around, reads, plan(traced, better), version, records)
        with _lock:
            kinds = [k for k in self._kinds.get(call.key, ()) if k.version == version]
            self._kinds[call.key] = [made, *kinds][: often.kinds]


def _with_operands(traced: Traced, operands: Sequence[Array]) -> tuple[Traced, Sequence[int]] | None:
    """The program with operands in the place of captured arrays, and which it reads; None where it holds others."""
    if any(isinstance(value.holder, Array) for value in traced.values):
        return None  # tracing looked at numbers in one
    places = {id(x): n for n, x in enumerate(operands)}
    values = {id(x._value) for x in operands}
    count = len(traced.captured)
    constants: list[tuple[Any, Any]] = []
    taken: list[tuple[Any, int]] = []
    for variable, array in zip(traced.program.inputs[:count], traced.captured, strict=True):
        if not isinstance(array, Array):
            constants.append((variable, as_array(array)))  # a copy of what has the same bytes whenever it is run
        elif id(array) in places:
            taken.append((variable, places[id(array)]))
        elif array._owner == PROTECTED and id(array._value) not in values:
            constants.append((variable, array))  # made while it was traced
        else:
            return None
    inputs = (*(v for v, _ in constants), *(v for v, _ in taken), *traced.program.inputs[count:])
    program = replace(traced.program, inputs=inputs)
    captured = tuple(array for _, array in constants)
    types = tuple(v.type for v, _ in constants)
    whole = replace(traced, program=program, captured=captured, captured_types=types, guards=(), values=())
    return whole, [n for _, n in taken]


# Which functions are of one family

_made: OrderedDict[Hashable, int] = OrderedDict()
_families: OrderedDict[Hashable, Family] = OrderedDict()


def family_of(functions: Sequence[Any], how: Hashable) -> Family | None:
    """The family of functions that are made anew, and of methods; None for those that are not known to be such."""
    codes = tuple(map(_code, functions))
    if None in codes:
        return None
    key = (*map(id, codes), how)
    with _lock:
        found = _families.get(key)
        if found is not None:
            _families.move_to_end(key)
            return found
        count = _made[key] = _made.get(key, 0) + 1
        if len(_made) > often.families:
            _made.popitem(last=False)
        if count <= often.made and not any(type(function) is MethodType for function in functions):
            return None
        found = _families[key] = Family(codes)
        if len(_families) > often.families:
            _families.popitem(last=False)
        return found


def _code(function: Any) -> Any:
    """What methods and functions made anew have in common."""
    if type(function) is MethodType:
        function = function.__func__
    if type(function) is not FunctionType or is_ours(function.__code__):
        return None
    return function.__code__
