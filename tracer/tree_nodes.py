"""Registration of classes as nodes of trees: their children, and the data that belongs to the structure."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter, methodcaller
from typing import Any, TypeVar

import optree

from tracer.errors import ArgumentError, message
from tracer.trace import trees
from tracer.trace.source import here

T = TypeVar("T")


def register_pytree_node(
    nodetype: type[T],
    flatten_func: Callable[[T], tuple[Iterable[Any], Any]],
    unflatten_func: Callable[[Any, Any], T],
    flatten_with_keys_func: Any = None,
) -> None:
    """Make a class a node: flatten_func(x) -> (children, aux), unflatten_func(aux, children) -> x; aux is hashable.

    nodetype: the class; flatten_func, unflatten_func: its conversion to children and back; flatten_with_keys_func(x) ->
    (pairs (key, child), aux): keys of the children for paths, instead of indices. Raises ArgumentError for a class that
    is already a node.

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

    trees.register(nodetype, flatten, unflatten_func, flatten=flatten_func)


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
    register_pytree_node(cls, methodcaller("tree_flatten"), cls.tree_unflatten)  # type: ignore[attr-defined]
    return cls


class KeyedEntry(optree.PyTreeEntry):
    """A step of a path into a class that names its children by keys of its own."""

    def codify(self, /, node: str = "") -> str:
        return f"{node}{self.entry}"


def register_pytree_with_keys(
    nodetype: type[T], flatten_with_keys: Callable[[T], tuple[Iterable[tuple[Any, Any]], Any]],
    unflatten_func: Callable[[Any, Any], T], flatten_func: Callable[[T], tuple[Iterable[Any], Any]] | None = None,
) -> None:  # fmt: skip
    """Make a class a node whose children are pairs (key, child): paths are made of these keys.

    nodetype: the class; flatten_with_keys, unflatten_func: its conversion to children and back; flatten_func(x)
    -> (children, aux): the same without keys, which calls of jitted functions use, as it is faster.

    >>> class Box:
    ...     def __init__(self, inside): self.inside = inside
    >>> tree = tracer.tree_util
    >>> tree.register_pytree_with_keys(
    ...     Box, lambda box: (((tree.GetAttrKey("inside"), box.inside),), None), lambda _, parts: Box(*parts))
    >>> [tree.keystr(path) for path, _ in tree.tree_leaves_with_path(Box([1, 2]))]
    ['.inside[0]', '.inside[1]']
    """

    def flatten(x: T) -> Any:
        pairs, aux = flatten_with_keys(x)
        keys, children = zip(*pairs, strict=True) if pairs else ((), ())
        return children, aux, keys

    trees.register(nodetype, flatten, unflatten_func, KeyedEntry, flatten_func)


def register_pytree_with_keys_class(cls: type[T]) -> type[T]:
    """Make a class a node by its methods `tree_flatten_with_keys` and `tree_unflatten`; a decorator.

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

    nodetype: the class, which is returned; data_fields, meta_fields: names of fields; drop_fields: names of fields left
    to their defaults. Without these, fields made by `dataclasses.field(metadata={"static": True})`, or
    `tracer.tree.static`, are meta fields, and all other fields data.

    >>> import dataclasses
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

    children_of, other_of = _attributes(data), _attributes(meta)

    def flatten(x: T) -> Any:
        return children_of(x), other_of(x) if meta else (), data

    def from_names(aux: Any, children: Any) -> T:
        return nodetype(**dict(zip(data, children, strict=True)), **dict(zip(meta, aux, strict=True)))

    def from_positions(aux: Any, children: Any) -> T:
        return nodetype(*children, *aux)

    unflatten = from_positions if _takes(nodetype, data + meta) else from_names
    trees.register(nodetype, flatten, unflatten, optree.GetAttrEntry)
    if _keeps_in_dict(nodetype, data + meta):
        trees.read_attributes(nodetype, data, meta)
    return nodetype


def _keeps_in_dict(kind: type, names: Sequence[str]) -> bool:
    """Return whether attributes of instances are read from their `__dict__`, by no descriptor or method."""
    found = [type(inspect.getattr_static(kind, name, None)) for name in names]
    return (
        kind.__dictoffset__ != 0
        and inspect.getattr_static(kind, "__getattribute__") is inspect.getattr_static(object, "__getattribute__")
        and not any(hasattr(descriptor, "__set__") for descriptor in found)
    )


def _attributes(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return the function of an object that returns a tuple of its attributes, in C where there are several."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda x: tuple([getattr(x, name) for name in names])


def _takes(kind: type, names: tuple[str, ...]) -> bool:
    """Whether a class takes arguments of these names by position: Python matches 150 names in 180 us, not 8."""
    try:
        parameters = inspect.signature(kind).parameters.values()
    except (ValueError, TypeError):
        return False
    positional = all(p.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for p in parameters)
    return positional and tuple(p.name for p in parameters) == names
