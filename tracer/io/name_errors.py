"""Errors that compare names of arrays in a file with a model's names: lists in one name, and the likely rename."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from pathlib import Path
from typing import Final, NoReturn

from tracer.errors import CheckpointError, message
from tracer.trace.source import here

_SHOWN: Final = 5  # names in errors, names of a list together
_ALIKE: Final = 0.4  # of `norm1` and `ln1`: 0.5
_INDEX: Final = re.compile(r"(?:(?<=\.)|^)\d+(?=\.|$)")


def refuse_names(caller: str, path: Path, missing: Sequence[str], extra: Sequence[str]) -> NoReturn:
    """Raise CheckpointError for a file with other names. caller: the function that the user called."""
    lines = [
        f"{where}: {', '.join(names[:_SHOWN])}{' …' if len(names) > _SHOWN else ''}"
        for where, names in (("missing there", folded(missing)), ("only there", folded(extra)))
        if names
    ]
    raise CheckpointError(message(f"{caller}{here()}: {path} holds another tree", *lines, help=_help(missing, extra)))


def folded(names: Sequence[str]) -> list[str]:
    """Return the names in order.

    Names that differ only in the index of one list become one: `blocks.0…11.norm.weight`.
    """
    result = list(names)
    for place in reversed(range(max((len(_INDEX.findall(name)) for name in names), default=0))):
        result = _folded_at(place, result)
    return result


def _folded_at(place: int, names: Sequence[str]) -> list[str]:
    """Fold names that differ in one of their indices, counted from the front."""
    groups: dict[tuple[str, str], list[str]] = {}
    for name in names:
        found = [*_INDEX.finditer(name)][place : place + 1]
        key = (name[: found[0].start()], name[found[0].end() :]) if found else (name, "")
        groups.setdefault(key, []).append(found[0][0] if found else "")
    result = []
    for (before, after), texts in groups.items():
        numbers = sorted(int(text) for text in texts if text)
        if len(numbers) > 1 and numbers == list(range(numbers[0], numbers[-1] + 1)):
            texts = [f"{numbers[0]}…{numbers[-1]}"]
        result += [f"{before}{text}{after}" for text in texts]
    return result


def _help(missing: Sequence[str], extra: Sequence[str]) -> str:
    if {_INDEX.sub("layers", name, count=1) for name in extra}.intersection(missing):
        return "io.load_weights puts a list of layers into a Stack"
    if {_INDEX.sub("layers", name, count=1) for name in missing}.intersection(extra):
        return "io.load_weights puts a Stack into a list of layers"
    if renamed := _likely_rename(missing, extra):
        old, new = renamed
        return f"did you mean {new} for {old}? io.load_weights takes rename={{{old!r}: {new!r}}}"
    return "strict=False takes what is there"


def _likely_rename(missing: Sequence[str], extra: Sequence[str]) -> tuple[str, str] | None:
    """Return a part of names that are only there, and the model's part by which most become missing names.

    The parts are alike, or all names agree after the change.
    """
    wanted, votes = set(missing), Counter[tuple[str, str]]()
    parts = {part for name in missing for part in name.split(".")}
    for name in extra:
        for old, rest in _without_a_part(name):
            votes.update((old, new) for new in parts if not new.isdigit() and rest.format(new) in wanted)
    likeness = {pair: SequenceMatcher(None, *pair).ratio() for pair in votes}
    fitting = [p for p in votes if likeness[p] >= _ALIKE or votes[p] == len(missing) == len(extra)]
    return max(fitting, key=lambda pair: (votes[pair], likeness[pair], pair), default=None)


def _without_a_part(name: str) -> Iterator[tuple[str, str]]:
    """Yield each part that is no index, and a format of the name with another part in its place."""
    parts = [part.replace("{", "{{").replace("}", "}}") for part in name.split(".")]
    for n, part in enumerate(parts):
        if not part.isdigit():
            yield part, ".".join([*parts[:n], "{}", *parts[n + 1 :]])
