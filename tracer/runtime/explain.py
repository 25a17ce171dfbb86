"""Why a jitted function compiled: a short memory of it, told in words."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tracer.ir.program import Source
from tracer.runtime.arguments import Key, Static
from tracer.settings import SETTINGS
from tracer.trace.trees import structure_text

_REMEMBERED = 16
_KEYED_SETTINGS = ("default_float", "deterministic", "loop_memory")  # as `Config.key` has them


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
        for event in self._events:
            place = f" at {event.source}" if event.source is not None else ""
            lines.append(f"  {event.number}.{place}: {event.reasons[0]}")
            lines += [f"      {reason}" for reason in event.reasons[1:]]
        return Text("\n".join(lines + [f"  note: {note}" for note in self.notes]))


def differences(old: Key, new: Key, names: Sequence[str], argument: dict[int | str, str]) -> list[str]:
    """What is new in a key, in words. `names` are the new key's leaves, `argument` names the static arguments."""
    found = list(_static_changes(old.statics, new.statics, argument))
    if old.structure != new.structure:
        found.append(
            f"the arguments have another structure: {structure_text(old.structure)} -> {structure_text(new.structure)}"
        )
    elif old.types != new.types:
        found += [f"{n}: {a} -> {b}" for n, a, b in zip(names, old.types, new.types, strict=True) if a != b]
    for name, before, after in zip(_KEYED_SETTINGS, old.settings, new.settings, strict=True):
        if before != after:
            found.append(f"config.{name}: {before} -> {after}")
    if old.axes != new.axes:
        found.append(f"named axes: {dict(old.axes)} -> {dict(new.axes)}")
    return found


def closest(keys: Iterable[Key], new: Key, names: Sequence[str], argument: dict[int | str, str]) -> list[str]:
    """The differences from the key that is most like the new one; nothing where there is no other key."""
    found = [differences(old, new, names, argument) for old in keys]
    return min(found, key=len, default=[])


def _static_changes(old: tuple[Static, ...], new: tuple[Static, ...], argument: dict[int | str, str]) -> Iterable[str]:
    before = {static.place: static for static in old}
    for static in new:
        former = before.pop(static.place, None)
        name = f"static {argument[static.place]}"
        if former is None:
            yield f"{name}: given as {static.value!r}"
        elif former != static:
            yield f"{name}: {former.value!r} -> {static.value!r}"
    for place in before:
        yield f"static argument {place!r}: no longer given"


assert set(_KEYED_SETTINGS) <= set(SETTINGS)
