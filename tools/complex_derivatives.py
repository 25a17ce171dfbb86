"""Write tests/transforms/complex_derivatives.json: what JAX gives as derivatives of functions of complex numbers.

Run with a Python that has JAX:  python tools/complex_derivatives.py
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

import jax  # noqa: E402

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
from jax import lax  # noqa: E402

from tests.transforms.complex_functions import DIRECTION, Z, functions  # noqa: E402


def _pairs(values):
    return [[float(v.real), float(v.imag)] for v in jnp.ravel(values)]


def _table():
    z, dz = jnp.asarray(Z), jnp.asarray(DIRECTION)
    real, holomorphic = functions(jnp, lax)
    for name, f in real.items():
        pushed = jax.jvp(f, (z,), (dz,))[1]
        yield name, {"jvp": float(pushed), "grad": _pairs(_grad(f, z))}
    for name, f in holomorphic.items():
        yield (
            name,
            {
                "jvp": _pairs(jax.jvp(f, (z,), (dz,))[1]),
                "vjp": _pairs(jax.vjp(f, z)[1](dz)[0]),
                "grad": _pairs(jax.grad(lambda v, f=f: f(v).sum(), holomorphic=True)(z)),
            },
        )


def _grad(f, z):
    """By forward mode where JAX has no reverse mode: ∂/∂x - i ∂/∂y of each."""
    try:
        return jax.grad(f)(z)
    except ValueError:
        units = jnp.eye(len(z), dtype=z.dtype)
        return jnp.stack([jax.jvp(f, (z,), (u,))[1] - 1j * jax.jvp(f, (z,), (1j * u,))[1] for u in units])


if __name__ == "__main__":
    target = ROOT / "tests" / "transforms" / "complex_derivatives.json"
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(values)}" for name, values in _table())
    target.write_text(f'{{"jax": "{jax.__version__}", "functions": {{\n{lines}\n}}}}\n')
