"""Conversion of Python values to arrays: scalars, NumPy arrays, nested lists, objects with DLPack or `__array__`."""

from __future__ import annotations

from array import array as buffer
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import DType
from tracer.settings import config
from tracer.trace.array import Array, unplaced
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.trace.trace import eager

_REMEDIES = {
    "M": 'keep dates as counts of a unit, x.astype("int64"), or leave them in NumPy\'s arrays',
    "O": "cast it where it holds numbers, x.astype(float), and leave other objects in a list",
    "S": "leave text in NumPy's arrays, or number it: numpy.unique(x, return_inverse=True)[1]",
    "V": "a record is a dict or a dataclass of arrays: one for each field, x[name]",
}
_REMEDIES |= {"U": _REMEDIES["S"], "T": _REMEDIES["S"], "m": _REMEDIES["M"]}


def scalar_dtype(value: bool | int | float | complex) -> DType:
    """Return the dtype of a bare Python scalar; `config.default_float` is the dtype of floats."""
    if isinstance(value, bool):
        return dtypes.BOOL
    if isinstance(value, int):
        return dtypes.I64 if -(2**63) <= value < 2**63 else dtypes.U64
    if isinstance(value, float):
        return config.default_float
    return dtypes.complex_dtype(config.default_float)


def is_array_like(value: object) -> bool:
    """Whether `as_array` takes the value without looking into containers."""
    return isinstance(value, Array | np.ndarray | np.generic | bool | int | float | complex)


def as_array(value: Any, subject: str = "an argument", *, copy: bool = True) -> Array:
    """Return one leaf as an Array. Python scalars become weak; NumPy arrays are copied unless `copy` is False.

    While a function is traced to be compiled, `tracer.trace.captured_values` records the copies.
    Raises ArgumentError for a value that is not an array, DTypeError for NumPy dtypes that tracer does not have.
    """
    if isinstance(value, Array):
        return value
    if isinstance(value, np.ndarray):
        if not copy or state.outside is None:
            return unplaced(native(value, subject, copy=copy))
        return unplaced(state.outside.copy_of(value, native(value, subject, copy=False)))
    if isinstance(value, np.generic):
        return unplaced(native(np.asarray(value), subject, copy=False))
    if isinstance(value, bool | int | float | complex):
        try:
            return unplaced(np.asarray(value, scalar_dtype(value)), weak=not isinstance(value, bool))
        except OverflowError:
            raise DTypeError(_too_large(subject, int(value.real))) from None
    if hasattr(value, "__array__") or isinstance(value, memoryview | buffer):
        return unplaced(native(np.asarray(value), subject, copy=copy))
    kind = type(value).__name__
    raise ArgumentError(
        message(
            f"{_subject(subject)} is not an array",
            "got None" if value is None else f"got {kind}: {short_text(value)}",
            help=_remedy(subject, value),
        )
    )


def _too_large(subject: str, value: int) -> str:
    try:
        return message(f"{subject}{here()}: {value} does not fit in 64 bits", help=f"write it as a float, {value:.4g}")
    except OverflowError:
        shown = f"an integer of {value.bit_length()} bits does not fit in 64 bits"
        return message(f"{subject}{here()}: {shown}", help="as a float it is inf")


def _subject(subject: str) -> str:
    """Return `jit of f at demo.py:3: argument 0`, from `jit of f: argument 0`."""
    operation, _, argument = subject.partition(": ")
    return f"{operation}{here()}: {argument or 'an argument'}"


def _remedy(subject: str, value: object) -> str:
    argument = subject.partition(": ")[2]
    if argument.startswith(("tangents", "cotangents")) or not any(
        f" {word} of " in f" {subject}" for word in _TRANSFORMS
    ):
        return "pass an array, a number or a list of them"
    if isinstance(value, str | bytes):
        return f"leave it out of the traced arguments: {_STATIC.get(subject.partition(' ')[0], 'let f capture it')}"
    return "pass arrays and numbers, or trees of them; tracer.tree_util.register_pytree_node makes a tree of a class"


_TRANSFORMS = (
    "jit", "grad", "value_and_grad", "vmap", "vjp", "jvp", "linearize", "linear_transpose", "jacfwd", "jacrev",
    "hessian", "hvp", "checkpoint", "eval_shape", "make_program",
)  # fmt: skip
_STATIC = {
    "jit": "mark it static (static_argnums, static_argnames)",
    "make_program": "mark it static (static_argnums)",
    "checkpoint": "mark it static (static_argnums)",
}


def native(value: np.ndarray[Any, Any], subject: str = "an argument", *, copy: bool = True) -> np.ndarray[Any, Any]:
    """Return the array in native byte order, C-contiguous and aligned, in a dtype that tracer has.

    subject: its name in errors. Raises ArgumentError for a masked array, DTypeError for another dtype.
    """
    if type(value) is not np.ndarray and np.any(getattr(value, "mask", False)):
        raise ArgumentError(
            message(
                f"{_subject(subject)} is a masked array, whose mask would be lost",
                help="pass x.filled(...), and the mask as where=~x.mask",
            )
        )
    dtype = dtypes.ONE_OBJECT.get(value.dtype) or dtypes.ONE_OBJECT.get(value.dtype.newbyteorder("="))
    if dtype is None:
        raise DTypeError(
            message(
                f"{_subject(subject)} has a dtype that tracer does not compute with",
                f"got {value.dtype}",
                help=_REMEDIES.get(value.dtype.kind, "cast it to a bool, integer, float or complex dtype first"),
            )
        )
    if not copy and value.flags.c_contiguous and value.flags.aligned and value.dtype is dtype:
        return value if type(value) is np.ndarray else value.view(np.ndarray)
    copied = eager.copied(value, dtype)
    return copied if copied.dtype is dtype else copied.view(dtype)


def short_text(value: object) -> str:
    """Return a value's text for an error, of at most 60 characters."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
