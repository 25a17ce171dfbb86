"""Measures the math functions of `tracer.schedule.math` and writes docs/math-accuracy.md.

    python -m tools.measure_math [STEP]     from the repository's root; some ten minutes

f32 functions of one argument: every STEP-th (64) of the 2^32 encodings against NumPy or SciPy in f64. f32 functions of
two, and f64: random samples over all exponents, against long double (x86's 80 bits) or mpmath.
"""

from __future__ import annotations

import datetime
import platform
import sys
import time
from dataclasses import dataclass
from pathlib import Path

import llvmlite
import llvmlite.binding as llvm
import mpmath
import numpy as np
import scipy

from tests.schedule.math.math_reference import (
    ARRAY_REFERENCES,
    SCIPY_REFERENCES,
    Array,
    Reference,
    compiled,
    every_float32,
    operation_count,
    precise_errors,
    samples,
    ulp_errors,
)
from tracer.ir.dtypes import F32, F64, DType
from tracer.ir.scalar import MATH_FUNCTIONS, ScalarOp

TARGET = Path(__file__).parents[1] / "docs" / "math-accuracy.md"
CHUNK = 1 << 22
WITH_ROOTS = (ScalarOp.LGAMMA, ScalarOp.DIGAMMA)
SPECIAL_HEAD = "## Special functions"  # of the section that `tools.measure_special` writes

TEXT = """# Accuracy of the math functions

Written by `python -m tools.measure_math`, {date}, on {cpu} (LLVM's name; {width}), with LLVM {llvm},
llvmlite {llvmlite}, NumPy {numpy}, SciPy {scipy}, mpmath {mpmath}, Python {python}.

Errors are in units in the last place (ulps) of the exact result; below the normal range the unit is the least
denormal. "above 1" is the share of the sample whose error is above one ulp. "operations" counts the scalar
operations of the expansion as vector loops execute it, with everything for huge arguments, bit casts not counted;
in scalar code the part of sin, cos and tan for huge arguments (|x| > 2^17 for f32, 2^40 for f64) stands in a branch.
"G/s" is 10^9 results a second in a vector loop over {elements} elements on one core.

f32 functions of one argument are evaluated at every {step}th of the 2^32 encodings, against f64 functions of NumPy and
SciPy; the others at random arguments over all exponents, against long double or mpmath. lgamma and digamma are
measured at positive arguments with a result above 1/1000 in size. Beside their roots, and at negative arguments, the
f64 error is bounded absolutely, by 2^-50 times the larger of 1 and |lgamma(-x)|, or of 1, |digamma(1 - x)| and
|pi cot(pi x)|; f32 is evaluated in f64 and rounded, so its error is 0.5 ulp, except where f64 loses half its digits.
f16 and bf16 are evaluated in f32 and rounded.

| function | dtype | max error | at | above 1 | sample | operations | G/s |
|---|---|---:|---|---:|---:|---:|---:|
{rows}
"""


@dataclass
class Record:
    """The greatest error so far, in ulps, where it is, and how many of how many are above one."""

    worst: float = 0.0
    where: tuple[float, ...] = ()
    above: int = 0
    count: int = 0

    def add(self, errors: Array, arguments: tuple[Array, ...]) -> None:
        self.count += errors.size
        self.above += int(np.count_nonzero(errors > 1))
        if errors.size and errors.max() > self.worst:
            i = int(np.argmax(errors))
            self.worst, self.where = float(errors[i]), tuple(float(a[i]) for a in arguments)


def measured(op: ScalarOp, dtype: DType, step: int) -> Record:
    """The errors of one function in one dtype."""
    record = Record()
    if dtype == F64 and op in SCIPY_REFERENCES:
        arguments = samples(op, dtype, 40_000, seed=2)
        size = np.abs(arguments[0])
        arguments = tuple(a[size < (30 if op is ScalarOp.ERFC else 1e6)] for a in arguments)
        if op in WITH_ROOTS:
            arguments = (arguments[0][arguments[0] > 0],)
        got = compiled(op, dtype, arguments[0].size)(*arguments)
        errors = precise_errors(op, got, *arguments)
        known = np.isfinite(errors) & ((np.abs(got) > 1e-3) | (op not in WITH_ROOTS))
        record.add(errors[known], tuple(a[known] for a in arguments))
        return record
    reference = {**ARRAY_REFERENCES, **SCIPY_REFERENCES}[op]
    function = compiled(op, dtype, CHUNK)
    rounds = -(-(1 << 32) // (step * CHUNK)) if dtype == F32 and op.signature.arity == 1 else 2
    for k in range(rounds):
        if dtype == F32 and op.signature.arity == 1:
            start = k * step * CHUNK
            arguments = (every_float32(step, start, CHUNK),)
        else:
            arguments = tuple(np.resize(a, CHUNK) for a in samples(op, dtype, CHUNK, seed=k))
        record.add(*_compared(op, function(*arguments), arguments, reference))
    return record


def _compared(
    op: ScalarOp, got: Array, arguments: tuple[Array, ...], reference: Reference
) -> tuple[Array, tuple[Array, ...]]:
    wide = np.float64 if got.dtype == F32 else np.longdouble
    with np.errstate(all="ignore"):
        exact = reference(*(a.astype(wide) for a in arguments))
    errors = ulp_errors(got, exact)
    if op in WITH_ROOTS:
        known = (arguments[0] > 0) & (np.abs(exact) > 1e-3)
        return errors[known], tuple(a[known] for a in arguments)
    return errors, arguments


def throughput(op: ScalarOp, dtype: DType) -> float:
    """Results a second, in units of 10^9, of arguments that every function takes."""
    arguments = [np.random.default_rng(k).uniform(0.1, 0.95, ELEMENTS).astype(dtype) for k in range(op.signature.arity)]
    if op is ScalarOp.ACOSH:
        arguments = [a + dtype.type(1) for a in arguments]
    function = compiled(op, dtype, ELEMENTS)
    best = np.inf
    for _ in range(200):
        start = time.perf_counter()
        function(*arguments)
        best = min(best, time.perf_counter() - start)
    return ELEMENTS / best / 1e9


ELEMENTS = 1 << 15


def main(step: int) -> None:
    """Writes the table."""
    rows = []
    for op in MATH_FUNCTIONS:
        for dtype in (F32, F64):
            record = measured(op, dtype, step)
            where = ", ".join(f"{v:.9g}" if dtype == F32 else f"{v!r}" for v in record.where)
            rows.append(
                f"| {op.label} | {'f32' if dtype == F32 else 'f64'} | {record.worst:.2f} | {where} |"
                f" {100 * record.above / record.count:.2g} % | {record.count:.2g} |"
                f" {operation_count(op, dtype)} | {throughput(op, dtype):.2f} |"
            )
            print(rows[-1], flush=True)
    features = llvm.get_host_cpu_features()
    width = "512-bit vectors" if features.get("avx512f") else "256-bit vectors" if features.get("avx2") else "128-bit"
    _, head, section = TARGET.read_text(encoding="utf-8").partition(SPECIAL_HEAD)
    TARGET.write_text(
        TEXT.format(
            date=datetime.date.today().isoformat(), cpu=llvm.get_host_cpu_name(), width=width, step=step,
            llvm=".".join(map(str, llvm.llvm_version_info)), llvmlite=llvmlite.__version__, numpy=np.__version__,
            scipy=scipy.__version__, mpmath=mpmath.__version__, python=platform.python_version(), elements=ELEMENTS,
            rows="\n".join(rows),
        )
        + (f"\n{head}{section}" if head else "")
    )  # fmt: skip


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 64)
