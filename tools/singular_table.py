"""Write tests/transforms/jax_singular.json: derivatives by every pair of modes at singular points, as JAX has them.

Run:  JAX_ENABLE_X64=1 python tools/singular_table.py   in an environment with JAX, from the repository's root
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import lax, nn
from jax.scipy import special

ROOT = Path(__file__).parent.parent
TARGET = ROOT / "tests" / "transforms" / "jax_singular.json"
NAMES = {
    "jnp": jnp,
    "lax": lax,
    "nn": nn,
    "special": special,
    "grad": jax.grad,
    "jvp": lambda f: lambda x: jax.jvp(f, (x,), (1.0,))[1],
}


def main() -> None:
    """For each function and point the values in the order of ORDERS, "-" where JAX has no such derivative."""
    sys.path.insert(0, str(ROOT))
    from tests.transforms.singular_cases import FUNCTIONS, ORDERS, POINTS  # noqa: PLC0415  # found once the path is set

    table: dict[str, list[str]] = {"jax": [jax.__version__]}
    for name, text in FUNCTIONS.items():
        for point in POINTS:
            scope = {**NAMES, "x": jnp.asarray(float(point))}
            scope["f"] = eval(f"lambda x: {text}", scope)
            found = []
            for order in ORDERS.values():
                try:
                    found.append(repr(float(eval(order, scope))))
                except NotImplementedError:  # JAX has no rule
                    found.append("-")
            table[f"{name} at {point}"] = found
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(found)}" for name, found in table.items())
    TARGET.write_text(f"{{\n{lines}\n}}\n")


if __name__ == "__main__":
    main()
