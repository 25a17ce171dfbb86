"""Values in the states of optimizers: found, replaced and read by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from tracer.errors import ArgumentError, message
from tracer.trace import trees
from tracer.trace.source import here
from tracer.tree_util import DictKey, SequenceKey

Path = tuple[Any, ...]
Filter = Callable[[Path, Any], bool]


class NamedTupleKey(NamedTuple):
    """Step of a path into a state: a field of a named tuple.

    >>> tracer.optim.NamedTupleKey("ScaleByAdamState", "count").name
    'count'
    """

    tuple_name: str
    name: str


def _children(tree: Any) -> list[tuple[Any, Any]]:
    if isinstance(tree, tuple) and hasattr(tree, "_fields"):
        return [(NamedTupleKey(type(tree).__name__, name), getattr(tree, name)) for name in tree._fields]
    if isinstance(tree, dict):
        return [(DictKey(key), value) for key, value in tree.items()]
    if isinstance(tree, list | tuple):
        return [(SequenceKey(position), value) for position, value in enumerate(tree)]
    return []


def _called(step: Any, key: Any) -> bool:
    return (isinstance(step, NamedTupleKey) and step.name == key) or (isinstance(step, DictKey) and step.key == key)


def _found(tree: Any, key: Any, path: Path) -> Iterator[tuple[Path, Any]]:
    if hasattr(tree, "_fields") and type(tree).__name__ == key:
        yield path, tree
    for step, child in _children(tree):
        if _called(step, key):
            yield (*path, step), child
        yield from _found(child, key, (*path, step))


def tree_get_all_with_path(tree: Any, key: Any, filtering: Filter | None = None) -> list[tuple[Path, Any]]:
    """Return the paths and values under a name in a state: fields of named tuples, keys of dicts, named tuples.

    tree: a state. key: the name of a field, a key, or the name of a class. filtering: a function of path and value,
    true for the pairs to keep.

    >>> state = tracer.optim.adam(0.1).init({"w": tnp.zeros(1)})
    >>> tracer.optim.tree_get_all_with_path(state, "count")[0][1]
    Array(0, i32)
    """
    found = _found(tree, key, ())
    return [(path, value) for path, value in found if filtering is None or filtering(path, value)]


def tree_get(tree: Any, key: Any, default: Any = None, filtering: Filter | None = None) -> Any:
    """Return the value under a name in a state, or `default`. Raises KeyError if there are several.

    tree, key, filtering: as of `tree_get_all_with_path`.

    >>> state = tracer.optim.adam(0.1).init({"w": tnp.zeros(1)})
    >>> tracer.optim.tree_get(state, "mu")
    {'w': Array([0.], f64)}
    """
    found = tree_get_all_with_path(tree, key, filtering)
    if len(found) > 1:
        raise KeyError(
            f"{key!r} stands {len(found)} times in the state{here()}: {', '.join(_text(p) for p, _ in found)}"
        )
    return found[0][1] if found else default


def tree_set(tree: Any, filtering: Filter | None = None, /, **kwargs: Any) -> Any:
    """Return the state with values under names replaced. Raises KeyError for names that it lacks.

    tree, filtering: as of `tree_get_all_with_path`. kwargs: the new values by name.

    >>> tx = tracer.optim.inject_hyperparams(tracer.optim.sgd)(learning_rate=0.1)
    >>> state = tracer.optim.tree_set(tx.init(tnp.zeros(1)), learning_rate=tnp.asarray(0.5))
    >>> tx.update(tnp.asarray([1.0]), state, tnp.zeros(1))[0]
    Array([-0.5], f64)
    """
    for key in kwargs:
        if not tree_get_all_with_path(tree, key, filtering):
            raise KeyError(f"{key!r} is not in the state{here()}")

    def kept(path: Path, value: Any) -> bool:
        return filtering is None or filtering(path, value)

    def replaced(node: Any, path: Path) -> Any:
        if hasattr(node, "_fields") and type(node).__name__ in kwargs and kept(path, node):
            return kwargs[type(node).__name__]
        children = []
        for step, child in _children(node):
            key = next((key for key in kwargs if _called(step, key)), None)
            here_ = (*path, step)
            children.append(kwargs[key] if key is not None and kept(here_, child) else replaced(child, here_))
        if not children:
            return node
        if isinstance(node, dict):
            return type(node)(zip(node, children, strict=True))
        return type(node)(*children) if hasattr(node, "_fields") else type(node)(children)

    return replaced(tree, ())


def _text(path: Path) -> str:
    steps = [f".{step.name}" if isinstance(step, NamedTupleKey) else str(step) for step in path]
    return f"state{''.join(steps)}"


def rate(state: Any) -> Any:
    """Return the learning rate that the last update used, from a state of any chain with a schedule.

    state: of an optimizer whose learning rate is a schedule, a hyperparameter or the result of a line search; a scalar.
    Raises ArgumentError for a constant rate, which states do not hold, and for several.

    >>> tx = tracer.optim.adamw(tracer.optim.linear_schedule(1.0, 0.0, 10))
    >>> params = tnp.asarray([1.0])
    >>> _, state = tx.update(params, tx.init(params), params)
    >>> _, state = tx.update(params, state, params)
    >>> tracer.optim.rate(state).round(3)
    Array(0.9, f32)
    """
    scheduled = tree_get_all_with_path(state, "rate", lambda path, _: _field(path, "ScaleByScheduleState"))
    found = scheduled or tree_get_all_with_path(state, "learning_rate")
    if len(found) == 1:
        return found[0][1]
    paths = ", ".join(_text(path) for path, _ in found)
    raise ArgumentError(
        message(
            f"rate{here()}: the state holds {'several learning rates' if found else 'no learning rate'}",
            f"got {paths}" if found else f"got {trees.structure_text(trees.flatten(state)[1])}",
            help="take the rate of a part of the state, such as rate(state.inner_states['muon'])" if found
            else "states hold rates of schedules: optim.constant_schedule(1e-3), or inject_hyperparams",
        )
    )  # fmt: skip


def _field(path: Path, kind: str) -> bool:
    return isinstance(path[-1], NamedTupleKey) and path[-1].tuple_name == kind
