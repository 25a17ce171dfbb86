"""Digests of results: SHA-256 of the bits that 162 programs compute, recorded on the simulated device.

    python -m tests.runtime.cuda.digests cuda            compare, on a card
    python -m tests.runtime.cuda.digests cuda-sim        compare, anywhere
    python -m tests.runtime.cuda.digests cuda-sim --few    every tenth program
    python -m tests.runtime.cuda.digests cuda-sim --record

The programs are golden ones and cases of the laws, one a primitive, without library routines and callbacks. NaNs
have one form.
"""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import tracer
from tests.golden_programs import PROGRAMS
from tests.laws.cases import all_cases, longest
from tracer.ir.loop import Callback, Library, Module
from tracer.ir.loop.walk import statements_of
from tracer.ir.program import Program
from tracer.ir.target import CUDA
from tracer.ir.types import size, storage_type
from tracer.passes.pipeline import optimize
from tracer.runtime.cuda.programs import DeviceProgram
from tracer.schedule.pipeline import gpu_schedule

RECORDED = Path(__file__).with_name("digests.json")
_TRIES = 6  # cases of a primitive, far apart in its table
_LARGEST = 5000  # elements, which the simulated device takes in a second


class Sample(NamedTuple):
    """A program with its operands."""

    program: Program
    operands: Callable[[np.random.Generator], Sequence[Any]]


def chosen() -> Iterator[tuple[str, Sample]]:
    """Yield programs by name: golden ones, then a case of each primitive, with another kind of dtype each time."""
    yield from golden()
    for position, (name, cases) in enumerate(all_cases().items()):
        small = [case for case in cases if 0 < longest(case) <= _LARGEST]
        tried = dict.fromkeys(small[i * len(small) // _TRIES] for i in range(_TRIES) if small)
        fit = [case for case in tried if _is_ours(case.program)]
        case = fit[position % len(fit)] if fit else None
        if case is not None and all(map(size, (*case.program.input_types, *case.program.output_types))):
            yield f"{name}: {', '.join(map(str, case.types))}", Sample(case.program, case.draw)


def golden() -> Iterator[tuple[str, Sample]]:
    """Yield the golden programs."""
    for function, types in PROGRAMS.items():
        program = tracer.jit(function).lower(*types).program()
        if _is_ours(program):
            yield f"{function.__name__}, a golden program", Sample(program, partial(_uniform, program))


def few() -> Iterator[tuple[str, Sample]]:
    """Yield every tenth program."""
    return islice(chosen(), 0, None, 10)


def _uniform(program: Program, rng: np.random.Generator) -> list[Any]:
    types = map(storage_type, program.input_types)
    return [(rng.random(type.shape) * (30 if type.dtype.kind == "i" else 1)).astype(type.dtype) for type in types]


def _is_ours(program: Program) -> bool:
    """Whether kernels of ours compute the whole program."""
    module: Module = gpu_schedule(optimize(program, CUDA), CUDA)[1].module
    steps = [s for function in module.functions for s in statements_of(function.body)]
    return not any(isinstance(s, Library | Callback) for s in steps)


def digest(name: str, sample: Sample, driver: Any) -> str:
    """Return the digest of the results on a device, for operands that follow from the name."""
    seed = int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big")
    operands = sample.operands(np.random.default_rng(seed))
    memories = [driver.upload(np.ascontiguousarray(x)) for x in operands]
    outputs, check = DeviceProgram(sample.program, driver).run(memories)
    if check is not None:
        check.settle()
    bits = hashlib.sha256()
    for memory, type in zip(outputs, sample.program.output_types, strict=True):
        storage = storage_type(type)
        bits.update(str(storage).encode())
        bits.update(_with_one_nan(driver.download(memory, storage.dtype)).tobytes())
    return bits.hexdigest()


def _with_one_nan(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return the values with equal bits for all NaNs, part by part."""
    if x.dtype.kind == "c":
        return _with_one_nan(x.view(f"f{x.dtype.itemsize // 2}"))
    return np.where(x != x, np.asarray(np.nan).astype(x.dtype), x) if x.dtype.kind in "fV" else x


def main(arguments: list[str]) -> int:
    """Compare or record. Prints each difference; returns 1 if there is one."""
    driver = tracer.devices(arguments[0])[0].driver
    recorded = json.loads(RECORDED.read_text(encoding="utf-8")) if RECORDED.exists() else {}
    found, start = {}, time.perf_counter()
    for name, sample in few() if "--few" in arguments else chosen():
        try:
            found[name] = digest(name, sample, driver)
        except Exception as problem:  # a fault of one program leaves the others to be compared
            found[name] = f"{type(problem).__name__}: {str(problem).splitlines()[0]}"
        if "--record" not in arguments and found[name] != recorded.get(name):
            print(f"differs: {name}: {found[name]}")
    if "--record" in arguments:
        RECORDED.write_text(json.dumps(found, indent=0) + "\n", encoding="utf-8")
        recorded = found
    wrong = [name for name, value in found.items() if value != recorded.get(name)]
    print(f"{len(found)} programs on {arguments[0]}, {len(wrong)} differ, {time.perf_counter() - start:.0f} s")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
