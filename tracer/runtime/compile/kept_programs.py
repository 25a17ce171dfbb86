"""Compiled programs in files: object code, with the facts that calls need, so that a later process only traces.

A file is named by the inlined program and everything else that decides its code: donated inputs, target, settings,
machine, and the compiler's sources. Programs that hold Python objects, such as callbacks, are not kept. User lines are
numbered in order of appearance. The name and the file hold numbers alone, so lines may move.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from tracer.codegen.llvm.toolchain.object_code import load_object
from tracer.codegen.llvm.toolchain.outlined_functions import apart
from tracer.codegen.llvm.toolchain.target import machine_key
from tracer.ir.program import Program, Source
from tracer.ir.visit import equations
from tracer.lazy import LazyModule
from tracer.passes.inline import inline
from tracer.primitives.catalogue import BY_NAME
from tracer.runtime.compile.this_machine import this_cpu
from tracer.runtime.native.compiler_files import sources, sources_now
from tracer.runtime.native.disk_cache import Folder, folder
from tracer.runtime.native.entry_point import EntryPoint
from tracer.runtime.native.object_cache import objects
from tracer.runtime.system.gc_pause import collector_paused
from tracer.runtime.system.spans import working
from tracer.settings import config
from tracer.trace.source import user_source
from tracer.version import VERSION

if TYPE_CHECKING:
    from tracer.codegen.llvm import kernel_modules
    from tracer.schedule.elements import gather_bounds
    from tracer.schedule.pipeline import Scheduled
else:
    kernel_modules = LazyModule("tracer.codegen.llvm.kernel_modules")
    gather_bounds = LazyModule("tracer.schedule.elements.gather_bounds")

_SIMPLE: Final = frozenset({bool, int, float, complex, str, type(None)})
_OUTSIDE: Final = re.compile(r"@(?!llvm\.)")


class Place(NamedTuple):
    """File of one program. lines: the program's user lines, by number."""

    folder: Folder
    key: str
    program: Program
    lines: list[Source | None]

    def read(self) -> EntryPoint | None:
        """Return the entry point of the kept program; None if there is none."""
        contents = self.folder.read(self.key)
        if contents is None:
            return None
        with collector_paused(), working("compile", self.program.name, user_source()) as work:
            work.at("kept code")
            header, _, code = contents.partition(b"\n")
            facts = json.loads(header)
            sites = [gather_bounds.FaultSite(kind, self.lines[n], text) for kind, n, text in facts["sites"]]
            donors = dict(facts["donors"])
            return EntryPoint(
                load_object(code, _symbols(facts)), self.program.input_types, self.program.output_types, facts["work"],
                (), donors, sites, facts["arena"], facts["stacks"], None, not donors, facts["is_patient"],
            )  # fmt: skip

    def write(self, scheduled: Scheduled, llvm: str, opt: int, routines: list[str], point: EntryPoint) -> None:
        """Keep a program, unless a call needs more than a file holds.

        llvm: its text. opt: the level of its code. routines: the library's that it calls. point: as called here.
        """
        s, numbers = scheduled, {source: n for n, source in enumerate(self.lines)}
        types = (self.program.input_types, self.program.output_types)
        needs_more = s.callbacks or s.constants or (s.input_types, s.output_types) != types
        if needs_more or not all(site.source in numbers for site in s.sites) or sources_now() != sources():
            return
        text, common = apart(llvm)
        facts = {
            "sites": [(site.kind, numbers[site.source], site.text) for site in s.sites],
            "donors": sorted(s.donors.items()), "work": point.work, "is_patient": point.is_patient,
            "arena": s.module.arena, "stacks": s.module.stacks, "routines": routines, "common": common,
            "outside": "\n".join(dict.fromkeys(line for line in text.splitlines() if _OUTSIDE.search(line))),
        }  # fmt: skip
        self.folder.write(self.key, json.dumps(facts).encode() + b"\n" + objects.get(text, opt, kept=False))


def place(program: Program, donated: Collection[int]) -> Place | None:
    """Return the file of a program, which need not exist; None where programs like it are not kept.

    donated: the inputs whose memory results may take over.
    """
    found = folder()
    files = None if found is None else sources()
    if found is None or files is None:
        return None
    inlined, numbers = inline(program), dict[Source | None, int]()
    order = [numbers.setdefault(equation.source, len(numbers)) for equation in equations(inlined)]
    if not _is_plain(inlined):
        return None
    parts = (
        inlined.digest.hex(), order, sorted(donated), this_cpu(), config.key(), machine_key(), np.__version__, VERSION,
        files,
    )  # fmt: skip
    key = hashlib.blake2b("\0".join(map(str, parts)).encode(), digest_size=20).hexdigest()
    return Place(found, key, inlined, list(numbers))


def _symbols(facts: dict[str, Any]) -> dict[str, int]:
    """Return the addresses that a kept program binds, from the lines of its text that name them."""
    outside, routines, common = facts["outside"], facts["routines"], facts["common"]
    if not routines and not common and "@tracer_" not in outside.replace("@tracer_main(", ""):
        return {}
    found = kernel_modules.outside_symbols(outside, routines, objects.kernel)
    return found | kernel_modules.common_symbols(common, objects.kernel)


def _is_plain(program: Program) -> bool:
    """Whether a program's digest says everything about it, in every process."""
    ours = all(BY_NAME.get(equation.primitive.name) is equation.primitive for equation in program.equations)
    return ours and all(_is_plain_value(x) for equation in program.equations for x in equation.params.values())


def _is_plain_value(value: Any) -> bool:
    kind = type(value)
    if kind in _SIMPLE or isinstance(value, np.dtype | np.generic):
        return True
    if kind is tuple or kind is list:
        return all(map(_is_plain_value, value))
    if kind is Program:
        return _is_plain(value)
    if not kind.__module__.startswith("tracer."):
        return False
    is_record = is_dataclass(kind)
    return isinstance(value, Enum) or (is_record and all(_is_plain_value(getattr(value, f.name)) for f in fields(kind)))
