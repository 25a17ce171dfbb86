"""Write tests/random/reference.json: what JAX draws from its keys, to compare `tracer.random` with.

Run with a Python that has JAX:  python tools/random_reference.py
"names" holds JAX's public names and the parameters of its functions. Each case is {"call", "seed", "args", "dtype",
"shape", "bytes"}: the arguments after the key by keyword, and the result.
An argument {"array": [...], "dtype": ...} stands for an array. Keys are given by their words.
"""

import inspect
import json
from pathlib import Path

import jax
import numpy as np
from jax import numpy as jnp
from jax import random

jax.config.update("jax_enable_x64", True)

SEEDS = (0, 42, -1, 2**40 + 3)
SHAPES = ([], [5], [2, 3], [0])
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64")
CONTINUOUS = ("normal", "exponential", "gumbel", "laplace", "logistic", "cauchy", "maxwell")


def _array(values, dtype):
    return {"array": values, "dtype": dtype}


def _calls():
    """(name, arguments) of every case; each is drawn for every seed."""
    yield "key_data", {}
    yield from (("split", {"num": num}) for num in (1, 2, 5, [2, 3]))
    yield from (("fold_in", {"data": data}) for data in (0, 1, 2**31, 2**32 - 1))
    yield from (("bits", {"shape": s, "dtype": f"uint{w}"}) for s in SHAPES for w in (8, 16, 32, 64))
    yield from (("uniform", {"shape": s, "dtype": d}) for s in SHAPES for d in FLOATS)
    yield from (("uniform", {"shape": [7], "dtype": d, "minval": -2.0, "maxval": 6.0}) for d in FLOATS)
    yield "uniform", {"shape": [2, 3], "dtype": "float32", "minval": _array([0.0, 1.0, 2.0], "float32"), "maxval": 4.0}
    for dtype in INTEGERS:
        info = np.iinfo(dtype)
        yield "randint", {"shape": [9], "minval": 0, "maxval": 10, "dtype": dtype}
        yield "randint", {"shape": [9], "minval": max(int(info.min), -100), "maxval": 100, "dtype": dtype}
        if info.bits < 64:
            yield "randint", {"shape": [9], "minval": int(info.min), "maxval": int(info.max) + 1, "dtype": dtype}
    yield "randint", {"shape": [9], "minval": -(2**62), "maxval": 2**62 - 1, "dtype": "int64"}
    yield "randint", {"shape": [3], "minval": 5, "maxval": 5, "dtype": "int32"}
    yield "randint", {"shape": [2, 2], "minval": _array([0, 50], "int64"), "maxval": _array([[10], [60]], "int32")}
    yield from ((name, {"shape": [11], "dtype": d}) for name in CONTINUOUS for d in ("float32", "float64"))
    yield from (("normal", {"shape": [11], "dtype": d}) for d in ("float16", "bfloat16", "complex64", "complex128"))
    yield "gumbel", {"shape": [7], "dtype": "float32", "mode": "high"}
    yield "bernoulli", {"p": 0.3, "shape": [20]}
    yield "bernoulli", {"p": _array([0.1, 0.5, 0.9], "float32")}
    yield "bernoulli", {"p": _array([0.1, 0.5, 0.9], "float32"), "shape": [4, 3], "mode": "high"}
    yield "rademacher", {"shape": [20], "dtype": "int8"}
    yield "truncated_normal", {"lower": -1.5, "upper": 0.5, "shape": [11], "dtype": "float64"}
    yield "truncated_normal", {"lower": _array([-1.0, 0.0], "float32"), "upper": 2.0, "dtype": "float32"}
    yield "pareto", {"b": 2.5, "shape": [5], "dtype": "float64"}
    yield "rayleigh", {"scale": _array([1.0, 2.0], "float64"), "dtype": "float64"}
    yield "weibull_min", {"scale": 2.0, "concentration": 1.5, "shape": [5], "dtype": "float64"}
    yield "lognormal", {"sigma": 0.5, "shape": [5], "dtype": "float64"}
    yield "triangular", {"left": 0.0, "mode": 1.0, "right": 3.0, "shape": [5], "dtype": "float64"}
    yield "wald", {"mean": _array([0.5, 2.0], "float64"), "dtype": "float64"}
    yield "double_sided_maxwell", {"loc": 1.0, "scale": 2.0, "shape": [5], "dtype": "float64"}
    yield "geometric", {"p": _array([0.2, 0.7], "float64"), "shape": [6, 2], "dtype": "int32"}
    for name in ("gamma", "loggamma"):
        yield name, {"a": _array([0.01, 0.5, 1.0, 3.5, 200.0], "float64"), "shape": [4, 5], "dtype": "float64"}
        yield name, {"a": 0.7, "shape": [9], "dtype": "float32"}
    yield "beta", {"a": _array([0.1, 2.0], "float64"), "b": _array([3.0, 0.5], "float64"), "shape": [4, 2]}
    yield "dirichlet", {"alpha": _array([[0.1, 1.0, 5.0], [2.0, 2.0, 2.0]], "float64")}
    yield "dirichlet", {"alpha": _array([0.5, 1.5], "float32"), "shape": [3], "dtype": "float32"}
    yield "chisquare", {"df": _array([1.0, 4.5], "float64"), "shape": [3, 2]}
    yield "f", {"dfnum": _array([1.0, 4.0], "float64"), "dfden": 5.0, "dtype": "float64"}
    yield "t", {"df": _array([1.0, 4.5], "float64"), "shape": [3, 2]}
    yield "t", {"df": 3.0, "shape": [7], "dtype": "float32"}
    yield "generalized_normal", {"p": 1.5, "shape": [7]}
    for dtype in ("float32", "float64"):
        cov = _array([[2.0, 0.3, 0.1], [0.3, 1.0, -0.4], [0.1, -0.4, 1.5]], dtype)
        yield "multivariate_normal", {"mean": _array([1.0, -2.0, 0.5], dtype), "cov": cov, "shape": [5]}
    yield "ball", {"d": 3, "shape": [2]}
    yield "ball", {"d": 2, "p": 1.0, "shape": [3], "dtype": "float32"}
    # not of larger rates, where the rounding of JAX's likelihoods in float32 decides
    yield "poisson", {"lam": _array([0.0, 0.3, 4.0, 9.9, 10.0, 300.0], "float64"), "shape": [3, 6]}
    yield "poisson", {"lam": 5.0, "shape": [9], "dtype": "int32"}
    counts = _array([0.0, 5.0, 40.0, 1000.0, -1.0, 30.5], "float64")
    yield "binomial", {"n": counts, "p": _array([[0.3], [0.9], [0.0], [1.0]], "float64"), "shape": [4, 6]}
    yield "binomial", {"n": 50, "p": _array([0.2, 0.5, 0.7], "float32"), "shape": [4, 3], "dtype": "float32"}
    yield "multinomial", {"n": 20.0, "p": _array([0.2, 0.3, 0.5], "float64")}
    chances = _array([[0.5, 0.25, 0.25], [0.0, 0.1, 0.9]], "float32")
    yield "multinomial", {"n": _array([200.0, 7.0], "float32"), "p": chances}
    yield "permutation", {"x": 10}
    yield "permutation", {"x": _array(list(range(12)), "float32")}
    yield "permutation", {"x": _array([[0, 1, 2], [3, 4, 5]], "int64"), "axis": 1}
    yield "permutation", {"x": _array([[0, 1, 2], [3, 4, 5]], "int64"), "axis": 1, "independent": True}
    yield "choice", {"a": 10, "shape": [6]}
    yield "choice", {"a": 10, "shape": [2, 3], "replace": False}
    yield "choice", {"a": _array([[0, 1, 2], [3, 4, 5]], "int64"), "shape": [4], "axis": 1}
    yield "choice", {"a": 4, "shape": [9], "p": _array([0.1, 0.2, 0.3, 0.4], "float64")}
    yield "choice", {"a": 4, "shape": [3], "replace": False, "p": _array([0.1, 0.2, 0.3, 0.4], "float64")}
    logits = _array([[0.0, 1.0, 2.0], [3.0, -1.0, 0.5]], "float32")
    yield "categorical", {"logits": logits}
    yield "categorical", {"logits": logits, "axis": 0}
    yield "categorical", {"logits": logits, "shape": [5, 2]}
    yield "categorical", {"logits": logits, "shape": [2, 2], "replace": False}
    for dtype in ("float32", "float64", "complex128"):
        yield "orthogonal", {"n": 3, "shape": [2], "dtype": dtype}
        yield "orthogonal", {"n": 2, "m": 4, "dtype": dtype}


def _value(argument):
    if isinstance(argument, dict):
        return jnp.asarray(np.array(argument["array"], argument["dtype"]))
    return tuple(argument) if isinstance(argument, list) else argument


def _cases():
    for name, args in _calls():
        for seed in SEEDS:
            key = random.key(seed)
            result = getattr(random, name)(key, **{n: _value(a) for n, a in args.items()})
            if jnp.issubdtype(result.dtype, jax.dtypes.prng_key):
                result = random.key_data(result)
            found = np.asarray(result)
            yield {
                "call": name, "seed": seed, "args": args,
                "dtype": str(found.dtype), "shape": found.shape, "bytes": found.tobytes().hex(),
            }  # fmt: skip


def _names():
    """Primitives are no functions for users."""
    for name in sorted(dir(random)):
        value = getattr(random, name)
        if not name.startswith("_") and not name.endswith("_p") and callable(value):
            yield name, list(inspect.signature(value).parameters)


if __name__ == "__main__":
    target = Path(__file__).parent.parent / "tests" / "random" / "reference.json"
    names = ",\n".join(f"{json.dumps(name)}: {json.dumps(parameters)}" for name, parameters in _names())
    lines = ",\n".join(json.dumps(case) for case in _cases())
    target.write_text(f'{{"jax": "{jax.__version__}", "names": {{\n{names}\n}}, "cases": [\n{lines}\n]}}\n')
