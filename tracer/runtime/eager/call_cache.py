"""Cache of the library's own functions outside `jit`: each signature is prepared once, as a list of operations.

A signature is the types of arrays and the values of all other arguments. The first call with a signature stages the
function to find its operations. Every call, including the first, runs them by the prepared calls of `execute`. Users'
functions are not cached. Many operations on large arrays are compiled into one: their temporary arrays alone would take
longer than the compilation.

A function that reads elements, or returns more than arrays, cannot be staged: its calls run the function.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial
from math import prod
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numpy as np

from tracer.errors import DeviceError, InternalError, TracerError
from tracer.ir.primitive import Eager, Effect, Params, Rule
from tracer.ir.program import Equation, Literal, Program, Var
from tracer.ir.types import ArrayType, KeyType
from tracer.lazy import LazyModule
from tracer.primitives.control.calls import call_p
from tracer.runtime.values.fresh_handles import another, apart
from tracer.settings import gate, overrides
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.prepared_program import PreparedProgram, SplitOperation
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import default_trace
from tracer.trace.tracebacks import NO_OPTIONS, Options, boundary

if TYPE_CHECKING:
    from tracer.passes import dce
    from tracer.passes import inline as inlining
else:
    dce = LazyModule("tracer.passes.dce")
    inlining = LazyModule("tracer.passes.inline")

T = TypeVar("T", bound=type)
Function = Callable[..., Any]

_CAPACITY: Final = 512  # signatures of one function
_MANY: Final = 16  # operations
_LONG: Final = 1 << 23  # elements of all results: some 20 ms to write and to read
_STATIC = {int, bool, str, type(None), type(Ellipsis), type}
_KINDS: Final = (ArrayType, KeyType)


class UnknownArgumentError(Exception):
    """Error for an argument whose type signatures do not describe; the call runs the function."""


class Plan:
    """Prepared operations of one signature. Differentiated arguments run the staged program, with its custom rules.

    single: the prepared call of a plan with one operation, whose operands are the arguments in order; else None.
    recorded: that operation, if traces record it as it is; else None.
    """

    __slots__ = (
        "_constants", "_differentiated", "_is_leaf", "_passes", "_program", "_staged", "_structure", "recorded",
        "single",
    )  # fmt: skip

    def __init__(
        self, program: Program, staged: Program, constants: Sequence[Array], structure: trees.Structure
    ) -> None:
        self._program = prepared = PreparedProgram(program)
        self._staged = staged
        self._differentiated = prepared if program is staged else None
        self._constants = constants
        self._structure = structure
        inputs = list(range(len(program.inputs)))
        self._is_leaf = structure.is_leaf()
        self._passes = any(n < len(inputs) for n in prepared.results)  # an argument is a result
        alone = len(prepared.steps) == 1 and prepared.steps[0][1] == inputs and not constants
        is_one = self._is_leaf and prepared.results == [len(inputs)]
        self.single = prepared.steps[0][0].one if alone and is_one else None
        self.recorded = prepared.steps[0][0] if self.single is not None and program is staged else None

    def run(self, arrays: Sequence[Array]) -> Any:
        """Return the result for arguments of the signature."""
        program = self._program
        if self.recorded is not None:
            return self.recorded.on_traced(arrays)[0]
        for x in arrays:
            if x._trace is not None:
                if x._trace.is_device and state.staging is None:
                    for y in arrays:
                        x._trace.device.checked(self._program.program.name, y)
                program = self._differentiated or _differentiable(self._staged)
                self._differentiated = program
                break
        given = len(program.program.inputs)
        found = program.run([*self._constants, *arrays] if self._constants else arrays)
        if self._passes:
            found = [another(x) if n < given else x for n, x in zip(program.results, found, strict=True)]
        return found[0] if self._is_leaf else trees.unflatten(self._structure, found)


class Calls:
    """Function of the library with its plans by signature, None for a signature whose calls run the function."""

    def __init__(self, function: Function) -> None:
        self.function = function
        self.plans: dict[Hashable, Any] = {}
        self.epoch = gate.epoch

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        function = self.function
        if gate.closed and state.staging is not None:
            return apart(function(*args, **kwargs), args, kwargs)
        key: list[Any] = [overrides.token if gate.overridden else None]
        arrays: list[Any] = []
        try:
            for x in args:
                if x.__class__ is Array and x._type.__class__ is ArrayType:
                    key.append(x._type)
                    arrays.append(x)
                else:
                    describe(x, key, arrays)
            if kwargs:
                for name in sorted(kwargs):  # in the order of the program's inputs
                    key.append(name)
                    describe(kwargs[name], key, arrays)
            trace = default_trace(arrays) if gate.elsewhere else None
            if trace is not None:
                arrays = [trace.device.put(x) for x in arrays]
            signature = tuple(key)
            plan: Any = self.plans.get(signature, self) if self.epoch == gate.epoch else self
        except (UnknownArgumentError, TypeError):
            plan = None
        if plan is self:
            plan = self._prepared(signature, args, kwargs)
        if plan is not None and (arrays or trace is None):
            try:
                single = plan.single
                if single is None:
                    return plan.run(arrays)
                for x in arrays:
                    if x._trace is not None:
                        return plan.run(arrays)
                return single(*arrays)
            except (DeviceError, InternalError):
                raise
            except TracerError:  # the function names the operation that the user called
                pass
        return apart(function(*args, **kwargs), args, kwargs)

    def _prepared(self, signature: Hashable, args: Sequence[Any], kwargs: dict[str, Any]) -> Plan | None:
        if self.epoch != gate.epoch or len(self.plans) >= _CAPACITY:
            self.plans, self.epoch = {}, gate.epoch
        plan = self.plans[signature] = plan_of(self.function, args, kwargs)
        return plan


def describe(x: Any, key: list[Any], arrays: list[Any]) -> None:
    """Append an argument to the signature `key`, and its arrays to the operands `arrays`.

    Raises UnknownArgumentError for an argument that signatures do not describe.
    """
    kind = type(x)
    if kind is Array:
        type_ = x.type
        if type(type_) not in _KINDS:
            raise UnknownArgumentError
        key.append(type_)
        arrays.append(x)
    elif kind in _STATIC:
        key += (kind, x)
    elif kind is float or kind is complex:
        key += (kind, repr(x))  # 0.0 is not -0.0
    elif kind is np.ndarray:
        key += (kind, x.dtype, x.shape)
        arrays.append(as_array(x))
    elif kind is slice:
        key += (slice, x.start, x.stop, x.step)
        if not {type(x.start), type(x.stop), type(x.step)} <= {int, type(None)}:
            raise UnknownArgumentError
    elif kind is tuple or kind is list:
        key += (kind, len(x))
        for item in x:
            describe(item, key, arrays)
    elif isinstance(x, np.dtype):
        key += (np.dtype, x)
    else:
        raise UnknownArgumentError


def static(cls: T) -> T:
    """Let instances of a class be arguments of prepared calls, by hash and equality. A decorator."""
    _STATIC.add(cls)
    return cls


def plan_of(function: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> Plan | None:
    """Return the plan of a call; None where the function cannot be staged, or holds an equation without prepared call.

    Raises InternalError.
    """
    leaves, structure = trees.flatten((args, {name: kwargs[name] for name in sorted(kwargs)}))
    leaves = [as_array(leaf) if type(leaf) is np.ndarray else leaf for leaf in leaves]
    places = [n for n, leaf in enumerate(leaves) if type(leaf) is Array]
    found: list[trees.Structure] = []

    def flat(inputs: list[Array]) -> list[Any]:
        given = list(leaves)
        for place, x in zip(places, inputs, strict=True):
            given[place] = x
        positional, keywords = trees.unflatten(structure, given)
        outputs, shape = trees.flatten(function(*positional, **keywords))
        found.append(shape)
        if not all(type(y) is Array for y in outputs):
            raise UnknownArgumentError
        return outputs

    asked = state.asked
    try:
        staged = stage(flat, [leaves[place].type for place in places], name=getattr(function, "__name__", "call"))
    except InternalError:
        raise
    except (UnknownArgumentError, TracerError):
        return None  # the function itself raises the error
    except (TypeError, ValueError, IndexError, OverflowError) as error:
        handed_on(function, args, kwargs)  # raises the error of the values
        raise staging_error(function, error) from error
    program = _flat(staged.program)
    if state.asked != asked or any(x._trace is not None for x in staged.constants) or not _is_plain(program):
        return None
    if _is_long(program):
        program = _compiled(program)
    return Plan(program, staged.program, staged.constants, found[0])


def handed_on(function: Function, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
    """Call the function for its error. One raised by this line is about its arguments: see `tracebacks`."""
    function(*args, **kwargs)


def staging_error(function: Function, error: Exception) -> InternalError:
    """Return the error for a call that runs, but cannot be staged."""
    name = getattr(function, "__name__", "call")
    return InternalError(f"{name} runs with these arguments, but staging it raises {type(error).__name__}: {error}")


def _flat(program: Program) -> Program:
    """Return the program with calls inlined and without dead code. No pass is imported where it would do nothing."""
    read = {x for x in (*program.outputs, *(x for e in program.equations for x in e.inputs)) if isinstance(x, Var)}
    if not program.holds_programs and not any(read.isdisjoint(e.outputs) for e in program.equations):
        return program
    return dce.dce(inlining.inline(program))


def _differentiable(program: Program) -> PreparedProgram:
    """Prepare a program for differentiation. Custom rules of the library run once for a signature, not at each call."""
    prepared = PreparedProgram(program)
    for operation, _ in prepared.steps:
        if operation.primitive.split is not None:
            operation.split = partial(_split, operation.primitive.split, operation.params)
    return prepared


def _split(rule: Rule, params: Params, active: tuple[bool, ...]) -> SplitOperation | None:
    """Return the derivative as programs; None where an equation of the first has no prepared call."""
    found = rule(active, **params)
    if found is None:
        return None
    forward = _flat(found.forward)
    simple = all(map(_is_simple, forward.equations))
    return SplitOperation(PreparedProgram(forward), *found[1:]) if simple else None


def _is_long(program: Program) -> bool:
    """Whether to compile a program's operations into one."""
    sizes = (prod(y.type.shape) for e in program.equations for y in e.outputs if isinstance(y.type, ArrayType))
    return len(program.equations) >= _MANY and sum(sizes) >= _LONG


def _compiled(program: Program) -> Program:
    """Return a program of one equation that calls the program."""
    inputs = tuple(Var(x.type) for x in program.inputs)
    outputs = tuple(Var(type) for type in program.output_types)
    called = Equation(call_p, inputs, {"program": program, "inline": True}, outputs)
    return Program(inputs, (called,), outputs, program.name)


def _is_plain(program: Program) -> bool:
    """Whether every equation can be prepared by itself, and the outputs are distinct variables."""
    outputs = program.outputs
    distinct = bool(outputs) and len(set(outputs)) == len(outputs) and not any(isinstance(x, Literal) for x in outputs)
    return distinct and all(map(_is_simple, program.equations))


def _is_simple(equation: Equation) -> bool:
    """Whether an equation can be prepared by itself."""
    if equation.effects - {Effect.FAULT}:
        return False
    if equation.primitive.eager is not Eager.COMPILED and any(True for _ in equation.nested()):
        return False
    return all(isinstance(x.type, _KINDS) for x in (*equation.inputs, *equation.outputs))


def cached(function: Function, *, named: bool = True, options: Options = NO_OPTIONS) -> Function:
    """Return the function with prepared calls, as a boundary for tracebacks.

    Its operations must depend on the types of arrays and the values of its other arguments alone. The
    results are new handles. named, options: see `boundary`.
    """
    return boundary(function, named=named, options=options, run=Calls(function))
