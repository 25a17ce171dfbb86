"""Elementwise functions outside `jit`: prepared calls on arrays and scalars.

A scalar beside an array takes on the array's dtype, and becomes a literal of the call's only operation. So `x * 2.0`
and `x * 3.0` have one signature. All other calls go through `call_cache`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, Final, NamedTuple, TypeVar, cast

import numpy as np

from tracer.errors import DeviceError, InternalError, TracerError
from tracer.ir import dtypes
from tracer.ir.program import Literal
from tracer.ir.types import ArrayType
from tracer.runtime.eager.call_cache import Calls, handed_on, staging_error
from tracer.runtime.eager.execute import prepared
from tracer.runtime.system.ignore_fp_warnings import quietly
from tracer.settings import gate, overrides
from tracer.trace.array import Array, concrete, unplaced
from tracer.trace.prepared_program import Operation
from tracer.trace.stage import stage
from tracer.trace.state import state

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)

_SCALARS: Final = frozenset(dtype.type for dtype in dtypes.OF_NUMPY)
_NUMBERS: Final = _SCALARS | {int, float, complex, bool}
_EXACT: Final = 1 << 53  # integers up to here are exact in f64, so the order of conversions does not matter
_CAPACITY: Final = 512


class _Beside(NamedTuple):
    """One operation on arrays and scalars.

    literals: the types of the scalars, None for arrays. makers: functions from Python's and NumPy's scalars to scalars
    of the literals' dtypes. type: of the result.
    """

    operation: Operation
    literals: tuple[ArrayType | None, ...]
    makers: tuple[Callable[[Any], Any] | None, ...]
    type: Any

    def call(self, operands: Sequence[Any], traced: bool) -> Any:
        """Return the result. Raises OverflowError where an integer is not exact in the literal's dtype."""
        operation, literals, makers, type = self
        raw = operation.raw
        if raw is not None and not traced:
            values = [x._value if make is None else make(x) for x, make in zip(operands, makers)]  # noqa: B905
            return concrete(quietly(raw, *values), type.weak, type)
        given = [x if t is None else _literal(x, t) for x, t in zip(operands, literals, strict=True)]
        return operation.on_traced(given)[0] if traced else operation.call(*given)[0]


def _literal(x: Any, type: ArrayType) -> Literal:
    return Literal(_maker(x.__class__, type)(x), type)


def _maker(kind: type, type: ArrayType) -> Callable[[Any], Any]:
    """Return the function from scalars of a kind to scalars of the dtype."""
    return _exact(type.dtype.type) if kind is int and not dtypes.is_integer(type.dtype) else type.dtype.type


def _exact(make: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Return the function, made to raise OverflowError for integers that may be rounded."""

    def exact(x: int) -> Any:
        if not -_EXACT <= x <= _EXACT:
            raise OverflowError
        return make(x)

    return exact


class Elementwise(Calls):
    """Elementwise function of arrays and scalars, with its prepared calls by signature."""

    def __call__(self, *operands: Any, **options: Any) -> Any:
        is_plain = not gate.closed or (state.staging is None and overrides.token is None)
        if options or not is_plain or self.epoch != gate.epoch:
            return super().__call__(*operands, **options)
        key: list[Any] = []
        traced = numbers = False
        for x in operands:
            kind = x.__class__
            if kind is Array:
                key.append(x._type or x.type)
                traced = traced or x._trace is not None
            elif kind in _NUMBERS:
                key.append(kind)
                numbers = True
            else:
                return super().__call__(*operands)
        signature = tuple(key)
        plan = self.plans.get(signature, self)
        if plan is self:
            plan = self._made(signature, operands) if numbers else self._prepared(signature, operands, {})
        try:
            if plan.__class__ is _Beside:
                return plan.call(operands, traced)
            if plan is not None:
                if traced:
                    operation = plan.recorded
                    return plan.run(operands) if operation is None else operation.on_traced(operands)[0]
                single = plan.single
                return plan.run(operands) if single is None else single(*operands)
        except (DeviceError, InternalError):
            raise
        except (TracerError, OverflowError):  # the function names the operation that the user called
            numbers = False
        if not numbers:
            return self.function(*operands)
        # NumPy scalars have dtypes of their own, as arrays without axes
        return super().__call__(*[unplaced(np.array(x)) if type(x) in _SCALARS else x for x in operands])

    def _made(self, signature: Any, operands: Sequence[Any]) -> _Beside | None:
        if len(self.plans) >= _CAPACITY:
            self.plans = {}
        plan = self.plans[signature] = _beside(self.function, operands)
        return plan


def _beside(function: Function, values: Sequence[Any]) -> _Beside | None:
    """Return the call's only operation, on the arrays themselves and literals; None where there is more to do."""
    places = [n for n, x in enumerate(values) if type(x) is Array]

    def flat(inputs: list[Array]) -> list[Any]:
        given = list(values)
        for place, x in zip(places, inputs, strict=True):
            given[place] = x
        return [function(*given)]

    if not places:
        return None
    try:
        staged = stage(flat, [values[place].type for place in places])
    except InternalError:
        raise
    except TracerError:
        return None
    except (TypeError, ValueError, OverflowError) as error:
        handed_on(function, values, {})  # raises the error of the values
        raise staging_error(function, error) from error
    program = staged.program
    if len(program.equations) != 1 or staged.constants or program.outputs != program.equations[0].outputs:
        return None
    (equation,) = program.equations
    given = iter(program.inputs)
    expected = [next(given) if type(x) is Array else None for x in values]
    if len(equation.inputs) != len(values) or not equation.primitive.splat:
        return None
    for x, atom, variable in zip(values, equation.inputs, expected, strict=True):
        if variable is atom:
            continue
        if variable is not None or not isinstance(atom, Literal):
            return None
        try:
            if _literal(x, atom.type) != atom:  # made of the number, not the number itself
                return None
        except OverflowError:
            return None
    operands: list[Any] = [x if type(x) is Array else atom for x, atom in zip(values, equation.inputs, strict=True)]
    operation = Operation(equation.primitive, equation.params, prepared(equation.primitive, operands, equation.params))
    literals = tuple(atom.type if isinstance(atom, Literal) else None for atom in equation.inputs)
    makers = tuple(None if t is None else _maker(type(x), t) for x, t in zip(values, literals, strict=True))
    return _Beside(operation, literals, makers, program.outputs[0].type)


def elementwise(function: F) -> F:
    """Return the elementwise function with prepared calls. A decorator for functions without other parameters."""
    calls = Elementwise(function)

    @wraps(function)
    def call(*operands: Any, **named: Any) -> Any:
        if named:
            return calls(*operands, **named)
        if len(operands) == 2:
            x, y = operands
            if x.__class__ is not Array or y.__class__ is not Array:
                return calls(*operands)
            key: Any = (x._type or x.type, y._type or y.type)
        elif len(operands) == 1:
            x = y = operands[0]
            if x.__class__ is not Array:
                return calls(*operands)
            key = (x._type or x.type,)
        else:
            return calls(*operands)
        if calls.epoch == gate.epoch and not gate.overridden:
            plan = calls.plans.get(key)
            if plan is not None and plan.recorded is not None:
                try:
                    if x._trace is not None or y._trace is not None:
                        return plan.recorded.on_traced(operands)[0]
                    if not gate.closed or state.staging is None:
                        return plan.single(*operands)
                except TracerError:  # again below, where the function names itself
                    pass
        return calls(*operands)

    return cast(F, call)
