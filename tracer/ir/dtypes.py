"""Data types: NumPy dtypes by their short names, their kinds, limits and promotion.

A dtype is always a real `numpy.dtype`; bfloat16 and the narrow dtypes come from `ml_dtypes`.
The short names (`f32`, `i64`, `bf16`, ...) are the names in the printed IR.

The narrow dtypes (floats of 8 bits and fewer, integers of 4 and fewer) are for storage: arrays of them are moved,
selected and converted. Operations on them are written in their wide dtype and converted back, before any trace or
reference sees them; see `tracer.primitives.elementwise.narrow_storage`. An element takes a byte. The high bits of a
byte that the dtype does not use carry no value.
"""

from __future__ import annotations

from typing import Any, Final

import ml_dtypes
import numpy as np

DType = np.dtype[Any]

BOOL: Final[DType] = np.dtype(np.bool_)
I8, I16, I32, I64 = (np.dtype(n) for n in ("int8", "int16", "int32", "int64"))
U8, U16, U32, U64 = (np.dtype(n) for n in ("uint8", "uint16", "uint32", "uint64"))
F16, F32, F64 = (np.dtype(n) for n in ("float16", "float32", "float64"))
BF16: Final[DType] = np.dtype(ml_dtypes.bfloat16)
C64, C128 = (np.dtype(n) for n in ("complex64", "complex128"))
F8E4M3FN: Final[DType] = np.dtype(ml_dtypes.float8_e4m3fn)
F8E5M2: Final[DType] = np.dtype(ml_dtypes.float8_e5m2)
F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU, F6E2M3FN, F6E3M2FN, F4E2M1FN = (
    np.dtype(getattr(ml_dtypes, name))
    for name in (
        "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fnuz", "float8_e5m2fnuz", "float8_e8m0fnu",
        "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
    )
)  # fmt: skip
I1, I2, I4, U1, U2, U4 = (
    np.dtype(getattr(ml_dtypes, name)) for name in ("int1", "int2", "int4", "uint1", "uint2", "uint4")
)

FLOAT0: Final[DType] = np.dtype([("float0", np.void, 0)])
"""The dtype of tangents and gradients of integers and booleans, as in JAX. No program computes with it."""

SHORT_NAMES: Final[dict[DType, str]] = {
    BOOL: "bool",
    I8: "i8", I16: "i16", I32: "i32", I64: "i64",
    U8: "u8", U16: "u16", U32: "u32", U64: "u64",
    F8E4M3FN: "f8e4m3fn", F8E5M2: "f8e5m2",
    F8E3M4: "f8e3m4", F8E4M3: "f8e4m3", F8E4M3B11FNUZ: "f8e4m3b11fnuz", F8E4M3FNUZ: "f8e4m3fnuz",
    F8E5M2FNUZ: "f8e5m2fnuz", F8E8M0FNU: "f8e8m0fnu", F6E2M3FN: "f6e2m3fn", F6E3M2FN: "f6e3m2fn",
    F4E2M1FN: "f4e2m1fn",
    I1: "i1", I2: "i2", I4: "i4", U1: "u1", U2: "u2", U4: "u4",
    F16: "f16", BF16: "bf16", F32: "f32", F64: "f64",
    C64: "c64", C128: "c128",
}  # fmt: skip
ONE_OBJECT: Final[dict[DType, DType]] = {dtype: dtype for dtype in SHORT_NAMES}
"""The object that stands for a dtype in every array: compiled code compares addresses."""
OF_NUMPY: Final = tuple(dtype for dtype in ONE_OBJECT.values() if dtype.isbuiltin == 1)
"""The dtypes of NumPy itself; ml_dtypes defines the other dtypes."""
BY_SHORT_NAME: Final[dict[str, DType]] = {name: dtype for dtype, name in SHORT_NAMES.items()}

SIGNED: Final = (I8, I16, I32, I64)
UNSIGNED: Final = (U8, U16, U32, U64)
INTEGERS: Final = SIGNED + UNSIGNED
NARROW_FLOATS: Final = (
    F8E4M3FN, F8E5M2, F8E3M4, F8E4M3, F8E4M3B11FNUZ, F8E4M3FNUZ, F8E5M2FNUZ, F8E8M0FNU, F6E2M3FN, F6E3M2FN, F4E2M1FN,
)  # fmt: skip
NARROW_SIGNED: Final = (I1, I2, I4)
NARROW_UNSIGNED: Final = (U1, U2, U4)
NARROW_INTEGERS: Final = NARROW_SIGNED + NARROW_UNSIGNED
FLOATS: Final = (F16, BF16, F32, F64)
COMPLEX: Final = (C64, C128)
ALL: Final = tuple(SHORT_NAMES)

_SIGNED, _UNSIGNED = frozenset(SIGNED + NARROW_SIGNED), frozenset(UNSIGNED + NARROW_UNSIGNED)
_FLOATS, _COMPLEX = frozenset(FLOATS + NARROW_FLOATS), frozenset(COMPLEX)
_INEXACT = _FLOATS | _COMPLEX
_NARROW = frozenset(NARROW_FLOATS + NARROW_INTEGERS)


def short_name(dtype: DType) -> str:
    """Return the name that the printed IR uses.

    >>> short_name(np.dtype("float32"))
    'f32'
    """
    return SHORT_NAMES[dtype]


def is_bool(dtype: DType) -> bool:
    return dtype == BOOL


def is_signed(dtype: DType) -> bool:
    return dtype in _SIGNED


def is_unsigned(dtype: DType) -> bool:
    return dtype in _UNSIGNED


def is_integer(dtype: DType) -> bool:
    return dtype in _SIGNED or dtype in _UNSIGNED


def is_float(dtype: DType) -> bool:
    return dtype in _FLOATS


def kind_order(dtype: DType) -> int:
    """Return 0 for booleans, 1 for integers, 2 for floats, 3 for complex: each kind holds the kinds before it."""
    kinds = (is_bool, is_integer, is_float, is_complex)
    return next(place for place, holds in enumerate(kinds) if holds(dtype))


def is_complex(dtype: DType) -> bool:
    return dtype in _COMPLEX


def is_inexact(dtype: DType) -> bool:
    """Whether values of the dtype carry derivatives: floats and complex numbers."""
    return dtype in _INEXACT


def is_narrow(dtype: DType) -> bool:
    """Whether the dtype is for storage: see the module docstring."""
    return dtype.itemsize == 1 and dtype in _NARROW


def wide_dtype(dtype: DType) -> DType:
    """Return the dtype that operations on a narrow dtype compute in.

    It has all values of the narrow dtype, and its integers wrap alike.

    >>> wide_dtype(F8E5M2), wide_dtype(U4)
    (dtype('float32'), dtype('uint8'))
    """
    return F32 if dtype in _FLOATS else I8 if dtype in _SIGNED else U8


def bits(dtype: DType) -> int:
    """Return the width of an element in bits, which may be less than the bytes that it takes.

    >>> bits(F4E2M1FN), bits(np.dtype("int64"))
    (4, 64)
    """
    if is_narrow(dtype):
        return int((ml_dtypes.finfo if dtype in _FLOATS else ml_dtypes.iinfo)(dtype).bits)
    return 8 * dtype.itemsize


def real_dtype(dtype: DType) -> DType:
    """Return the dtype of the real part: `dtype` itself unless it is complex."""
    if dtype == C64:
        return F32
    if dtype == C128:
        return F64
    return dtype


def complex_dtype(dtype: DType) -> DType:
    """Return the complex dtype whose parts hold `dtype`: c64 for f32 and narrower, else c128."""
    if dtype in _COMPLEX:
        return dtype
    return C128 if dtype == F64 or is_integer(dtype) else C64


def finfo(dtype: DType) -> Any:
    """Return the limits of a float dtype, the short floats included."""
    return ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]


def iinfo(dtype: DType) -> Any:
    """Return the limits of an integer dtype, the narrow integers included."""
    return ml_dtypes.iinfo(dtype) if is_narrow(dtype) else np.iinfo(dtype)  # type: ignore[no-untyped-call]


def accumulator_dtype(dtype: DType) -> DType:
    """Return the dtype that sums and dot products of `dtype` accumulate in: float32 for the short floats."""
    if dtype in _FLOATS and dtype not in (F32, F64):
        return F32
    return dtype


# Promotion is the join in this lattice (JAX's with x64 on): each dtype with its direct successors;
# `i*`, `f*` and `c*` are the weak types of Python's int, float and complex.
_LATTICE: Final[dict[str, tuple[str, ...]]] = {
    "bool": ("i*",),
    "i*": ("u8", "i8", "i1", "i2", "i4", "u1", "u2", "u4"),
    "i1": (), "i2": (), "i4": (), "u1": (), "u2": (), "u4": (),
    "u8": ("i16", "u16"), "u16": ("i32", "u32"), "u32": ("i64", "u64"), "u64": ("f*",),
    "i8": ("i16",), "i16": ("i32",), "i32": ("i64",), "i64": ("f*",),
    "f*": ("c*", *(SHORT_NAMES[dtype] for dtype in NARROW_FLOATS), "bf16", "f16"),
    **{SHORT_NAMES[dtype]: () for dtype in NARROW_FLOATS},
    "bf16": ("f32",), "f16": ("f32",), "f32": ("f64", "c64"), "f64": ("c128",),
    "c*": ("c64",), "c64": ("c128",), "c128": (),
}  # fmt: skip


def _upper_bounds() -> dict[str, frozenset[str]]:
    bounds = {name: frozenset((name,)) for name in _LATTICE}
    changed = True
    while changed:
        changed = False
        for name, successors in _LATTICE.items():
            wider = bounds[name].union(*(bounds[s] for s in successors))
            if wider != bounds[name]:
                bounds[name], changed = wider, True
    return bounds


_BOUNDS: Final = _upper_bounds()
_JOINS: dict[tuple[str, str], str | None] = {}


def _node(dtype: DType, weak: bool) -> str:
    name = SHORT_NAMES[dtype]
    if not weak or dtype == BOOL:
        return name
    return "i*" if is_integer(dtype) else "f*" if is_float(dtype) else "c*"


def _join(a: str, b: str) -> str | None:
    """Return the least upper bound of two lattice nodes, or None if there is none."""
    key = (a, b)
    if key not in _JOINS:
        common = _BOUNDS[a] & _BOUNDS[b]
        least = [n for n in common if common <= _BOUNDS[n]]
        _JOINS[key] = least[0] if least else None
    return _JOINS[key]


def promote(*operands: tuple[DType, bool], default_float: DType = F64) -> tuple[DType, bool] | None:
    """Join (dtype, weak) pairs: return the common dtype and whether it is still weak.

    Weak operands stand for Python scalars: they raise the kind of the result, never its width.
    Return None where the dtypes have no common successor, such as a narrow dtype and another strong one.

    >>> [short_name(d) for d, _ in [promote((I64, False), (F32, False)), promote((F32, False), (F64, True))]]
    ['f32', 'f32']
    """
    weak = all(weak for _, weak in operands)  # weak operands alone join like strong ones, to a weak result
    result = _node(operands[0][0], operands[0][1] and not weak)
    for dtype, is_weak in operands[1:]:
        joined = _join(result, _node(dtype, is_weak and not weak))
        if joined is None:
            return None
        result = joined
    if result.endswith("*"):  # bool or integer arrays with a wider-kinded Python scalar; u64 with a signed integer
        return {"i*": I64, "f*": default_float, "c*": complex_dtype(default_float)}[result], True
    return BY_SHORT_NAME[result], weak and result != "bool"
