"""Writes tests/ir/promotion_table.json: what JAX, with x64 on, promotes each pair of dtypes to.

    python tools/promotion_table.py        needs JAX; the table in the repository came from JAX 0.10.2

A row is an operand, a column the other one; names are those of the printed IR, with a star for weak types
(Python scalars and what came of them). An entry is the type of their sum, or null where JAX has none.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
from jax import dtypes
from jax._src.lax.lax import _convert_element_type

TARGET = Path(__file__).parents[1] / "tests" / "ir" / "promotion_table.json"
DTYPES = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f8e4m3fn": ml_dtypes.float8_e4m3fn, "f8e5m2": ml_dtypes.float8_e5m2,
    "f16": np.float16, "bf16": ml_dtypes.bfloat16, "f32": np.float32, "f64": np.float64,
    "c64": np.complex64, "c128": np.complex128,
}  # fmt: skip
SHORT = {np.dtype(dtype): name for name, dtype in DTYPES.items()}


@cache
def operand(name: str) -> jax.Array:
    """A scalar of the dtype. JAX has no public way to weak ones other than the dtypes of Python's scalars."""
    dtype = np.dtype(DTYPES[name.rstrip("*")])
    return _convert_element_type(jnp.zeros(()), dtype, weak_type=name.endswith("*"))


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
