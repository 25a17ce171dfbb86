"""What JAX gives for every elementwise primitive at special values: written to tests/primitives/elementwise.npz.

Run where JAX is installed, after adding a primitive to `tests/primitives/elementwise_cases.py`:

    python tools/elementwise_table.py
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.primitives.elementwise_cases import CASES, DTYPES, NOT_IN_JAX, operands, write_table  # noqa: E402

NAMES: dict[str, Callable[..., Any]] = {
    "and": lax.bitwise_and, "or": lax.bitwise_or, "xor": lax.bitwise_xor, "not": lax.bitwise_not,
    "log2": jnp.log2, "hypot": jnp.hypot,
    "round_even": lambda x: lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN),
    "round_away": lambda x: lax.round(x, lax.RoundingMethod.AWAY_FROM_ZERO),
    "select": lax.select,
    "convert_element_type": lambda x, *, new_dtype, weak: lax.convert_element_type(x, new_dtype),
    "bitcast_regroup": lax.bitcast_convert_type,
    "polygamma": lambda x, *, order: lax.polygamma(jnp.full_like(x, order), x),
}  # fmt: skip


def main() -> None:
    """Write the table."""
    jax.config.update("jax_enable_x64", True)
    table: dict[str, np.ndarray[Any, Any]] = {}
    for case in CASES:
        if case.name in NOT_IN_JAX:
            continue
        function = NAMES.get(case.name) or getattr(lax, case.name)
        for short in case.dtypes:
            arrays = [jnp.asarray(x) for x in operands(case, DTYPES[short])]
            table[f"{case.label} {short}"] = np.asarray(function(*arrays, **case.params))
    write_table(ROOT / "tests" / "primitives" / "elementwise.npz", table)


if __name__ == "__main__":
    main()
