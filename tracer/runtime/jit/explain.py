"""History of a jitted function's compilations, with a text that explains each."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tracer.ir.program import Source
from tracer.ir.types import ArrayType, Type
from tracer.lazy import LazyModule
from tracer.runtime.jit.signature import Key, Static
from tracer.settings import KEYED, SETTINGS
from tracer.trace import trees
from tracer.trace.trees import Structure, parting, structure_text

if TYPE_CHECKING:
    from tracer import markup
else:
    markup = LazyModule("tracer.markup")

_REMEMBERED = 16


class Text(str):
    """String that a console shows without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        return markup.view("", markup.code(self))


@dataclass(frozen=True, slots=True)
class Event:
    """One compilation. reasons: texts that explain it."""

    number: int
    source: Source | None
    reasons: tuple[str, ...]


class History:
    """Last compilations of one jitted function, and notes on slow calls."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.compilations = 0
        self.notes: dict[str, None] = {}
        self.copied: set[int] = set()  # leaves with a note
        self._events: deque[Event] = deque(maxlen=_REMEMBERED)

    def compiled(self, source: Source | None, reasons: Sequence[str]) -> None:
        """Add a compilation."""
        self.compilations += 1
        self._events.append(Event(self.compilations, source, tuple(reasons)))

    def note(self, text: str) -> None:
        """Add a cause of slower calls, once."""
        if len(self.notes) < _REMEMBERED:
            self.notes[text] = None

    def text(self) -> Text:
        """Return the history as text."""
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
    """Return texts that describe the changes from one key to another.

    names: of the new key's leaves. argument: returns the name of an argument given by index or keyword.
    """
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
    """Return the differences from the key that is most like the new one, the last of several; [] without keys."""
    if not keys:
        return []
    found = [(old, differences(old, new, names, argument)) for old in reversed(keys)]
    return min(found, key=lambda pair: (len(pair[1]), _distance(pair[0], new)))[1]


def _distance(old: Key, new: Key) -> int:
    """Return the count of differences between the leaves' types."""
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
    """Yield texts for arguments that are new, missing, or of another structure."""
    before, after = _trees(old), _trees(new)
    moved = _moved(before, after, argument)
    for place, tree in after.items():
        former = moved.get(place, place)
        if former not in before:
            yield f"{argument(place)}: not given before"
        elif before[former] != tree:
            yield f"{argument(place)}: {_change(before[former], tree, argument(place))}"
        elif place in moved:
            yield f"{argument(place)}: {_way(place)}"
    for place in before:
        if place not in after and place not in moved.values():
            yield f"{argument(place)}: no longer given"


def _change(old: Structure, new: Structure, argument: str) -> str:
    """Return the difference between two structures: the settings of the first module that parts, or both structures."""
    root = argument.rpartition(" ")[2].strip("'")
    path, before, after = parting(old, new, root)
    settings = [_settings(structure) for structure in (before, after)]
    if before.type is after.type and settings[0].keys() == settings[1].keys():
        changed = [name for name, value in settings[1].items() if settings[0][name] != value]
        if changed:
            return ", ".join(f"{path}.{name} {settings[0][name]} -> {settings[1][name]}" for name in changed)
    return f"{structure_text(old)} -> {structure_text(new)}"


def _settings(structure: Structure) -> dict[str, str]:
    """Return the settings of a module, which its layout holds, as text; {} for other nodes."""
    take_apart = trees.flattening(structure.type) if structure.type is not None else None
    if take_apart is None:
        return {}
    data = take_apart(trees.unflatten(structure, [0] * structure.num_leaves))[1]
    settings = getattr(data, "settings", None)
    if not isinstance(settings, dict):
        return {}
    return {name: str(getattr(value, "__qualname__", None) or repr(value)) for name, value in settings.items()}


def _moved(
    before: Mapping[int | str, Any], after: Mapping[int | str, Any], argument: Callable[[int | str], str]
) -> dict[int | str, int | str]:
    """Return new index or keyword to old, for arguments that changed from position to keyword or back."""
    names = {argument(place).rpartition(" ")[2]: place for place in before if place not in after}
    found = {place: names.get(argument(place).rpartition(" ")[2]) for place in after if place not in before}
    return {place: former for place, former in found.items() if former is not None}


def _way(place: int | str) -> str:
    return "by name, before by position" if isinstance(place, str) else "by position, before by name"


def _trees(key: Key) -> dict[int | str, Structure]:
    """Return the structures of the traced arguments by index or keyword."""
    positional, named = key.structure.children()
    statics = {static.place for static in key.statics}
    trees = positional.children()
    places = [place for place in range(len(trees) + len(statics)) if place not in statics][: len(trees)]
    return {**dict(zip(places, trees, strict=True)), **dict(zip(named.entries(), named.children(), strict=True))}


assert set(KEYED) <= set(SETTINGS)
