"""Write tests/optim/reference.npz: trajectories of Optax's optimizers, its schedules, and the fields of its states.

Run with a Python that has JAX and Optax:  python -m tools.optax_reference
"""

import functools
import inspect
import json
import warnings
from pathlib import Path
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import optax
import optax.contrib

from tests.optim.cases import (
    ADAFACTOR,
    CASES,
    COMPLEX,
    COUNTS,
    LINE_STEPS,
    SCHEDULES,
    SEARCHES,
    SHOWN,
    STEPS,
    VALLEY,
    gradient,
    keywords,
    rosenbrock,
    start,
)

TARGET = Path(__file__).parent.parent / "tests" / "optim" / "reference.npz"
OPTAX = SimpleNamespace(
    **{name: getattr(room, name) for room in (optax.contrib, optax) for name in dir(room) if not name.startswith("_")}
)


def in_default_float(make):
    """A maker of schedules, of schedules that do not round int32 counts to float32."""
    return lambda *args, **kwargs: lambda count: make(*args, **kwargs)(jnp.asarray(count, float))


def signatures():
    """The parameters of every public function, with the text of their defaults."""
    found = {}
    for name, value in sorted(vars(OPTAX).items()):
        if inspect.isfunction(value) or isinstance(value, functools.partial):
            parameters = inspect.signature(value).parameters.values()
            found[name] = [[p.name, "" if p.default is p.empty else repr(p.default)] for p in parameters]
    return found


SIGNATURES = signatures()
for _name in {name.split()[0] for name in SCHEDULES} - {"join_schedules"}:
    setattr(OPTAX, _name, in_default_float(getattr(OPTAX, _name)))


def flat(params):
    """All numbers of a tree, in one array."""
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(params)])


def walked(name, make, dtype):
    """The parameters at the steps that are shown, and the paths of the state's leaves."""
    tx = OPTAX.chain(make(OPTAX))
    params = jax.tree.map(jnp.asarray, start(dtype))
    state = tx.init(params)

    @jax.jit
    def step(params, state, count):
        extra = keywords(name, jnp, params, count)
        updates, state = tx.update(gradient(jnp, params, count), state, params, **extra)
        return OPTAX.apply_updates(params, updates), state

    shown = []
    for count in range(STEPS):
        params, state = step(params, state, count)
        if count in SHOWN:
            shown.append(flat(params))
    paths = [jax.tree_util.keystr(path) for path, _ in jax.tree_util.tree_leaves_with_path(state)]
    return np.stack(shown), paths


def looked_ahead(dtype, reset):
    """The fast and slow parameters of lookahead at the steps that are shown."""
    tx = OPTAX.lookahead(OPTAX.adam(0.1), 4, 0.6, reset_state=reset)
    params = OPTAX.LookaheadParams.init_synced(jax.tree.map(jnp.asarray, start(dtype)))
    state = tx.init(params)
    shown = []
    for count in range(STEPS):
        updates, state = tx.update(gradient(jnp, params.fast, count), state, params)
        params = OPTAX.apply_updates(params, updates)
        if count in SHOWN:
            shown.append(flat(params))
    return np.stack(shown)


def searched(make, dtype):
    """The parameters after each step of an optimizer with a line search."""
    tx = make(OPTAX)
    value_fn = lambda p: rosenbrock(jnp, p)  # noqa: E731
    params = {name: jnp.asarray(x, dtype) for name, x in VALLEY.items()}
    state = tx.init(params)
    shown = []
    for _ in range(LINE_STEPS):
        value, grad = jax.value_and_grad(value_fn)(params)
        line = {"value": value, "grad": grad, "value_fn": value_fn}
        updates, state = tx.update(grad, state, params, **line)
        params = OPTAX.apply_updates(params, updates)
        shown.append(flat(params))
    return np.stack(shown)


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    found = {}
    fields, errors = {}, {}  # of float32 trajectories, in distances from those of float64
    for wide in (False, True):
        jax.config.update("jax_enable_x64", wide)
        for name, make in {**CASES, **ADAFACTOR}.items():
            shown, fields[name] = walked(name, make, "float64" if wide else "float32")
            if wide:
                errors[name] = float(abs(shown - found[name]).max())
            found[name] = shown
    for name, make in COMPLEX.items():
        found[f"complex {name}"], _ = walked(name, make, "complex128")
    for reset in (False, True):
        found[f"lookahead {reset}"] = looked_ahead("float64", reset)
    for name, make in SEARCHES.items():
        found[f"search {name}"] = searched(make, "float64")
    for name, make in SCHEDULES.items():
        schedule = make(OPTAX)
        found[f"schedule {name}"] = np.array([float(schedule(jnp.asarray(n, "int32"))) for n in COUNTS])
    said = json.dumps(
        {
            "optax": optax.__version__,
            "jax": jax.__version__,
            "fields": fields,
            "errors": errors,
            "signatures": SIGNATURES,
        }
    )
    np.savez_compressed(TARGET, said=np.frombuffer(said.encode(), np.uint8), **found)
    print(TARGET.stat().st_size, "bytes,", len(found), "arrays")
