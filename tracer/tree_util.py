"""Trees of arrays, with long names; `tracer.tree` has short ones.

Tuples, lists, dicts (in the order of their sorted keys), named tuples, and registered classes are nodes; None is a tree
without leaves; everything else is a leaf.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

import optree

from tracer.absent import absent
from tracer.errors import ArgumentError, message
from tracer.trace import trees
from tracer.trace.docstrings import ABSENT
from tracer.trace.partials import Partial as Partial
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries
from tracer.tree_nodes import (
    KeyedEntry,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    register_pytree_with_keys,
    register_pytree_with_keys_class,
    register_static,
)

__all__ = [
    "DictKey", "FlattenedIndexKey", "GetAttrKey", "KeyPath", "Partial", "PyTreeDef", "SequenceKey", "all_leaves",
    "keystr", "register_dataclass", "register_pytree_node", "register_pytree_node_class", "register_pytree_with_keys",
    "register_pytree_with_keys_class", "register_static", "tree_all", "tree_broadcast", "tree_flatten",
    "tree_flatten_with_path", "tree_leaves", "tree_leaves_with_path", "tree_map", "tree_map_with_path", "tree_reduce",
    "tree_reduce_associative", "tree_structure", "tree_transpose", "tree_unflatten", "treedef_children",
    "treedef_is_leaf", "treedef_tuple",
]  # fmt: skip

PyTreeDef = optree.PyTreeSpec
T = TypeVar("T")
Leaf = Callable[[Any], bool] | None


def tree_flatten(tree: Any, is_leaf: Leaf = None) -> tuple[list[Any], PyTreeDef]:
    """Return the leaves in order, and the structure that restores the tree.

    tree: leaves of any shapes and dtypes; is_leaf: a function of nodes, true for nodes to treat as leaves.

    >>> tracer.tree_util.tree_flatten({"b": 1, "a": (2, None)})[0]
    [2, 1]
    """
    return optree.tree_flatten(tree, is_leaf, namespace=trees.NAMESPACE)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """Return the tree of a structure with the given leaves. Raises ArgumentError for another number of leaves.

    treedef: as of `tree_structure`; leaves: as many as it has, any objects.

    >>> tracer.tree_util.tree_unflatten(tracer.tree_util.tree_structure({"a": 0, "b": 0}), [1, 2])
    {'a': 1, 'b': 2}
    """
    return trees.refilled(treedef, leaves)


def tree_leaves(tree: Any, is_leaf: Leaf = None) -> list[Any]:
    """Return the leaves in order.

    tree, is_leaf: as of `tree_flatten`.

    >>> tracer.tree_util.tree_leaves([1, (2, 3)])
    [1, 2, 3]
    """
    return optree.tree_leaves(tree, is_leaf, namespace=trees.NAMESPACE)


def tree_structure(tree: Any, is_leaf: Leaf = None) -> PyTreeDef:
    """Return the structure without the leaves; structures can be compared and hashed.

    tree, is_leaf: as of `tree_flatten`.

    >>> tracer.tree_util.tree_structure([1, 2]) == tracer.tree_util.tree_structure([3.0, "x"])
    True
    >>> tracer.tree_util.tree_structure([1, 2]) == tracer.tree_util.tree_structure((1, 2))
    False
    """
    return optree.tree_structure(tree, is_leaf, namespace=trees.NAMESPACE)


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Leaf = None) -> Any:
    """Apply a function to corresponding leaves of one or more trees, in the structure of the first.

    f: takes one leaf of each tree; tree, rest: trees, all with the structure of the first down to its leaves; is_leaf:
    as of `tree_flatten`. Raises ArgumentError where the structures differ.

    >>> tracer.tree_util.tree_map(lambda x, y: x + y, {"a": 1}, {"a": 10})
    {'a': 11}
    """
    if is_leaf is None:
        return trees.tree_map(f, tree, *rest)
    leaves, structure = tree_flatten(tree, is_leaf)
    others = [_up_to(structure, other) for other in rest]
    return tree_unflatten(structure, [f(*xs) for xs in zip(leaves, *others, strict=True)])


def _up_to(structure: PyTreeDef, tree: Any, caller: str = "tree.map") -> list[Any]:
    try:
        return structure.flatten_up_to(tree)
    except ValueError as error:
        raise ArgumentError(message(f"{caller}{here()}: the trees have different structures", str(error))) from None


def tree_reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = ABSENT, is_leaf: Leaf = None) -> Any:
    """Combine the leaves one after another, starting from the initializer if given.

    function: of the combination so far and the next leaf; tree, is_leaf: as of `tree_flatten`; initializer: the start,
    also the result of a tree without leaves. Raises TypeError if there is neither.

    >>> tracer.tree_util.tree_reduce(lambda a, b: a + b, [1, (2, 3)])
    6
    """
    start = () if initializer is ABSENT else (initializer,)
    return functools.reduce(function, tree_leaves(tree, is_leaf), *start)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = ABSENT, is_leaf: Leaf = None
) -> Any:
    """Combine the leaves in pairs, and the results in pairs again, in logarithmically many steps.

    operation: of two leaves, or results; tree, is_leaf: as of `tree_flatten`. identity: the result of a tree without
    leaves, which raises ArgumentError if it is not given.

    >>> tracer.tree_util.tree_reduce_associative(lambda a, b: f"({a}{b})", list("abcde"))
    '(((ab)(cd))e)'
    """
    values = tree_leaves(tree, is_leaf)
    if not values:
        if identity is ABSENT:
            raise ArgumentError(
                message(f"tree.reduce_associative{here()}: the tree has no leaves", help="give identity")
            )
        return identity
    while len(values) > 1:
        pairs = zip(values[::2], values[1::2], strict=False)
        values = [operation(a, b) for a, b in pairs] + values[len(values) - len(values) % 2 :]
    return values[0]


def tree_broadcast(prefix_tree: Any, full_tree: Any, is_leaf: Leaf = None) -> Any:
    """Return a tree like `full_tree`, each leaf replaced by the leaf of `prefix_tree` above it.

    prefix_tree: ends where full_tree may go on; is_leaf: as of `tree_flatten`. Raises ArgumentError if it is not a
    prefix.

    >>> tracer.tree_util.tree_broadcast((1, 2), (0, {"a": 0, "b": 0}))
    (1, {'a': 2, 'b': 2})
    """
    leaves, structure = tree_flatten(prefix_tree, is_leaf)
    below = _up_to(structure, full_tree, "tree.broadcast")
    filled = [
        tree_map(lambda _, leaf=leaf: leaf, part, is_leaf=is_leaf) for leaf, part in zip(leaves, below, strict=True)
    ]
    return tree_unflatten(structure, filled)


def tree_all(tree: Any, *, is_leaf: Leaf = None) -> bool:
    """Return whether all leaves are true.

    tree, is_leaf: as of `tree_flatten`.

    >>> tracer.tree_util.tree_all({"a": True, "b": [1, 0]})
    False
    """
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """Turn a tree of trees inside out.

    outer_treedef, inner_treedef: the structures of the tree, and of the trees at its leaves; pytree_to_transpose: the
    tree. Raises ArgumentError for another structure.

    >>> outer, inner = (tracer.tree_util.tree_structure(t) for t in ([0, 0], {"a": 0}))
    >>> tracer.tree_util.tree_transpose(outer, inner, [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    inside = [tree_flatten(t) for t in _up_to(outer_treedef, pytree_to_transpose)]
    inner = inner_treedef or inside[0][1]
    if any(found != inner for _, found in inside):
        raise ArgumentError(message(f"tree.transpose{here()}: the inner trees have different structures"))
    columns = zip(*(leaves for leaves, _ in inside), strict=True)
    return tree_unflatten(inner, [tree_unflatten(outer_treedef, column) for column in columns])


def treedef_is_leaf(treedef: PyTreeDef) -> bool:
    """Return whether a structure is a single leaf.

    treedef: as of `tree_structure`.

    >>> tree = tracer.tree_util
    >>> tree.treedef_is_leaf(tree.tree_structure(1)), tree.treedef_is_leaf(tree.tree_structure([1]))
    (True, False)
    """
    return treedef.num_nodes == 1 and treedef.num_leaves == 1


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """Return the structures of a node's children.

    treedef: as of `tree_structure`.

    >>> tree = tracer.tree_util
    >>> tree.treedef_children(tree.tree_structure([0, (0, 0)]))[1] == tree.tree_structure((0, 0))
    True
    """
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """Return the structure of a tuple of trees.

    treedefs: as of `tree_structure`.

    >>> tree = tracer.tree_util
    >>> tree.treedef_tuple([tree.tree_structure(0)] * 2) == tree.tree_structure((0, 0))
    True
    """
    return optree.treespec_tuple(treedefs, namespace=trees.NAMESPACE)


def all_leaves(iterable: Iterable[Any], is_leaf: Leaf = None) -> bool:
    """Return whether no element is a tree with nodes.

    iterable: any objects; is_leaf: as of `tree_flatten`.

    >>> tracer.tree_util.all_leaves([1, 2]), tracer.tree_util.all_leaves([1, [2]])
    (True, False)
    """
    return optree.all_leaves(iterable, is_leaf, namespace=trees.NAMESPACE)


class SequenceKey(NamedTuple):
    """An index in a tuple or list.

    >>> tracer.tree_util.keystr((tracer.tree_util.SequenceKey(0),))
    '[0]'
    """

    idx: int

    def __str__(self) -> str:
        return f"[{self.idx!r}]"


class DictKey(NamedTuple):
    """A key of a dict.

    >>> tracer.tree_util.keystr((tracer.tree_util.DictKey("w"),))
    "['w']"
    """

    key: Hashable

    def __str__(self) -> str:
        return f"[{self.key!r}]"


class GetAttrKey(NamedTuple):
    """An attribute of a named tuple or a registered class.

    name: of the attribute.

    >>> tracer.tree_util.keystr((tracer.tree_util.GetAttrKey("mean"),))
    '.mean'
    """

    name: str

    def __str__(self) -> str:
        return f".{self.name}"


class FlattenedIndexKey(NamedTuple):
    """The index of a child of a class that gives no keys for its children.

    key: an integer.

    >>> tracer.tree_util.keystr((tracer.tree_util.FlattenedIndexKey(1),))
    '[<flat index 1>]'
    """

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyPath = tuple[Any, ...]


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """Return a path as it would be written after the tree: `['w'][0]`; or its bare keys.

    keys: of a path; simple: whether to write bare keys, with `separator` between them. Returns a str.

    >>> tree = tracer.tree_util
    >>> tree.keystr((tree.DictKey("w"), tree.SequenceKey(0)))
    "['w'][0]"
    """
    if simple:
        return separator.join(str(key[0]) if isinstance(key, tuple) else str(key) for key in keys)
    return separator.join(map(str, keys))


def tree_flatten_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> tuple[list[tuple[KeyPath, Any]], PyTreeDef]:
    """Return the leaves with their paths, and the structure.

    tree, is_leaf: as of `tree_flatten`; is_leaf_takes_path: whether to call is_leaf(path, x). A path is a tuple of
    keys: see `keystr`.

    >>> leaves, _ = tracer.tree_util.tree_flatten_with_path({"w": [1, 2]})
    >>> [(tracer.tree_util.keystr(path), leaf) for path, leaf in leaves]
    [("['w'][0]", 1), ("['w'][1]", 2)]
    """
    chosen = _without_path(is_leaf, tree) if is_leaf is not None and is_leaf_takes_path else is_leaf
    accessors, leaves, structure = optree.tree_flatten_with_accessor(tree, chosen, namespace=trees.NAMESPACE)
    paths = [tuple(map(_key, accessor)) for accessor in accessors]
    return list(zip(paths, leaves, strict=True)), structure


def _without_path(is_leaf: Callable[[KeyPath, Any], bool], tree: Any) -> Callable[[Any], bool]:
    """Return the answers of is_leaf for this tree, in the order in which flattening asks."""

    def decisions(path: KeyPath, node: Any) -> Iterator[bool]:
        stop = bool(is_leaf(path, node))
        yield stop
        if not stop and not all_leaves([node]):
            inside, _ = optree.tree_flatten_one_level(node, namespace=trees.NAMESPACE)[:2]
            entries = tree_flatten_with_path(node, lambda x: x is not node)[0]
            for (step, _), child in zip(entries, inside, strict=True):
                yield from decisions((*path, *step), child)

    answers = decisions((), tree)
    return lambda _: next(answers)


def _key(entry: Any) -> Any:
    match entry:
        case optree.MappingEntry():
            return DictKey(entry.key)
        case optree.NamedTupleEntry():
            return GetAttrKey(entry.field)
        case optree.GetAttrEntry():
            return GetAttrKey(entry.name)
        case optree.SequenceEntry():
            return SequenceKey(entry.index)
        case KeyedEntry():
            return entry.entry
        case _:
            return FlattenedIndexKey(entry.entry)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """Return the leaves with their paths.

    tree, is_leaf, is_leaf_takes_path: as of `tree_flatten_with_path`.

    >>> tree = tracer.tree_util
    >>> [(tree.keystr(path), leaf) for path, leaf in tree.tree_leaves_with_path({"w": [1, 2]})]
    [("['w'][0]", 1), ("['w'][1]", 2)]
    """
    return tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)[0]


def tree_map_with_path(
    f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Callable[..., bool] | None = None,
    is_leaf_takes_path: bool = False,
) -> Any:  # fmt: skip
    """Apply a function to each leaf's path and the corresponding leaves of one or more trees.

    f, tree, rest: as of `tree_map`; is_leaf, is_leaf_takes_path: as of `tree_flatten_with_path`.

    >>> tree = tracer.tree_util
    >>> tree.tree_map_with_path(lambda path, x: f"{tree.keystr(path)} = {x}", {"w": [1, 2]})
    {'w': ["['w'][0] = 1", "['w'][1] = 2"]}
    """
    leaves, structure = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [_up_to(structure, other) for other in rest]
    results = [f(path, leaf, *xs) for (path, leaf), *xs in zip(leaves, *others, strict=True)]
    return tree_unflatten(structure, results)


set_boundaries(globals(), __all__)


def __getattr__(name: str) -> object:
    raise absent(__name__, name)
