"""Gradient transformations: pairs of pure functions, the leaf-by-leaf map that rules are written with, application.

A transformation's update has two parts. `scalars` computes values of the state's scalars alone: powers of the
count, rates of schedules. `apply` maps a rule over the leaves. A chain computes all scalars before any leaf, so that a
compiled update is one loop nest per array.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import optree

from tracer import numpy as tnp
from tracer.errors import ArgumentError, ShapeError, message
from tracer.optim.scalars import Dtypes, dtypes_of
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.tracebacks import boundary


class GradientTransformation(NamedTuple):
    """A pair of pure functions: `init(params)` returns a state, `update(updates, state, params)` updates and state.

    init: from a tree of parameters to a state, a tree.
    update: from gradients, a state and parameters to the updates for `apply_updates`, and the next state.

    >>> halve = tracer.optim.GradientTransformation(lambda params: (), lambda g, state, params=None: (g / 2, state))
    >>> halve.update(tnp.asarray([2.0]), ())[0]
    Array([1.], f64)
    """

    init: Callable[..., Any]
    update: Callable[..., Any]


class GradientTransformationExtraArgs(GradientTransformation):
    """A gradient transformation whose update also takes keywords, such as the value of the loss; it may ignore them.

    >>> isinstance(tracer.optim.sgd(0.1), tracer.optim.GradientTransformationExtraArgs)
    True
    """


class EmptyState(NamedTuple):
    """State of a transformation that remembers nothing.

    >>> tracer.optim.scale(2.0).init({"w": tnp.asarray([1.0])})
    EmptyState()
    """


@dataclass(frozen=True, slots=True)
class Parts:
    """An update in parts: see the module's docstring. `need`: the use that the transformation makes of parameters."""

    apply: Callable[..., tuple[Any, Any]]
    scalars: Callable[[Any, Dtypes], Any]
    name: str
    need: str | None


def no_state(params: Any) -> EmptyState:
    """Return the empty state."""
    del params
    return EmptyState()


def no_scalars(state: Any, among: Dtypes) -> None:
    """Return None: this update has no scalars."""
    del state, among


def trained(tree: Any) -> Any:
    """Return the tree with None where nothing is trained: modules are reduced to parameters. See `nn.trained`."""
    return trees.trained_part(tree)


def transformation(
    name: str, init: Callable[[Any], Any], apply: Callable[..., tuple[Any, Any]], *,
    scalars: Callable[[Any, Dtypes], Any] = no_scalars, need: str | None = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Make a transformation.

    apply: (updates, state, params, scalars, **extra) -> (updates, state). scalars: from the state and the leaves'
    dtypes. need: the use that update makes of parameters; None if it may be called without.
    """
    parts = Parts(apply, scalars, name, need)

    def outermost_init(params: Any) -> Any:
        return init(trained(params))

    def update(updates: Any, state: Any, params: Any = None, **extra_args: Any) -> tuple[Any, Any]:
        updates, params = trained(updates), trained(params)
        return applied(parts, updates, state, params, scalars(state, dtypes_of(updates)), extra_args)

    outermost_init.__name__ = "init"
    update.parts = parts  # type: ignore[attr-defined]
    return GradientTransformationExtraArgs(boundary(outermost_init), boundary(update))


def applied(
    parts: Parts, updates: Any, state: Any, params: Any, scalars: Any, extra: dict[str, Any]
) -> tuple[Any, Any]:
    """Run the second part of an update. Raises ArgumentError if it lacks parameters."""
    if params is None and parts.need is not None and parts.name:
        raise ArgumentError(
            message(
                f"update{here()}: pass params: {parts.name} {parts.need}",
                help="updates, state = tx.update(grads, state, params)",
            )
        )
    return parts.apply(updates, state, params, scalars, **extra)


def parts_of(tx: GradientTransformation) -> Parts:
    """Return the parts of a transformation's update; one that is a user's has no scalars."""
    found = getattr(tx.update, "parts", None)
    if isinstance(found, Parts):
        return found
    update = with_extra_args_support(tx).update
    return Parts(lambda u, state, params, _, **extra: update(u, state, params, **extra), no_scalars, "", None)


def elementwise(
    name: str, rule: Callable[..., Any], *, need: str | None = None
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Make a stateless transformation of a rule of the update, and of the parameter if `need` names its use."""

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> tuple[Any, Any]:
        del scalars, extra
        return (map_leaves(rule, updates) if need is None else map_leaves(rule, updates, params)), state

    return transformation(name, no_state, apply, need=need)


def init_leaves(function: Callable[[Any], Any], params: Any) -> Any:
    """Return the tree of a function's results at the leaves, given as arrays."""
    leaves, structure = trees.flatten(params)
    return trees.unflatten(structure, [function(tnp.asarray(leaf)) for leaf in leaves])


def map_leaves(rule: Callable[..., Any], updates: Any, *others: Any, loose: bool = False) -> Any:
    """Return the tree of a rule's results at the leaves of `updates` and their counterparts."""
    return update_leaves(lambda *row: (rule(*row),), updates, (), *others, loose=loose)[0]


def update_leaves(
    rule: Callable[..., tuple[Any, ...]], updates: Any, states: Sequence[Any], *others: Any, loose: bool = False
) -> tuple[Any, ...]:
    """Apply a rule leaf by leaf: (update, *states, *others) -> (new update, *new states); return the trees of results.

    An update that is None stays None, with the states that it has. States keep their dtypes. loose: counterparts may
    be trees, or arrays of other shapes. Raises ArgumentError for trees that part, ShapeError for other shapes.
    """
    leaves, structure = optree.tree_flatten(updates, none_is_leaf=True, namespace=trees.NAMESPACE)
    columns = [_counterparts(structure, updates, other) for other in (*states, *others)]
    rows: list[tuple[Any, ...]] = []
    for position, (leaf, *row) in enumerate(zip(leaves, *columns, strict=True)):
        if leaf is None:
            rows.append((None, *row[: len(states)]))
            continue
        leaf = leaf if isinstance(leaf, Array) else tnp.asarray(leaf)
        if not loose:
            row = [_fitting(leaf, each, updates, position) for each in row]
        new, *kept = rule(leaf, *row)
        rows.append((new, *map(_in_dtype_of, kept, row)))
    results = [*zip(*rows, strict=True)] if rows else [()] * (1 + len(states))
    return tuple(trees.unflatten(structure, column) for column in results)


def _counterparts(
    structure: Any, updates: Any, other: Any, names: tuple[str, str] = ("gradients", "parameters or the state")
) -> list[Any]:
    try:
        return list(structure.flatten_up_to(other))
    except ValueError:
        path, own, met = trees.misfit(updates, other, "tree") or ("tree", updates, other)
        shown = [trees.structure_text(trees.flatten(each)[1]) for each in (own, met)]
    raise ArgumentError(
        message(
            f"update{here()}: the {names[0]} are of another structure",
            f"at {path}: {shown[0]} in the {names[0]}, {shown[1]} in the {names[1]}",
            help="grad(loss)(params) has the structure of the params that tx.init(params) was given",
        )
    )


def _in_dtype_of(new: Any, old: Any) -> Any:
    if isinstance(old, list):
        return [_in_dtype_of(*pair) for pair in zip(new, old, strict=True)]
    return new if new.dtype == old.dtype else new.astype(old.dtype)


def _fitting(leaf: Array, other: Any, updates: Any, position: int) -> Any:
    if isinstance(other, Array) and other.shape == leaf.shape:
        return other
    if other is not None and trees.is_leaf(other) and (found := tnp.asarray(other)).shape == leaf.shape:
        return found
    paths = optree.tree_accessors(updates, none_is_leaf=True, namespace=trees.NAMESPACE)
    met = "None" if other is None else str(other.type) if isinstance(other, Array) else type(other).__name__
    raise ShapeError(
        message(
            f"update{here()}: the gradients are of other shapes",
            f"at {paths[position].codify('tree')}: {leaf.type} in the gradients, {met} in the parameters or the state",
            help="grad(loss)(params) has the shapes of the params that tx.init(params) was given",
        )
    )


def with_extra_args_support(tx: GradientTransformation) -> GradientTransformationExtraArgs:
    """Return the transformation with an update that also takes keywords, which it ignores.

    tx: any pair of init and update.

    >>> tx = tracer.optim.GradientTransformation(lambda params: (), lambda g, state, params=None: (2 * g, state))
    >>> tracer.optim.with_extra_args_support(tx).update(tnp.asarray([1.0]), (), value=0.5)[0]
    Array([2.], f64)
    """
    if isinstance(tx, GradientTransformationExtraArgs):
        return tx

    def update(updates: Any, state: Any, params: Any = None, **extra_args: Any) -> Any:
        del extra_args
        return tx.update(updates, state, params)

    return GradientTransformationExtraArgs(tx.init, update)


def identity() -> GradientTransformationExtraArgs:
    """Return the transformation that changes nothing.

    >>> tracer.optim.identity().update(tnp.asarray([1.0]), tracer.optim.EmptyState())[0]
    Array([1.], f64)
    """
    return transformation("identity", no_state, lambda updates, state, *_, **extra: (updates, state))


def set_to_zero() -> GradientTransformationExtraArgs:
    """Return the transformation of all updates to zeros, which keeps parameters as they are.

    >>> tracer.optim.set_to_zero().update(tnp.asarray([1.0, 2.0]), tracer.optim.EmptyState())[0]
    Array([0., 0.], f64)
    """
    return elementwise("set_to_zero", tnp.zeros_like)


def stateless(f: Callable[[Any, Any], Any]) -> GradientTransformationExtraArgs:
    """Return the transformation that a function makes of updates.

    f: from trees of updates and parameters (or None) to updates.

    >>> tx = tracer.optim.stateless(lambda updates, params: -updates)
    >>> tx.update(tnp.asarray([1.0]), tx.init(None))[0]
    Array([-1.], f64)
    """
    return transformation(
        "stateless", no_state, lambda updates, state, params, *_, **extra: (f(updates, params), state)
    )


def stateless_with_tree_map(f: Callable[[Any, Any], Any]) -> GradientTransformationExtraArgs:
    """Return the transformation that a function makes of each update.

    f: from an array, and the parameter or None, to an array.

    >>> tx = tracer.optim.stateless_with_tree_map(lambda g, p: g + p)
    >>> tx.update({"w": tnp.asarray([1.0])}, tx.init(None), {"w": tnp.asarray([2.0])})[0]
    {'w': Array([3.], f64)}
    """

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> tuple[Any, Any]:
        del scalars, extra
        if params is None:
            return map_leaves(lambda u: f(u, None), updates), state
        return map_leaves(f, updates, params), state

    return transformation("stateless_with_tree_map", no_state, apply)


def apply_updates(params: Any, updates: Any) -> Any:
    """Return the parameters with the updates added, in their own dtypes.

    params: a tree of arrays; updates: a tree of equal structure, None for leaves to leave unchanged. The sum is rounded
    once. Raises ArgumentError for trees of different structure.

    >>> tracer.optim.apply_updates({"w": tnp.asarray([1.0]), "b": None}, {"w": tnp.asarray([-0.5]), "b": None})
    {'w': Array([0.5], f64), 'b': None}
    """
    leaves, structure = trees.flatten(params)
    summands = _counterparts(structure, params, updates, ("parameters", "updates"))
    rows = zip(leaves, summands, strict=True)
    return trees.unflatten(structure, [p if u is None else _added(p, u) for p, u in rows])


def _added(parameter: Any, update: Any) -> Array:
    old = tnp.asarray(parameter)
    return (old + update).astype(old.dtype)
