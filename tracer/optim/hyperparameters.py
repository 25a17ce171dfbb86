"""Hyperparameters in the state, where training can change them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, NamedTuple, Protocol, runtime_checkable

import numpy as np

from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
from tracer.optim.scalars import count, increment, wide_dtype
from tracer.optim.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    transformation,
    with_extra_args_support,
)
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here


class InjectStatefulHyperparamsState(NamedTuple):
    """State of `inject_hyperparams`: the count, the hyperparameters by name, states of schedules, the inner state.

    >>> tx = tracer.optim.inject_hyperparams(tracer.optim.sgd)(learning_rate=0.5)
    >>> tx.init(tnp.zeros(1)).hyperparams
    {'learning_rate': Array(0.5, f64)}
    """

    count: Any
    hyperparams: dict[str, Any]
    hyperparams_states: dict[str, Any]
    inner_state: Any


class WrappedScheduleState(NamedTuple):
    """State of a schedule in `inject_hyperparams`: the count of updates.

    >>> tx = tracer.optim.inject_hyperparams(tracer.optim.sgd)(learning_rate=lambda count: 0.5)
    >>> tx.init(tnp.zeros(1)).hyperparams_states
    {'learning_rate': WrappedScheduleState(count=Array(0, i32))}
    """

    count: Any


@runtime_checkable
class StatefulSchedule(Protocol):
    """A schedule with a state: `init()`, `update(state, **extra_args)`, and its value, `schedule(state, **extra_args)`.

    >>> isinstance(tracer.optim.constant_schedule(1.0), tracer.optim.StatefulSchedule)
    False
    """

    def init(self) -> Any:
        """Return the first state."""

    def update(self, state: Any, **extra_args: Any) -> Any:
        """Return the next state."""

    def __call__(self, state: Any, **extra_args: Any) -> Any: ...


class _Counted:
    """Schedule of a count, as one with a state."""

    def __init__(self, schedule: Callable[[Any], Any]) -> None:
        self.schedule = schedule

    def init(self) -> WrappedScheduleState:
        return WrappedScheduleState(count())

    def update(self, state: Any, **extra_args: Any) -> WrappedScheduleState:
        del extra_args
        return WrappedScheduleState(increment(state.count))

    def __call__(self, state: Any, **extra_args: Any) -> Any:
        del extra_args
        return self.schedule(state.count)


def inject_hyperparams(
    inner_factory: Callable[..., GradientTransformation], static_args: str | Iterable[str] = (),
    hyperparam_dtype: Any = None,
) -> Callable[..., GradientTransformationExtraArgs]:  # fmt: skip
    """Return the function that makes transformations with their numbers in the state, under `state.hyperparams`.

    Change one by `optim.tree_set(state, learning_rate=...)`, or write to `state.hyperparams["learning_rate"]`.

    inner_factory: such as `adamw`. static_args: names of arguments that stay as they are. hyperparam_dtype: dtype of
    the numbers; by default the widest of the parameters. Schedules, functions of the count, are evaluated at every
    update. Raises ArgumentError for other names in static_args.

    >>> tx = tracer.optim.inject_hyperparams(tracer.optim.adam)(learning_rate=0.1)
    >>> state = tx.init(tnp.zeros(1))
    >>> sorted(state.hyperparams)
    ['b1', 'b2', 'eps', 'eps_root', 'learning_rate']
    """
    static = {static_args} if isinstance(static_args, str) else set(static_args)
    signature = inspect.signature(inner_factory)
    if unknown := sorted(static - set(signature.parameters)):
        name = getattr(inner_factory, "__name__", "the factory")
        raise ArgumentError(
            message(
                f"inject_hyperparams{here()}: static_args names no arguments of {name}",
                f"got {', '.join(unknown)}; there are {', '.join(signature.parameters)}",
            )
        )

    @wraps(inner_factory)
    def made(*args: Any, **kwargs: Any) -> GradientTransformationExtraArgs:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        schedules: dict[str, Any] = {}
        numbers: dict[str, Any] = {}
        others: dict[str, Any] = {}
        for name, value in bound.arguments.items():
            if name in static or isinstance(value, bool):
                others[name] = value
            elif isinstance(value, StatefulSchedule):
                schedules[name] = value
            elif callable(value):
                schedules[name] = _Counted(value)
            elif isinstance(value, int | float | Array | np.ndarray):
                numbers[name] = value
            else:
                others[name] = value
        return _injected(inner_factory, schedules, numbers, others, hyperparam_dtype)

    return made


def _injected(
    factory: Callable[..., GradientTransformation], schedules: dict[str, Any], numbers: dict[str, Any],
    others: dict[str, Any], given: Any,
) -> GradientTransformationExtraArgs:  # fmt: skip
    def value_of(value: Any, params: Any) -> Any:
        kept = isinstance(value, Array | np.ndarray) and not getattr(value, "weak_type", False)
        array = tnp.asarray(value)
        return array if kept or array.dtype.kind != "f" else array.astype(given or _widest(params))

    def init(params: Any) -> InjectStatefulHyperparamsState:
        states = {name: schedule.init() for name, schedule in schedules.items()}
        values = {name: value_of(value, params) for name, value in numbers.items()}
        values |= {
            name: value_of(f(states[name]), params).astype(given or _widest(params)) for name, f in schedules.items()
        }
        return InjectStatefulHyperparamsState(count(), values, states, factory(**others, **values).init(params))

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        del scalars
        before, values = state.hyperparams_states, dict(state.hyperparams)
        for name, schedule in schedules.items():
            new = tnp.asarray(schedule(before[name], **extra))
            values[name] = new.astype(getattr(values[name], "dtype", new.dtype))
        states = {name: schedule.update(before[name], **extra) for name, schedule in schedules.items()}
        tx = with_extra_args_support(factory(**others, **values))
        updates, inner = tx.update(updates, state.inner_state, params, **extra)
        return updates, InjectStatefulHyperparamsState(increment(state.count), values, states, inner)

    return transformation("", init, apply, kind=InjectStatefulHyperparamsState)


def _widest(params: Any) -> Any:
    found = [wide_dtype(tnp.asarray(leaf).dtype) for leaf in trees.flatten(params)[0]]
    return "float64" if any(str(dtype) in ("float64", "complex128") for dtype in found) else "float32"


InjectHyperparamsState = InjectStatefulHyperparamsState
