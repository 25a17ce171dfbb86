"""Which elementwise primitives are tried on which dtypes and values; shared by the tests and the JAX table's script."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np

DTYPES: dict[str, np.dtype[Any]] = {
    "bool": np.dtype(bool),
    "i8": np.dtype("int8"), "i16": np.dtype("int16"), "i32": np.dtype("int32"), "i64": np.dtype("int64"),
    "u8": np.dtype("uint8"), "u16": np.dtype("uint16"), "u32": np.dtype("uint32"), "u64": np.dtype("uint64"),
    "f16": np.dtype("float16"), "bf16": np.dtype(ml_dtypes.bfloat16), "f32": np.dtype("float32"),
    "f64": np.dtype("float64"), "c64": np.dtype("complex64"), "c128": np.dtype("complex128"),
}  # fmt: skip
SIGNED = ("i8", "i16", "i32", "i64")
INTEGERS = (*SIGNED, "u8", "u16", "u32", "u64")
FLOATS = ("f16", "bf16", "f32", "f64")
COMPLEX = ("c64", "c128")
INEXACT = FLOATS + COMPLEX
NUMBERS = INTEGERS + INEXACT
ALL = ("bool", *NUMBERS)


NOT_IN_JAX = ("fma",)  # and tried elsewhere: tests/passes/test_fma_contraction.py


@dataclass(frozen=True)
class Case:
    """A primitive with parameters. bools: how many leading operands are predicates."""

    name: str
    arity: int
    dtypes: tuple[str, ...]
    params: Mapping[str, Any] = field(default_factory=dict)
    bools: int = 0

    @property
    def label(self) -> str:
        shown = ",".join(str(np.dtype(v)) if isinstance(v, np.dtype) else str(v) for v in self.params.values())
        return f"{self.name}({shown})" if shown else self.name


def _cases(names: str, arity: int, dtypes: tuple[str, ...]) -> list[Case]:
    return [Case(name, arity, dtypes) for name in names.split()]


CASES: list[Case] = [
    *_cases("add sub mul div", 2, NUMBERS),
    *_cases("max min", 2, ALL),
    *_cases("clamp", 3, ("i32", "u8", "f32", "f64", "c128")),
    *_cases("fma", 3, ("f32", "f64")),
    *_cases("neg sign square", 1, NUMBERS),
    *_cases("abs", 1, SIGNED + INEXACT),
    *_cases("rem", 2, INTEGERS + FLOATS),
    *_cases("pow", 2, INEXACT),
    *(Case("integer_pow", 1, NUMBERS, {"y": y}) for y in (0, 1, 2, 3, 7)),
    *(Case("integer_pow", 1, INEXACT, {"y": y}) for y in (-1, -3)),
    *_cases("sqrt rsqrt exp exp2 expm1 log log1p logistic sin cos tan", 1, INEXACT),
    *_cases("asin acos atan sinh cosh tanh asinh acosh atanh", 1, INEXACT),
    *_cases("cbrt log2 erf erfc erf_inv lgamma digamma floor ceil round_even round_away is_finite", 1, FLOATS),
    *_cases("hypot atan2 nextafter", 2, FLOATS),
    *_cases("eq ne", 2, ALL),
    *_cases("lt le gt ge", 2, ("bool", *INTEGERS, *FLOATS)),
    Case("select", 3, ("bool", "i8", "bf16", "f64", "c128"), bools=1),
    *_cases("and or xor", 2, ("bool", *INTEGERS)),
    *_cases("not", 1, ("bool", *INTEGERS)),
    *_cases("shift_left shift_right_logical shift_right_arithmetic", 2, INTEGERS),
    *_cases("population_count clz", 1, INTEGERS),
    *(Case("convert_element_type", 1, ALL, {"new_dtype": dtype, "weak": False}) for dtype in DTYPES.values()),
    *(
        Case("bitcast_convert_type", 1, tuple(old.split()), {"new_dtype": DTYPES[new]})
        for old, new in (
            ("i8", "u8"),
            ("u8", "i8"),
            ("f16 bf16 i16", "u16"),
            ("u16", "i16"),
            ("f32 i32", "u32"),
            ("u32", "i32"),
            ("f64 i64", "u64"),
            ("u64", "i64"),
        )
    ),
    Case("bitcast_regroup", 1, ("f64", "i64", "u64", "u32", "i32", "f32"), {"new_dtype": DTYPES["u16"]}),
    Case("bitcast_regroup", 1, ("f16", "bf16", "i16", "u16"), {"new_dtype": DTYPES["u8"]}),
    *(
        Case("reduce_precision", 1, FLOATS, {"exponent_bits": exponent, "mantissa_bits": mantissa})
        for exponent, mantissa in ((5, 10), (8, 7), (4, 3))
    ),
    *_cases("real imag conj", 1, COMPLEX),
    *_cases("complex", 2, ("f32", "f64")),
]

_FLOAT_VALUES = (
    0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, -0.5, 1.5, -1.5, 2.0, -2.5, 0.1, -0.3, 3.0, 0.999, 10.25, -10.0,
    88.0, -300.7, 1e-3, 3.14159, 65504.0,
)  # fmt: skip
_PAIRED_VALUES = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 0.5, 2.0, -3.0, -2.5, 10.25)
_PARTS = (0.0, 0.5, -1.0, 2.5, -3.25)


def values(dtype: np.dtype[Any], *, paired: bool = False) -> np.ndarray[Any, Any]:
    """Special and ordinary values of a dtype; fewer where they are to be paired with each other."""
    kind = "f" if dtype.kind == "V" else dtype.kind
    if kind == "b":
        return np.array([False, True])
    if kind in "iu":
        limits = np.iinfo(dtype)
        chosen = [0, 1, 2, 3, 7, 8, 31, limits.max, limits.max - 1, limits.min]
        chosen += [-1, -2, -7, -8, limits.min + 1] if kind == "i" else [limits.max // 2 + 1]
        return np.array(chosen, dtype)
    if kind == "c":
        if paired:
            return np.array([complex(0.5, -1.0), complex(-2.0, 0.25), complex(3.0, 1.5), complex(1.0, 0.0)], dtype)
        return np.array([complex(a, b) for a in _PARTS for b in _PARTS], dtype)
    return np.array(_PAIRED_VALUES if paired else _FLOAT_VALUES).astype(dtype)


def operands(case: Case, dtype: np.dtype[Any]) -> list[np.ndarray[Any, Any]]:
    """Arrays of all combinations of values, flat."""
    each = values(dtype, paired=case.arity > 1)
    columns = [np.array([False, True])] * case.bools + [each] * (case.arity - case.bools)
    return [np.ascontiguousarray(grid.ravel()) for grid in np.meshgrid(*columns, indexing="ij")]


def write_table(path: Path, table: Mapping[str, np.ndarray[Any, Any]]) -> None:
    """Store arrays by name in one file: their bytes in a row, beside their names, dtypes and shapes."""
    shorts = {dtype: short for short, dtype in DTYPES.items()}
    index = [f"{name}|{shorts[x.dtype]}|{','.join(map(str, x.shape))}" for name, x in table.items()]
    data = np.frombuffer(b"".join(x.tobytes() for x in table.values()), np.uint8)
    np.savez_compressed(path, index=np.array("\n".join(index)), data=data)


def read_table(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    """The arrays that `write_table` stored."""
    table, start = {}, 0
    with np.load(path) as file:
        data = file["data"]
        for line in str(file["index"]).split("\n"):
            name, short, sizes = line.split("|")
            shape = tuple(int(n) for n in sizes.split(",") if n)
            stop = start + DTYPES[short].itemsize * int(np.prod(shape))
            table[name] = data[start:stop].view(DTYPES[short]).reshape(shape)
            start = stop
    return table
