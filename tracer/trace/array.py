"""`Array`: a handle on an immutable value, concrete or traced.

    concrete:  _value is a NumPy array, C-contiguous and aligned; _trace is None; _atom may be FOLLOWS
    on device: _value is a DeviceValue; _trace is the device's, which never closes
    traced:    _trace is the trace it belongs to and _atom its variable there;
               _value is None, or the Array of the enclosing level that holds its value (define-by-run)

Arithmetic, methods and NumPy's protocols are installed from one table,
`tracer.numpy.arrays.methods`, by `tracer/__init__`.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, NoReturn

import numpy as np

from tracer.errors import (
    ArgumentError,
    DTypeError,
    InternalError,
    LeakedTracerError,
    MutationError,
    TracedValueError,
    TracerArrayError,
    TracerBoolError,
    TracerFloatError,
    TracerIntegerError,
    message,
)
from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.ir.types import ArrayType, KeyType, Shape, Type, array_type
from tracer.settings import gate
from tracer.trace.branching import branch_at, write_at
from tracer.trace.device_value import DeviceValue
from tracer.trace.leaks import kept_as
from tracer.trace.source import here, user_frame
from tracer.trace.state import state

if TYPE_CHECKING:
    from tracer.ir.program import Var
    from tracer.trace.surface import Surface
    from tracer.trace.trace import Trace
else:
    Surface = object

Failure = type[TracedValueError]

FOLLOWS: Any = object()  # in place of a variable: made of NumPy's arrays or numbers, goes to any device of a call
PROTECTED = -1  # the owner of handles that no trace may rebind: arguments of jit and vmap


class KeyDType:
    """The dtype that random keys report."""

    name = "key<threefry2x32>"
    itemsize = 8
    kind = "V"

    def __repr__(self) -> str:
        return self.name


KEY_DTYPE: Any = KeyDType()


_NUMBERS = frozenset(("complex", "float", "int"))  # conversions that need an array without axes


class Array(Surface):
    """n-dimensional array [*s] of one dtype, on one device: a handle on an immutable value.

    `tracer.numpy.asarray` and the operations make arrays; a call of the class raises ArgumentError. Arrays have the
    methods, attributes and operators of NumPy's ndarray. Only `x[i] = v`, and with it `x[i] += v`, rebinds the handle
    to another value; `x.at[i].set(v)` and the like return another array. A star behind the dtype, as in `f64*`, marks a
    weak type in printed arrays, types and errors. The value comes from Python scalars alone, and takes on the dtype of
    the other operand. `weak_type` tells it too.

    >>> import tracer.numpy as tnp
    >>> tnp.asarray(2.0), tnp.asarray(2.0) * tnp.ones(2, "float32")
    (Array(2., f64*), Array([2., 2.], f32))
    >>> x = tnp.asarray([[1.0, 2.0], [3.0, 4.0]])
    >>> x.shape, x.dtype, x.T @ x[0]
    ((2, 2), dtype('float64'), Array([ 7., 10.], f64))
    >>> x[0, 1] = 5.0
    >>> x.at[1].add(1.0)
    Array([[1., 5.],
           [4., 5.]], f64)
    """

    __slots__ = ("__weakref__", "_atom", "_owner", "_trace", "_type", "_value", "_weak")

    _value: Any  # np.ndarray (Any: dtype and rank vary), Array, or None
    _weak: bool
    _trace: Trace | None
    _atom: Var | None
    _type: Type | None
    _owner: int

    def __init__(self, *_: object, **__: object) -> None:
        raise ArgumentError(message(f"Array{here()} is not made by calling it", help="use tracer.numpy.asarray(value)"))

    # Types

    @property
    def type(self) -> Type:
        """IR type.

        >>> print(tnp.zeros((2, 3)).type)
        f64[2,3]
        """
        type = self._type
        if type is None:
            value = self._value
            type = self._type = array_type(value.dtype, value.shape, self._weak)
        return type

    @property
    def dtype(self) -> DType:
        """NumPy dtype; a random key's is `tracer.dtypes.prng_key`'s.

        >>> tnp.zeros(3).dtype
        dtype('float64')
        """
        if self._type is None:
            return self._value.dtype  # type: ignore[no-any-return]
        type = self._type
        if isinstance(type, ArrayType):
            return type.dtype
        return KEY_DTYPE if isinstance(type, KeyType) else dtypes.BOOL

    @property
    def shape(self) -> Shape:
        """Sizes of the axes.

        >>> tnp.zeros((2, 3)).shape
        (2, 3)
        """
        type = self._type
        return self._value.shape if type is None else type.shape

    @property
    def ndim(self) -> int:
        """Count of the axes.

        >>> tnp.zeros((2, 3)).ndim
        2
        """
        return len(self.shape)

    @property
    def size(self) -> int:
        """Count of the elements.

        >>> tnp.zeros((2, 3)).size
        6
        """
        result = 1
        for n in self.shape:
            result *= n
        return result

    @property
    def weak_type(self) -> bool:
        """Whether the value comes from Python scalars alone, and so takes on other dtypes in promotion.

        Printed types mark it by a star, `f64*`.

        >>> tnp.asarray(1.0).weak_type, tnp.asarray([1.0]).weak_type
        (True, False)
        """
        return self._weak

    # Values

    def __bool__(self) -> bool:
        return bool(self._scalar(TracerBoolError, "bool"))

    def __int__(self) -> int:
        return int(self._scalar(TracerIntegerError, "int"))

    def __index__(self) -> int:
        if not (dtypes.is_integer(self.dtype) and self.ndim == 0):
            raise ArgumentError(
                message(
                    f"index{here()}: only an integer array without axes is an index",
                    f"got {self.type}",
                    help="cast it, x.astype(int), or take one element",
                )
            )
        return int(self._scalar(TracerIntegerError, "an index"))

    def __float__(self) -> float:
        return float(self._scalar(TracerFloatError, "float", differentiated=False))

    def __complex__(self) -> complex:
        return complex(self._scalar(TracerFloatError, "complex", differentiated=False))

    def _is_plain_number(self) -> bool:
        """Whether the scalar may be read from NumPy's array: it is concrete, and no trace records reads."""
        value = self._value
        is_number = self._trace is None and type(value) is np.ndarray and not value.shape and value.dtype.kind in "fiub"
        return is_number and state.outside is None

    def _scalar(self, error: Failure, caller: str, *, differentiated: bool = True) -> Any:
        """Return the only element as a NumPy scalar.

        error, caller: class and subject of the error for a traced value. differentiated: whether a define-by-run value
        may be read. Raises ArgumentError for random keys and for arrays of several elements.
        """
        value = concrete_value(self)
        if value is None or (is_recorded(self) and not differentiated):
            _raise_traced(self, error, caller)
        if isinstance(self._type, KeyType):
            raise ArgumentError(
                message(
                    f"{caller}{here()}: a random key is no number",
                    help="tracer.random.key_data(key) gives its words",
                )
            )
        if value.size != 1 or (value.ndim and caller in _NUMBERS):
            wanted = "one element" if value.size != 1 else "an array without axes"
            raise ArgumentError(
                message(
                    f"{caller}{here()}: {wanted} is wanted",
                    f"got {self.type}",
                    help="reduce it first, as x.any(), x.all() or x.sum(), or index one element",
                )
            )
        if value.dtype.kind == "c" and caller in ("int", "float"):  # NumPy scalars would give their real part
            raise DTypeError(
                message(f"{caller}{here()}: complex numbers do not become real ones", f"got {self.type}", help="x.real")
            )
        return value.reshape(())[()]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if is_recorded(self):
            _raise_traced(self, TracerArrayError, "a NumPy array")
        if isinstance(self._type, KeyType):
            raise ArgumentError(
                message(
                    f"np.asarray{here()}: random keys have no NumPy form",
                    help="tracer.random.key_data(key) gives their words",
                )
            )
        value: np.ndarray[Any, Any] = concrete_value(self)
        if dtype is not None and np.dtype(dtype) != value.dtype:
            return value.astype(dtype)
        if copy:
            return value.copy()
        view = value.view()
        view.flags.writeable = False
        return view

    def __len__(self) -> int:
        if not self.shape:
            raise ArgumentError(message(f"len{here()}: an array without axes has no length", f"got {self.type}"))
        return self.shape[0]

    __hash__ = None  # type: ignore[assignment]  # not `collections.abc.Hashable`, as NumPy's: equality is by elements

    def __repr__(self) -> str:
        value = concrete_value(self)
        if not isinstance(value, np.ndarray | None):  # the stand-in of a donated array
            return f"Array({value})"
        type = self.type
        if value is None:
            return f"Array(traced, {type})"
        if isinstance(type, KeyType):
            return f"Array({type}, words={np.array2string(value, separator=', ')})"
        text = np.array2string(value, separator=", ", prefix="Array(")
        name = dtypes.short_name(value.dtype) + ("*" if self._weak else "")
        shape = f", shape={value.shape}" if 0 in value.shape and value.shape != (0,) else ""
        place = "" if self._trace is None else ", traced" if is_recorded(self) else f", {self._trace.name}"
        return f"Array({text}{shape}, {name}{place})"

    def _repr_html_(self) -> str | None:
        from tracer.ir.array_view import array_html  # noqa: PLC0415  # for notebooks

        value = concrete_value(self)
        plain = isinstance(value, np.ndarray) and isinstance(self.type, ArrayType) and self._trace is None
        return array_html(value, repr(self), str(self.type)) if plain else None

    def __str__(self) -> str:
        value = concrete_value(self)
        shown = isinstance(value, np.ndarray) and not isinstance(self._type, KeyType)
        return str(value) if shown else repr(self)

    # Mutation

    def _rebind(self, new: Array) -> None:
        """Rebind this handle to another value, as `x[i] = v` does. Raises MutationError if the trace is no owner."""
        innermost = state.innermost
        current = innermost.serial if innermost is not None else 0
        if self._owner != current:
            where = "an argument of the traced function" if self._owner == PROTECTED else "made outside it"
            raise MutationError(
                message(
                    f"x[i] = v{here()}: the current trace does not own this array ({where})",
                    f"got {self.type}",
                    help="write to a copy, x = x.copy(), or use x = x.at[i].set(v)",
                )
            )
        self._value, self._weak, self._trace = new._value, new._weak, new._trace
        self._atom, self._type = new._atom, new._type


_new = object.__new__


def concrete(value: np.ndarray[Any, Any], weak: bool = False, type: Type | None = None) -> Array:
    """Wrap a C-contiguous, aligned, native NumPy array that is never written. The innermost trace owns the handle."""
    array = _new(Array)
    array._value, array._weak, array._type = value, weak, type
    array._trace = array._atom = None
    array._owner = _owner() if gate.closed else 0
    return array


def _owner() -> int:
    """Return the serial of the innermost trace, which owns new handles; 0 outside all traces."""
    innermost = state.innermost
    return 0 if innermost is None else innermost.serial


def unowned(value: np.ndarray[Any, Any], weak: bool) -> Array:
    """Wrap a NumPy array as an untraced Array. Faster than `concrete`: skips the lookup of the current trace."""
    array = _new(Array)
    array._value, array._weak = value, weak
    array._type = array._trace = array._atom = None
    array._owner = 0
    return array


def unplaced(value: np.ndarray[Any, Any], weak: bool = False) -> Array:
    """Wrap a NumPy array, or an array of a number, that goes to the device of a call: see `is_unplaced`."""
    array = concrete(value, weak)
    array._atom = FOLLOWS
    return array


def on_device(trace: Trace, value: DeviceValue, type: Any) -> Array:
    """Wrap a value of an IR type on the device of a trace. The innermost trace owns the handle."""
    array = _new(Array)
    array._value, array._type, array._trace, array._atom = value, type, trace, None
    array._weak = type.__class__ is ArrayType and type.weak
    array._owner = _owner() if gate.closed else 0
    return array


def traced(trace: Trace, atom: Var, value: Array | None = None, owner: int | None = None) -> Array:
    """Return a handle on a variable of a trace. owner: serial of the trace that may rebind it; the innermost's if None.

    value: the array of the enclosing level with the variable's value, in define-by-run.
    """
    array = _new(Array)
    type = atom.type
    array._type, array._trace, array._atom, array._value = type, trace, atom, value
    array._weak = isinstance(type, ArrayType) and type.weak
    array._owner = _owner() if owner is None else owner
    return array


def moving(trace: Trace, atom: Var, value: Array) -> Array:
    """Return a handle on a variable of a trace, as `traced` does. The innermost trace must own the handle `value`."""
    array = _new(Array)
    array._type, array._trace, array._atom, array._value = atom.type, trace, atom, value
    array._weak, array._owner = value._weak, value._owner
    return array


def fixed(array: Array) -> Array:
    """Return a handle on the array's present value that no trace may rebind."""
    return array if array._owner == PROTECTED else _handle(array, PROTECTED)


def renewed(array: Array) -> Array:
    """Return another handle on the value, which the current trace may rebind."""
    return _handle(array, _owner())


def _handle(array: Array, owner: int) -> Array:
    handle = _new(Array)
    handle._value, handle._weak, handle._type = array._value, array._weak, array._type or array.type
    handle._trace, handle._atom, handle._owner = array._trace, array._atom, owner
    return handle


def concrete_value(array: Array) -> Any:
    """Return the NumPy array behind a handle, through define-by-run levels; None for a value of a staged program."""
    value = array._value
    while isinstance(value, Array):
        array, value = value, value._value
    if type(value) is DeviceValue:
        value = value.host()
    if value is None:
        state.asked += 1
    elif state.outside is not None:
        state.outside.look(array)
    return value


def is_recorded(array: Array) -> bool:
    """Whether a trace records the operations on an array. A device runs them at once."""
    return array._trace is not None and not array._trace.is_device


def follows(array: Array) -> bool:
    """Whether an array of the host goes along to a device: of NumPy's or of numbers, without axes, or random keys."""
    return is_unplaced(array) or (array._trace is None and not array.shape)


def is_unplaced(array: Array) -> bool:
    """Whether an array of the host was made of NumPy's arrays or numbers for one call, or holds random keys."""
    return array._trace is None and (array._atom is FOLLOWS or isinstance(array.type, KeyType))


def require_concrete(array: Array) -> np.ndarray[Any, Any]:
    value = concrete_value(array)
    if value is None:
        raise InternalError(f"a concrete array was expected, not {array!r}")
    return value  # type: ignore[no-any-return]


_REMEDIES = {
    TracerIntegerError: (
        "a Python integer from a traced value",
        "mark the argument static, jit(f, static_argnums=...), or keep to array operations (lax.fori_loop, x[i])",
    ),
    TracerFloatError: (
        "a Python number from a traced value",
        "keep it an array: tracer.numpy's functions in place of math's, x.astype(float) in place of float(x)",
    ),
    TracerArrayError: (
        "a NumPy array from a traced value",
        "use tracer.numpy's function of the same name; NumPy's would lose the trace",
    ),
}


def _raise_traced(array: Array, error: Failure, caller: str) -> NoReturn:
    frame = None if state.source is not None else user_frame(sys._getframe(1))
    if error is TracerBoolError:
        branch = branch_at(frame)
        summary, remedy, asked = f"{branch.statement} on a traced value", branch.remedy, branch.asked
    else:
        (summary, remedy), asked = _REMEDIES[error], None
        write = write_at(frame)
        if write is not None:
            summary, asked = f"a traced value is written to {write.target}, in a NumPy array", "the value"
            remedy = f"make it an array of tracer.numpy: {write.remedy}"
    origin = ""
    known = "its value is known only when the compiled program runs"
    trace = array._trace
    if trace is not None:
        if not trace.is_open:
            raise leak(array, trace)
        origin = f", {trace.origin(array)}"
        if concrete_value(array) is not None:
            known = "reading its value would lose its derivative"
        elif error is TracerBoolError and array._atom in trace.inputs:
            remedy += "; jit(f, static_argnums=...) makes an argument a Python value"
    subject = f"{asked} is" if asked is not None else f"{caller} of"
    raise error(message(f"{summary}{here()}", f"{subject} {array.type}{origin}: {known}", help=remedy))


def leak(array: Array, trace: Trace) -> LeakedTracerError:
    """Return the error for an array that is used after its trace, or on another thread."""
    called = trace.variable_name(array)
    reason = "belongs to a trace on another thread" if trace.is_open else "outlived its trace"
    kept = kept_as(lambda x: type(x) is Array and x._trace is trace and x._atom is array._atom)
    return LeakedTracerError(
        message(
            f"leaked traced array{here()}",
            f"{described(array)}, {reason}",
            *([f"it is kept as `{kept}`"] if kept is not None and f"`{kept}` " != called else []),
            help="hand other threads arrays whose values are known: what is traced stays on the thread that traces"
            if trace.is_open
            else "return it from the function instead of storing it in a global, a closure or an object",
        )
    )


def described(array: Array) -> str:
    """Return a text on a traced array: `an array f64[3], made at demo.py:3 while `f` was traced`."""
    trace = array._trace
    assert trace is not None
    made = f"{trace.variable_name(array)}{trace.origin(array)}"
    return f"an array {array.type}, {made} while `{trace.name}` was traced"
