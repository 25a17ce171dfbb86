"""What tools/optax_reference.py stores of Optax's trajectories: problems, optimizers, schedules.

`o` is Optax with its contrib names, or `tracer.optim`; `xp` is `jax.numpy` or `tracer.numpy`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

STEPS = 30
SHOWN = (0, 1, 4, 11, 29)  # the steps whose parameters are stored

SHAPES = {"w": (4, 3), "b": (3,), "deep": (2, 2, 3)}


def start(dtype: str) -> dict[str, Any]:
    """Parameters to begin with, as NumPy arrays."""
    draw = np.random.default_rng(3)
    found = {name: draw.normal(size=shape) for name, shape in SHAPES.items()}
    if np.dtype(dtype).kind == "c":
        found = {name: x + 1j * draw.normal(size=x.shape) for name, x in found.items()}
    return {name: x.astype(dtype) for name, x in found.items()}


def targets(dtype: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Curvatures and minima of the loss, as NumPy arrays."""
    draw = np.random.default_rng(4)
    real = np.empty(0, dtype).real.dtype
    curved = {name: draw.uniform(0.3, 2.0, shape).astype(real) for name, shape in SHAPES.items()}
    return curved, {name: draw.normal(size=shape).astype(real) for name, shape in SHAPES.items()}


def loss(xp: Any, params: Any, count: Any = 0.0) -> Any:
    """A sum of wavy bowls, coupled by their sum, that breathes with the count."""
    dtype = str(params["w"].dtype)
    curved, least = targets(dtype)
    bowls = sum(xp.sum(curved[n] * abs(params[n] - least[n]) ** 2) / 2 + 0.1 * xp.sum(xp.sin(3 * params[n].real))
                for n in SHAPES)  # fmt: skip
    together = sum(xp.sum(params[n].real) for n in SHAPES)
    return (bowls + 0.02 * together**2) * (1 + 0.3 * xp.sin(0.7 * xp.asarray(count, bowls.dtype)))


def gradient(xp: Any, params: Any, count: Any) -> Any:
    """The gradient of `loss`; for complex parameters its descent direction, the conjugate of JAX's gradient."""
    dtype = str(params["w"].dtype)
    curved, least = targets(dtype)
    together = sum(xp.sum(params[n].real) for n in SHAPES)
    breath = 1 + 0.3 * xp.sin(0.7 * xp.asarray(count, together.dtype))
    return {n: ((curved[n] * (params[n] - least[n]) + 0.3 * xp.cos(3 * params[n].real) + 0.04 * together) * breath)
            .astype(dtype) for n in SHAPES}  # fmt: skip


def _chained(name: str, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    """A rule with its default learning rate."""
    return lambda o: o.chain(getattr(o, name)(*args, **kwargs), o.scale(-0.05))


def _plain(name: str, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
    return lambda o: getattr(o, name)(*args, **kwargs)


MASK = {"w": True, "b": False, "deep": True}
OTHERS = {name: not chosen for name, chosen in MASK.items()}
LABELS = {"w": "one", "b": "two", "deep": "one"}

CASES: dict[str, Callable[[Any], Any]] = {
    "sgd": _plain("sgd", 0.05),
    "sgd momentum": _plain("sgd", 0.02, momentum=0.9),
    "sgd nesterov": _plain("sgd", 0.02, momentum=0.9, nesterov=True),
    "sgd schedule": lambda o: o.sgd(o.cosine_decay_schedule(0.1, 25)),
    "adam": _plain("adam", 0.05),
    "adam arguments": _plain("adam", 0.05, b1=0.8, b2=0.95, eps=1e-3, eps_root=1e-4),
    "nadam": _plain("nadam", 0.05),
    "adamw": _plain("adamw", 0.05),
    "adamw mask": _plain("adamw", 0.05, weight_decay=0.1, mask=MASK),
    "adamw schedules": lambda o: o.adamw(
        o.warmup_cosine_decay_schedule(0.0, 0.1, 5, 25), weight_decay=o.linear_schedule(0.1, 0.0, 20)
    ),
    "nadamw": _plain("nadamw", 0.05, weight_decay=0.1),
    "adamax": _plain("adamax", 0.05),
    "adamaxw": _plain("adamaxw", 0.05, weight_decay=0.1, mask=MASK),
    "amsgrad": _plain("amsgrad", 0.05),
    "amsgrad uncorrected": _plain("amsgrad", 0.05, bias_correction_mu=False, bias_correction_nu=False, eps_root=1e-6),
    "radam": _plain("radam", 0.05),
    "radam arguments": _plain("radam", 0.05, b2=0.9, threshold=4.5, nesterov=True),
    "adabelief": _plain("adabelief", 0.05),
    "adabelief nesterov": _plain("adabelief", 0.05, eps_root=1e-8, nesterov=True),
    "yogi": _plain("yogi", 0.05),
    "lamb": _plain("lamb", 0.05, weight_decay=0.1),
    "lars": _plain("lars", 1.0, weight_decay=0.01, weight_decay_mask=MASK, trust_ratio_mask=MASK),
    "lion": _plain("lion", 0.01),
    "lion smooth": _plain("lion", 0.05, b1=0.8, b2=0.9, weight_decay=0.1, mask=MASK),
    "scale_by_lion smooth": _chained("scale_by_lion", mode="smooth", smooth_beta=2.0),
    "scale_by_lion refined": _chained("scale_by_lion", mode="refined"),
    "adan": _plain("adan", 0.05, weight_decay=0.02),
    "novograd": _plain("novograd", 0.05, weight_decay=0.02),
    "adagrad": _plain("adagrad", 0.3),
    "adadelta": _plain("adadelta", 1.0, weight_decay=0.01),
    "rmsprop": _plain("rmsprop", 0.02),
    "rmsprop all": _plain("rmsprop", 0.02, decay=0.95, eps_in_sqrt=False, momentum=0.5, nesterov=True,
                          bias_correction=True, initial_scale=0.1),
    "rmsprop centered": _plain("rmsprop", 0.02, centered=True, eps=1e-3, momentum=0.5),
    "rmsprop centered corrected": _plain("rmsprop", 0.02, centered=True, eps=1e-2, bias_correction=True,
                                         initial_scale=0.5, eps_in_sqrt=False),
    "rprop": _plain("rprop", 0.02),
    "sm3": _plain("sm3", 0.1),
    "fromage": _plain("fromage", 0.05),
    "fromage schedule": lambda o: o.fromage(o.exponential_decay(0.1, 5, 0.8)),
    "noisy_sgd": _plain("noisy_sgd", 0.05, key=7),
    "sign_sgd": _plain("sign_sgd", 0.01),
    "signum": _plain("signum", 0.01),
    "optimistic": _plain("optimistic_gradient_descent", 0.05, alpha=0.9, beta=0.5),
    "optimistic_adam_v2": _plain("optimistic_adam_v2", 0.02),
    "polyak": _plain("polyak_sgd", 0.2, f_min=-3.0),
    "muon": _plain("muon", 0.05),
    "muon arguments": _plain("muon", 0.05, ns_coeffs="dion", nesterov=False, adaptive=True, weight_decay=0.1,
                             consistent_rms=0.2, adam_learning_rate=0.02),
    "muon spectral": _plain("muon", 0.05, preconditioning="spectral"),
    "muon aol": _plain("muon", 0.05, preconditioning="aol"),
    "muon schatten": _plain("muon", 0.05, preconditioning="schatten"),
    "muon stacks": lambda o: o.muon(0.05, muon_weight_dimension_numbers={
        "w": o.MuonDimensionNumbers(1, 0), "b": None, "deep": o.MuonDimensionNumbers((0, 1), 2)}),
    "schedule_free_adamw": _plain("schedule_free_adamw", 0.05, warmup_steps=5, weight_decay=0.01),
    "schedule_free_sgd": _plain("schedule_free_sgd", 0.05, b1=0.95, weight_lr_power=1.0, weight_decay=0.01),
    "sam": lambda o: o.sam(o.sgd(0.05), o.chain(o.normalize(), o.sgd(0.05)), sync_period=2),
    "sam kept": lambda o: o.sam(o.adam(0.05), o.adam(0.02), sync_period=3, reset_state=False),
    "sophia": _plain("sophia", 0.05, update_interval=3),
    "trace": _chained("trace", 0.9),
    "ema": _chained("ema", 0.9),
    "ema biased": _chained("ema", 0.9, debias=False),
    "scale_by_trust_ratio": _chained("scale_by_trust_ratio", min_norm=0.1, trust_coefficient=0.5, eps=0.01),
    "scale_by_param_block_norm": _chained("scale_by_param_block_norm"),
    "scale_by_param_block_rms": _chained("scale_by_param_block_rms", min_scale=2.0),
    "centralize": _chained("centralize"),
    "normalize_by_update_norm": _chained("normalize_by_update_norm", scale_factor=2.0),
    "clip": _chained("clip", 0.5),
    "clip_by_block_rms": _chained("clip_by_block_rms", 0.5),
    "clip_by_global_norm": _chained("clip_by_global_norm", 1.5),
    "adaptive_grad_clip": _chained("adaptive_grad_clip", 0.4),
    "add_decayed_weights": _chained("add_decayed_weights", 0.3, mask=MASK),
    "keep_params_nonnegative": lambda o: o.chain(o.sgd(0.05), o.keep_params_nonnegative()),
    "zero_nans": _chained("zero_nans"),
    "apply_every": _chained("apply_every", 3),
    "masked": lambda o: o.chain(o.masked(o.sgd(0.05), MASK), o.masked(o.scale(-0.01), OTHERS)),
    "freeze": lambda o: o.chain(o.sgd(0.05), o.freeze(MASK)),
    "partition": lambda o: o.partition({"one": o.adam(0.05), "two": o.sgd(0.01)}, LABELS),
    "multi_transform": lambda o: o.multi_transform({"one": o.lion(0.01), "two": o.set_to_zero()}, lambda p: LABELS),
    "named_chain": lambda o: o.named_chain(("clip", o.clip(0.5)), ("rule", o.adam(0.05))),
    "apply_if_finite": lambda o: o.apply_if_finite(o.adam(0.05), 3),
    "conditionally_transform": lambda o: o.chain(
        o.sgd(0.05), o.conditionally_transform(o.trace(0.5), lambda step: step % 3 == 1)
    ),
    "conditionally_mask": lambda o: o.conditionally_mask(o.adam(0.1), lambda step: step % 3 == 1),
    "reduce_on_plateau": lambda o: o.chain(
        o.sgd(0.05), o.reduce_on_plateau(factor=0.5, patience=2, cooldown=2, accumulation_size=2, min_scale=0.2)
    ),
    "MultiSteps": lambda o: o.MultiSteps(o.adam(0.2), 3).gradient_transformation(),
    "MultiSteps sums": lambda o: o.MultiSteps(
        o.sgd(0.02, momentum=0.5), lambda n: 1 + n // 3, use_grad_mean=False
    ).gradient_transformation(),
    "MultiSteps skips": lambda o: o.MultiSteps(
        o.adam(0.2), 2, should_skip_update_fn=lambda g, n, p: o.skip_large_updates(g, n, p, 25.0)
    ).gradient_transformation(),
    "inject_hyperparams": lambda o: o.inject_hyperparams(o.adamw)(o.linear_schedule(0.1, 0.0, 25), weight_decay=0.1),
    "inject_hyperparams static": lambda o: o.inject_hyperparams(o.rmsprop, static_args="decay")(0.02, decay=0.8),
    "flatten": lambda o: o.flatten(o.adam(0.05)),
    "chain": lambda o: o.chain(
        o.clip_by_global_norm(2.0), o.scale_by_adam(), o.scale_by_schedule(lambda n: -0.1 / (n + 1))
    ),
}  # fmt: skip

KEYWORDS = {"polyak": "value", "reduce_on_plateau": "value", "sophia": "obj_fn"}  # of update


def keywords(name: str, xp: Any, params: Any, count: Any) -> dict[str, Any]:
    """The keyword of update that a case needs."""
    found = {"value": lambda: loss(xp, params, count), "obj_fn": lambda: lambda p: loss(xp, p)}
    return {KEYWORDS[name]: found[KEYWORDS[name]]()} if name in KEYWORDS else {}


# The decay of Adafactor is computed in float32 by Optax, in float64 here.
ADAFACTOR: dict[str, Callable[[Any], Any]] = {
    "adafactor": _plain("adafactor", 0.1, min_dim_size_to_factor=2),
    "adafactor alone": _plain("adafactor", min_dim_size_to_factor=3, multiply_by_parameter_scale=False,
                              clipping_threshold=None, momentum=0.5, weight_decay_rate=0.1, weight_decay_mask=MASK,
                              learning_rate=0.05),
    "adafactor whole": _plain("adafactor", 0.1, factored=False, decay_rate=0.7, decay_offset=-3),
}  # fmt: skip

COMPLEX = {
    name: CASES[name]
    for name in (
        "sgd momentum", "adam", "nadam", "adabelief nesterov", "yogi", "rmsprop", "adagrad", "rmsprop centered",
        "clip_by_global_norm", "lars",
    )
} | {"adafactor whole": ADAFACTOR["adafactor whole"]}  # fmt: skip

SCHEDULES: dict[str, Callable[[Any], Any]] = {
    "constant_schedule": _plain("constant_schedule", 0.3),
    "polynomial_schedule": _plain("polynomial_schedule", 1.0, 0.1, 2.5, 20, 3),
    "polynomial_schedule flat": _plain("polynomial_schedule", 1.0, 0.1, 2, 0),
    "linear_schedule": _plain("linear_schedule", 0.0, 1.0, 13),
    "piecewise_constant_schedule": _plain("piecewise_constant_schedule", 1.0, {5: 0.5, 17: 0.1, 23: 3.0}),
    "exponential_decay": _plain("exponential_decay", 1.0, 7, 0.8, 3),
    "exponential_decay stairs": _plain("exponential_decay", 1.0, 7, 0.8, 3, True, 0.55),
    "exponential_decay growth": _plain("exponential_decay", 1.0, 7, 1.3, 0, False, 1.8),
    "cosine_decay_schedule": _plain("cosine_decay_schedule", 1.0, 21, 0.1, 1.5),
    "piecewise_interpolate_schedule": _plain("piecewise_interpolate_schedule", "linear", 1.0, {5: 0.5, 17: 3.0}),
    "piecewise_interpolate_schedule cosine": _plain("piecewise_interpolate_schedule", "cosine", 1.0, {5: 0.5, 17: 3.0}),
    "linear_onecycle_schedule": _plain("linear_onecycle_schedule", 27, 1.0),
    "cosine_onecycle_schedule": _plain("cosine_onecycle_schedule", 27, 1.0, 0.4, 10.0, 100.0),
    "warmup_constant_schedule": _plain("warmup_constant_schedule", 0.1, 1.0, 6),
    "warmup_cosine_decay_schedule": _plain("warmup_cosine_decay_schedule", 0.1, 1.0, 6, 25, 0.05, 1.2),
    "warmup_exponential_decay_schedule": _plain("warmup_exponential_decay_schedule", 0.1, 1.0, 6, 4, 0.7, 2, True, 0.2),
    "sgdr_schedule": _plain("sgdr_schedule", [
        {"init_value": 0.0, "peak_value": 1.0, "warmup_steps": 2, "decay_steps": 9},
        {"init_value": 0.1, "peak_value": 0.5, "warmup_steps": 0, "decay_steps": 12},
    ]),
    "join_schedules": lambda o: o.join_schedules(
        [o.linear_schedule(0.0, 1.0, 4), o.constant_schedule(0.5), o.exponential_decay(1.0, 2, 0.5)], [4, 11]
    ),
}  # fmt: skip
COUNTS = range(34)


def rosenbrock(xp: Any, params: Any) -> Any:
    """A valley, of two arrays."""
    x = xp.concatenate([params["x"], params["y"]])
    return xp.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


VALLEY = {"x": np.array([-1.2, 1.0, -0.5]), "y": np.array([0.8, 1.3])}
LINE_STEPS = 12
SEARCHES: dict[str, Callable[[Any], Any]] = {
    "lbfgs": _plain("lbfgs"),
    "lbfgs short": lambda o: o.lbfgs(
        0.7, memory_size=2, scale_init_precond=False, linesearch=o.scale_by_zoom_linesearch(15, max_learning_rate=1.0)
    ),
    "lbfgs backtracking": lambda o: o.lbfgs(linesearch=o.scale_by_backtracking_linesearch(20, store_grad=True)),
    "lbfgs fixed": lambda o: o.lbfgs(0.02, linesearch=None),
    "zoom": lambda o: o.chain(o.sgd(1.0), o.scale_by_zoom_linesearch(20, tol=1e-3, approx_dec_rtol=None)),
    "zoom few": lambda o: o.chain(o.sgd(1.0), o.scale_by_zoom_linesearch(3, curv_rtol=0.1)),
    "backtracking": lambda o: o.chain(o.sgd(1.0), o.scale_by_backtracking_linesearch(15, decrease_factor=0.5)),
    "backtracking fails": lambda o: o.chain(
        o.sgd(1.0), o.scale_by_backtracking_linesearch(2, slope_rtol=0.1, increase_factor=2.0, atol=0.1, rtol=0.01)
    ),
}
