"""Write tests/nn/reference.json: what JAX's initializers draw, and what its attention gives in float32.

Run with a Python that has JAX:  JAX_ENABLE_X64=1 python -m tools.nn_reference
"""

import json
from pathlib import Path

import jax
import numpy as np

from tests.nn.reference_cases import (
    ATTENTION,
    DISTRIBUTIONS,
    MODES,
    PLAIN,
    SCALED,
    SHAPES,
    operands,
    options,
)

TARGET = Path(__file__).parent.parent / "tests" / "nn" / "reference.json"


def drawn():
    """The numbers of every initializer, by name and shape."""
    key = jax.random.key(7)
    init = jax.nn.initializers
    for label, shape in SHAPES.items():
        for dtype in ("float32", "complex64"):
            for mode in MODES:
                for distribution in DISTRIBUTIONS:
                    made = init.variance_scaling(1.5, mode, distribution)(key, shape, dtype)
                    yield f"variance_scaling {mode} {distribution} {label} {dtype}", made
        for name in SCALED:
            yield f"{name} {label}", getattr(init, name)()(key, shape, "float32")
        for name, arguments in PLAIN.items():
            yield f"{name} {label}", getattr(init, name)(*arguments)(key, shape, "float32")
    yield "lecun_normal axes", init.lecun_normal(in_axis=(0, 1), out_axis=2)(key, (3, 2, 4), "float32")


def listed(x):
    """As lists; complex numbers by their parts."""
    x = np.asarray(x)
    return [x.real.tolist(), x.imag.tolist()] if x.dtype.kind == "c" else x.tolist()


if __name__ == "__main__":
    query, key, value, bias, mask = operands()
    attention = {}
    for label, case in ATTENTION.items():
        found = jax.nn.dot_product_attention(query, key, value, **options(case, bias, mask))
        attention[label] = [listed(x) for x in (found if isinstance(found, tuple) else (found,))]
    numbers = {name: listed(x) for name, x in drawn()}
    TARGET.write_text(json.dumps({"jax": jax.__version__, "initializers": numbers, "attention": attention}) + "\n")
