"""Combinations of transformations: chains, and one transformation for each group of parameters."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from typing import Any, NamedTuple

import numpy as np

from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
from tracer.optim.masks import masked
from tracer.optim.scalars import Dtypes
from tracer.optim.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    applied,
    parts_of,
    transformation,
)
from tracer.trace import trees
from tracer.trace.source import here


def chain(*args: GradientTransformation) -> GradientTransformationExtraArgs:
    """Return the transformation that applies several in order; its state is the tuple of their states.

    args: transformations; keywords of update go to each.

    >>> tx = tracer.optim.chain(tracer.optim.clip(1.0), tracer.optim.scale(-0.5))
    >>> tx.update({"w": tnp.asarray([3.0, 0.5])}, tx.init({"w": tnp.zeros(2)}))[0]
    {'w': Array([-0.5 , -0.25], f64)}
    """
    return chained("", *args)


def chained(name: str, *args: GradientTransformation) -> GradientTransformationExtraArgs:
    """Return the chain of transformations under a name, for errors."""
    parts = [parts_of(tx) for tx in args]

    def init(params: Any) -> Any:
        return tuple(tx.init(params) for tx in args)

    def scalars(state: Any, among: Dtypes) -> Any:
        if not isinstance(state, tuple | list) or len(state) != len(parts):
            got = len(state) if isinstance(state, tuple | list) else type(state).__name__
            raise ArgumentError(
                message(
                    f"update{here()}: the state belongs to another chain",
                    f"expected {len(parts)} states, got {got}",
                    help="state = tx.init(params), then tx.update(grads, state, params)",
                )
            )
        return [part.scalars(each, among) for part, each in zip(parts, state, strict=True)]

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        states = []
        for part, each, numbers in zip(parts, state, scalars, strict=True):
            updates, new = applied(part, updates, each, params, numbers, extra)
            states.append(new)
        return updates, tuple(states)

    need = next((part.need for part in parts if part.need is not None), None)
    return transformation(name, init, apply, scalars=scalars, need=need)


def named_chain(*args: tuple[str, GradientTransformation]) -> GradientTransformationExtraArgs:
    """Return a chain of pairs (name, transformation), whose state is a dict of the states by name.

    args: pairs with names that differ; ArgumentError otherwise.

    >>> tx = tracer.optim.named_chain(("clip", tracer.optim.clip(1.0)), ("step", tracer.optim.sgd(0.5)))
    >>> list(tx.init(tnp.asarray([0.0])))
    ['clip', 'step']
    """
    names = [name for name, _ in args]
    if len(set(names)) != len(names):
        raise ArgumentError(
            message(f"named_chain{here()}: names must differ", f"got {names}", help="name every transformation once")
        )
    whole = chained("", *(tx for _, tx in args))
    parts = parts_of(whole)

    def ordered(state: Any) -> tuple[Any, ...]:
        return tuple(state[name] for name in names)

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        updates, states = parts.apply(updates, ordered(state), params, scalars, **extra)
        return updates, OrderedDict(zip(names, states, strict=True))

    return transformation(
        "", lambda params: OrderedDict(zip(names, whole.init(params), strict=True)), apply,
        scalars=lambda state, among: parts.scalars(ordered(state), among),
    )  # fmt: skip


class PartitionState(NamedTuple):
    """State of `partition`: the states of the groups by label.

    >>> tx = tracer.optim.partition({"slow": tracer.optim.sgd(0.1)}, {"w": "slow"})
    >>> list(tx.init({"w": tnp.asarray([0.0])}).inner_states)
    ['slow']
    """

    inner_states: Mapping[Hashable, Any]


def partition(
    transforms: Mapping[Hashable, GradientTransformation], param_labels: Any, *,
    mask_compatible_extra_args: bool = False,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the transformation that treats groups of parameters in their own ways.

    transforms: by label. param_labels: a tree of labels like the parameters (or a prefix of them), or a function from
    parameters to such a tree. mask_compatible_extra_args: whether keywords of the parameters' structure are masked as
    they are. Raises ArgumentError for labels without a transformation.

    >>> tx = tracer.optim.partition({"fast": tracer.optim.sgd(1.0), "slow": tracer.optim.sgd(0.1)},
    ...                             {"w": "slow", "b": "fast"})
    >>> grads = {"w": tnp.asarray([1.0]), "b": tnp.asarray([1.0])}
    >>> tx.update(grads, tx.init(grads))[0]
    {'w': Array([-0.1], f64), 'b': Array([-1.], f64)}
    """

    def groups(tree: Any) -> dict[Hashable, GradientTransformation]:
        labels = param_labels(tree) if _is_function(param_labels) else param_labels
        leaves, structure = trees.flatten(labels)
        if unknown := sorted({str(label) for label in leaves if label not in transforms}):
            raise ArgumentError(
                message(
                    f"partition{here()}: labels without a transformation",
                    f"got {', '.join(unknown)}; there are {', '.join(sorted(map(str, transforms)))}",
                    help="one entry of `transforms` for each label; optim.set_to_zero() keeps parameters as they are",
                )
            )
        masks = {group: trees.unflatten(structure, [label == group for label in leaves]) for group in transforms}
        return {
            group: masked(tx, masks[group], mask_compatible_extra_args=mask_compatible_extra_args)
            for group, tx in transforms.items()
        }

    def init(params: Any) -> PartitionState:
        return PartitionState({group: tx.init(params) for group, tx in groups(params).items()})

    def scalars(state: Any, among: Dtypes) -> Any:
        return {group: parts_of(tx).scalars(state.inner_states[group].inner_state, among)
                for group, tx in transforms.items()}  # fmt: skip

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        states = {}
        for group, tx in groups(updates).items():
            inner = state.inner_states[group]
            updates, states[group] = applied(parts_of(tx), updates, inner, params, scalars[group], extra)
        return updates, PartitionState(states)

    return transformation("", init, apply, scalars=scalars, kind=PartitionState)


def _is_function(labels: Any) -> bool:
    return callable(labels) and trees.is_leaf(labels)


def multi_transform(
    transforms: Mapping[Hashable, GradientTransformation], param_labels: Any | Callable[[Any], Any], *,
    mask_compatible_extra_args: bool = False,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return `partition(...)` with these arguments. An older name.

    transforms, param_labels, mask_compatible_extra_args: see `partition`.

    >>> tx = tracer.optim.multi_transform({"all": tracer.optim.sgd(0.1)}, "all")
    >>> tx.update({"w": tnp.asarray([1.0])}, tx.init({"w": tnp.asarray([1.0])}))[0]
    {'w': Array([-0.1], f64)}
    """
    return partition(transforms, param_labels, mask_compatible_extra_args=mask_compatible_extra_args)


def flatten(inner: GradientTransformation) -> GradientTransformationExtraArgs:
    """Return the transformation of all arrays joined to one vector, for rules of many small arrays.

    inner: the transformation that sees vectors. Updates come back in the arrays' shapes.

    >>> tx = tracer.optim.flatten(tracer.optim.adam(0.1))
    >>> tx.init({"w": tnp.zeros((2, 3)), "b": tnp.zeros(3)})[0].mu.shape
    (9,)
    """
    part = parts_of(inner)

    def joined(tree: Any) -> Any:
        leaves = [tnp.ravel(leaf) for leaf in trees.flatten(tree)[0]]
        return tnp.concatenate(leaves) if leaves else tnp.zeros(0, "float32")

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        flat = None if params is None else joined(params)
        vector, state = applied(part, joined(updates), state, flat, scalars, extra)
        leaves, structure = trees.flatten(updates)
        ends = np.cumsum([tnp.size(leaf) for leaf in leaves])[:-1].tolist()
        pieces = zip(tnp.split(vector, ends), leaves, strict=True) if leaves else ()
        return trees.unflatten(structure, [tnp.reshape(new, tnp.shape(old)) for new, old in pieces]), state

    return transformation(
        part.name, lambda params: inner.init(joined(params)), apply, scalars=part.scalars, need=part.need
    )
