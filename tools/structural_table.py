"""What JAX gives for the calls of tests/primitives/structural_cases.py: written to tests/primitives/structural.npz.

Run where JAX is installed, after adding a case:

    python tools/structural_table.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.primitives.structural_cases import CASES, Case, outputs_of, weights  # noqa: E402


def gradients(case: Case, outputs: list[Any]) -> list[Any]:
    """Of the inexact outputs' weighted sum, by every inexact operand."""
    if not case.smooth or not any(jnp.issubdtype(y.dtype, jnp.floating) for y in outputs):
        return []

    def total(*active: Any) -> Any:
        given = iter(active)
        xs = [next(given) if on else jnp.asarray(x) for x, on in zip(case.operands, case.active, strict=True)]
        return sum(
            jnp.sum(y * weights(y)) for y in outputs_of(case.call(lax, *xs)) if jnp.issubdtype(y.dtype, jnp.inexact)
        )

    active = [jnp.asarray(x) for x, on in zip(case.operands, case.active, strict=True) if on]
    return list(jax.grad(total, tuple(range(len(active))))(*active))


def main() -> None:
    """Write the table."""
    jax.config.update("jax_enable_x64", True)
    table = {}
    for case in CASES:
        outputs = outputs_of(case.call(lax, *map(jnp.asarray, case.operands)))
        for kind, arrays in (("out", outputs), ("grad", gradients(case, outputs))):
            table.update({f"{case.label}.{kind}{i}": np.asarray(x) for i, x in enumerate(arrays)})
    np.savez_compressed(ROOT / "tests" / "primitives" / "structural.npz", **table)
    print(len(table), "entries, JAX", jax.__version__)


if __name__ == "__main__":
    main()
