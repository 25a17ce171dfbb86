"""Writes tests/ir/promotion_table.json: what JAX, with x64 on, promotes each pair of dtypes to.

    python tools/promotion_table.py        needs JAX; the table in the repository came from JAX 0.10.2

A row is an operand, a column the other one; names are those of the printed IR, with a star for weak types
(Python scalars and what came of them). An entry is the type of their sum, or null where JAX has none.
"""

from __future__ import annotations

import json
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import dtypes

TARGET = Path(__file__).parents[1] / "tests" / "ir" / "promotion_table.json"
DTYPES = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "i1": ml_dtypes.int1, "i2": ml_dtypes.int2, "i4": ml_dtypes.int4,
    "u1": ml_dtypes.uint1, "u2": ml_dtypes.uint2, "u4": ml_dtypes.uint4,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2, "f8e3m4": ml_dtypes.float8_e3m4,
    "f8e4m3": ml_dtypes.float8_e4m3, "f8e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "f8e4m3fnuz": ml_dtypes.float8_e4m3fnuz, "f8e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "f8e8m0fnu": ml_dtypes.float8_e8m0fnu, "f6e2m3fn": ml_dtypes.float6_e2m3fn, "f6e3m2fn": ml_dtypes.float6_e3m2fn,
    "f4e2m1fn": ml_dtypes.float4_e2m1fn,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip
SHORT = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


def operand(name: str) -> jax.ShapeDtypeStruct:
    """A scalar of the dtype."""
    return jax.ShapeDtypeStruct((), np.dtype(DTYPES[name.rstrip("*")]), weak_type=name.endswith("*"))


def promoted(a: str, b: str) -> str | None:
    """The short name of the result, starred if it is weak."""
    try:
        result = jax.eval_shape(jnp.add, operand(a), operand(b))
    except dtypes.TypePromotionError:
        return None
    return SHORT[result.dtype] + "*" * result.weak_type


def main() -> None:
    """Write the table."""
    jax.config.update("jax_enable_x64", True)
    names = [*DTYPES, *(f"{name}*" for name in DTYPES if name != "bool")]
    rows = [f"{json.dumps(a)}: {json.dumps({b: promoted(a, b) for b in names})}" for a in names]
    TARGET.write_text("{\n" + ",\n".join(rows) + "\n}\n")


if __name__ == "__main__":
    main()
