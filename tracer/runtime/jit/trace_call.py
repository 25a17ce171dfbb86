"""Tracing of a Python function on a call's arguments into a program."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.ir.program import Program
from tracer.ir.types import Type
from tracer.lazy import LazyModule
from tracer.runtime.guards.guard_discovery import guards_of
from tracer.runtime.guards.guards import Captured, Guard, ValueGuard, type_of
from tracer.runtime.guards.numpy_reads import NumpyReads
from tracer.runtime.jit.signature import Call, Static, signature
from tracer.runtime.system.gc_pause import collector_paused
from tracer.runtime.system.spans import working
from tracer.runtime.values.shape_dtype_struct import abstract
from tracer.settings import config
from tracer.trace import trees
from tracer.trace.array import Array, is_recorded
from tracer.trace.captured_values import Operand, recording
from tracer.trace.source import user_source
from tracer.trace.stage import stage
from tracer.trace.state import named_axis, state
from tracer.trace.tracebacks import boundary, call_user
from tracer.transforms.functions import as_outputs, check_callable, name_of

if TYPE_CHECKING:
    from tracer.transforms import finite_checks
else:
    finite_checks = LazyModule("tracer.transforms.finite_checks")


@dataclass(frozen=True, slots=True, eq=False)
class Traced:
    """Function traced for some types: its program of (captured..., leaves...), and the structure of its result.

    captured: the arrays from outside that every run reads, an `Array` through its handle. guards, values: names and
    values that tracing read, which must be unchanged. notes: texts for `explain`. operands: the captured NumPy arrays,
    with the user's instructions that read them.
    """

    program: Program
    captured: tuple[Captured, ...]
    captured_types: tuple[Type, ...]
    structure: trees.Structure
    guards: tuple[Guard, ...]
    values: tuple[ValueGuard, ...] = ()
    notes: tuple[str, ...] = ()
    operands: tuple[Operand, ...] = ()

    def inputs_of(self, leaves: Iterable[int]) -> list[int]:
        """Return the indices of the program's inputs for indices of leaves."""
        return [len(self.captured) + number for number in leaves]

    @property
    def is_closed(self) -> bool:
        """Whether it may be cached: it reads no traced array."""
        return not any(map(_is_open, self.captured))

    @property
    def captured_names(self) -> list[str]:
        """Names of the captured arrays in errors."""
        return [f"a captured array {type}" for type in self.captured_types]

    @property
    def is_on_device(self) -> bool:
        """Whether it reads an array that lies on a device."""
        return any(isinstance(array, Array) and array._trace is not None for array in self.captured)

    @property
    def is_valid(self) -> bool:
        """Whether captured arrays have the types that they were traced with, and all guards hold."""
        types = zip(self.captured, self.captured_types, strict=True)
        arrays = self.is_closed and all(type_of(array) == type for array, type in types)
        return arrays and all(g.holds() for g in self.guards) and all(v.holds() for v in self.values)

    def changes(self) -> list[str]:
        """Return texts that describe the changes since tracing."""
        found = [(type, type_of(a), _is_open(a)) for a, type in zip(self.captured, self.captured_types, strict=True)]
        arrays = [
            f"a captured array: {before} -> {now}{', traced' * is_open}"
            for before, now, is_open in found
            if is_open or before != now
        ]
        names = [guard.change() for guard in self.guards if not guard.holds()]
        return [*arrays, *names, *(value.change() for value in self.values if not value.holds())]


def _is_open(array: Captured) -> bool:
    """Whether an array belongs to a trace."""
    return isinstance(array, Array) and is_recorded(array)


def trace_call(function: Callable[..., Any], call: Call, name: str, caller: str = "jit") -> Traced:
    """Run the function on traced arguments of the call's types. caller: names the transform in errors."""
    structures: list[trees.Structure] = []
    key = call.key

    def flat(inputs: list[Array]) -> list[Any]:
        traced_args, traced_kwargs = trees.unflatten(key.structure, inputs)
        args, kwargs = with_statics(traced_args, traced_kwargs, key.statics)
        outputs, structure = as_outputs(call_user(function, args, kwargs), f"{caller} of {name}")
        structures.append(structure)
        return outputs

    guards = guards_of(function)
    reads = NumpyReads.before(guards)
    nans, infs = config.debug_nans, config.debug_infs
    with recording() as outside, collector_paused(), _unchecked(nans or infs), working("trace", name, user_source()):
        program, constants = stage(flat, key.types, name=name, protected=True)
        if nans or infs:
            program = finite_checks.checked_program(
                program, nans=nans, infs=infs, keep_rules=state.innermost is not None
            )
    captured = tuple(outside.captured(constants))
    types = tuple(array.type for array in constants)
    kept = tuple(guard for guard in guards if guard.holds())  # drops names that the function itself rebinds: counters
    reads.warn_of_random(name)
    values = tuple(map(ValueGuard, (*outside.seen(), *reads.seen(outside))))
    return Traced(program, captured, types, structures[-1], kept, values, reads.notes(outside), outside.operands())


def _unchecked(on: bool) -> AbstractContextManager[None]:
    """Turn the checks of nested calls off while a program that gets checks itself is traced."""
    return config.using(debug_nans=False, debug_infs=False) if on else nullcontext()


def with_statics(
    args: tuple[Any, ...], kwargs: dict[str, Any], statics: tuple[Static, ...]
) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments as the function takes them, with the static ones."""
    positional, keywords = list(args), dict(kwargs)
    for static in statics:  # positions ascend
        if isinstance(static.place, int):
            positional.insert(static.place, static.value)
        else:
            keywords[static.place] = static.value
    return positional, keywords


def make_program(
    fun: Callable[..., Any], static_argnums: int | Sequence[int] = (),
    axis_env: Sequence[tuple[object, int]] | None = None, return_shape: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """Return a function of fun's arguments that returns the program of `fun`. Captured arrays are its first inputs.

    Arguments may be `ShapeDtypeStruct`. static_argnums: the arguments that are Python values. axis_env: names and sizes
    of batch axes that `fun` may use. return_shape: return (program, result of `eval_shape`).

    >>> print(tracer.make_program(lambda x: x * 2.0)(tracer.ShapeDtypeStruct((3,), "float32")))  # doctest: +ELLIPSIS
    lambda(%a: f32[3]) -> f32[3] {
    ...
    """
    check_callable(fun, "make_program")
    name = name_of(fun)
    options = signature(fun, name, (static_argnums, ()), ((), ()), "make_program")

    @boundary
    def program(*args: Any, **kwargs: Any) -> Any:
        with ExitStack() as axes:
            for axis, size in axis_env or ():
                axes.enter_context(named_axis(axis, size))
            traced = trace_call(fun, options.sort(args, kwargs), name, "make_program")
        return (traced.program, shapes(traced)) if return_shape else traced.program

    return program


def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Return the result of `fun(*args, **kwargs)` with a `ShapeDtypeStruct` for every array, without computing it.

    fun: takes and returns trees of arrays. args, kwargs: arrays, or objects with `shape` and `dtype`.

    >>> tracer.eval_shape(lambda x: x @ x.T, tracer.ShapeDtypeStruct((3, 4), "float64"))
    ShapeDtypeStruct(f64[3,3])
    """
    check_callable(fun, "eval_shape")
    name = name_of(fun)
    options = signature(fun, name, ((), ()), ((), ()), "eval_shape")
    return shapes(trace_call(fun, options.sort(args, kwargs), name, "eval_shape"))


def shapes(traced: Traced) -> Any:
    """Return the result of a traced function with a `ShapeDtypeStruct` for every array."""
    return trees.unflatten(traced.structure, [abstract(type) for type in traced.program.output_types])
