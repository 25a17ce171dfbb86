"""Write tests/jax_signatures.json: the public names of JAX beside `jax.lax` and `jax.numpy`, and their parameters.

Run with a Python that has JAX:  python tools/jax_signatures.py
"""

import importlib
import inspect
import json
from pathlib import Path

import jax

DISTRIBUTIONS = (
    "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gennorm", "geom",
    "gumbel_l", "gumbel_r", "laplace", "logistic", "multinomial", "multivariate_normal", "nbinom", "norm", "pareto",
    "poisson", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
)  # fmt: skip
MODULES = (
    "jax",
    "jax.ad_checkpoint",
    "jax.checkpoint_policies",
    "jax.custom_batching",
    "jax.custom_derivatives",
    "jax.debug",
    "jax.dtypes",
    "jax.errors",
    "jax.experimental",
    "jax.experimental.sparse",
    "jax.flatten_util",
    "jax.lax.linalg",
    "jax.nn",
    "jax.nn.initializers",
    "jax.ops",
    "jax.random",
    "jax.scipy",
    "jax.scipy.integrate",
    "jax.scipy.linalg",
    "jax.scipy.ndimage",
    "jax.scipy.signal",
    "jax.scipy.sparse",
    "jax.scipy.sparse.linalg",
    "jax.scipy.special",
    "jax.scipy.stats",
    *(f"jax.scipy.stats.{name}" for name in DISTRIBUTIONS),
    "jax.sharding",
    "jax.test_util",
    "jax.tree",
    "jax.tree_util",
    "jax.typing",
)
# whose submodules are names for users
OF_MODULES = ("jax.nn", "jax.scipy", "jax.scipy.sparse", "jax.scipy.stats")


def _default(parameter):
    """A plain default as text; None where there is none, and "..." for objects of JAX's own."""
    value = parameter.default
    if value is parameter.empty:
        return None
    return repr(value) if value is None or isinstance(value, bool | int | str | tuple) else "..."


def _parameters(value):
    """[name, kind, default] of each; None where nothing is said."""
    try:
        parameters = inspect.signature(value).parameters.values()
    except (TypeError, ValueError):
        return None
    return [[p.name, p.kind.name, _default(p)] for p in parameters if not p.name.startswith("_")]


def _names(path):
    module = jax.checkpoint_policies if path == "jax.checkpoint_policies" else importlib.import_module(path)
    for name in sorted(dir(module)):
        value = getattr(module, name)
        hidden = name.startswith("_") or name.endswith("_p") or (inspect.ismodule(value) and path not in OF_MODULES)
        if not hidden:
            yield name, _parameters(value) if callable(value) else None


if __name__ == "__main__":
    target = Path(__file__).parent.parent / "tests" / "jax_signatures.json"
    modules = []
    for path in MODULES:
        lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(parameters)}" for name, parameters in _names(path))
        modules.append(f"{json.dumps(path)}: {{\n{lines}\n}}")
    target.write_text(f'{{"jax": "{jax.__version__}", "modules": {{\n' + ",\n".join(modules) + "\n}}\n")
