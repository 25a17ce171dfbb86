"""Write jax_names.json under tests/numpy and tests/lax: JAX's public names and the parameters of its functions.

Run with a Python that has JAX:  python tools/jax_names.py
"""

import inspect
import json
from pathlib import Path

import jax
import jax.numpy as jnp
from jax import lax

TESTS = Path(__file__).parent.parent / "tests"


def parameters(value):
    """None where the signature says nothing, as (*args) does."""
    try:
        found = list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return []
    return [] if found == ["args"] else found


def numpy_names():
    """Every name, with no parameters for what is no function."""
    for name in sorted(dir(jnp)):
        value = getattr(jnp, name)
        if not name.startswith("_") or name == "__array_namespace_info__":
            function = callable(value) and not isinstance(value, type)
            yield name, parameters(value) if function else []


def lax_names():
    """Primitives (`*_p`) and submodules are no functions for users."""
    for name in sorted(dir(lax)):
        value = getattr(lax, name)
        if not name.startswith("_") and not name.endswith("_p") and not inspect.ismodule(value):
            yield name, parameters(value) if inspect.isroutine(value) or hasattr(value, "__wrapped__") else []


def members():
    """The public attributes of arrays."""
    return [name for name in dir(jnp.ones(2)) if not name.startswith("_")]


if __name__ == "__main__":
    for folder, names in (("numpy", numpy_names()), ("lax", lax_names())):
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(found)}" for name, found in names)
        more = f', "members": {json.dumps(members())}' if folder == "numpy" else ""
        text = f'{{"jax": "{jax.__version__}", "names": {{\n{lines}\n}}{more}}}\n'
        (TESTS / folder / "jax_names.json").write_text(text, encoding="utf-8")
