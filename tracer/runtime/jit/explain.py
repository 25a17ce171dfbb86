"""Why a jitted function compiled: a short memory of it, told in words."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tracer.ir.program import Source
from tracer.ir.types import ArrayType, Type
from tracer.runtime.jit.signature import Key, Static
from tracer.settings import KEYED, SETTINGS
from tracer.trace.trees import Structure, structure_text

_REMEMBERED = 16


class Text(str):
    """A string that shows as itself in a console."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, slots=True)
class Event:
    """One compilation, or one thing worth knowing."""

    number: int
    source: Source | None
    reasons: tuple[str, ...]


class History:
    """The last events of one jitted function."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.compilations = 0
        self.notes: dict[str, None] = {}
        self.copied: set[int] = set()  # leaves that a note speaks of
        self._events: deque[Event] = deque(maxlen=_REMEMBERED)

    def compiled(self, source: Source | None, reasons: Sequence[str]) -> None:
        """Remember a compilation."""
        self.compilations += 1
        self._events.append(Event(self.compilations, source, tuple(reasons)))

    def note(self, text: str) -> None:
        """Remember something that makes calls slower, once."""
        if len(self.notes) < _REMEMBERED:
            self.notes[text] = None

    def text(self) -> Text:
        """The whole story."""
        times = "once" if self.compilations == 1 else f"{self.compilations} times"
        lines = [f"{self.name} compiled {times}" if self.compilations else f"{self.name} has not been compiled"]
        if self.compilations > _REMEMBERED:
            lines.append(f"  the last {_REMEMBERED}:")
        for event in self._events:
            place = f" at {event.source}" if event.source is not None else ""
            lines.append(f"  {event.number}.{place}: {event.reasons[0]}")
            lines += [f"      {reason}" for reason in event.reasons[1:]]
        return Text("\n".join(lines + [f"  note: {note}" for note in self.notes]))


def differences(old: Key, new: Key, names: Sequence[str], argument: Callable[[int | str], str]) -> list[str]:
    """What is new in a key, in words. `names` are the new key's leaves, `argument` names an argument by its place."""
    found = list(_static_changes(old.statics, new.statics, argument))
    if old.structure != new.structure:
        found += _structure_changes(old, new, argument)
    elif old.types != new.types:
        found += [_type_change(n, a, b) for n, a, b in zip(names, old.types, new.types, strict=True) if a != b]
    for name, before, after in zip(KEYED, old.settings, new.settings, strict=True):
        if before != after:
            found.append(f"config.{name}: {before} -> {after}")
    if old.axes != new.axes:
        found.append(f"named axes: {dict(old.axes)} -> {dict(new.axes)}")
    return found


def closest(keys: Sequence[Key], new: Key, names: Sequence[str], argument: Callable[[int | str], str]) -> list[str]:
    """The differences from the key that is most like the new one, the last of several; nothing for no other key."""
    if not keys:
        return []
    found = [(old, differences(old, new, names, argument)) for old in reversed(keys)]
    return min(found, key=lambda pair: (len(pair[1]), _distance(pair[0], new)))[1]


def _distance(old: Key, new: Key) -> int:
    """In how many ways the types of leaves differ."""
    if old.structure != new.structure:
        return 3 * len(new.types) + 3
    return sum(_ways(a, b) for a, b in zip(old.types, new.types, strict=True))


def _ways(a: Type, b: Type) -> int:
    if not (isinstance(a, ArrayType) and isinstance(b, ArrayType)):
        return 3 * (a != b)
    return (a.dtype != b.dtype) + (a.shape != b.shape) + (a.weak != b.weak)


def _type_change(name: str, old: Type, new: Type) -> str:
    weak = [isinstance(type, ArrayType) and type.weak for type in (old, new)]
    return f"{name}: {old} -> {new}{' (a star marks a Python number)' if weak[0] != weak[1] else ''}"


def _static_changes(
    old: tuple[Static, ...], new: tuple[Static, ...], argument: Callable[[int | str], str]
) -> Iterator[str]:
    before = {static.place: static for static in old}
    after = {static.place: static for static in new}
    moved = _moved(before, after, argument)
    for place, static in after.items():
        former = before.get(moved.get(place, place))
        name = f"static {argument(place)}"
        if former is None:
            yield f"{name}: given as {static.value!r}"
        elif (former.kind, former.value) != (static.kind, static.value):
            yield f"{name}: {former.value!r} -> {static.value!r}"
        elif place in moved:
            yield f"{name}: {_way(place)}"
    for place in before:
        if place not in after and place not in moved.values():
            yield f"static {argument(place)}: no longer given"


def _structure_changes(old: Key, new: Key, argument: Callable[[int | str], str]) -> Iterator[str]:
    """The arguments that were not given, are given no more, or have other trees."""
    before, after = _trees(old), _trees(new)
    moved = _moved(before, after, argument)
    for place, tree in after.items():
        former = moved.get(place, place)
        if former not in before:
            yield f"{argument(place)}: not given before"
        elif before[former] != tree:
            yield f"{argument(place)}: {structure_text(before[former])} -> {structure_text(tree)}"
        elif place in moved:
            yield f"{argument(place)}: {_way(place)}"
    for place in before:
        if place not in after and place not in moved.values():
            yield f"{argument(place)}: no longer given"


def _moved(
    before: Mapping[int | str, Any], after: Mapping[int | str, Any], argument: Callable[[int | str], str]
) -> dict[int | str, int | str]:
    """The new places of arguments that are given by name now and were by position, or the other way, with the old."""
    names = {argument(place).rpartition(" ")[2]: place for place in before if place not in after}
    found = {place: names.get(argument(place).rpartition(" ")[2]) for place in after if place not in before}
    return {place: former for place, former in found.items() if former is not None}


def _way(place: int | str) -> str:
    return "by name, before by position" if isinstance(place, str) else "by position, before by name"


def _trees(key: Key) -> dict[int | str, Structure]:
    """The structures of the traced arguments by their places."""
    positional, named = key.structure.children()
    statics = {static.place for static in key.statics}
    trees = positional.children()
    places = [place for place in range(len(trees) + len(statics)) if place not in statics][: len(trees)]
    return {**dict(zip(places, trees, strict=True)), **dict(zip(named.entries(), named.children(), strict=True))}


assert set(KEYED) <= set(SETTINGS)
