"""Plan by which the compiled entry flattens arguments, as optree does: Python's containers and registered classes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import optree

from tracer.runtime.jit.signature import Call
from tracer.runtime.native.entry_record import Step, StepKind
from tracer.trace.array import Array
from tracer.trace.trees import NAMESPACE, attributes, flattening, is_fixed, is_leaf

_LEAVES = frozenset((Array, np.ndarray, float, int, bool, complex))
_PLAIN = frozenset((str, int, bool, bytes))  # compared and hashed without running Python code
_SIMPLE = _PLAIN | {float, type(None)}

Planned = tuple[StepKind, int, Any]


class Plan:
    """Steps for the arguments of calls with one structure. `steps` is empty where all arguments are leaves.

    order: the arguments' indices in the order of the steps. names, positional: keywords and count of the positional
    arguments.
    """

    def __init__(self, steps: list[Planned], order: list[int], names: tuple[str, ...], positional: int) -> None:
        flat = not names and all(kind is StepKind.LEAF for kind, _, _ in steps)
        self.steps = [] if flat else steps
        self.order = order
        self.names = names
        self.positional = positional

    @property
    def has_nodes(self) -> bool:
        """Whether flattening runs Python code of registered classes."""
        return any(kind is StepKind.NODE for kind, _, _ in self.steps)

    def table(self) -> Any:
        """Return the steps in C's layout; the plan keeps their objects alive."""
        return table_of(self.steps)


def table_of(steps: Sequence[Planned]) -> Any:
    """Return steps in C's layout; the caller keeps their objects alive."""
    return (Step * len(steps))(*(Step(kind, size, id(thing)) for kind, size, thing in steps))


def flat_plan(count: int) -> Plan:
    """Return the plan for `count` arguments that are all leaves."""
    return Plan([], list(range(count)), (), count)


def make_plan(args: Sequence[Any], kwargs: dict[str, Any], call: Call) -> Plan | None:
    """Return the plan for the arguments of a call; None if they hold a container that compiled code cannot flatten.

    args, kwargs: all arguments, also static ones. Traced leaves come in the order of `call.leaves`.
    """
    steps: list[Planned] = []
    statics = {static.place for static in call.key.statics}
    names = tuple(kwargs)
    order = [*range(len(args)), *(len(args) + names.index(name) for name in sorted(names))]
    everything = [*enumerate(args), *sorted(kwargs.items())]
    for place, value in everything:
        ok = _static(value, steps) if place in statics else _walk(value, steps)
        if not ok:
            return None
    if sum(kind is StepKind.LEAF for kind, _, _ in steps) != len(call.leaves):
        return None
    return Plan(steps, order, names, len(args))


def _static(value: Any, steps: list[Planned]) -> bool:
    steps.append((StepKind.EQUAL if type(value) in _SIMPLE else StepKind.SAME, 0, value))
    return True


def _walk(value: Any, steps: list[Planned]) -> bool:
    """Append the steps of one tree; return whether compiled code can flatten it."""
    kind = type(value)
    if kind in _LEAVES or issubclass(kind, np.generic):
        steps.append((StepKind.LEAF, 0, None))
        return True
    if value is None:
        steps.append((StepKind.SAME, 0, None))
        return True
    flatten = flattening(kind)
    if (found := attributes(value)) is not None:
        return _walk_attributes(value, *found, steps)
    if flatten is not None:
        return _walk_node(value, flatten, steps)
    if kind is tuple or optree.is_namedtuple_class(kind):
        steps.append((StepKind.TUPLE, len(value), kind))
        return all(_walk(item, steps) for item in value)
    if kind is list:
        steps.append((StepKind.LIST, len(value), kind))
        return all(_walk(item, steps) for item in value)
    if kind is dict:
        return _walk_dict(value, steps)
    if is_fixed(value) and is_leaf(value):
        return _static(value, steps)
    return False


def _walk_node(value: Any, flatten: Callable[[Any], Any], steps: list[Planned]) -> bool:
    parts = flatten(value)
    if type(parts) is not tuple or len(parts) < 2:
        return False
    children = tuple(parts[0])
    steps.append((StepKind.NODE, len(children), type(value)))
    steps.append((StepKind.FLATTEN, 0, flatten))
    steps.append((StepKind.OTHER, 0, parts[1]))
    return all(_walk(child, steps) for child in children)


def _walk_attributes(value: Any, shared: dict[str, Any], names: Sequence[str], steps: list[Planned]) -> bool:
    steps.append((StepKind.ATTRIBUTES, len(shared) + len(names), type(value)))
    for name, thing in shared.items():
        steps.append((StepKind.KEY, 0, name))
        _static(thing, steps)
    for name in names:
        steps.append((StepKind.KEY, 0, name))
        if not _walk(value.__dict__[name], steps):
            return False
    return True


def _walk_dict(value: dict[Any, Any], steps: list[Planned]) -> bool:
    if not all(type(key) in _PLAIN for key in value):
        return False
    steps.append((StepKind.DICT, len(value), dict))
    for key in _sorted_keys(value):
        steps.append((StepKind.KEY, 0, key))
        if not _walk(value[key], steps):
            return False
    return True


def _sorted_keys(value: dict[Any, Any]) -> list[Any]:
    """Return the keys in optree's order."""
    marks: Any = dict.fromkeys(value, 0)
    return list(optree.tree_structure(marks, namespace=NAMESPACE).entries())
