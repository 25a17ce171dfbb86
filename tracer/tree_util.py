"""Trees of arrays, with the long names; `tracer.tree` has the short ones.

Tuples, lists, dicts (in the order of their sorted keys), named tuples, and the classes that are registered here are
nodes; None is a tree without leaves; everything else is a leaf.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import optree

from tracer.absent import absent
from tracer.errors import ArgumentError, message
from tracer.trace import trees
from tracer.trace.docstrings import ABSENT
from tracer.trace.partials import Partial as Partial
from tracer.trace.source import here
from tracer.trace.tracebacks import set_boundaries

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
    """The leaves in order, and the structure that puts them back.

    tree: leaves of any shapes and dtypes; is_leaf: a function of nodes that says which of them count as leaves.

    >>> tracer.tree_util.tree_flatten({"b": 1, "a": (2, None)})[0]
    [2, 1]
    """
    return optree.tree_flatten(tree, is_leaf, namespace=trees.NAMESPACE)


def tree_unflatten(treedef: PyTreeDef, leaves: Iterable[Any]) -> Any:
    """The tree of a structure with the given leaves. Raises ArgumentError for any other number of them.

    treedef: as of `tree_structure`; leaves: as many as it has, any objects.

    >>> tracer.tree_util.tree_unflatten(tracer.tree_util.tree_structure({"a": 0, "b": 0}), [1, 2])
    {'a': 1, 'b': 2}
    """
    return trees.refilled(treedef, leaves)


def tree_leaves(tree: Any, is_leaf: Leaf = None) -> list[Any]:
    """The leaves in order.

    tree, is_leaf: as of `tree_flatten`.

    >>> tracer.tree_util.tree_leaves([1, (2, 3)])
    [1, 2, 3]
    """
    return optree.tree_leaves(tree, is_leaf, namespace=trees.NAMESPACE)


def tree_structure(tree: Any, is_leaf: Leaf = None) -> PyTreeDef:
    """The structure without the leaves; structures can be compared, and hashed.

    tree, is_leaf: as of `tree_flatten`.

    >>> tracer.tree_util.tree_structure([1, 2]) == tracer.tree_util.tree_structure([3.0, "x"])
    True
    >>> tracer.tree_util.tree_structure([1, 2]) == tracer.tree_util.tree_structure((1, 2))
    False
    """
    return optree.tree_structure(tree, is_leaf, namespace=trees.NAMESPACE)


def tree_map(f: Callable[..., Any], tree: Any, *rest: Any, is_leaf: Leaf = None) -> Any:
    """A function of corresponding leaves of one or more trees, in the structure of the first.

    f: takes one leaf of each tree; tree, rest: trees of which the first is a prefix of the others; is_leaf: as of
    `tree_flatten`. Raises ArgumentError where the structures differ.

    >>> tracer.tree_util.tree_map(lambda x, y: x + y, {"a": 1}, {"a": 10})
    {'a': 11}
    """
    if is_leaf is None:
        return trees.tree_map(f, tree, *rest)
    leaves, structure = tree_flatten(tree, is_leaf)
    others = [_up_to(structure, other) for other in rest]
    return tree_unflatten(structure, [f(*xs) for xs in zip(leaves, *others, strict=True)])


def _up_to(structure: PyTreeDef, tree: Any, what: str = "tree.map") -> list[Any]:
    try:
        return structure.flatten_up_to(tree)
    except ValueError as error:
        raise ArgumentError(message(f"{what}{here()}: the trees have different structures", str(error))) from None


def tree_reduce(function: Callable[[Any, Any], Any], tree: Any, initializer: Any = ABSENT, is_leaf: Leaf = None) -> Any:
    """The leaves combined one after another, from the initializer on where there is one.

    function: of what was combined so far and the next leaf; tree, is_leaf: as of `tree_flatten`; initializer: what it
    starts with, also the result of a tree without leaves. Raises TypeError where there is neither.

    >>> tracer.tree_util.tree_reduce(lambda a, b: a + b, [1, (2, 3)])
    6
    """
    start = () if initializer is ABSENT else (initializer,)
    return functools.reduce(function, tree_leaves(tree, is_leaf), *start)


def tree_reduce_associative(
    operation: Callable[[Any, Any], Any], tree: Any, *, identity: Any = ABSENT, is_leaf: Leaf = None
) -> Any:
    """The leaves combined by pairs, the results by pairs again, to the last: in as many rounds as the logarithm says.

    operation: of two leaves, or results; tree, is_leaf: as of `tree_flatten`. identity: what a tree without leaves
    gives; it raises ArgumentError without.

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
    """A tree like `full_tree`, of which every leaf is that of `prefix_tree` above it.

    prefix_tree: ends where full_tree may go on; is_leaf: as of `tree_flatten`. Raises ArgumentError where it is no
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
    """Whether all leaves are true.

    tree, is_leaf: as of `tree_flatten`.

    >>> tracer.tree_util.tree_all({"a": True, "b": [1, 0]})
    False
    """
    return all(tree_leaves(tree, is_leaf))


def tree_transpose(outer_treedef: PyTreeDef, inner_treedef: PyTreeDef | None, pytree_to_transpose: Any) -> Any:
    """A tree of trees turned inside out.

    outer_treedef, inner_treedef: the structures of the tree, and of what stands at its leaves; pytree_to_transpose: the
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
    """Whether a structure is a single leaf.

    treedef: as of `tree_structure`.

    >>> tree = tracer.tree_util
    >>> tree.treedef_is_leaf(tree.tree_structure(1)), tree.treedef_is_leaf(tree.tree_structure([1]))
    (True, False)
    """
    return treedef.num_nodes == 1 and treedef.num_leaves == 1


def treedef_children(treedef: PyTreeDef) -> list[PyTreeDef]:
    """The structures of a node's children.

    treedef: as of `tree_structure`.

    >>> tree = tracer.tree_util
    >>> tree.treedef_children(tree.tree_structure([0, (0, 0)]))[1] == tree.tree_structure((0, 0))
    True
    """
    return treedef.children()


def treedef_tuple(treedefs: Iterable[PyTreeDef]) -> PyTreeDef:
    """The structure of a tuple of trees.

    treedefs: as of `tree_structure`.

    >>> tree = tracer.tree_util
    >>> tree.treedef_tuple([tree.tree_structure(0)] * 2) == tree.tree_structure((0, 0))
    True
    """
    return optree.treespec_tuple(treedefs, namespace=trees.NAMESPACE)


def all_leaves(iterable: Iterable[Any], is_leaf: Leaf = None) -> bool:
    """Whether no element is a tree with nodes.

    iterable: any objects; is_leaf: as of `tree_flatten`.

    >>> tracer.tree_util.all_leaves([1, 2]), tracer.tree_util.all_leaves([1, [2]])
    (True, False)
    """
    return optree.all_leaves(iterable, is_leaf, namespace=trees.NAMESPACE)


# Paths


class SequenceKey(NamedTuple):
    """A place in a tuple or list.

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
    """The number of a child of a class that says no more about its children.

    key: an integer.

    >>> tracer.tree_util.keystr((tracer.tree_util.FlattenedIndexKey(1),))
    '[<flat index 1>]'
    """

    key: int

    def __str__(self) -> str:
        return f"[<flat index {self.key}>]"


KeyPath = tuple[Any, ...]


def keystr(keys: KeyPath, *, simple: bool = False, separator: str = "") -> str:
    """A path as it would be written behind the tree: `['w'][0]`; or its bare keys.

    keys: of a path; simple: whether they stand bare, with `separator` between them. Returns a text.

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
    """The leaves with their paths, and the structure. is_leaf_takes_path: it is called is_leaf(path, x).

    tree, is_leaf: as of `tree_flatten`; is_leaf_takes_path: it is called is_leaf(path, x). A path is a tuple of keys:
    see `keystr`.

    >>> leaves, _ = tracer.tree_util.tree_flatten_with_path({"w": [1, 2]})
    >>> [(tracer.tree_util.keystr(path), leaf) for path, leaf in leaves]
    [("['w'][0]", 1), ("['w'][1]", 2)]
    """
    chosen = _without_path(is_leaf, tree) if is_leaf is not None and is_leaf_takes_path else is_leaf
    accessors, leaves, structure = optree.tree_flatten_with_accessor(tree, chosen, namespace=trees.NAMESPACE)
    paths = [tuple(map(_key, accessor)) for accessor in accessors]
    return list(zip(paths, leaves, strict=True)), structure


def _without_path(is_leaf: Callable[[KeyPath, Any], bool], tree: Any) -> Callable[[Any], bool]:
    """What is_leaf says of the nodes and leaves of this tree, in the order in which flattening asks."""

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
        case _OwnEntry():
            return entry.entry
        case _:
            return FlattenedIndexKey(entry.entry)


def tree_leaves_with_path(
    tree: Any, is_leaf: Callable[..., bool] | None = None, is_leaf_takes_path: bool = False
) -> list[tuple[KeyPath, Any]]:
    """The leaves with their paths.

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
    """As `tree_map`, with the path as the function's first argument.

    f, tree, rest: as of `tree_map`; is_leaf, is_leaf_takes_path: as of `tree_flatten_with_path`.

    >>> tree = tracer.tree_util
    >>> tree.tree_map_with_path(lambda path, x: f"{tree.keystr(path)} = {x}", {"w": [1, 2]})
    {'w': ["['w'][0] = 1", "['w'][1] = 2"]}
    """
    leaves, structure = tree_flatten_with_path(tree, is_leaf, is_leaf_takes_path)
    others = [_up_to(structure, other) for other in rest]
    results = [f(path, leaf, *xs) for (path, leaf), *xs in zip(leaves, *others, strict=True)]
    return tree_unflatten(structure, results)


# Classes as nodes


def register_pytree_node(
    nodetype: type[T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_with_keys_func: Any = None,
) -> None:
    """Make a class a node: flatten_func(x) -> (children, aux), unflatten_func(aux, children) -> x; aux is hashable.

    nodetype: the class; flatten_func, unflatten_func, flatten_with_keys_func: how it is taken apart and put together.
    Raises ArgumentError for a class that is one already.

    flatten_with_keys_func(x) -> (pairs (key, child), aux) says what paths call the children, in place of their numbers.

    >>> class Pair:
    ...     def __init__(self, a, b): self.a, self.b = a, b
    >>> tracer.tree_util.register_pytree_node(Pair, lambda p: ((p.a, p.b), None), lambda _, parts: Pair(*parts))
    >>> tracer.tree_util.tree_leaves(Pair(1, (2, 3)))
    [1, 2, 3]
    """
    if flatten_with_keys_func is not None:
        register_pytree_with_keys(nodetype, flatten_with_keys_func, unflatten_func)
        return

    def flatten(x: T) -> tuple[tuple[Any, ...], Any]:
        children, aux = flatten_func(x)
        return tuple(children), aux

    def unflatten(aux: Any, children: Iterable[Any]) -> T:
        return unflatten_func(aux, tuple(children))

    trees.register(nodetype, flatten, unflatten)


def register_pytree_node_class(cls: type[T]) -> type[T]:
    """Make a class a node by its methods `tree_flatten(self)` and `tree_unflatten(cls, aux, children)`; a decorator.

    cls: the class, which is returned.

    >>> @tracer.tree_util.register_pytree_node_class
    ... class Scaled:
    ...     def __init__(self, x, scale): self.x, self.scale = x, scale
    ...     def tree_flatten(self): return (self.x,), self.scale
    ...     @classmethod
    ...     def tree_unflatten(cls, scale, children): return cls(*children, scale)
    >>> tracer.grad(lambda s: s.scale * s.x)(Scaled(2.0, 10.0)).x
    Array(10., f64*)
    """
    register_pytree_node(cls, lambda x: x.tree_flatten(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


class _OwnEntry(optree.PyTreeEntry):
    """A step into a class that names its children by keys of its own."""

    def codify(self, /, node: str = "") -> str:
        return f"{node}{self.entry}"


def register_pytree_with_keys(
    nodetype: type[T], flatten_with_keys: Callable[[T], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Any], T], flatten_func: Callable[[T], tuple[Iterable[Any], Any]] | None = None,
) -> None:  # fmt: skip
    """As `register_pytree_node`, with children given as pairs (key, child): paths are made of these keys.

    nodetype: the class; flatten_with_keys, unflatten_func: how it is taken apart and put together; flatten_func: the
    same without keys, which is quicker.

    >>> class Box:
    ...     def __init__(self, inside): self.inside = inside
    >>> tree = tracer.tree_util
    >>> tree.register_pytree_with_keys(
    ...     Box, lambda box: (((tree.GetAttrKey("inside"), box.inside),), None), lambda _, parts: Box(*parts))
    >>> [tree.keystr(path) for path, _ in tree.tree_leaves_with_path(Box([1, 2]))]
    ['.inside[0]', '.inside[1]']
    """
    del flatten_func  # JAX's shorter way for where no paths are asked for

    def flatten(x: T) -> Any:
        pairs, aux = flatten_with_keys(x)
        keys, children = zip(*pairs, strict=True) if pairs else ((), ())
        return children, aux, keys

    trees.register(nodetype, flatten, lambda aux, children: unflatten_func(aux, tuple(children)), _OwnEntry)


def register_pytree_with_keys_class(cls: type[T]) -> type[T]:
    """As `register_pytree_node_class`, by the methods `tree_flatten_with_keys` and `tree_unflatten`; a decorator.

    cls: the class, which is returned.

    >>> @tracer.tree_util.register_pytree_with_keys_class
    ... class Pair:
    ...     def __init__(self, *parts): self.parts = parts
    ...     def tree_flatten_with_keys(self): return [(tracer.tree_util.GetAttrKey("ab"[i]), p) for i, p in
    ...         enumerate(self.parts)], None
    ...     @classmethod
    ...     def tree_unflatten(cls, aux, children): return cls(*children)
    >>> [tracer.tree_util.keystr(path) for path, _ in tracer.tree.leaves_with_path([Pair(1, 2)])]
    ['[0].a', '[0].b']
    """
    register_pytree_with_keys(cls, lambda x: x.tree_flatten_with_keys(), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


def register_static(cls: type[T]) -> type[T]:
    """Make a class a node without leaves: its instances, hashable, belong to the structure. A decorator.

    cls: the class, which is returned.

    >>> @tracer.tree_util.register_static
    ... class Mode(str): pass
    >>> tracer.tree_util.tree_leaves([Mode("fast"), 1.0])
    [1.0]
    """
    register_pytree_node(cls, lambda x: ((), x), lambda aux, _: aux)
    return cls


def register_dataclass(
    nodetype: type[T], data_fields: Sequence[str] | None = None, meta_fields: Sequence[str] | None = None,
    drop_fields: Sequence[str] = (),
) -> type[T]:  # fmt: skip
    """Make a dataclass a node: `data_fields` are its children, `meta_fields` belong to the structure. A decorator.

    nodetype: the class, which is returned; data_fields, meta_fields: names of fields; drop_fields: names of those that
    are left to their defaults. Without them, fields made by `dataclasses.field(metadata={"static": True})`, or
    `tracer.tree.static`, are meta fields, the others data.

    >>> @tracer.tree_util.register_dataclass
    ... @dataclasses.dataclass
    ... class State:
    ...     position: float
    ...     velocity: float
    >>> tracer.tree_util.tree_map(lambda x: 2 * x, State(1.0, 3.0))
    State(position=2.0, velocity=6.0)
    """
    if data_fields is None or meta_fields is None:
        if not dataclasses.is_dataclass(nodetype):
            raise ArgumentError(message(f"register_dataclass{here()} takes a dataclass", f"got {nodetype!r}"))
        fields = [f for f in dataclasses.fields(nodetype) if f.init and f.name not in drop_fields]
        meta_fields = [f.name for f in fields if f.metadata.get("static", False)]
        data_fields = [f.name for f in fields if f.name not in meta_fields]
    data, meta = tuple(data_fields), tuple(meta_fields)

    def flatten(x: T) -> Any:
        children = tuple(getattr(x, name) for name in data)
        return children, tuple(getattr(x, name) for name in meta), data

    def unflatten(aux: Any, children: Any) -> T:
        return nodetype(**dict(zip(data, children, strict=True)), **dict(zip(meta, aux, strict=True)))

    trees.register(nodetype, flatten, unflatten, optree.GetAttrEntry)
    return nodetype


set_boundaries(globals())


def __getattr__(name: str) -> object:
    raise absent(__name__, name)
