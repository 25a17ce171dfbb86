"""Write tests/lax/jax_names.json: the public names of `jax.lax` and the parameters of its functions.

Run with a Python that has JAX:  python tools/lax_names.py
"""

import inspect
import json
from pathlib import Path

import jax
from jax import lax


def _parameters(value):
    """None where the signature says nothing, as (*args) does."""
    try:
        parameters = inspect.signature(value).parameters
    except (TypeError, ValueError):
        return []
    return [] if list(parameters) == ["args"] else list(parameters)


def _names():
    """Primitives (`*_p`) and submodules are no functions for users."""
    for name in sorted(dir(lax)):
        value = getattr(lax, name)
        if not name.startswith("_") and not name.endswith("_p") and not inspect.ismodule(value):
            yield name, _parameters(value) if inspect.isroutine(value) or hasattr(value, "__wrapped__") else []


if __name__ == "__main__":
    target = Path(__file__).parent.parent / "tests" / "lax" / "jax_names.json"
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(parameters)}" for name, parameters in _names())
    target.write_text(f'{{"jax": "{jax.__version__}", "names": {{\n{lines}\n}}}}\n')
