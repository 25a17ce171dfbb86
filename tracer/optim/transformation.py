"""Gradient transformations: pairs of pure functions, the leaf-by-leaf map that rules are written with, application.

A transformation's update has two parts. `scalars` computes values of the state's scalars alone: powers of the
count, rates of schedules. `apply` maps a rule over the leaves. A chain computes all scalars before any leaf, so that a
compiled update is one loop nest per array.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import optree

from tracer import numpy as tnp
from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir.types import Type
from tracer.optim.scalars import Dtypes, dtypes_of
from tracer.primitives.control.calls import call
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.tracebacks import boundary

_MANY = 8  # rows of equal types from which a program of its own saves time


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
    scalars: Callable[[Any, Dtypes], Any] = no_scalars, need: str | None = None, kind: type[Any] | None = None,
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Make a transformation.

    apply: (updates, state, params, scalars, **extra) -> (updates, state). scalars: from the state and the leaves'
    dtypes. need: the use that update makes of parameters; None if it may be called without. kind: the named tuple that
    init returns, if update reads it; update raises ArgumentError for states with other fields.
    """

    def own_scalars(state: Any, among: Dtypes) -> Any:
        if kind is not None and getattr(state, "_fields", None) != kind._fields:
            raise ArgumentError(
                message(
                    f"update{here()}: the state belongs to another transformation",
                    f"expected {kind.__name__}, got {type(state).__name__}",
                    help="state = tx.init(params), then tx.update(grads, state, params)",
                )
            )
        return scalars(state, among)

    parts = Parts(apply, own_scalars, name, need)

    def outermost_init(params: Any) -> Any:
        return init(trained(params))

    def update(updates: Any, state: Any, params: Any = None, **extra_args: Any) -> tuple[Any, Any]:
        updates, params = trained(updates), trained(params)
        return applied(parts, updates, state, params, own_scalars(state, dtypes_of(updates)), extra_args)

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
    """Return the parts of a transformation's update; one that is a user's has no scalars.

    Raises ArgumentError for other objects.
    """
    if not callable(getattr(tx, "update", None)):
        text = message(f"got {type(tx).__name__}{here()}, which is no optimizer", help="such as optim.adam(1e-3)")
        raise ArgumentError(text)
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


def map_leaves(rule: Callable[..., Any], updates: Any, *others: Any, loose: bool = False, pure: bool = True) -> Any:
    """Return the tree of a rule's results at the leaves of `updates` and their counterparts."""
    return update_leaves(lambda *row: (rule(*row),), updates, (), *others, loose=loose, pure=pure)[0]


def update_leaves(
    rule: Callable[..., tuple[Any, ...]], updates: Any, states: Sequence[Any], *others: Any, loose: bool = False,
    pure: bool = True,
) -> tuple[Any, ...]:  # fmt: skip
    """Apply a rule leaf by leaf and return the trees of results.

    rule: (update, *states, *others) -> (new update, *new states).

    An update that is None stays None, with the states that it has. States keep their dtypes. loose: counterparts may
    be trees, or arrays of other shapes. pure: as of `by_row`. Raises ArgumentError for trees that part, ShapeError for
    other shapes.
    """
    leaves, structure = optree.tree_flatten(updates, none_is_leaf=True, namespace=trees.NAMESPACE)
    columns = [_counterparts(structure, updates, other) for other in (*states, *others)]
    rows: list[tuple[Any, ...]] = []
    for position, (leaf, *row) in enumerate(zip(leaves, *columns, strict=True)):
        if leaf is not None:
            leaf = leaf if isinstance(leaf, Array) else tnp.asarray(leaf)
            if not loose:
                row = [_fitting(leaf, each, updates, position) for each in row]
        rows.append((leaf, *row))

    def of_row(leaf: Any, *row: Any) -> tuple[Any, ...]:
        if leaf is None:
            return None, *row[: len(states)]
        new, *kept = rule(leaf, *row)
        return new, *map(_in_dtype_of, kept, row)

    results = [*zip(*by_row(of_row, rows, pure=pure), strict=True)] if rows else [()] * (1 + len(states))
    return tuple(trees.unflatten(structure, column) for column in results)


def by_row(rule: Callable[..., Any], rows: Sequence[tuple[Any, ...]], *, pure: bool = True) -> list[Any]:
    """Return a rule's results for rows of arrays, in order.

    Under a trace, many rows of equal types share one program, so that compiling takes time by distinct shapes. pure:
    whether the rule computes from its arguments alone; a user's function may draw from a counter.
    """
    kinds = [tuple(x.type if isinstance(x, Array) else None for x in row) for row in rows]
    if not pure or state.staging is None:
        return [rule(*row) for row in rows]
    counts = Counter(kinds)
    programs: dict[Any, Callable[..., Any]] = {}
    results = []
    for row, kind in zip(rows, kinds, strict=True):
        if None not in kind and counts[kind] >= _MANY:
            if kind not in programs:
                programs[kind] = _as_program(rule, [x.type for x in row])
            results.append(programs[kind](*row))
        else:
            results.append(rule(*row))
    return results


def _as_program(rule: Callable[..., Any], types: Sequence[Type]) -> Callable[..., Any]:
    """Return the rule for arrays of the given types as the call of its program."""
    structures: list[trees.Structure] = []

    def flat(row: list[Array]) -> Sequence[Any]:
        leaves, structure = trees.flatten(rule(*row))
        structures.append(structure)
        return leaves

    program, captured = stage(flat, types, name="update")
    return lambda *row: trees.unflatten(structures[0], call(program, *captured, *row, inline=True))


def _counterparts(
    structure: Any, updates: Any, other: Any, names: tuple[str, str] = ("gradients", "parameters or the state")
) -> list[Any]:
    try:
        return list(structure.flatten_up_to(other))
    except ValueError:
        path, own, met = trees.misfit(updates, other, "tree") or ("tree", updates, other)
        shown = structures(own, met)
    raise ArgumentError(
        message(
            f"update{here()}: the {names[0]} are of another structure",
            f"at {path}: {shown[0]} in the {names[0]}, {shown[1]} in the {names[1]}",
            help="grad(loss)(params) has the structure of the params that tx.init(params) was given",
        )
    )


def structures(*given: Any) -> list[str]:
    """Return the texts of structures that differ; models of two classes are shown by their names."""
    texts = [trees.structure_text(trees.flatten(tree)[1]) for tree in given]
    short = [type(tree).__name__ if "CustomTreeNode" in text else text for tree, text in zip(given, texts, strict=True)]
    return short if len({*short}) == len(given) else texts


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
            return map_leaves(lambda u: f(u, None), updates, pure=False), state
        return map_leaves(f, updates, params, pure=False), state

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
    return trees.unflatten(structure, by_row(_added, [*zip(leaves, summands, strict=True)]))


def _added(parameter: Any, update: Any) -> Any:
    if update is None:
        return parameter
    old = tnp.asarray(parameter)
    return (old + update).astype(old.dtype)
