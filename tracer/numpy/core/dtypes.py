"""dtypes by name, their limits and their promotion.

Calling a dtype makes an array of it, as in `tnp.float32(2)`. As an argument it stands for itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from tracer.errors import ArgumentError, DTypeError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.numpy.core.conversion import array_of, cast, common_pair, default_pair, dtype_of_argument, native
from tracer.numpy.core.fast_asarray import plain_array, plain_number
from tracer.numpy.core.promotion import literal
from tracer.primitives.elementwise.conversion import dtype_named
from tracer.runtime.eager.call_cache import cached, static
from tracer.settings import config
from tracer.trace.array import KEY_DTYPE, Array, concrete_value, renewed
from tracer.trace.source import here
from tracer.trace.tracebacks import boundary


@static
class ScalarType(type):
    """Class of `float32` and the other dtypes, each equal to its NumPy dtype."""

    dtype: DType

    @boundary
    def __call__(cls, x: Any = 0) -> Array:  # returns arrays, not instances
        """Return `x` as an array of the dtype, as `asarray(x, dtype)`."""
        if type(x) is float or type(x) is int:
            found = plain_number(x, cls.dtype)
            if found is not None:
                return found
        found = None if type(x) is Array else plain_array(x, cls.dtype)
        if found is None:
            if type(x) is int and dtypes.is_integer(cls.dtype):
                limits = dtypes.iinfo(cls.dtype)
                if not limits.min <= x <= limits.max:
                    text = f"{cls.__name__}{here()}: the integer {x} does not fit in {cls.dtype.name}"
                    raise DTypeError(message(text))
            check_fits(cls.__name__, x, cls.dtype)
            found = _again(cls.__name__, x, cls.dtype)
        return found

    def __eq__(cls, other: object) -> bool:
        try:
            return other is not None and bool(cls.dtype == np.dtype(other))  # type: ignore[call-overload]  # raises if not a dtype
        except (TypeError, ValueError):
            return False

    def __hash__(cls) -> int:
        return hash(cls.dtype.type)

    def __repr__(cls) -> str:
        return f"<dtype {cls.dtype.name}>"

    def __instancecheck__(cls, instance: object) -> bool:
        return isinstance(instance, cls.dtype.type)


def _scalar_type(dtype: DType, name: str) -> Any:
    numbers = "[0, -1]" if name == "int1" else "[0, 1]"
    text = (
        f"The dtype {name}. Calling it makes an array.\n\n"
        "    x: a number, or numbers [*s]. Returns [*s]. Raises DTypeError for a Python integer out of range, and for\n"
        "    complex numbers if the dtype is real.\n\n"
        f"    >>> tnp.{name}({numbers}).dtype\n    {dtype!r}\n    "
    )
    return ScalarType(name, (), {"dtype": dtype, "__doc__": text})


bool_ = _scalar_type(dtypes.BOOL, "bool")
int8, int16 = _scalar_type(dtypes.I8, "int8"), _scalar_type(dtypes.I16, "int16")
int32, int64 = _scalar_type(dtypes.I32, "int32"), _scalar_type(dtypes.I64, "int64")
uint8, uint16 = _scalar_type(dtypes.U8, "uint8"), _scalar_type(dtypes.U16, "uint16")
uint32, uint64 = _scalar_type(dtypes.U32, "uint32"), _scalar_type(dtypes.U64, "uint64")
float16, bfloat16 = _scalar_type(dtypes.F16, "float16"), _scalar_type(dtypes.BF16, "bfloat16")
float32, float64 = _scalar_type(dtypes.F32, "float32"), _scalar_type(dtypes.F64, "float64")
(
    float8_e4m3fn, float8_e5m2, float8_e3m4, float8_e4m3, float8_e4m3b11fnuz, float8_e4m3fnuz, float8_e5m2fnuz,
    float8_e8m0fnu, float6_e2m3fn, float6_e3m2fn, float4_e2m1fn,
) = (_scalar_type(dtype, dtype.name) for dtype in dtypes.NARROW_FLOATS)  # fmt: skip
int1, int2, int4, uint1, uint2, uint4 = (_scalar_type(dtype, dtype.name) for dtype in dtypes.NARROW_INTEGERS)
complex64, complex128 = _scalar_type(dtypes.C64, "complex64"), _scalar_type(dtypes.C128, "complex128")

single, double, csingle, cdouble = float32, float64, complex64, complex128
int_, uint, float_, complex_ = int64, uint64, float64, complex128

# Abstract dtypes, for `issubdtype`
generic, number, inexact = np.generic, np.number, np.inexact
integer, signedinteger, unsignedinteger = np.integer, np.signedinteger, np.unsignedinteger
floating, complexfloating = np.floating, np.complexfloating
character, flexible, object_ = np.character, np.flexible, np.object_
ComplexWarning = np.exceptions.ComplexWarning
dtype = np.dtype

byte, short, intc, intp, long, longlong = int8, int16, int32, int64, int64, int64
ubyte, ushort, uintc, uintp, ulong, ulonglong = uint8, uint16, uint32, uint64, uint64, uint64
half = float16


class FloatLimits:
    """Limits of a float dtype as `finfo` returns them: Python floats, which are weak in promotion."""

    __slots__ = ("_numpys", "dtype")

    def __init__(self, numpys: Any) -> None:
        self._numpys, self.dtype = numpys, np.dtype(numpys.dtype)

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._numpys, name)
        return value if isinstance(value, int | str) else float(value)

    def __repr__(self) -> str:
        return f"finfo({self.dtype}, eps={self.eps}, min={self.min}, max={self.max})"


def finfo(dtype: Any) -> Any:
    """Return the limits of a float dtype, or of a complex dtype's parts: eps, max, min, tiny, bits and more.

    dtype: a dtype, or an array of any shape. Returns weak Python scalars. Raises DTypeError for integers.

    >>> tnp.finfo(tnp.float32).eps
    1.1920928955078125e-07
    """
    found = _dtype_of("finfo", dtype)
    if not dtypes.is_inexact(found):
        raise DTypeError(message(f"finfo{here()}: not a float dtype", f"got {found}", help="iinfo for integers"))
    short = found == dtypes.BF16 or dtypes.is_narrow(found)
    return FloatLimits(ml_dtypes.finfo(found) if short else np.finfo(found))  # type: ignore[no-untyped-call]


def iinfo(dtype: Any) -> Any:
    """Return the limits of an integer dtype: min, max and bits.

    dtype: a dtype, or an array of any shape. Returns Python integers. Raises DTypeError for floats.

    >>> tnp.iinfo(tnp.int8).max
    127
    """
    found = _dtype_of("iinfo", dtype)
    if not dtypes.is_integer(found):
        raise DTypeError(message(f"iinfo{here()}: not an integer dtype", f"got {found}", help="finfo for floats"))
    return dtypes.iinfo(found)


def _dtype_of(name: str, x: Any) -> DType:
    if isinstance(x, Array | np.ndarray | np.generic):
        return native(x.dtype)
    return dtype_of_argument(name, x)


def promote_types(type1: Any, type2: Any) -> DType:
    """Return the dtype to which two dtypes are promoted; Python's `int`, `float` and `complex` are weak.

    type1, type2: dtypes or their names, without a shape. Raises DTypeError if they have no common dtype, as a float of
    8 bits beside another float.

    >>> tnp.promote_types(tnp.int64, tnp.float32)
    dtype('float32')
    """
    return common_pair("promote_types", [_pair("promote_types", t) for t in (type1, type2)])[0]


def result_type(*arrays_and_dtypes: Any) -> DType:
    """Return the dtype to which values and dtypes are promoted together; Python scalars are weak.

    arrays_and_dtypes: arrays of any shape, numbers and dtypes, at least one. Raises DTypeError if they have no common
    dtype.

    >>> tnp.result_type(tnp.float32, 2.0)
    dtype('float32')
    """
    if not arrays_and_dtypes:
        raise ArgumentError(message(f"result_type{here()} takes at least one array or dtype"))
    return common_pair("result_type", [_pair("result_type", x) for x in arrays_and_dtypes])[0]


def _pair(name: str, x: Any) -> tuple[DType, bool]:
    if any(x is kind for kind in (bool, int, float, complex)):
        return default_pair(x())
    if isinstance(x, Array):
        return x.dtype, x.weak_type
    if isinstance(x, np.ndarray | np.generic):
        return dtype_named(name, native(x.dtype)), False
    if isinstance(x, bool | int | float | complex):
        return default_pair(x)
    if isinstance(x, list | tuple):
        return array_of(name, x).dtype, False
    return dtype_named(name, x), False


def issubdtype(arg1: Any, arg2: Any) -> bool:
    """Return whether a dtype belongs to an abstract dtype, as in `issubdtype(x.dtype, tnp.floating)`.

    arg1: a dtype; arg2: an abstract or concrete dtype. The narrow dtypes belong to the integers and floats. Neither is
    an array or has a shape.

    >>> tnp.issubdtype(tnp.bfloat16, tnp.floating)
    True
    """
    if arg1 is KEY_DTYPE or arg2 is KEY_DTYPE or _is_key_kind(arg2):
        return arg1 is KEY_DTYPE and (arg2 is KEY_DTYPE or _is_key_kind(arg2))
    first, second = (_concrete_or_kind(arg) for arg in (arg1, arg2))
    if isinstance(second, type) and isinstance(first, np.dtype):
        if dtypes.is_float(first):
            return issubclass(np.floating, second)
        if dtypes.is_integer(first):
            return issubclass(np.signedinteger if dtypes.is_signed(first) else np.unsignedinteger, second)
    return bool(np.issubdtype(first, second))


def _is_key_kind(x: Any) -> bool:
    return bool(getattr(x, "is_key_kind", False))


def _concrete_or_kind(x: Any) -> Any:
    """Return a dtype as NumPy's dtype, and an abstract NumPy class as it is."""
    if isinstance(x, ScalarType):
        return x.dtype
    if isinstance(x, type) and issubclass(x, np.generic) and x.__name__ in _KINDS:
        return x
    return np.dtype(x) if x is not None else x


_KINDS = frozenset(
    ("generic", "number", "inexact", "integer", "signedinteger", "unsignedinteger", "floating", "complexfloating",
     "flexible", "character")
)  # fmt: skip


def can_cast(from_: Any, to: Any, casting: str = "safe") -> bool:
    """Return whether a cast is allowed by NumPy's rule `casting`.

    from_: a dtype, or an array of any shape, whose dtype counts; to: a dtype; casting: "no" and "equiv" (no change),
    "safe" (keeps values), "same_kind" (keeps the kind, as float to float) or "unsafe" (any cast).

    >>> tnp.can_cast(tnp.float32, tnp.float64)
    True
    """
    return bool(np.can_cast(_dtype_of("can_cast", from_), _dtype_of("can_cast", to), casting=casting))  # type: ignore[arg-type]


def isdtype(dtype: Any, kind: Any) -> bool:
    """Return whether a dtype is of a kind of the array API: "bool", "integral", "real floating", "numeric", ...

    dtype: a dtype, without a shape; kind: a kind, a dtype, or a tuple of both, of which one must match. Raises
    DTypeError for other kinds.

    >>> tnp.isdtype(tnp.float32, "real floating")
    True
    """
    found = dtype_named("isdtype", dtype)
    if isinstance(kind, tuple):
        return any(isdtype(found, k) for k in kind)
    if not isinstance(kind, str):
        return bool(found == dtype_named("isdtype", kind))
    tests: dict[str, Callable[[DType], bool]] = {
        "bool": dtypes.is_bool, "signed integer": dtypes.is_signed, "unsigned integer": dtypes.is_unsigned,
        "integral": dtypes.is_integer, "real floating": dtypes.is_float, "complex floating": dtypes.is_complex,
        "numeric": lambda d: not dtypes.is_bool(d),
    }  # fmt: skip
    if kind not in tests:
        raise DTypeError(message(f"isdtype{here()}: no kind {kind!r}", help=f"one of {', '.join(map(repr, tests))}"))
    return tests[kind](found)


def check_fits(name: str, given: Any, wanted: DType) -> None:
    """Raise DTypeError if a list holds integers out of range of a dtype."""
    if not isinstance(given, list | tuple) or not dtypes.is_integer(wanted):
        return
    known = concrete_value(array_of(name, given))
    if known is not None and known.size and dtypes.is_integer(known.dtype):
        for value in (int(known.min()), int(known.max())):
            literal(name, value, wanted)


def check_cast(name: str, x: Array, wanted: dtypes.DType, casting: str) -> None:
    """Raise DTypeError if NumPy's rule `casting` forbids a cast."""
    if not can_cast(x.dtype, wanted, casting):
        raise DTypeError(
            message(
                f"{name}{here()}: the cast to {wanted} is not {casting}",
                f"got {x.type}",
                help='cast the operand with .astype(...), or pass casting="unsafe"',
            )
        )


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Array:
    """Cast an array to another dtype. Floats become integers by truncation.

    x: [*s]; dtype: None for the default float, and for random keys their own alone; copy, device: ignored, arrays are
    immutable. Returns [*s]. Raises DTypeError for complex to real.

    >>> tnp.astype(tnp.asarray([1.7, -1.7]), tnp.int32)
    Array([ 1, -1], i32)
    """
    del copy, device  # values are immutable, and there is one device
    if dtype is KEY_DTYPE and isinstance(x, Array) and x.dtype is KEY_DTYPE:
        return renewed(x)
    return _converted("astype", x, config.default_float if dtype is None else dtype_of_argument("astype", dtype))


def _converted(name: str, x: Any, wanted: DType) -> Array:
    array = array_of(name, x)
    if dtypes.is_complex(array.dtype) and not dtypes.is_complex(wanted) and wanted != dtypes.BOOL:
        raise DTypeError(
            message(
                f"{name}{here()}: complex numbers do not become real ones",
                f"got {array.type} for {wanted}",
                help="take x.real, x.imag or abs(x) first",
            )
        )
    return cast(array, wanted)


_again = cached(_converted, named=False)
