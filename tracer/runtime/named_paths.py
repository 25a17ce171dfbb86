"""What code reads by name: globals, and dotted paths from names, as far as its instructions tell."""

from __future__ import annotations

import dis
from functools import lru_cache
from types import CodeType
from typing import Any, Final

Path = tuple[str, ...]
"""(kind, name, attribute, ...). kind: "global", "cell" or "argument", of a name; "module", of one that the code imports
itself, with leading dots where it is relative; "super", of an attribute of `super()`."""

_READS: Final = {"LOAD_GLOBAL": "global", "LOAD_NAME": "global", "LOAD_DEREF": "cell"}
_ATTRIBUTES: Final = ("LOAD_ATTR", "LOAD_METHOD")
_CALLS: Final = ("PRECALL", "CALL")
_SUPER: Final = ("global", "super")


class Read:
    """globals: names. paths: of names whose attributes are read, and of what is imported."""

    globals: tuple[str, ...]
    paths: tuple[Path, ...]

    def __init__(self, code: CodeType) -> None:
        self._globals = dict[str, None]()
        self._paths = dict[Path, None]()
        self._imported: dict[str, list[Path]] = {}
        self._here: list[Path] = []  # what lies on top of the stack
        self._module: Path = ()  # which names are imported from
        before: list[Any] = [0, None]  # what the last two instructions name: of an import, its level and its names
        for instruction in dis.get_instructions(code):
            self._step(instruction, *before)
            before = [before[1], instruction.argval]
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._include(read(constant))
        self.globals, self.paths = tuple(self._globals), tuple(self._paths)

    def _step(self, instruction: dis.Instruction, level: Any, names: Any) -> None:
        operation, name = instruction.opname, instruction.argval
        if operation in _ATTRIBUTES and self._here:
            self._note([("super", name) if path == _SUPER else (*path, name) for path in self._here])
        elif operation == "LOAD_SUPER_ATTR":
            self._note([("super", name)])
        elif operation in _CALLS and self._here == [_SUPER] and not instruction.arg:
            pass  # super()
        elif operation == "IMPORT_NAME":
            self._module = ("module", "." * level + (name if names else name.partition(".")[0]))
            self._here = [self._module]
        elif operation == "IMPORT_FROM":
            self._here = []
            self._note([(*self._module, name)])
        elif operation.startswith(("STORE_FAST", "STORE_DEREF")):
            self._store(*(name if isinstance(name, tuple) else (name,)), loads="LOAD" in operation)
        else:
            self._load(operation, name)

    def _note(self, paths: list[Path]) -> None:
        """Paths that are read, in place of those that they go on from."""
        for path in self._here:
            self._paths.pop(path, None)
        self._here = paths
        self._paths.update(dict.fromkeys(paths))

    def _store(self, name: str, other: str = "", *, loads: bool) -> None:
        found = [path for path in self._here if path[0] == "module"]
        if found:
            self._imported.setdefault(name, []).extend(found)
        self._here = self._local(other) if loads else []

    def _load(self, operation: str, name: Any) -> None:
        kind = _READS.get(operation)
        if operation.startswith("LOAD_FAST"):  # of 3.13 on, two names at once
            self._here = self._local(name[-1] if isinstance(name, tuple) else name)
        elif kind == "cell" and name in self._imported:
            self._here = self._imported[name]
        else:
            self._here = [] if kind is None else [(kind, name)]
        if kind == "global":
            self._globals[name] = None

    def _local(self, name: str) -> list[Path]:
        return self._imported.get(name) or [("argument", name)]

    def _include(self, inner: Read) -> None:
        """What a function that is defined in this code reads: its free variables are local here, or free, too."""
        self._globals.update(dict.fromkeys(inner.globals))
        for path in inner.paths:
            starts = self._imported.get(path[1], [path[:2]]) if path[0] == "cell" else [path[:2]]
            if path[0] not in ("argument", "super"):
                self._paths.update(dict.fromkeys((*start, *path[2:]) for start in starts))


@lru_cache(maxsize=4096)
def read(code: CodeType) -> Read:
    """What the code of a function, and of those defined in it, reads."""
    return Read(code)
