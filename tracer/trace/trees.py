"""Trees of arrays: nested tuples, lists, dicts and registered classes, through optree.

None is an empty tree; dicts go in the order of their sorted keys, as in JAX.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import optree

from tracer.errors import ArgumentError, message
from tracer.ir.dtypes import FLOAT0, is_inexact
from tracer.trace.source import here

NAMESPACE = "tracer"
Structure = optree.PyTreeSpec


def flatten(tree: Any) -> tuple[list[Any], Structure]:
    """Return the leaves in order, and the structure that puts them back."""
    return optree.tree_flatten(tree, namespace=NAMESPACE)


LEAF, ONE = flatten(0)[1], flatten((0,))[1]
"""The structures of a leaf, and of a tuple of one."""


def flatten_values(tree: Any) -> tuple[list[Any], Structure]:
    """Flatten as `flatten`, for leaves to compute with: an array of float0, which has only a shape, becomes booleans.

    The booleans sit below a node, which restores float0 in the shape that they return with.
    """
    leaves, structure = flatten(tree)
    if any(map(is_float0, leaves)):
        leaves, structure = flatten(unflatten(structure, [_Empty(x) if is_float0(x) else x for x in leaves]))
    return leaves, structure


def is_float0(leaf: Any) -> bool:
    """Whether the leaf is an array of float0, the tangents of integers."""
    return isinstance(leaf, np.ndarray) and leaf.dtype == FLOAT0


class _Empty:
    """Node that stands for an array of float0."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array

    def taken_apart(self) -> tuple[tuple[Any, ...], None]:
        return (np.zeros(self.array.shape, np.bool_),), None

    @staticmethod
    def put_together(_: None, children: Sequence[Any]) -> Any:
        (child,) = children
        return np.zeros(child.shape, FLOAT0) if hasattr(child, "shape") else child


class _Fixed:
    """Node without leaves that stands for a function or text: a part of the structure."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def taken_apart(self) -> tuple[tuple[Any, ...], _FixedValue]:
        return (), _FixedValue(type(self.value), self.value)

    @staticmethod
    def put_together(kept: _FixedValue, _: Sequence[Any]) -> Any:
        return kept.value


class _FixedValue(NamedTuple):
    kind: type
    value: Any

    def __repr__(self) -> str:
        return str(getattr(self.value, "__qualname__", None) or repr(self.value))


def is_fixed(leaf: Any) -> bool:
    """Whether a leaf below an argument belongs to the structure: functions and text, compared by == and hash."""
    return isinstance(leaf, str | bytes) or (callable(leaf) and type(leaf).__hash__ is not None)


def with_fixed(tree: Any) -> Any:
    """Return the tree with its functions and text as nodes without leaves; a tree that is a leaf stays as it is."""
    leaves, structure = flatten(tree)
    if is_leaf(tree) or not any(map(is_fixed, leaves)):
        return tree
    return unflatten(structure, [_Fixed(x) if is_fixed(x) else x for x in leaves])


def register(
    kind: Any, take_apart: Callable[[Any], Any], put_together: Callable[..., Any], entry: Any = None,
    flatten: Callable[[Any], Any] | None = None, trained: Callable[[Any], Sequence[bool]] | None = None,
    attributes: Callable[[Any], tuple[dict[str, Any], Sequence[str]]] | None = None,
) -> None:  # fmt: skip
    """Make a class a node: take_apart(x) -> (children, other data), put_together(other data, children) -> x.

    entry: the type of the children's entries in paths. flatten: a faster `take_apart`, for calls of jitted functions;
    its children may be any iterable. trained: returns for each child whether gradients are taken by it; see
    `trained_part`. attributes: returns attributes that instances of one structure share, and the names of the
    children, all in the instance's `__dict__`; compiled calls read them without `flatten`. Any class may
    be registered, though optree's types say collections.
    """
    how = optree.FlattenedEntry if entry is None else entry
    optree.register_pytree_node(kind, take_apart, put_together, path_entry_type=how, namespace=NAMESPACE)
    _FLATTENING[kind] = take_apart if flatten is None else flatten
    if trained is not None:
        _TRAINED[kind] = trained
    if attributes is not None:
        _ATTRIBUTES[kind] = attributes
        _BUILT.add(kind)


def read_attributes(kind: type, data: Sequence[str], meta: Sequence[str]) -> None:
    """Let compiled calls read a registered class's children and other data from the instance's `__dict__`.

    Instances whose other data are not plain values are taken apart by the class's function.
    """

    def attributes(value: Any) -> tuple[dict[str, Any], Sequence[str]] | None:
        own = value.__dict__
        if not all(name in own for name in data) or not all(type(own.get(name, own)) in _PLAIN for name in meta):
            return None
        return {name: own[name] for name in meta}, data

    _ATTRIBUTES[kind] = attributes


_FLATTENING: dict[type, Callable[[Any], Any]] = {}
"""Functions that take instances of registered classes apart. optree, too, keeps such classes alive."""


def flattening(kind: type) -> Callable[[Any], Any] | None:
    """Return the function that takes an instance of a registered class apart; None for any other class."""
    return _FLATTENING.get(kind)


_ATTRIBUTES: dict[type, Callable[[Any], tuple[dict[str, Any], Sequence[str]] | None]] = {}
_BUILT: set[type | None] = set()  # classes whose results are built from attributes as well
_PLAIN = frozenset((bool, int, str))


def keeps_attributes(kind: type | None) -> bool:
    """Whether instances of a class are built from their `__dict__`; see `attributes` of `register`."""
    return kind in _BUILT


def attributes(value: Any) -> tuple[dict[str, Any], Sequence[str]] | None:
    """Return the attributes that decide an instance's structure, and its children's names; None for other classes."""
    read = _ATTRIBUTES.get(type(value))
    return None if read is None else read(value)


_TRAINED: dict[type, Callable[[Any], Sequence[bool]]] = {}


def trained_part(tree: Any) -> Any:
    """Return the tree with None for the children of models that gradients are not taken by, and for their integers.

    A tree without classes that were registered with `trained` is returned as it is.
    """
    if not _TRAINED:
        return tree
    found, structure = optree.tree_flatten(tree, is_leaf=lambda x: type(x) in _TRAINED, namespace=NAMESPACE)
    if not any(type(x) in _TRAINED for x in found):
        return tree
    return unflatten(structure, [_trained_node(x) if type(x) in _TRAINED else x for x in found])


def _trained_node(node: Any) -> Any:
    children, structure = _children(node)
    flags = _TRAINED[type(node)](node)
    kept = [_trained_child(child) if flag else None for child, flag in zip(children, flags, strict=True)]
    return unflatten(structure, kept)


def _trained_child(child: Any) -> Any:
    if type(child) in _TRAINED:
        return _trained_node(child)
    if child is None:
        return None
    if not is_leaf(child):
        parts, structure = _children(child)
        return unflatten(structure, [_trained_child(part) for part in parts])
    dtype = getattr(child, "dtype", None)
    return child if dtype is None or is_inexact(dtype) else None


def merged(full: Any, part: Any) -> Any:
    """Return `full` with the leaves of `part` where it has any: the inverse of `trained_part`."""
    leaves, structure = flatten(full)
    parts: list[Any] = structure.flatten_up_to(part)
    return unflatten(structure, [old if new is None else new for old, new in zip(leaves, parts, strict=True)])


def unflatten(structure: Structure, leaves: Sequence[Any]) -> Any:
    if structure is ONE:
        return tuple(leaves)
    return optree.tree_unflatten(structure, leaves)


def refilled(structure: Any, leaves: Iterable[Any]) -> Any:
    """Unflatten as `unflatten`, for leaves from a user. Raises ArgumentError if they do not fill the structure."""
    if not isinstance(structure, optree.PyTreeSpec):
        swapped = isinstance(leaves, optree.PyTreeSpec)
        raise ArgumentError(
            message(
                f"tree.unflatten{here()} takes a structure and its leaves",
                f"expected a result of tree.structure, got {type(structure).__name__}",
                help="the structure comes first" if swapped else "tree.unflatten(tree.structure(like), leaves)",
            )
        )
    try:
        values = list(leaves)
    except TypeError:
        raise ArgumentError(
            message(
                f"tree.unflatten{here()}: the leaves must come in a sequence",
                f"expected {structure.num_leaves} of them, got {type(leaves).__name__}",
                help="a list, as tree.leaves returns",
            )
        ) from None
    if len(values) != structure.num_leaves:
        raise ArgumentError(
            message(
                f"tree.unflatten{here()}: the structure has another number of leaves",
                f"expected {structure.num_leaves} for {structure_text(structure)}, got {len(values)}",
                help="one leaf for each *, in the order of tree.leaves; None is not a leaf",
            )
        )
    return optree.tree_unflatten(structure, values)


def tree_map(function: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Apply a function to corresponding leaves."""
    leaves, structure = flatten(tree)
    if not rest:
        return unflatten(structure, [*map(function, leaves)])
    try:
        columns = [structure.flatten_up_to(other) for other in rest]
    except ValueError:
        shown = " and ".join(structure_text(flatten(each)[1]) for each in (tree, *rest))
        help = "every tree must have the structure of the first" + (f"; {_SKIPS_NONE}" if "None" in shown else "")
        text = message(f"tree.map{here()}: the trees have different structures", f"got {shown}", help=help)
        raise ArgumentError(text) from None
    try:
        return unflatten(structure, [function(*row) for row in zip(leaves, *columns, strict=True)])
    except TypeError as error:
        if any(x is None for column in columns for x in column):  # a subtree in the place of a leaf
            error.add_note(f"help: another tree has None where the first has a leaf; {_SKIPS_NONE}")
        raise


_SKIPS_NONE: Final = "nn.map(f, model, grads) skips arrays that are not trained, whose gradients are None"


def leaf_names(tree: Any, root: str = "") -> list[str]:
    """Return the name of each leaf as a user would write it: `params['w'][2]`."""
    accessors = optree.tree_accessors(tree, namespace=NAMESPACE)
    return [accessor.codify(root) if root else accessor.codify("tree") for accessor in accessors]


def broadcast_prefix(prefix: Any, tree: Any, caller: str) -> list[Any]:
    """Return one entry of `prefix` for each leaf of `tree`; None is an entry, so that axes can be None.

    caller: the argument, for errors. Raises ArgumentError if `prefix` is not a prefix of the tree.
    """

    def is_entry(x: Any) -> bool:
        return x is None or isinstance(x, int | bool)

    if is_entry(prefix):
        return [prefix] * len(flatten(tree)[0])
    try:
        return list(optree.broadcast_prefix(prefix, tree, is_leaf=is_entry, none_is_leaf=False, namespace=NAMESPACE)) \
            if not _has_none(prefix) else _broadcast(prefix, tree)  # fmt: skip
    except (ValueError, TypeError):
        root = caller.partition(" ")[0]
        path, own, described = misfit(prefix, tree, root) or (root, prefix, tree)
        where = f" at {path}" if path != root else ""
        raise ArgumentError(
            message(
                f"{caller}{here()} must be a prefix of the tree that it describes",
                f"got {own!r} for {structure_text(flatten(described)[1])}{where}",
                help="give one integer or None for the whole tree, or a tree of them with the same outer structure",
            )
        ) from None


def misfit(prefix: Any, tree: Any, path: str) -> tuple[str, Any, Any] | None:
    """Return the path at which a prefix and a tree differ, and both parts there; None if they do not."""
    if prefix is None or is_leaf(prefix):
        return None
    (parts, kind), (others, other_kind) = _children(prefix), _children(tree)
    if kind != other_kind:
        return path, prefix, tree
    accessors = optree.tree_accessors(prefix, is_leaf=_below(prefix), none_is_leaf=True, namespace=NAMESPACE)
    rows = zip(parts, others, accessors, strict=True)
    return next((found for p, t, a in rows if (found := misfit(p, t, a.codify(path))) is not None), None)


def _has_none(prefix: Any) -> bool:
    return any(leaf is None for leaf in optree.tree_leaves(prefix, none_is_leaf=True, namespace=NAMESPACE))


def _broadcast(prefix: Any, tree: Any) -> list[Any]:
    """Broadcast as optree.broadcast_prefix, with None in the prefix as an entry, not an empty tree."""
    if prefix is None or isinstance(prefix, int | bool):
        return [prefix] * len(flatten(tree)[0])
    return [entry for p, t in matched_children(prefix, tree) for entry in _broadcast(p, t)]


def children_with_entries(node: Any) -> list[tuple[Any, str]]:
    """Return the children of a node with their entries as a user would write them: "[0]", "['w']", ".bias"."""
    children, _ = _children(node)
    accessors = optree.tree_accessors(node, is_leaf=_below(node), none_is_leaf=True, namespace=NAMESPACE)
    return [(child, accessor.codify("")) for child, accessor in zip(children, accessors, strict=True)]


def is_leaf(tree: Any) -> bool:
    """Whether the tree is a leaf; None is a node, without children."""
    return bool(optree.tree_is_leaf(tree, namespace=NAMESPACE))


def matched_children(first: Any, second: Any) -> list[tuple[Any, Any]]:
    """Return the children of two nodes, each with its counterpart. Raises ValueError if the nodes differ."""
    own, structure = _children(first)
    others, other = _children(second)
    if structure != other:
        raise ValueError
    return list(zip(own, others, strict=True))


def _children(node: Any) -> tuple[list[Any], Structure]:
    return optree.tree_flatten(node, is_leaf=_below(node), none_is_leaf=True, namespace=NAMESPACE)


def _below(node: Any) -> Callable[[Any], bool]:
    return lambda x: x is not node


def parting(first: Structure, second: Structure, root: str) -> tuple[str, Structure, Structure]:
    """Return the path from `root` at which two structures differ, and both parts there."""
    one, other = (unflatten(structure, [0] * structure.num_leaves) for structure in (first, second))
    path = root
    while not (is_leaf(one) or is_leaf(other)):
        (parts, kind), (others, other_kind) = _children(one), _children(other)
        if kind != other_kind:
            break
        accessors = optree.tree_accessors(one, is_leaf=_below(one), none_is_leaf=True, namespace=NAMESPACE)
        rows = zip(parts, others, accessors, strict=True)
        differing = next((row for row in rows if flatten(row[0])[1] != flatten(row[1])[1]), None)
        if differing is None:  # fixed values, such as text, are no leaves of the trees that they are rebuilt in
            break
        one, other, accessor = differing
        path = accessor.codify(path)
    return path, flatten(one)[1], flatten(other)[1]


def structure_text(structure: Structure) -> str:
    """Return the structure as users write it: `{'w': *, 'b': *}`."""
    text = str(structure)
    text = text.removeprefix("PyTreeSpec(").removesuffix(")").replace(", namespace='tracer'", "")
    return re.sub(r"CustomTreeNode\(_Fixed\[(.*?)\], \[\]\)", r"\1", text)


def tuple_of(*structures: Structure) -> Structure:
    """Return the structure of a tuple of such trees."""
    return optree.treespec_tuple(structures, namespace=NAMESPACE)


register(_Empty, _Empty.taken_apart, _Empty.put_together)
register(_Fixed, _Fixed.taken_apart, _Fixed.put_together)
