"""Plan by which the compiled entry makes a call's result of its outputs, as optree does: the inverse of `Plan`.

Its steps have the kinds of a plan for arguments, with other objects. SAME holds the object itself, DICT a dict to copy,
which has its keys in order. NODE holds the function of the children's tuple. ATTRIBUTES holds the class, and the
instance's `__dict__` follows as a DICT.
"""

from __future__ import annotations

from types import NoneType
from typing import Any

from tracer.runtime.jit.argument_plan import Planned
from tracer.runtime.native.entry_record import StepKind
from tracer.trace import trees


def result_steps(structure: trees.Structure) -> list[Planned]:
    """Return the steps that make a tree of this structure."""
    kind, count = structure.type, structure.num_children
    if structure.is_leaf():
        return [(StepKind.LEAF, 0, None)]
    if kind is NoneType:
        return [(StepKind.SAME, 0, None)]
    parts = [result_steps(child) for child in structure.children()]
    if kind is tuple or kind is list:
        return [(StepKind.TUPLE if kind is tuple else StepKind.LIST, count, None), *_joined(parts)]
    node: Any = structure.one_level()
    if kind is dict:
        return _dict_steps(node.unflatten([None] * count), structure.entries(), parts)
    if trees.keeps_attributes(kind):
        template = node.unflatten([None] * count)
        found = trees.attributes(template)
        assert found is not None
        return [(StepKind.ATTRIBUTES, 0, kind), *_dict_steps(template.__dict__, found[1], parts)]
    return [(StepKind.NODE, count, node.unflatten), *_joined(parts)]


def _dict_steps(template: dict[Any, Any], keys: Any, parts: list[list[Planned]]) -> list[Planned]:
    keyed = [[(StepKind.KEY, 0, key), *part] for key, part in zip(keys, parts, strict=True)]
    return [(StepKind.DICT, len(keyed), template), *_joined(keyed)]


def _joined(parts: list[list[Planned]]) -> list[Planned]:
    return [step for part in parts for step in part]
