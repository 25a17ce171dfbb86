"""What tools/nn_reference.py stores of JAX's initializers and attention: names, shapes, operands."""

import numpy as np

SCALED = ("glorot_normal", "glorot_uniform", "he_normal", "he_uniform", "lecun_normal", "lecun_uniform")
PLAIN = {"constant": [2.5], "normal": [5.0], "truncated_normal": [5.0], "uniform": [5.0]}
SHAPES = {"matrix": (2, 3), "kernel": (3, 2, 4)}
MODES = ("fan_in", "fan_out", "fan_avg", "fan_geo_avg")
DISTRIBUTIONS = ("truncated_normal", "normal", "uniform")

# Of attention: what is passed beside query, key and value.
ATTENTION = {
    "plain": {},
    "causal": {"is_causal": True},
    "scaled": {"scale": 0.3, "bias": True},
    "masked": {"mask": True, "local_window_size": [2, 1]},
    "lengths": {"query_seq_lengths": [2, 4], "key_value_seq_lengths": [3, 5]},
    "residual": {"return_residual": True, "is_causal": True},
}


def operands():
    """Query [2, 4, 4, 3], key and value [2, 5, 2, 3]; bias and mask [2, 4, 4, 5]."""
    rng = np.random.default_rng(0)
    query, key, value = (rng.normal(size=size).astype("float32") for size in ((2, 4, 4, 3), (2, 5, 2, 3), (2, 5, 2, 3)))
    return query, key, value, rng.normal(size=(2, 4, 4, 5)).astype("float32"), rng.random((2, 1, 4, 5)) > 0.4


def options(case, bias, mask):
    """A case's, with arrays in place."""
    found = dict(case)
    for name, array in (("bias", bias), ("mask", mask)):
        if found.get(name) is True:
            found[name] = array
    for name in ("query_seq_lengths", "key_value_seq_lengths"):
        if name in found:
            found[name] = np.asarray(found[name], "int32")
    if "local_window_size" in found:
        found["local_window_size"] = tuple(found["local_window_size"])
    return found
