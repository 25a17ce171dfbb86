"""`tracer.optim`: optimizers, schedules and their parts, with Optax's names, signatures and numbers.

A transformation is a pair of pure functions, `init` and `update`; `chain` joins them, `apply_updates` adds their
updates. docs/optim.md lists the differences from Optax.

>>> tx = tracer.optim.adam(tracer.optim.cosine_decay_schedule(0.5, 100))
>>> loss = lambda params: tnp.sum((params["w"] - 3.0) ** 2)
>>> @tracer.jit
... def step(params, state):
...     updates, state = tx.update(tracer.grad(loss)(params), state, params)
...     return tracer.optim.apply_updates(params, updates), state
>>> params = {"w": tnp.zeros(2)}
>>> state = tx.init(params)
>>> for _ in range(100):
...     params, state = step(params, state)
>>> params["w"].round(2)
Array([3., 3.], f64)
"""

from tracer.absent import absent
from tracer.optim.accumulation import (
    ApplyEvery,
    MultiSteps,
    MultiStepsState,
    apply_every,
    skip_large_updates,
    skip_not_finite,
)
from tracer.optim.adam_optimizers import (
    adabelief,
    adam,
    adamax,
    adamaxw,
    adamw,
    adan,
    amsgrad,
    lamb,
    lion,
    nadam,
    nadamw,
    novograd,
    optimistic_adam_v2,
    radam,
    sophia,
    yogi,
)
from tracer.optim.adam_rules import (
    ScaleByAdamState,
    ScaleByAmsgradState,
    ScaleByBeliefState,
    scale_by_adam,
    scale_by_adamax,
    scale_by_amsgrad,
    scale_by_belief,
    scale_by_radam,
    scale_by_yogi,
)
from tracer.optim.adding import (
    AddDecayedWeightsState,
    AddNoiseState,
    NonNegativeParamsState,
    WeightDecaySchedule,
    ZeroNansState,
    add_decayed_weights,
    add_noise,
    keep_params_nonnegative,
    zero_nans,
)
from tracer.optim.averaging import (
    EmaParamsState,
    LookaheadParams,
    LookaheadState,
    ScheduleFreeState,
    ema_params,
    incremental_update,
    lookahead,
    periodic_update,
    schedule_free,
    schedule_free_adamw,
    schedule_free_eval_params,
    schedule_free_sgd,
)
from tracer.optim.clipping import (
    adaptive_grad_clip,
    clip,
    clip_by_block_rms,
    clip_by_global_norm,
    per_example_global_norm_clip,
    unitwise_norm,
)
from tracer.optim.combining import (
    PartitionState,
    chain,
    flatten,
    multi_transform,
    named_chain,
    partition,
)
from tracer.optim.conditions import (
    ApplyIfFiniteState,
    ConditionallyMaskState,
    ConditionallyTransformState,
    DynamicLossScaleState,
    ReduceLROnPlateauState,
    apply_if_finite,
    conditionally_mask,
    conditionally_transform,
    dynamic_loss_scale,
    loss_scale,
    reduce_on_plateau,
)
from tracer.optim.factored_rules import (
    FactoredState,
    ScaleBySM3State,
    scale_by_factored_rms,
    scale_by_sm3,
)
from tracer.optim.hyperparameters import (
    InjectHyperparamsState,
    InjectStatefulHyperparamsState,
    StatefulSchedule,
    WrappedScheduleState,
    inject_hyperparams,
)
from tracer.optim.lbfgs import (
    ScaleByLBFGSState,
    lbfgs,
    scale_by_lbfgs,
)
from tracer.optim.line_searches import (
    BacktrackingLinesearchInfo,
    ScaleByBacktrackingLinesearchState,
    scale_by_backtracking_linesearch,
    value_and_grad_from_state,
)
from tracer.optim.masks import (
    MaskedNode,
    MaskedState,
    freeze,
    masked,
    only,
)
from tracer.optim.momentum_rules import (
    EmaState,
    ScaleByAdanState,
    ScaleByLionState,
    ScaleByNovogradState,
    ScaleByOptimisticGradientState,
    TraceState,
    ema,
    scale_by_adan,
    scale_by_lion,
    scale_by_novograd,
    scale_by_optimistic_gradient,
    trace,
)
from tracer.optim.muon import (
    MuonDimensionNumbers,
    MuonState,
    muon,
    scale_by_muon,
    scale_by_shape,
)
from tracer.optim.optimizers import (
    adadelta,
    adafactor,
    adagrad,
    fromage,
    lars,
    noisy_sgd,
    optimistic_gradient_descent,
    polyak_sgd,
    rmsprop,
    rprop,
    scale_by_polyak,
    sgd,
    sign_sgd,
    signum,
    sm3,
)
from tracer.optim.scalars import (
    global_norm,
)
from tracer.optim.scaling import (
    ScaleByScheduleState,
    centralize,
    normalize,
    normalize_by_update_norm,
    scale,
    scale_by_learning_rate,
    scale_by_param_block_norm,
    scale_by_param_block_rms,
    scale_by_schedule,
    scale_by_sign,
    scale_by_trust_ratio,
)
from tracer.optim.schedules import (
    constant_schedule,
    cosine_decay_schedule,
    cosine_onecycle_schedule,
    exponential_decay,
    join_schedules,
    linear_onecycle_schedule,
    linear_schedule,
    piecewise_constant_schedule,
    piecewise_interpolate_schedule,
    plot,
    polynomial_schedule,
    sgdr_schedule,
    warmup_constant_schedule,
    warmup_cosine_decay_schedule,
    warmup_exponential_decay_schedule,
    wsd_schedule,
)
from tracer.optim.sharpness import (
    HutchinsonState,
    SAMState,
    SophiaState,
    hutchinson_estimator_diag_hessian,
    sam,
    scale_by_sophia,
)
from tracer.optim.square_rules import (
    ScaleByAdaDeltaState,
    ScaleByRmsState,
    ScaleByRmsWithCountState,
    ScaleByRpropState,
    ScaleByRssState,
    ScaleByRStdDevState,
    ScaleByRStdDevWithCountState,
    scale_by_adadelta,
    scale_by_rms,
    scale_by_rprop,
    scale_by_rss,
    scale_by_stddev,
)
from tracer.optim.states import (
    NamedTupleKey,
    rate,
    tree_get,
    tree_get_all_with_path,
    tree_set,
)
from tracer.optim.transformation import (
    EmptyState,
    GradientTransformation,
    GradientTransformationExtraArgs,
    apply_updates,
    identity,
    set_to_zero,
    stateless,
    stateless_with_tree_map,
    with_extra_args_support,
)
from tracer.optim.zoom import (
    ScaleByZoomLinesearchState,
    ZoomLinesearchInfo,
    scale_by_zoom_linesearch,
)
from tracer.runtime.jit.nonfinite import first_nan
from tracer.trace.tracebacks import set_boundaries

__all__ = [
    "AddDecayedWeightsState", "AddNoiseState", "ApplyEvery", "ApplyIfFiniteState", "BacktrackingLinesearchInfo",
    "ConditionallyMaskState", "ConditionallyTransformState", "DynamicLossScaleState", "EmaParamsState", "EmaState",
    "EmptyState", "FactoredState", "GradientTransformation", "GradientTransformationExtraArgs", "HutchinsonState",
    "InjectHyperparamsState", "InjectStatefulHyperparamsState", "LookaheadParams", "LookaheadState", "MaskedNode",
    "MaskedState", "MultiSteps", "MultiStepsState", "MuonDimensionNumbers", "MuonState", "NamedTupleKey",
    "NonNegativeParamsState", "PartitionState", "ReduceLROnPlateauState", "SAMState", "ScaleByAdaDeltaState",
    "ScaleByAdamState", "ScaleByAdanState", "ScaleByAmsgradState", "ScaleByBacktrackingLinesearchState",
    "ScaleByBeliefState", "ScaleByLBFGSState", "ScaleByLionState", "ScaleByNovogradState",
    "ScaleByOptimisticGradientState", "ScaleByRStdDevState", "ScaleByRStdDevWithCountState", "ScaleByRmsState",
    "ScaleByRmsWithCountState", "ScaleByRpropState", "ScaleByRssState", "ScaleBySM3State", "ScaleByScheduleState",
    "ScaleByZoomLinesearchState", "ScheduleFreeState", "SophiaState", "StatefulSchedule", "TraceState",
    "WeightDecaySchedule", "WrappedScheduleState", "ZeroNansState", "ZoomLinesearchInfo", "adabelief", "adadelta",
    "adafactor", "adagrad", "adam", "adamax", "adamaxw", "adamw", "adan", "adaptive_grad_clip", "add_decayed_weights",
    "add_noise", "amsgrad", "apply_every", "apply_if_finite", "apply_updates", "centralize", "chain", "clip",
    "clip_by_block_rms", "clip_by_global_norm", "conditionally_mask", "conditionally_transform", "constant_schedule",
    "cosine_decay_schedule", "cosine_onecycle_schedule", "dynamic_loss_scale", "ema", "ema_params", "exponential_decay",
    "first_nan", "flatten", "freeze", "fromage", "global_norm", "hutchinson_estimator_diag_hessian", "identity",
    "incremental_update", "inject_hyperparams", "join_schedules", "keep_params_nonnegative", "lamb", "lars", "lbfgs",
    "linear_onecycle_schedule", "linear_schedule", "lion", "lookahead", "loss_scale", "masked", "multi_transform",
    "muon", "nadam", "nadamw", "named_chain", "noisy_sgd", "normalize", "normalize_by_update_norm", "novograd", "only",
    "optimistic_adam_v2", "optimistic_gradient_descent", "partition", "per_example_global_norm_clip", "periodic_update",
    "piecewise_constant_schedule", "piecewise_interpolate_schedule", "plot", "polyak_sgd", "polynomial_schedule",
    "radam", "rate", "reduce_on_plateau", "rmsprop", "rprop", "sam", "scale", "scale_by_adadelta", "scale_by_adam",
    "scale_by_adamax", "scale_by_adan", "scale_by_amsgrad", "scale_by_backtracking_linesearch", "scale_by_belief",
    "scale_by_factored_rms", "scale_by_lbfgs", "scale_by_learning_rate", "scale_by_lion", "scale_by_muon",
    "scale_by_novograd", "scale_by_optimistic_gradient", "scale_by_param_block_norm", "scale_by_param_block_rms",
    "scale_by_polyak", "scale_by_radam", "scale_by_rms", "scale_by_rprop", "scale_by_rss", "scale_by_schedule",
    "scale_by_shape", "scale_by_sign", "scale_by_sm3", "scale_by_sophia", "scale_by_stddev", "scale_by_trust_ratio",
    "scale_by_yogi", "scale_by_zoom_linesearch", "schedule_free", "schedule_free_adamw", "schedule_free_eval_params",
    "schedule_free_sgd", "set_to_zero", "sgd", "sgdr_schedule", "sign_sgd", "signum", "skip_large_updates",
    "skip_not_finite", "sm3", "sophia", "stateless", "stateless_with_tree_map", "trace", "tree_get",
    "tree_get_all_with_path", "tree_set", "unitwise_norm", "value_and_grad_from_state", "warmup_constant_schedule",
    "warmup_cosine_decay_schedule", "warmup_exponential_decay_schedule", "with_extra_args_support", "wsd_schedule",
    "yogi", "zero_nans",
]  # fmt: skip

set_boundaries(globals(), __all__)


def __getattr__(name: str) -> object:
    raise absent(__name__, name)


def __dir__() -> list[str]:
    return sorted(__all__)
