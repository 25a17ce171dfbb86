"""Plans of calls that come often as machine code: compiled whole, where every bit stays as eager execution has it.

What compiled code does is known to have the same bits (see `exact`), and is tried beside the plan before it takes its
place: on the arrays at hand, and on drawn numbers. A compiled entry then recognises such calls before any Python runs.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from tracer.ir import dtypes
from tracer.ir.program import Program
from tracer.ir.visit import equations
from tracer.primitives.control.while_loop import while_p
from tracer.runtime.compile.compile import compile_program
from tracer.runtime.exact import exact_program, is_small_product
from tracer.runtime.guards.guards import Captured
from tracer.runtime.jit.argument_plan import Plan, Planned, flat_plan
from tracer.runtime.jit.entry import Recognised, entries_enabled
from tracer.runtime.native.entry_record import StepKind
from tracer.trace import trees
from tracer.trace.array import Array, concrete


class Staged(NamedTuple):
    """A function staged for a kind of calls: a program of (constants..., arrays...), and the result's structure."""

    program: Program
    constants: Sequence[Captured]
    structure: trees.Structure


class CompiledPlan(NamedTuple):
    """run: from the call's arrays to its result. entry: recognises such calls; None where it cannot tell them."""

    run: Any
    entry: Recognised | None


def compiled_plan(
    staged: Staged, run: Any, arrays: list[Array], arguments: Plan | None, numbers: int = 0
) -> CompiledPlan | None:
    """The plan `run` as machine code; None where that may have other bits, or entries do not run here.

    numbers: how many of the arrays, the first ones, may come as Python numbers if they have no axes.
    """
    given_back = set(staged.program.inputs).intersection(staged.program.outputs)  # compiled code copies those
    copied = sum(math.prod(x.type.shape) for x in given_back)
    program = None if copied > _MOST_COPIED or not entries_enabled() else exact_program(staged.program)
    if program is None:
        return None
    compiled = compile_program(program)
    flat = Recognised(compiled, staged.constants, flat_plan(len(arrays)), staged.structure)
    flat.trust_caller()
    call = flat.entry(lambda *xs: run(list(xs)))
    trials = 0 if any(e.primitive is while_p for e in equations(staged.program)) else 1  # loops that might not end
    if any(map(is_small_product, staged.program.equations)):
        trials *= _TRIALS
    if not _agree(run, call, arrays, trials):
        return None
    if arguments is None:
        return CompiledPlan(lambda xs: call(*xs), None)
    entry = Recognised(compiled, staged.constants, arguments, staged.structure)
    entry.take_arrays_alone(len(staged.constants) + numbers)
    entry.hand_on_faults()  # Python says which line they are about
    return CompiledPlan(lambda xs: call(*xs), entry)


_MOST_COPIED = 64  # elements that are copied in less time than Python takes to hand them on


def _agree(run: Any, call: Any, arrays: list[Array], trials: int) -> bool:
    """Whether both ways give the same bits for these arrays, and for so many sets of others of their kinds."""
    generator = np.random.default_rng(0)
    drawn = [[_drawn(x, generator, spread) for x in arrays] for spread in _SPREADS * trials]
    for xs in (arrays, *drawn):
        with np.errstate(all="ignore"):
            first, second = trees.flatten(run(xs))[0], trees.flatten(call(*xs))[0]
        if not all(_same(x._value, y._value) for x, y in zip(first, second, strict=True)):
            return False
    return True


_SPREADS = (0, 0, 0, 0, 8, 30, None, None)  # in powers of ten; None: of special values
_TRIALS = 8  # where nothing but trying tells: two of four sums of two products agree by chance
_SPECIAL = (0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e-40, 3e38, 0.5)


def _drawn(x: Array, generator: np.random.Generator, spread: int | None) -> Array:
    """Numbers in the place of floats; integers, which may be indices, stay."""
    if not dtypes.is_float(x.dtype):
        return x
    if spread is None:
        numbers = generator.choice(_SPECIAL, x.shape)
    else:
        numbers = generator.normal(size=x.shape) * 10.0 ** generator.uniform(-spread, spread, x.shape)
    with np.errstate(all="ignore"):
        return concrete(np.asarray(numbers).astype(x.dtype), x._weak)


def _same(x: np.ndarray[Any, Any], y: np.ndarray[Any, Any]) -> bool:
    """Whether all bits agree, but for those of NaNs."""
    if x.tobytes() == y.tobytes():
        return True
    if not dtypes.is_float(x.dtype):
        return bool(dtypes.is_inexact(x.dtype)) and _same(x.real, y.real) and _same(x.imag, y.imag)
    nan = np.isnan(x)
    return bool((nan == np.isnan(y)).all()) and np.where(nan, 0, x).tobytes() == np.where(nan, 0, y).tobytes()


def arguments_plan(args: Sequence[Any], kwargs: dict[str, Any]) -> Plan | None:
    """How compiled code tells a replayed call by its arguments; None where it cannot."""
    steps: list[Planned] = []
    names = tuple(kwargs)
    for value in (*args, *(kwargs[name] for name in sorted(names))):
        if not _describe(value, steps):
            return None
    order = [*range(len(args)), *(len(args) + names.index(name) for name in sorted(names))]
    return Plan(steps, order, names, len(args))


def _describe(value: Any, steps: list[Planned]) -> bool:
    kind = type(value)
    if kind is Array or kind is np.ndarray:
        steps.append((StepKind.LEAF, 0, None))
    elif kind is tuple or kind is list:
        steps.append((StepKind.TUPLE if kind is tuple else StepKind.LIST, len(value), kind))
        return all(_describe(item, steps) for item in value)
    elif kind in (int, bool, str):
        steps.append((StepKind.EQUAL, 0, value))
    elif kind is slice:
        steps.append((StepKind.SLICE, 3, None))
        return all(_describe(bound, steps) for bound in (value.start, value.stop, value.step))
    elif kind is float:
        steps.append((StepKind.FLOAT, 0, value))
    else:
        steps.append((StepKind.SAME, 0, value))
    return True
