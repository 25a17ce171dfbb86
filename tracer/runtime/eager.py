"""Eager execution: outside any trace a primitive runs at once, by its NumPy reference or a compiled program of its own.

Inferred types and compiled programs are kept by primitive, operand types and parameters.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tracer.ir.primitive import Eager, Effect, Primitive
from tracer.ir.program import Atom, Equation, Literal, Program, Source, Var
from tracer.ir.types import StackType, Type, storage_type, with_shape
from tracer.ir.visit import equations
from tracer.primitives.reference import reference_outputs
from tracer.runtime.locks import ForkSafeLock
from tracer.runtime.specialization import Specialization
from tracer.runtime.staging import Traced
from tracer.runtime.wrapping import wrapped
from tracer.trace import trees
from tracer.trace.array import Array, concrete
from tracer.trace.source import user_source
from tracer.trace.trace import Operand

_CAPACITY = 4096


class _Plain(NamedTuple):
    """What is known of an output before it is computed: enough to wrap NumPy's usual result without looking twice."""

    type: Type
    dtype: np.dtype[Any] | None  # None for what is no plain array
    weak: bool


_known: dict[Hashable, tuple[_Plain, ...]] = {}
_compiled: dict[Hashable, Specialization] = {}
_lock = ForkSafeLock()


def execute(primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> list[Array]:
    """The outputs of a primitive on concrete arrays and literals."""
    if primitive.eager is Eager.COMPILED and not _holds_stacks(operands, params):
        return _execute_compiled(primitive, operands, params)
    outputs = _outputs(primitive, operands, params)
    values = [np.asarray(x.value, x.type.dtype) if isinstance(x, Literal) else x._value for x in operands]
    results = reference_outputs(primitive, values, params)
    return [_wrapped(value, plain) for value, plain in zip(results, outputs, strict=True)]


def _wrapped(value: Any, plain: _Plain) -> Array:
    usual = type(value) is np.ndarray and value.dtype is plain.dtype and value.base is None
    if usual and value.flags.c_contiguous and value.shape == plain.type.shape:
        return concrete(value, plain.weak)
    return wrapped(value, plain.type)


def _outputs(
    primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]
) -> tuple[_Plain, ...]:
    """The inferred types, kept if the parameters can be hashed."""
    kinds = [x.type if type(x) is Array else (x.type,) for x in operands]  # a literal is another thing than an array
    key = (primitive, *kinds, *params.items()) if params else (primitive, *kinds)
    try:
        found = _known.get(key)
    except TypeError:
        return _inferred(primitive, operands, params)
    if found is None:
        if len(_known) >= _CAPACITY:
            _known.clear()
        found = _known[key] = _inferred(primitive, operands, params)
    return found


def _inferred(
    primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]
) -> tuple[_Plain, ...]:
    return tuple(_plain(type) for type in output_types(primitive, operands, params))


def _plain(type: Type) -> _Plain:
    if isinstance(type, StackType) or storage_type(type) is not type:
        return _Plain(type, None, False)
    return _Plain(type, type.dtype, type.weak)


def output_types(
    primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]
) -> tuple[Type, ...]:
    """As `infer_types`, for operands: scalar literals of `splat` primitives take the shape of the arrays."""
    types = [x.type for x in operands]
    if primitive.splat:
        shape = next((x.shape for x in operands if isinstance(x, Array)), ())
        types = [with_shape(x.type, shape) if isinstance(x, Literal) else x.type for x in operands]
    result = primitive.infer(*types, **params)
    return tuple(result) if primitive.multiple else (result,)


# Compiled: one program for each primitive, operand types, literals and parameters.


def _execute_compiled(
    primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]
) -> list[Array]:
    arrays = [x for x in operands if isinstance(x, Array)]
    key = _key(primitive, operands, params)
    with _lock:
        found = _compiled.get(key)
    if found is None:
        program = single_equation(primitive, operands, params)
        made = Specialization(Traced(program, (), (), _structure(len(program.outputs))))
        with _lock:
            if len(_compiled) >= _CAPACITY:
                _compiled.clear()
            found = _compiled.setdefault(key, made)
    return found.execute(arrays)


def _key(primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> Hashable:
    """What the compiled program depends on; its digest where a parameter cannot be hashed."""
    kinds = [x.type if isinstance(x, Array) else x for x in operands]
    sources = fault_sources(primitive, params)
    key = (primitive, *kinds, *params.items(), sources)
    try:
        hash(key)
    except TypeError:
        return (single_equation(primitive, operands, params).digest, sources)
    return key


def _structure(count: int) -> trees.Structure:
    return trees.flatten((0,) * count)[1]


def fault_sources(primitive: Primitive, params: Mapping[str, Any]) -> tuple[Source | None, ...]:
    """The lines that errors of the compiled program would name: programs equal but for them are not the same here."""
    if Effect.FAULT not in primitive.effects_of(params):
        return ()
    equation = Equation(primitive, (), params, ())
    nested = [inner for _, program in equation.nested() for inner in equations(program)]
    return (user_source(), *(e.source for e in nested if Effect.FAULT in e.effects))


def single_equation(primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any]) -> Program:
    """A program of one equation on the operands' types; literals are written in it."""
    atoms: list[Atom] = [x if isinstance(x, Literal) else Var(x.type) for x in operands]
    outputs = tuple(Var(type) for type in output_types(primitive, operands, params))
    equation = Equation(primitive, tuple(atoms), params, outputs, user_source())
    inputs = tuple(atom for atom in atoms if isinstance(atom, Var))
    return Program(inputs, (equation,), outputs, primitive.name)


def _holds_stacks(operands: Sequence[Operand], params: Mapping[str, Any]) -> bool:
    """Whether a run-time stack goes in or comes out: compiled programs keep theirs to themselves."""
    if any(isinstance(x.type, StackType) for x in operands):
        return True
    programs = (value for value in params.values() if isinstance(value, Program))
    return any(isinstance(type, StackType) for program in programs for type in program.output_types)


def clear_caches() -> None:
    """Forget inferred types and compiled programs."""
    with _lock:
        _known.clear()
        _compiled.clear()
