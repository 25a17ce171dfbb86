"""Operators, methods and properties of `Array`, in one table, which `tracer/__init__` installs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial, wraps
from typing import Any, Final

import numpy as np

from tracer.errors import ArgumentError, MutationError, TracerFloatError, message
from tracer.ir.types import KeyType
from tracer.numpy.arrays import members, protocols
from tracer.numpy.arrays.absent_members import ABSENT_MEMBERS, ASSIGNED, Absent, present, refusing
from tracer.numpy.arrays.at import At, AtIndex
from tracer.numpy.arrays.concrete_items import getitem, written
from tracer.numpy.arrays.lost_writes import references, refuse_lost_writes
from tracer.numpy.chapters.ufunc_options import called
from tracer.numpy.core.dlpack import cuda_array_interface, dlpack, dlpack_device
from tracer.numpy.core.ufunc_keywords import place_of_out, taken
from tracer.numpy.elementwise import arithmetic, bitwise, logic, powers, rounding
from tracer.numpy.reduce import cumulative, matmul, reductions, sorting, statistics
from tracer.numpy.shapes import creation, manipulation, matrices, take
from tracer.numpy.shapes.repeating import repeat
from tracer.numpy.shapes.updates import ADD, ASSIGN, MULTIPLY, SET, Update, updated
from tracer.numpy.shapes.where import nonzero
from tracer.runtime.eager.call_cache import cached
from tracer.runtime.system.devices import device_of, sharding_of
from tracer.torch_names import MEMBERS as TORCH_MEMBERS
from tracer.trace.array import KEY_DTYPE, Array, concrete, concrete_value, is_recorded, require_concrete
from tracer.trace.convert import as_array
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.trace.tracebacks import NO_OPTIONS, Options, boundary, set_method_boundaries, tidy

Function = Callable[..., Any]


def _accepts(x: object) -> bool:
    """Whether an array's operators take the other operand; else Python tries that operand's operator."""
    return x.__class__ in _NUMBERS or isinstance(x, _OPERANDS)


_NUMBERS = frozenset((float, int))
_OPERANDS = (Array, np.ndarray, np.generic, bool, int, float, complex, list, tuple, range)


def _binary(function: Function) -> Function:
    def method(self: Array, other: Any, /) -> Any:
        try:
            return function(self, other) if type(other) is Array or _accepts(other) else NotImplemented
        except BaseException as error:
            error.__traceback__ = tidy(error)
            raise

    method.__doc__ = function.__doc__
    return method


def _reflected(function: Function) -> Function:
    def method(self: Array, other: Any, /) -> Any:
        try:
            return function(other, self) if _accepts(other) else NotImplemented
        except BaseException as error:
            error.__traceback__ = tidy(error)
            raise

    method.__doc__ = f"With the operands exchanged. {function.__doc__}"
    return method


def _power(self: Array, other: Any, modulo: Any = None, /) -> Any:
    if modulo is not None or not _accepts(other):
        return NotImplemented
    return powers.power(self, other)


# Numbers


def _number(member: Function, convert: Callable[[Any], Any]) -> Function:
    """Return a conversion to a Python scalar, one frame deep where the value is concrete and no trace records reads.

    It repeats the test of `_is_plain_number`, whose call would add a fifth to a half of the time.
    """

    @wraps(member)
    def method(self: Array) -> Any:
        value = self._value
        plain = self._trace is None and type(value) is np.ndarray and not value.shape and value.dtype.kind in "fiub"
        if plain and state.outside is None:
            return convert(value)
        try:
            return member(self)
        except BaseException as error:
            error.__traceback__ = tidy(error)
            raise

    return method


def _numpys(member: Function) -> Function:
    """Return `__array__`, one frame deep where the value is concrete and no trace records reads."""

    @wraps(member)
    def method(self: Array, dtype: Any = None, copy: bool | None = None) -> Any:
        value = self._value
        plain = self._trace is None and type(value) is np.ndarray and type(self._type) is not KeyType
        if plain and dtype is None and not copy and state.outside is None:
            view = value.view()
            view.setflags(write=False)
            return view
        try:
            return member(self, dtype, copy)
        except BaseException as error:
            error.__traceback__ = tidy(error)
            raise

    return method


def _known_first(member: Function, how: Update) -> Function:
    """Return `x.at[i].set` or the like, which tries `written` first if it gets no options."""

    @wraps(member)
    def method(self: AtIndex, values: Any, **options: Any) -> Array:
        try:
            if options:
                return member(self, values, **options)
            found = written(self._array, self._index, values, how.numpys)
            return updated(self._array, self._index, values, how) if found is None else found
        except BaseException as error:
            error.__traceback__ = tidy(error)
            raise

    return method


# Containers


def _setitem(self: Array, index: Any, value: Any) -> None:
    try:
        refuse_lost_writes(references(self), self, sys._getframe(1))
        new = written(self, index, value, in_place=True)
        self._rebind(updated(self, index, value, ASSIGN) if new is None else new)
    except BaseException as error:
        error.__traceback__ = tidy(error)
        raise


def _delitem(self: Array, index: Any) -> None:
    del index
    raise MutationError(
        message(f"del x[i]{here()}: arrays keep their size", f"got {self.type}", help="x = tracer.numpy.delete(x, i)")
    )


def _iter(self: Array) -> Iterator[Array]:
    if not self.shape:
        raise ArgumentError(
            message(
                f"iteration{here()}: an array without axes has no elements",
                f"got {self.type}",
                help="take it as it is, or give it an axis: x[None]",
            )
        )
    places = range(self.shape[0])
    return (getitem(self, i) for i in places)


def _contains(self: Array, value: Any) -> bool:
    return bool(reductions.any(logic.equal(self, value)))


def _format(self: Array, spec: str) -> str:
    if not spec and (self.shape or self._trace is not None or concrete_value(self) is None):
        return str(self)
    if self.shape or concrete_value(self) is None:
        if concrete_value(self) is None:
            raise TracerFloatError(
                message(
                    f"format{here()}: a traced value has no digits to print yet",
                    f"got {self.type} for {spec!r}",
                    help="tracer.debug.print prints when the compiled program runs",
                )
            )
        raise ArgumentError(message(f"format{here()}: {spec!r} formats one number", f"got {self.type}"))
    return format(concrete_value(self)[()].item(), spec)


# Copies and pickles


def _restored(value: np.ndarray[Any, Any], weak: bool, is_key: bool) -> Array:
    # A copy: memory of the pickle may be unaligned or written elsewhere, and its dtype is another object.
    value = require_concrete(as_array(value))
    return concrete(value, weak, KeyType(value.shape[:-1]) if is_key else None)


def _reduce(self: Array) -> Any:
    if is_recorded(self):
        raise ArgumentError(
            message(
                f"pickle{here()}: a traced array cannot leave its function",
                f"got {self.type}",
                help="return it, and pickle the result",
            )
        )
    return _restored, (require_concrete(self), self._weak, self.dtype is KEY_DTYPE)


def _deepcopy(self: Array, memo: Any) -> Array:
    del memo
    return creation.copy(self)


_matmul, _divmod = cached(matmul.matmul), cached(arithmetic.divmod)

OPERATORS: Final[dict[str, Function]] = {
    "__add__": _binary(arithmetic.add), "__radd__": _reflected(arithmetic.add),
    "__sub__": _binary(arithmetic.subtract), "__rsub__": _reflected(arithmetic.subtract),
    "__mul__": _binary(arithmetic.multiply), "__rmul__": _reflected(arithmetic.multiply),
    "__truediv__": _binary(arithmetic.divide), "__rtruediv__": _reflected(arithmetic.divide),
    "__floordiv__": _binary(arithmetic.floor_divide), "__rfloordiv__": _reflected(arithmetic.floor_divide),
    "__mod__": _binary(arithmetic.remainder), "__rmod__": _reflected(arithmetic.remainder),
    "__divmod__": _binary(_divmod), "__rdivmod__": _reflected(_divmod),
    "__pow__": _power, "__rpow__": _reflected(powers.power),
    "__matmul__": _binary(_matmul), "__rmatmul__": _reflected(_matmul),
    "__and__": _binary(bitwise.bitwise_and), "__rand__": _reflected(bitwise.bitwise_and),
    "__or__": _binary(bitwise.bitwise_or), "__ror__": _reflected(bitwise.bitwise_or),
    "__xor__": _binary(bitwise.bitwise_xor), "__rxor__": _reflected(bitwise.bitwise_xor),
    "__lshift__": _binary(bitwise.left_shift), "__rlshift__": _reflected(bitwise.left_shift),
    "__rshift__": _binary(bitwise.right_shift), "__rrshift__": _reflected(bitwise.right_shift),
    "__eq__": _binary(logic.equal), "__ne__": _binary(logic.not_equal),
    "__lt__": _binary(logic.less), "__le__": _binary(logic.less_equal),
    "__gt__": _binary(logic.greater), "__ge__": _binary(logic.greater_equal),
    "__neg__": arithmetic.negative, "__pos__": arithmetic.positive, "__abs__": arithmetic.absolute,
    "__invert__": bitwise.bitwise_not,
    "__round__": members.round,
}  # fmt: skip

CONTAINER: Final[dict[str, Function]] = {
    "__getitem__": getitem, "__setitem__": _setitem, "__delitem__": _delitem,
    "__iter__": _iter, "__contains__": _contains,
    "__format__": _format, "__reduce__": _reduce, "__copy__": creation.copy,
    "__deepcopy__": _deepcopy, "__dir__": present,
}  # fmt: skip

METHODS: Final[dict[str, Function]] = {
    "all": reductions.all, "any": reductions.any, "argmax": reductions.argmax, "argmin": reductions.argmin,
    "argpartition": sorting.argpartition, "argsort": sorting.argsort, "astype": members.astype,
    "block_until_ready": members.block_until_ready, "choose": take.choose, "clip": members.clip,
    "compress": members.compress,
    "conj": rounding.conjugate, "conjugate": rounding.conjugate, "copy": creation.copy, "cumprod": cumulative.cumprod,
    "cumsum": cumulative.cumsum, "devices": members.devices, "diagonal": matrices.diagonal, "dot": matmul.dot,
    "flatten": members.flatten, "item": members.item, "max": reductions.max, "mean": statistics.mean,
    "min": reductions.min, "nonzero": nonzero, "prod": reductions.prod, "ptp": reductions.ptp,
    "ravel": manipulation.ravel, "repeat": repeat, "reshape": members.reshape, "round": rounding.round,
    "searchsorted": sorting.searchsorted, "sort": sorting.sort, "squeeze": manipulation.squeeze,
    "std": statistics.std, "sum": reductions.sum, "swapaxes": manipulation.swapaxes, "take": take.take,
    "to_device": members.to_device, "to_numpy": members.to_numpy, "tobytes": members.tobytes, "tolist": members.tolist,
    "trace": matrices.trace, "transpose": members.transpose, "var": statistics.var, "view": members.view,
}  # fmt: skip

PROPERTIES: Final[dict[str, Function]] = {
    "T": manipulation.transpose, "mT": manipulation.matrix_transpose, "at": At, "device": device_of,
    "imag": rounding.imag, "itemsize": members.itemsize, "nbytes": members.nbytes, "real": rounding.real,
    "sharding": sharding_of,
}  # fmt: skip

PROTOCOLS: Final[dict[str, Any]] = {
    "__array_ufunc__": protocols.array_ufunc, "__array_function__": protocols.array_function,
    "__array_priority__": 1000, "__array_namespace__": protocols.array_namespace,
    "__dlpack__": dlpack, "__dlpack_device__": dlpack_device,
    "__cuda_array_interface__": property(cuda_array_interface),
}  # fmt: skip

_QUICK: Final = frozenset((
    *(name for name, member in OPERATORS.items() if member.__name__ == "method"),
    "__getitem__", "__setitem__", "__array_ufunc__",
))  # fmt: skip
"""Members that are boundaries themselves, which saves a call."""

_CACHED: Final = frozenset((
    "T", "__round__", "all", "any", "argmax", "argmin", "argsort", "astype", "conj", "conjugate", "cumprod", "cumsum",
    "diagonal", "argpartition", "clip", "dot", "flatten", "imag", "mT", "max", "mean", "min", "prod", "ptp", "ravel",
    "real", "repeat", "reshape", "round", "searchsorted", "sort", "squeeze", "std", "sum", "swapaxes", "take", "trace",
    "transpose", "var",
))  # fmt: skip
"""Members with prepared calls, whose operations depend on no elements: see `tracer.runtime.eager.call_cache`."""


def install(cls: type[Array]) -> None:
    """Give the class its operators, methods, properties and protocols. Called once, by `tracer/__init__`."""
    for name, member in {**OPERATORS, **CONTAINER, **METHODS, **PROTOCOLS}.items():
        if callable(member) and name not in _QUICK:
            options = Options(taken(name), partial(called, name), place_of_out(name)) if name in METHODS else NO_OPTIONS
            make = cached if name in _CACHED else boundary
            member = make(member, named=name not in PROTOCOLS, options=options)
        if name in _QUICK and member.__name__ == "method":
            member.__name__, member.__qualname__ = name, f"{cls.__name__}.{name}"
        setattr(cls, name, member)
    for name, getter in PROPERTIES.items():
        setattr(cls, name, property(cached(getter) if name in _CACHED else getter))
    for name, remedy in ASSIGNED.items():
        setattr(cls, name, vars(cls)[name].setter(refusing(name, remedy)))
    for name, why in {**TORCH_MEMBERS, **ABSENT_MEMBERS}.items():
        setattr(cls, name, Absent(name, why))
    for name in ("__complex__", "__index__", "__len__"):
        setattr(cls, name, boundary(vars(cls)[name]))
    cls.__array__ = _numpys(vars(cls)["__array__"])  # type: ignore[method-assign]
    for name, convert in (("__bool__", bool), ("__float__", float), ("__int__", int)):
        setattr(cls, name, _number(vars(cls)[name], convert))
    set_method_boundaries(AtIndex)
    for name, how in (("set", SET), ("add", ADD), ("multiply", MULTIPLY), ("mul", MULTIPLY)):
        setattr(AtIndex, name, _known_first(vars(AtIndex)[name], how))
