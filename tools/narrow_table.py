"""Writes tests/numpy/narrow_conversions.json: what JAX converts to and from the narrow dtypes.

    python tools/narrow_table.py           needs JAX; the table in the repository came from JAX 0.10.2

A row is a dtype: "to f32" has every value of it, "of f32" what `samples` become, both as bytes in hexadecimal. Rows
that XLA's CPU backend does not compile (float6, uint1), or takes for bools (int1), are null.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Write the table."""
    sys.path.insert(0, str(ROOT / "tests" / "numpy"))
    from narrow_cases import NAMES, samples, values  # noqa: PLC0415  # not a package here

    jax.config.update("jax_enable_x64", True)
    rows: dict[str, Any] = {}
    for name in NAMES:
        dtype = np.dtype(name)
        try:
            wide = np.asarray(jnp.asarray(values(dtype)).astype(jnp.float32))
            back = np.asarray(jnp.asarray(samples(dtype)).astype(dtype))
        except (ValueError, jax.errors.JaxRuntimeError):
            rows[name] = None
            continue
        rows[name] = None if name == "int1" else {"to f32": wide.tobytes().hex(), "of f32": back.tobytes().hex()}
    lines = [f"{json.dumps(name)}: {json.dumps(row)}" for name, row in rows.items()]
    path = ROOT / "tests" / "numpy" / "narrow_conversions.json"
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(rows)} dtypes of jax {jax.__version__} in {path}")


if __name__ == "__main__":
    main()
