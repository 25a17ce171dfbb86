"""Fixed native routines as LLVM text in `.ll` files, one routine a file, with its contract in comments at its head.

The files lie in a folder `ll` beside the Python that loads them. Sizes, offsets and constants that Python knows stand
in the text by name. `Struct.field` is a field's offset in bytes, `Struct.bytes` a structure's size, `Group.word` any
other constant. Two more instructions read and write a field:

    %x = field T %p Struct.f        a load of type T from %p + Struct.f
    set T v %p Struct.f             a store of v to %p + Struct.f
"""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import Final

_FIELD: Final = re.compile(r"  (%[\w.]+) = field (\w+) ([%@][\w.]+) ([\w.]+)")
_SET: Final = re.compile(r"  set (\w+) (\S+) (%[\w.]+) ([\w.]+)")
_NAME: Final = re.compile(r"\b[A-Z]\w*\.\w+\b")


def routines(folder: Path, names: Iterable[str]) -> str:
    """Join the routines `names` of a folder in this order, without the comments that fill a line."""
    return "\n".join(_routine(folder / f"{name}.ll") for name in names)


@cache
def _routine(path: Path) -> str:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return "".join(line for line in lines if not line.startswith(";")).lstrip("\n")


def expanded(text: str, values: Mapping[str, int | str]) -> str:
    """Write `field` and `set` as LLVM's instructions, and values for names.

    Raises KeyError for a name without a value.

    >>> print(expanded("  %x = field i64 %p Pair.second", {"Pair.second": 8}), end="")
      %x.field = getelementptr i8, ptr %p, i64 8
      %x = load i64, ptr %x.field
    """
    lines = []
    for count, line in enumerate(text.splitlines()):
        if " = field " in line and (read := _FIELD.fullmatch(line)):
            target, type_, base, name = read.groups()
            lines.append(f"  {target}.field = getelementptr i8, ptr {base}, i64 {name}")
            lines.append(f"  {target} = load {type_}, ptr {target}.field")
        elif line.startswith("  set ") and (write := _SET.fullmatch(line)):
            type_, value, base, name = write.groups()
            lines.append(f"  %set.{count} = getelementptr i8, ptr {base}, i64 {name}")
            lines.append(f"  store {type_} {value}, ptr %set.{count}")
        else:
            lines.append(line)
    return _NAME.sub(lambda found: str(values[found[0]]), "\n".join(lines) + "\n")


def fields(*structures: type[ctypes.Structure]) -> dict[str, int]:
    """Return the offset in bytes of every field as `Struct.field`, and every size as `Struct.bytes`."""
    found = {}
    for structure in structures:
        found[f"{structure.__name__}.bytes"] = ctypes.sizeof(structure)
        for field in structure._fields_:
            found[f"{structure.__name__}.{field[0]}"] = getattr(structure, field[0]).offset
    return found
