"""Write tests/transforms/jax_kinks.json: values and derivatives at kinks, as JAX has them.

Run:  JAX_ENABLE_X64=1 python tools/kinks_table.py   in an environment with JAX, from the repository's root
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax, nn
from jax.scipy import special

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "tests" / "transforms" / "jax_kinks.json"
NAMES = {"jnp": jnp, "lax": lax, "nn": nn, "special": special}


def main() -> None:
    """The value, the gradient, and the gradient of that, for each case."""
    sys.path.insert(0, str(ROOT))
    from tests.transforms.kink_cases import KINKS  # noqa: PLC0415  # it is found once the path is set

    table: dict[str, list[Any]] = {"jax": [jax.__version__]}
    for name, (text, points) in KINKS.items():
        function = eval(f"lambda x: {text}", dict(NAMES))
        for point in points:
            orders = (function, jax.grad(function), jax.grad(jax.grad(function)))
            table[f"{name} at {point}"] = [repr(float(order(jnp.asarray(point)))) for order in orders]
    TARGET.write_text(json.dumps(table, indent=1) + "\n")


if __name__ == "__main__":
    main()
