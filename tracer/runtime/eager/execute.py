"""Eager execution: outside any trace an operation runs at once, by a prepared call from a bounded cache.

Primitive, operand types and parameters alone choose the prepared call. It is the primitive's NumPy reference, a kernel
that serves every shape, or a compiled program of one equation. Kernels compute the elementwise functions whose compiled
bits differ from NumPy's. So an exponential has equal bits under `jit` and outside.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tracer.errors import InternalError
from tracer.ir import dtypes
from tracer.ir.primitive import Composite, Eager, Effect, Library, Pointwise, Primitive, Structured
from tracer.ir.program import Atom, Equation, Literal, Program, Source, Var, check_widths
from tracer.ir.scalar import MATH_FUNCTIONS
from tracer.ir.types import ArrayType, StackType, Type, storage_type, with_shape
from tracer.ir.visit import equations
from tracer.lazy import LazyModule
from tracer.primitives.base.reference import reference_of, reference_outputs
from tracer.runtime.eager.elementwise_kernels import kernel
from tracer.runtime.jit.specialization import Specialization
from tracer.runtime.jit.trace_call import Traced
from tracer.runtime.native.result_pool import release_kept
from tracer.runtime.system.beside import beside
from tracer.runtime.system.fork_safety import LARGE, apart_from_forks
from tracer.runtime.system.ignore_fp_warnings import again, quiet, quietly
from tracer.runtime.system.locks import ForkSafeLock
from tracer.runtime.values.wrapping import stored, wrapped
from tracer.settings import config, gate, overrides
from tracer.trace import trees
from tracer.trace.array import Array, concrete
from tracer.trace.prepared_program import literal_value
from tracer.trace.source import user_source
from tracer.trace.state import state
from tracer.trace.trace import Operand, check_sizes

if TYPE_CHECKING:
    from tracer.transforms import finite_checks
else:
    finite_checks = LazyModule("tracer.transforms.finite_checks")


class Prepared(NamedTuple):
    """Prepared call. The operands have the types, and literals the positions, of the prepared ones.

    call: from operands to outputs. one: from operands to the only output, None for a primitive with several. raw: from
    NumPy values to the output's value, or to a list of several, where NumPy does not warn. It is None for operations
    that run compiled programs or code of the user.
    """

    call: Callable[..., Sequence[Array]]
    one: Callable[..., Array] | None = None
    raw: Callable[..., Any] | None = None


_CAPACITY = 4096
_FUNCTIONS = frozenset(MATH_FUNCTIONS)


class _Plain(NamedTuple):
    """Inferred type of an output, with fields that tell whether NumPy's result can be wrapped without a copy."""

    type: Type
    dtype: np.dtype[Any] | None  # None for keys, stacks and float0
    shape: Any
    weak: bool
    scalar: Any  # the class of NumPy's scalars, for a type without axes


_library_outputs = apart_from_forks(reference_outputs)
_prepared: dict[Hashable, Prepared] = {}
_kernels: dict[Hashable, Callable[..., Array] | None] = {}
_compiled: dict[Hashable, Specialization] = {}
_lock = ForkSafeLock()


def execute(primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> Sequence[Array]:
    """Return the outputs of a primitive on concrete arrays and literals."""
    return prepared(primitive, operands, params).call(*operands)


def prepared(primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> Prepared:
    """Return the prepared call for operands of these types, from the cache if the parameters can be hashed.

    The key holds the types of an elementwise primitive's literals, and the values of other primitives' literals. It
    also holds the settings, which choose the vectors of kernels.
    """
    if type(primitive.lower) is Structured and not {Program, tuple}.isdisjoint(map(type, params.values())):
        return _prepare(primitive, operands, params)  # equal programs may have different lines, which faults name
    splat = primitive.splat
    kinds = [x.type if type(x) is Array else (x.type,) if splat else x for x in operands]
    key = (primitive, gate.epoch, overrides.token, *kinds, *params.items())
    try:
        found = _prepared.get(key)
    except TypeError:  # an unhashable parameter
        return _prepare(primitive, operands, params)
    if found is None:
        found = _prepare(primitive, operands, params)
        if len(_prepared) >= _CAPACITY:
            _prepared.clear()
        _prepared[key] = found
    return found


def _prepare(primitive: Primitive, samples: Sequence[Operand], params: Mapping[str, Any]) -> Prepared:
    """Return the prepared call. It raises NonFiniteError where it makes a NaN or infinity that the settings refuse."""
    found, nans, infs = _unchecked(primitive, samples, params), config.debug_nans, config.debug_infs
    if not nans and not infs:
        return found

    def call(*xs: Operand) -> Sequence[Array]:
        results = found.call(*xs)
        finite_checks.check_call(primitive, xs, results, nans=nans, infs=infs)
        return results

    return Prepared(call, None if found.one is None else lambda *xs: call(*xs)[0])


def _unchecked(primitive: Primitive, samples: Sequence[Operand], params: Mapping[str, Any]) -> Prepared:
    if primitive.splat:
        if _is_inexact(primitive, samples):
            return _by_kernel(primitive, samples, params)
    elif primitive.eager is Eager.COMPILED and not _holds_stacks(samples, params):
        return _by_program(primitive, params)
    plains, is_large = _outputs(primitive, samples, params), _is_large_call(primitive, samples)
    if primitive.effects_of(params) - {Effect.FAULT} or any(isinstance(value, Program) for value in params.values()):
        run = _library_outputs if is_large else reference_outputs
        return _without_raw(primitive, partial(_reentrant, run, primitive, params, plains))
    rule: Callable[..., Any] | None = None  # returns the value as it is kept
    if primitive.prepared is not None and not primitive.multiple:
        rule = primitive.prepared(*[x.type for x in samples], **params)
    reference: Callable[..., Any] = partial(reference_of(primitive), **params) if params else reference_of(primitive)
    reference = reference if rule is None else rule
    reference = _of_library(reference, samples) if is_large else reference
    if primitive.multiple:

        def raw(*values: Any) -> list[Any]:
            return [_stored(value, plain) for value, plain in zip(reference(*values), plains, strict=True)]

        def several(*xs: Operand) -> Sequence[Array]:
            values = quietly(reference, *map(_value, xs))
            return [
                concrete(_stored(x, plain), plain.weak, plain.type) for x, plain in zip(values, plains, strict=True)
            ]

        return Prepared(several, None, raw)
    exact = _storing(reference, plains[0]) if rule is None else reference
    return _of_one(_wrapping(exact, plains[0], all(type(x) is Array for x in samples), len(samples)), exact)


def _by_program(primitive: Primitive, params: Mapping[str, Any]) -> Prepared:
    return _without_raw(primitive, lambda *xs: _execute_compiled(primitive, xs, params))


def _without_raw(primitive: Primitive, call: Callable[..., Sequence[Array]]) -> Prepared:
    return Prepared(call, None if primitive.multiple else lambda *xs: call(*xs)[0])


def _of_one(one: Callable[..., Array], raw: Callable[..., Any]) -> Prepared:
    return Prepared(lambda *xs: (one(*xs),), one, raw)


def _storing(reference: Callable[..., Any], plain: _Plain) -> Callable[..., Any]:
    """Return the reference with its result as it is kept: of the type's dtype and shape, in C order."""

    def raw(*values: Any) -> Any:
        return _stored(reference(*values), plain)

    return raw


def _wrapping(raw: Callable[..., Any], plain: _Plain, are_arrays: bool, count: int) -> Callable[..., Array]:
    """Return the function from operands to an array. are_arrays: whether no operand is a literal."""
    type, weak = plain.type, plain.weak
    if are_arrays and count == 1:

        def one(x: Any) -> Array:
            try:
                value = quiet.run(raw, x._value)
            except RuntimeError as error:
                value = again(error, raw, x._value)
            return concrete(value, weak, type)

        return one
    if are_arrays and count == 2:

        def of_two(x: Any, y: Any) -> Array:
            try:
                value = quiet.run(raw, x._value, y._value)
            except RuntimeError as error:
                value = again(error, raw, x._value, y._value)
            return concrete(value, weak, type)

        return of_two
    return lambda *xs: concrete(quietly(raw, *map(_value, xs)), weak, type)


def _by_kernel(primitive: Primitive, samples: Sequence[Operand], params: Mapping[str, Any]) -> Prepared:
    loop = _kernel(primitive, samples, params)
    if loop is None:
        return _by_program(primitive, params)
    types: list[Any] = [x.type for x in samples]

    def raw(*values: Any) -> Any:
        given = [_scalar(v, t) if t.shape == () else concrete(v, t.weak, t) for v, t in zip(values, types, strict=True)]
        return loop(*given)._value

    if all(type(x) is Array for x in samples):
        if len(samples) == 1:
            (type_,) = types
            weak = type_.weak
            return _of_one(lambda x: _owned(loop(x)), lambda value: loop(concrete(value, weak, type_))._value)
        return _of_one(lambda *xs: _owned(loop(*xs)), raw)
    return _of_one(lambda *xs: _owned(loop(*[x if type(x) is Array else _scalar(x.value, x.type) for x in xs])), raw)


def _reentrant(
    run: Callable[..., Any], primitive: Primitive, params: Mapping[str, Any], plains: Sequence[_Plain], *xs: Operand
) -> list[Array]:
    """Run a reference that may call user code, which may execute operations in turn."""
    results = run(primitive, [_value(x) for x in xs], params)
    return [wrapped(value, plain.type) for value, plain in zip(results, plains, strict=True)]


def _is_large_call(primitive: Primitive, operands: Sequence[Operand]) -> bool:
    """Whether the operation calls a library with operands so large that the library may start threads."""
    return type(primitive.lower) is Library and any(type(x) is Array and x.size > LARGE for x in operands)


_LONG: Final = 1 << 20
"""Elements of an operand with which a library may take 50 ms and more."""


def _of_library(reference: Callable[..., Any], samples: Sequence[Operand]) -> Callable[..., Any]:
    """Return a reference that calls a library: apart from forks, and if it may take long, where Ctrl-C is heard."""
    apart = apart_from_forks(reference)
    return beside(apart) if any(type(x) is Array and x.size >= _LONG for x in samples) else apart


def _value(x: Operand) -> Any:
    return literal_value(x) if isinstance(x, Literal) else x._value


def _stored(value: Any, plain: _Plain) -> Any:
    """Return a reference's result as a NumPy array in C order, of the type's dtype and shape."""
    kind = value.__class__
    if kind is np.ndarray:
        if value.dtype is plain.dtype and value.flags.c_contiguous and value.shape == plain.shape:
            return value
    elif kind is plain.scalar:
        return np.asarray(value)
    return stored(value, plain.type)


def _outputs(primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> tuple[_Plain, ...]:
    types = output_types(primitive, operands, params)
    check_sizes(primitive, types)
    return tuple(_plain(type) for type in types)


def _plain(type: Type) -> _Plain:
    if isinstance(type, StackType) or storage_type(type) is not type:
        return _Plain(type, None, None, False, None)
    return _Plain(type, type.dtype, type.shape, type.weak, None if type.shape else type.dtype.type)


def output_types(primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> tuple[Type, ...]:
    """Return the output types for operands; scalar literals of `splat` primitives take the shape of the arrays.

    Raises the errors of `infer_types`.
    """
    types = [x.type for x in operands]
    if primitive.splat:
        shape = next((x.shape for x in operands if isinstance(x, Array)), ())
        types = [with_shape(x.type, shape) if isinstance(x, Literal) else x.type for x in operands]
    check_widths(primitive, types, params)
    result = primitive.infer(*types, **params)
    return tuple(result) if primitive.multiple else (result,)


# Kernels: one for each primitive, dtypes and parameters, for all shapes.


def _is_inexact(primitive: Primitive, operands: Sequence[Operand]) -> bool:
    """Whether compiled code may differ from the reference in bits: mathematical functions, complex arithmetic."""
    lower = primitive.lower
    if primitive.eager is Eager.COMPILED or (isinstance(lower, Pointwise) and lower.op in _FUNCTIONS):
        return True
    last = operands[-1].type
    if not (isinstance(lower, Pointwise | Composite) and isinstance(last, ArrayType) and dtypes.is_complex(last.dtype)):
        return False
    shapes = [x.shape for x in operands if isinstance(x, Array)]
    return all(shape == shapes[0] for shape in shapes)


def _owned(array: Array) -> Array:
    """Return a new array after making the innermost trace its owner, which may rebind the handle."""
    if gate.closed and state.innermost is not None:
        array._owner = state.innermost.serial
    return array


def _kernel(
    primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]
) -> Callable[..., Array] | None:
    """Return a compiled loop for arrays of any one shape; None where the operation needs more than one loop."""
    kinds = [(x._value.dtype, x._weak) if type(x) is Array else (x.type,) for x in operands]
    key = (primitive, config.key(), *params.items(), *kinds)
    if key in _kernels:
        return _kernels[key]
    output_types(primitive, operands, params)  # so that type errors name these operands, not the kernel's
    types = [with_shape(x.type, ()) for x in operands]
    scalars = [isinstance(x, Literal) for x in operands]

    made = kernel(primitive, params, types, scalars)
    if made is not None:
        made.trust_caller()
        made = made.entry(partial(_refused, primitive, params))
    with _lock:
        if len(_kernels) >= _CAPACITY:
            _kernels.clear()
        return _kernels.setdefault(key, made)


def _refused(primitive: Primitive, params: Mapping[str, Any], *operands: Any) -> Array:
    """Raise the type rule's error for operands that a kernel refuses, which are operands of unequal shapes."""
    output_types(primitive, operands, params)
    raise InternalError(f"the kernel of {primitive.name} refuses {', '.join(map(repr, operands))}")


def _scalar(value: Any, type: Any) -> Array:
    return concrete(np.asarray(value, type.dtype), type.weak, type)


# Compiled: one program for each primitive, operand types, literals and parameters.


def _execute_compiled(primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> list[Array]:
    return _specialization(primitive, operands, params).execute([x for x in operands if isinstance(x, Array)])


def _specialization(primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> Specialization:
    key = _key(primitive, operands, params)
    with _lock:
        found = _compiled.get(key)
    if found is None:
        program = single_equation(primitive, operands, params)
        if config.debug_nans or config.debug_infs:
            program = finite_checks.checked_program(program, nans=config.debug_nans, infs=config.debug_infs)
        made = Specialization(Traced(program, (), (), _structure(len(program.outputs)), ()))
        with _lock:
            if len(_compiled) >= _CAPACITY:
                _compiled.clear()
            found = _compiled.setdefault(key, made)
    return found


def _key(primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> Hashable:
    """Return the cache key of a compiled program, made of its digest where a parameter cannot be hashed."""
    kinds = [x.type if isinstance(x, Array) else x for x in operands]
    debugged = config.debug_nans or config.debug_infs
    settings = (config.vector_bits, config.debug_nans, config.debug_infs)
    sources = fault_sources(primitive, params, every=debugged)
    key = (primitive, *kinds, *params.items(), sources, settings)
    try:
        hash(key)
    except TypeError:
        return (single_equation(primitive, operands, params).digest, sources, settings)
    return key


def _structure(count: int) -> trees.Structure:
    return trees.flatten((0,) * count)[1]


def fault_sources(primitive: Primitive, params: Mapping[str, Any], *, every: bool = False) -> tuple[Source | None, ...]:
    """Return the source lines that the compiled program's faults name, which are a part of its cache key.

    every: whether all equations may fault, by checks that are added.
    """
    if not every and Effect.FAULT not in primitive.effects_of(params):
        return ()
    equation = Equation(primitive, (), params, ())
    nested = [inner for _, program in equation.nested() for inner in equations(program)]
    return (user_source(), *(e.source for e in nested if every or Effect.FAULT in e.effects))


def single_equation(primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> Program:
    """Return a program of one equation on the operands' types, with the literals in it."""
    atoms: list[Atom] = [x if isinstance(x, Literal) else Var(x.type) for x in operands]
    outputs = tuple(Var(type) for type in output_types(primitive, operands, params))
    equation = Equation(primitive, tuple(atoms), params, outputs, user_source())
    inputs = tuple(atom for atom in atoms if isinstance(atom, Var))
    return Program(inputs, (equation,), outputs, primitive.name)


def _holds_stacks(operands: Sequence[Operand], params: Mapping[str, Any]) -> bool:
    """Whether an operand or output is a run-time stack, which compiled programs neither take nor return."""
    if any(isinstance(x.type, StackType) for x in operands):
        return True
    programs = (value for value in params.values() if isinstance(value, Program))
    return any(isinstance(type, StackType) for program in programs for type in program.output_types)


def clear_caches() -> None:
    """Forget prepared calls, kernels and compiled programs, and free the memory kept for results."""
    with _lock:
        _prepared.clear()
        _kernels.clear()
        _compiled.clear()
    release_kept()
