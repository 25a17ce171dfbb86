"""Write tests/numpy/jax_names.json: the public names of `jax.numpy` and the parameters of its functions.

Run with a Python that has JAX:  python tools/numpy_names.py
"""

import inspect
import json
from pathlib import Path

import jax
import jax.numpy as jnp


def _parameters(value):
    """None where the signature says nothing, as (*args) does."""
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return []
    return [] if list(parameters) == ["args"] else list(parameters)


def _names():
    for name in sorted(dir(jnp)):
        value = getattr(jnp, name)
        if not name.startswith("_") or name == "__array_namespace_info__":
            function = callable(value) and not isinstance(value, type)
            yield name, _parameters(value) if function else []


if __name__ == "__main__":
    target = Path(__file__).parent.parent / "tests" / "numpy" / "jax_names.json"
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(parameters)}" for name, parameters in _names())
    target.write_text(f'{{"jax": "{jax.__version__}", "names": {{\n{lines}\n}}}}\n')
