"""What JAX gives for the calls of tests/lax/call_cases.py, or that it refuses: written to tests/lax/jax_calls.npz.

Run where JAX is installed, after adding a case:

    python tools/lax_calls_table.py
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax as public
from jax._src.lax.windowed_reductions import _select_and_scatter

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from tests.lax.call_cases import CASES, Case  # noqa: E402
from tests.primitives.elementwise_cases import write_table  # noqa: E402
from tests.primitives.structural_cases import outputs_of, weights  # noqa: E402

lax = SimpleNamespace(**{name: value for name, value in vars(public).items() if not name.startswith("_")})
lax.select_and_scatter = _select_and_scatter


def entries(case: Case) -> dict[str, Any]:
    """The outputs of a call and its gradients, by name; `refused` where there are none."""
    xs = [jnp.asarray(x) for x in case.operands]
    try:
        outputs = outputs_of(case.call(lax, *xs))
    except (TypeError, ValueError) as error:
        print(case.label, "refused:", str(error)[:80])
        return {"refused": np.array(True)}
    found = {f"out{i}": np.asarray(y) for i, y in enumerate(outputs)}
    active = [i for i, x in enumerate(xs) if jnp.issubdtype(x.dtype, jnp.inexact)]
    if case.smooth and active and any(jnp.issubdtype(y.dtype, jnp.inexact) for y in outputs):

        def total(*moving: Any) -> Any:
            given = dict(zip(active, moving, strict=True))
            results = outputs_of(case.call(lax, *(given.get(i, x) for i, x in enumerate(xs))))
            sums = [jnp.sum(y * weights(y)) for y in results if jnp.issubdtype(y.dtype, jnp.inexact)]
            return sum(jnp.real(s) + 2 * jnp.imag(s) for s in sums)

        gradients = jax.grad(total, tuple(range(len(active))))(*(xs[i] for i in active))
        found |= {f"grad{i}": np.asarray(g) for i, g in zip(active, gradients, strict=True)}
    return found


def main() -> None:
    """Write the table."""
    jax.config.update("jax_enable_x64", True)
    table = {f"{case.label}.{name}": x for case in CASES for name, x in entries(case).items()}
    write_table(ROOT / "tests" / "lax" / "jax_calls.npz", table)
    print(len(table), "entries, JAX", jax.__version__)


if __name__ == "__main__":
    main()
