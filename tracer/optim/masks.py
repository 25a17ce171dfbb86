"""Transformations of some of the parameters: masks as trees, predicates of paths, and words."""

from __future__ import annotations

import inspect
from typing import Any, NamedTuple

import numpy as np
import optree

from tracer import numpy as tnp
from tracer.errors import ArgumentError, message
from tracer.optim.scalars import Dtypes
from tracer.optim.transformation import (
    GradientTransformation,
    GradientTransformationExtraArgs,
    applied,
    parts_of,
    set_to_zero,
    structures,
    transformation,
)
from tracer.trace import trees
from tracer.trace.source import here

_NEED = "a tree of bools like the params, a function of the params, a function of (path, x), or 'matrices'"


class MaskedNode(NamedTuple):
    """Node without leaves in the place of a parameter that a mask leaves out.

    >>> tracer.tree.leaves({"w": tracer.optim.MaskedNode()})
    []
    """


class MaskedState(NamedTuple):
    """State of `masked` and `only`: the inner transformation's state.

    >>> tracer.optim.masked(tracer.optim.scale(2.0), True).init(tnp.asarray([0.0]))
    MaskedState(inner_state=EmptyState())
    """

    inner_state: Any


def leaf_paths(tree: Any) -> list[str]:
    """Return the path of each leaf with dots: `layers.0.weight`."""
    accessors = optree.tree_accessors(tree, namespace=trees.NAMESPACE)
    return [".".join(str(getattr(e, "field", getattr(e, "name", e.entry))) for e in path) for path in accessors]


def mask_tree(mask: Any, tree: Any) -> Any:
    """Return a mask as a tree of bools for the leaves of a tree, or for whole branches. Raises ArgumentError."""
    if isinstance(mask, str):
        if mask != "matrices":
            raise _refused(repr(mask))
        return trees.tree_map(lambda x: tnp.ndim(x) >= 2, tree)
    if callable(mask) and trees.is_leaf(mask):
        found = _by_path(mask, tree) if _takes_path(mask) else mask(tree)
    else:
        found = mask
    leaves, structure = trees.flatten(found)
    for leaf in leaves:
        if not isinstance(leaf, bool) and getattr(leaf, "dtype", None) != np.bool_:
            raise _refused(type(leaf).__name__)
    return trees.unflatten(structure, [bool(leaf) for leaf in leaves])


def _refused(got: str) -> ArgumentError:
    return ArgumentError(message(f"mask{here()}: expected {_NEED}", f"got {got}", help="mask='matrices'"))


def _by_path(mask: Any, tree: Any) -> Any:
    leaves, structure = trees.flatten(tree)
    return trees.unflatten(structure, [mask(path, x) for path, x in zip(leaf_paths(tree), leaves, strict=True)])


def _takes_path(mask: Any) -> bool:
    try:
        given = inspect.signature(mask).parameters.values()
    except (TypeError, ValueError):
        return False
    kinds = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return sum(p.kind in kinds and p.default is inspect.Parameter.empty for p in given) == 2


def _parted(mask: Any, tree: Any) -> tuple[list[bool], list[Any], Any]:
    """Return the mask's bools, the branches of the tree that they decide, and the mask's structure."""
    flags, structure = trees.flatten(mask)
    try:
        return flags, list(structure.flatten_up_to(tree)), structure
    except ValueError:
        path, own, met = trees.misfit(mask, tree, "tree") or ("tree", mask, tree)
        shown = structures(own, met)
    raise ArgumentError(
        message(
            f"mask{here()}: the mask has another structure than the parameters",
            f"at {path}: {shown[0]} in the mask, {shown[1]} in the parameters",
            help=f"expected {_NEED}",
        )
    )


def _shown(mask: Any, tree: Any) -> Any:
    """Return the tree with `MaskedNode` where the mask is False."""
    flags, branches, structure = _parted(mask, tree)
    return trees.unflatten(structure, [x if flag else MaskedNode() for flag, x in zip(flags, branches, strict=True)])


def _merged(mask: Any, inside: Any, outside: Any) -> Any:
    """Return the tree with the branches of `inside` where the mask is True."""
    flags, new, structure = _parted(mask, inside)
    old = structure.flatten_up_to(outside)
    return trees.unflatten(structure, [a if flag else b for flag, a, b in zip(flags, new, old, strict=True)])


def masked(
    inner: GradientTransformation, mask: Any, *, mask_compatible_extra_args: bool = False
) -> GradientTransformationExtraArgs:  # fmt: skip
    """Return the transformation of the updates that a mask chooses; other updates pass **unchanged**.

    Without a transformation the gradients themselves are the other updates: an ascent. `only` gives zeros there.

    inner: the transformation. mask: a tree of bools like the parameters or a prefix of them; or a function from
    parameters to such a tree; or a function of (path, array) with paths such as "layers.0.weight"; or "matrices": the
    arrays of two axes or more. mask_compatible_extra_args: whether keywords of the updates' structure are masked as
    they are.

    >>> tx = tracer.optim.masked(tracer.optim.scale(-1.0), {"w": True, "b": False})
    >>> grads = {"w": tnp.asarray([1.0]), "b": tnp.asarray([1.0])}
    >>> tx.update(grads, tx.init(grads))[0]
    {'w': Array([-1.], f64), 'b': Array([1.], f64)}
    """
    return _masked(inner, mask, mask_compatible_extra_args, lambda updates: updates)


def only(tx: GradientTransformation, where: Any) -> GradientTransformationExtraArgs:
    """Return the transformation of the updates that a mask chooses; other updates become **zero**.

    tx: the transformation. where: a mask as of `masked`.

    >>> tx = tracer.optim.only(tracer.optim.sgd(1.0), lambda path, x: path.startswith("head"))
    >>> grads = {"head": {"w": tnp.asarray([1.0])}, "body": tnp.asarray([1.0])}
    >>> tx.update(grads, tx.init(grads))[0]
    {'head': {'w': Array([-1.], f64)}, 'body': Array([0.], f64)}
    """
    zero = parts_of(set_to_zero())
    return _masked(tx, where, False, lambda updates: zero.apply(updates, None, None, None)[0])


def _masked(inner: GradientTransformation, mask: Any, share: bool, outside: Any) -> GradientTransformationExtraArgs:
    part = parts_of(inner)

    def init(params: Any) -> MaskedState:
        return MaskedState(inner.init(_shown(mask_tree(mask, params), params)))

    def scalars(state: Any, among: Dtypes) -> Any:
        return part.scalars(state.inner_state, among)

    def apply(updates: Any, state: Any, params: Any, scalars: Any, **extra: Any) -> Any:
        chosen = mask_tree(mask, updates)
        like = trees.flatten(updates)[1]
        extra = {k: _shown(chosen, v) if share and trees.flatten(v)[1] == like else v for k, v in extra.items()}
        shown = None if params is None else _shown(chosen, params)
        new, new_inner = applied(part, _shown(chosen, updates), state.inner_state, shown, scalars, extra)
        return _merged(chosen, new, outside(updates)), MaskedState(new_inner)

    return transformation(part.name, init, apply, scalars=scalars, need=part.need, kind=MaskedState)


def freeze(mask: Any) -> GradientTransformationExtraArgs:
    """Return the transformation to zero of the updates that a mask chooses; other updates pass unchanged.

    mask: as of `masked`, True where parameters stay as they are.

    >>> tx = tracer.optim.freeze({"w": True, "b": False})
    >>> grads = {"w": tnp.asarray([1.0]), "b": tnp.asarray([1.0])}
    >>> tx.update(grads, tx.init(grads))[0]
    {'w': Array([0.], f64), 'b': Array([1.], f64)}
    """
    return masked(set_to_zero(), mask)
