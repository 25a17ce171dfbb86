"""Store the result dtypes of JAX's numpy functions, with 64 bits on, for `tests/numpy/test_dtypes.py`.

python tools/numpy_dtype_table.py        in an environment that has JAX; writes tests/numpy/dtypes.json
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp

ROOT = Path(__file__).resolve().parent.parent
NEED_VALUES = ("bincount", "nonzero")


def traced(call: Callable[[], Any]) -> Callable[[], Any]:
    """The call's types without computing it."""
    return lambda: jax.eval_shape(call)


def main() -> None:
    """Write the table."""
    sys.path.insert(0, str(ROOT / "tests" / "numpy"))
    from dtype_cases import cases, described  # noqa: PLC0415  # not a package here

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_numpy_dtype_promotion", "standard")
    found = cases(jnp)
    table = {name: described(call if name.startswith(NEED_VALUES) else traced(call)) for name, call in found.items()}
    lines = [f"{json.dumps(name)}: {json.dumps(dtype)}" for name, dtype in table.items()]
    path = ROOT / "tests" / "numpy" / "dtypes.json"
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    print(f"{len(table)} dtypes of jax {jax.__version__} in {path}")


if __name__ == "__main__":
    main()
