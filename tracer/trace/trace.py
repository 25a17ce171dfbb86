"""The trace, which takes the operations of a function being traced, and `bind`, which sends them there.

All traces have one class, and so have all traced arrays. Traces differ in their `process`:

- staging (`stage`), under jit, vmap and in bodies of control flow: every operation becomes an equation, also one on
  concrete operands. Its arrays have no values.
- define-by-run (`tracer.transforms.run`): operations on the trace's own arrays run at once at the enclosing level.
  They are recorded on a tape, or push tangents forward.
- linear (`tracer.transforms.linearize`): operations on tangents are recorded without values.

Traces nest by level. An operation belongs to the deepest trace among its operands' and the innermost staging trace.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, MutableMapping, Sequence
from typing import Any, Final, NamedTuple

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, StorageDTypeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import Primitive
from tracer.ir.program import Atom, Equation, Literal, Program, Source, Var, infer_types
from tracer.ir.types import ArrayType, Type, array_type
from tracer.settings import config, gate
from tracer.trace.array import FOLLOWS, PROTECTED, Array, described, fixed, is_recorded, is_unplaced, leak, traced
from tracer.trace.custom_rule_scope import check_enclosed, closure_error
from tracer.trace.source import assigned_name, place, user_source
from tracer.trace.state import state

Operand = Array | Literal
Run = Callable[[Primitive, Sequence[Operand], Mapping[str, Any]], Sequence[Array]]
Process = Callable[["Trace", Primitive, Sequence[Operand], Mapping[str, Any], "Source | None"], list[Array]]

_serials = itertools.count(1)


def new_serial() -> int:
    """Return an integer above the serials of all earlier traces and below the serials of all later ones."""
    return next(_serials)


class Origin(NamedTuple):
    """Operation that made a value, with its operands and all its results."""

    primitive: Primitive
    operands: Sequence[Operand]
    params: Mapping[str, Any]
    source: Source | None
    results: Sequence[Array]


class Trace:
    """Record of one function being traced. It closes when the function returns, and its arrays are dead from then."""

    __slots__ = (
        "constants", "data", "equations", "inputs", "is_open", "level", "lifted", "name", "origins", "process",
        "record_prepared", "serial", "source", "sources", "thread",
    )  # fmt: skip

    def __init__(self, process: Process, name: str) -> None:
        outer = state.innermost
        self.process = process
        self.record_prepared: Any = None  # as `process`, for an `Operation` that is prepared
        self.name = name
        self.level: int = 1 if outer is None else outer.level + 1
        self.serial = new_serial()
        self.source = user_source(4)  # by way of `open_trace`, which this package calls
        self.sources: MutableMapping[Var, Source | None] = {}  # of variables without an equation in this trace
        self.origins: dict[Var, Origin] = {}  # of stacks without an equation in this trace
        self.inputs: list[Var] = []
        self.equations: list[Equation] = []
        self.constants: list[tuple[Var, Array]] = []
        self.lifted: dict[int, Var] = {}  # by id of the handle or the value, which `constants` keeps alive
        self.data: Any = None  # for `process`: the tape of reverse mode
        self.is_open = True
        self.thread = state.thread

    is_device = False
    device: Any  # of a `DeviceTrace`

    @property
    def is_here(self) -> bool:
        """Whether the trace is open, and takes operations on this thread."""
        return self.is_open and self.thread == state.thread

    @property
    def main(self) -> Trace:
        """The trace itself: libraries written for JAX compare this attribute of traces."""
        return self

    def new_input(self, type: Type, value: Array | None = None, *, protected: bool = False) -> Array:
        """Return a handle on a new input variable. protected: whether the traced function may not rebind it."""
        variable = Var(type)
        self.inputs.append(variable)
        return traced(self, variable, value, PROTECTED if protected else self.serial)

    def atom(self, operand: Operand) -> Atom:
        """Return the operand's variable or literal in this trace; an array from outside becomes a constant."""
        if isinstance(operand, Literal):
            return operand
        if operand._trace is self:
            assert operand._atom is not None
            return operand._atom
        return self.lift(operand)

    def lift(self, array: Array) -> Atom:
        """Return the variable for an array from outside this trace, and add the array to the trace's constants.

        The traced function may rebind a handle made since this trace opened, so the constant holds its present value.
        """
        by_value = array._owner >= self.serial or array._owner == PROTECTED
        key = id(array) if not by_value else id(array._atom if is_recorded(array) else array._value)
        variable = self.lifted.get(key)
        if variable is None:
            stand_in = state.stand_ins.get(id(array))
            if stand_in is not None and stand_in is not array:
                return self.atom(stand_in)
            check_alive(array)
            if state.enclosure is not None and array._trace is not None:
                check_enclosed(array._trace, [array])
            variable = self.lifted[key] = Var(array.type)
            constant = fixed(array) if by_value else array
            if array._trace is None and array._owner >= self.serial:
                constant._atom = FOLLOWS  # the traced function made it
            self.constants.append((variable, constant))
        return variable

    def emit(
        self, primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any], source: Source | None
    ) -> list[Array]:
        """Record an equation, and return handles on its outputs."""
        inputs = tuple(map(self.atom, operands))
        types = infer_types(primitive, inputs, params)
        check_sizes(primitive, types)
        outputs = tuple(map(Var, types))
        self.equations.append(Equation(primitive, inputs, params, outputs, source))
        return [traced(self, variable) for variable in outputs]

    def origin(self, array: Array) -> str:
        """Return a text that says where a traced array comes from: `made at demo.py:3`."""
        atom = array._atom
        if atom in self.inputs:
            return f"an argument of `{self.name}`" + (f" called at {self.source}" if self.source else "")
        found = next((e.source for e in reversed(self.equations) if atom in e.outputs), self.source)
        return f"made{place(self.sources.get(atom, found) if atom is not None else found)}"

    def variable_name(self, array: Array) -> str:
        """Return "`y` " for an array that the user's source line assigns to y, and "" for every other array."""
        atom = array._atom
        made = [(v, e.source) for e in self.equations for v in e.outputs] or list(self.sources.items())
        source = next((s for v, s in made if v is atom), None)
        if source is None or [v for v, s in made if s == source][-1] is not atom:
            return ""  # an intermediate value of the source line, or an argument
        name = assigned_name(source)
        return f"`{name}` " if name else ""

    def program(self, outputs: Sequence[Operand]) -> Program:
        """Return the recorded equations as a program of (constants..., inputs...)."""
        atoms = tuple(map(self.atom, outputs))
        constants = tuple(variable for variable, _ in self.constants)
        return Program(constants + tuple(self.inputs), tuple(self.equations), atoms, self.name)


def check_sizes(primitive: Primitive, types: Sequence[Type]) -> None:
    """Raise ShapeError for a result that no memory can hold: of 2**63 bytes, or of more than 64 axes."""
    for type in types:
        if isinstance(type, ArrayType):
            count = type.dtype.itemsize
            for n in type.shape:
                count *= n or 1  # NumPy refuses large sizes beside 0, too
            if count >= _BYTES or len(type.shape) > _AXES:
                raise ShapeError(
                    message(
                        f"{primitive.name}{place(user_source())}: the result is too large",
                        f"got {type}, for less than 2**63 bytes and at most {_AXES} axes",
                        help="compute parts of it, or reduce before broadcasting",
                    )
                )


_BYTES: Final = 1 << 63
_AXES: Final = 64  # of NumPy's arrays


def stage_process(
    trace: Trace, primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any], source: Source | None
) -> list[Array]:
    return trace.emit(primitive, operands, params, source)


class open_trace:  # noqa: N801  # used like a function; a generator would take longer than an operation
    """Open a trace on this thread for the length of a `with` block."""

    __slots__ = ("outer", "staging", "trace")

    def __init__(self, process: Process, name: str, *, staging: bool) -> None:
        self.trace = Trace(process, name)
        self.staging = staging

    def __enter__(self) -> Trace:
        self.outer = state.staging, state.innermost
        gate.close()
        state.innermost = self.trace
        if self.staging:
            state.staging = self.trace
        return self.trace

    def __exit__(self, *_: object) -> None:
        state.staging, state.innermost = self.outer
        gate.open()
        self.trace.is_open = False


def check_alive(array: Array) -> None:
    """Raise if the array's trace is over, or runs on another thread."""
    trace = array._trace
    if trace is None or trace.is_here:
        return
    if state.enclosure is not None:
        raise closure_error(state.enclosure.caller, described(array))
    raise leak(array, trace)


# Eager execution: one slot, filled by `tracer/__init__`; see `tracer.runtime.eager.execute`.


class EagerSlot:
    """Functions that run a primitive outside any trace.

    execute: returns the outputs. prepare: returns the prepared call for operands of these types. widened: returns the
    outputs for operands of narrow storage dtypes, computed in wide ones by the function given first. copied: returns
    a NumPy array as a native C-contiguous copy. quietly: calls a function where NumPy does not warn. trace_named:
    returns the trace of a device.
    """

    __slots__ = ("copied", "execute", "prepare", "quietly", "trace_named", "widened")

    def __init__(self) -> None:
        self.execute: Run = _not_installed
        self.prepare: Callable[..., Any] = _not_installed  # a `Prepared` of `tracer.runtime.eager.execute`
        self.quietly: Callable[..., Any] = _not_installed
        self.widened: Callable[[Run, Primitive, Sequence[Operand], Mapping[str, Any]], list[Array]] = _not_installed
        self.copied: Callable[[np.ndarray[Any, Any], dtypes.DType], np.ndarray[Any, Any]] = _not_installed
        self.trace_named: Callable[[str], Trace] = _not_installed


def _not_installed(*_: Any) -> Any:
    raise RuntimeError("tracer/__init__ has not installed the eager executor")


eager = EagerSlot()


def bind_all(primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> list[Array]:
    """Return all outputs of an operation, recorded by the trace that it belongs to, or run outside all traces."""
    trace = state.staging
    level = -1 if trace is None else trace.level  # a device's is 0
    is_new = True
    for operand in operands:
        if type(operand) is Array:
            is_new = False
            own = operand._trace
            if own is not None:
                if not own.is_open:
                    return bind_all(primitive, [stood_in(x) for x in operands], params)
                if own.level > level:
                    check_alive(operand)
                    trace, level = own, own.level
    if trace is None and gate.elsewhere:
        trace = default_trace(operands)
    try:
        if trace is None:
            results = list(eager.execute(primitive, operands, params))
            if is_new:
                for x in results:
                    x._atom = FOLLOWS
            return results
        return trace.process(trace, primitive, operands, params, user_source())
    except StorageDTypeError:
        pass  # leaves the handler, so that later errors have no context
    except AttributeError:
        check_operands(primitive, operands)
        raise
    return eager.widened(bind_all, primitive, operands, params)


def default_trace(operands: Sequence[Operand]) -> Trace | None:
    """Return the trace of the default device, which takes operations on arrays of no device, None for the CPU's."""
    name = config.default_device if gate.elsewhere else "cpu"
    if name == "cpu" or state.staging is not None or any(isinstance(x, Array) and not is_unplaced(x) for x in operands):
        return None
    return eager.trace_named(name)


def check_operands(primitive: Primitive, operands: Sequence[Any]) -> None:
    """Raise ArgumentError for an operand that is neither an array nor a literal."""
    for operand in operands:
        if not isinstance(operand, Array | Literal):
            got = "None" if operand is None else f"{type(operand).__name__}: {repr(operand)[:60]}"
            raise ArgumentError(
                message(
                    f"{primitive.name}{place(user_source())} takes arrays",
                    f"got {got}",
                    help="make one of it: tracer.numpy.asarray",
                )
            ) from None


def stood_in(operand: Operand) -> Operand:
    """Return the operand, or the array that stands in for it while a custom rule runs.

    Raises LeakedTracerError for an array whose trace is over and that has no stand-in.
    """
    found: Operand = state.stand_ins.get(id(operand), operand)
    if isinstance(found, Array):
        check_alive(found)
    return found


def execute(primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> list[Array]:
    """Run an operation on concrete operands at once, under every trace."""
    try:
        return list(eager.execute(primitive, operands, params))
    except StorageDTypeError:
        pass
    return eager.widened(execute, primitive, operands, params)


def bind(primitive: Primitive, *operands: Operand, **params: Any) -> Array:
    """Return the output of a primitive with one output; see `bind_all`."""
    return bind_all(primitive, operands, params)[0]


def as_literal(value: bool | int | float | complex | np.generic, dtype: np.dtype[Any] | None = None) -> Literal:
    """Return a Python or NumPy scalar as a literal; a Python scalar's is weak unless a dtype is given.

    Raises DTypeError for a Python scalar that the dtype cannot hold: a fraction as an integer, 300 as u8.
    """
    from_python = not isinstance(value, np.generic)
    if dtype is None:
        weak = from_python and not isinstance(value, bool)
        found = np.asarray(value).dtype
        return Literal(np.asarray(value, found)[()], _scalar_type(found, weak))
    if from_python and not _holds(dtype, value):
        raise DTypeError(
            message(
                f"{value!r}{place(user_source())} does not fit among {dtypes.short_name(dtype)}",
                help="cast the array, as with .astype(float), or write a number of its kind",
            )
        )
    scalar = np.asarray(value, dtype) if from_python else np.asarray(value).astype(dtype)
    return Literal(scalar[()], _scalar_type(dtype, False))


def _holds(dtype: np.dtype[Any], value: Any) -> bool:
    """Whether the dtype can hold a Python scalar."""
    if isinstance(value, bool):
        return True
    if isinstance(value, int):
        if not dtypes.is_integer(dtype):
            return not dtypes.is_bool(dtype) or value in (0, 1)
        limits = dtypes.iinfo(dtype)
        return int(limits.min) <= value <= int(limits.max)
    return dtypes.is_complex(dtype) or (isinstance(value, float) and dtypes.is_float(dtype))


def _scalar_type(dtype: np.dtype[Any], weak: bool) -> ArrayType:
    if dtype not in dtypes.SHORT_NAMES:
        problem = (
            "an integer does not fit in 64 bits" if dtype.kind == "O" else f"scalars of dtype {dtype} are not supported"
        )
        raise DTypeError(
            message(f"{problem}{place(user_source())}", help="give a number: bool, integer, float or complex")
        )
    return array_type(dtype, (), weak)
