"""Checks for NaN and infinity, added to a program after each equation that may make them.

A check reduces the results to one flag. Where it fails, the host looks at the operands, and raises if these have none.
Results that reach `select` alone are checked once they are chosen, so `where(x > 0, log(x), 0)` passes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

import numpy as np

from tracer.errors import NonFiniteError, message
from tracer.ir import dtypes
from tracer.ir.primitive import (
    Alias,
    ArgReduce,
    Checked,
    Compare,
    Convert,
    Gather,
    Generate,
    IndexMap,
    Join,
    Parts,
    Pointwise,
    Primitive,
    Reduce,
    Scan,
    Scatter,
    Structured,
)  # fmt: skip
from tracer.ir.program import Equation, Literal, Program, Source, Var
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType
from tracer.primitives.arrays.reductions.reductions import reduce_and
from tracer.primitives.control.effects import callback_p, check_by
from tracer.primitives.elementwise.bits import and_, not_
from tracer.primitives.elementwise.comparison import is_finite, is_finite_p, ne, select_n_p, select_p
from tracer.primitives.elementwise.complex import imag, real
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace.array import Array
from tracer.trace.source import derivative_source, user_source
from tracer.trace.state import state
from tracer.trace.trace import Operand
from tracer.transforms.probing import Loops, Probe, probed

_SHOWN: Final = 4  # operands in an error
_MOVES: Final = (IndexMap, Join, Gather, Generate, Alias, Compare, ArgReduce, Checked, Structured)
_KEEPS: Final = frozenset((
    ScalarOp.NEG, ScalarOp.ABS, ScalarOp.MIN, ScalarOp.MAX, ScalarOp.SELECT, ScalarOp.FLOOR, ScalarOp.CEIL,
    ScalarOp.TRUNC, ScalarOp.ROUND_EVEN, ScalarOp.COPYSIGN,
))  # fmt: skip


def checked_program(program: Program, *, nans: bool, infs: bool, keep_rules: bool = False) -> Program:
    """Return the program with a check after each equation that may make a NaN or infinity of finite numbers.

    nans, infs: which are errors. keep_rules: as in `probed`. The program raises NonFiniteError.
    """
    return probed(program, partial(_checks, nans=nans, infs=infs), keep_rules=keep_rules)


def may_make(primitive: Primitive) -> bool:
    """Whether a primitive can compute a NaN or infinity from finite operands, rather than move or choose elements."""
    match primitive.lower:
        case Pointwise(op) | Reduce(op) | Scan(op):
            return op not in _KEEPS
        case Scatter(op):
            return op is not None and op not in _KEEPS
        case lower:
            return primitive is callback_p or (not isinstance(lower, _MOVES) and primitive is not select_n_p)


def is_float(value: Any) -> bool:
    """Whether a variable, literal or array is a float or complex array."""
    return isinstance(value.type, ArrayType) and dtypes.is_inexact(value.type.dtype)


def _checks(program: Program, *, nans: bool, infs: bool) -> Probe:
    """Return the probe that checks the equations of one program."""
    chosen = _chosen(program)
    waiting: dict[Var, _Made] = {}  # by result: equations whose results reach `select` alone

    def probe(equation: Equation, xs: Sequence[Operand], ys: Sequence[Operand], around: Loops) -> None:
        upstream = _upstream(equation, waiting)
        made = _Made(equation, tuple(xs), tuple(ys))
        if any(v in chosen for v in equation.outputs):
            waiting.update((v, made) for v in equation.outputs if v in chosen)
        elif may_make(equation.primitive):
            _check([made], around, nans=nans, infs=infs)
        elif upstream:
            _check([*upstream, made], around, nans=nans, infs=infs)

    return probe


class _Made(NamedTuple):
    """Equation with its values in the program that is rewritten."""

    equation: Equation
    operands: tuple[Operand, ...]
    results: tuple[Operand, ...]


def _chosen(program: Program) -> set[Var]:
    """Return the floats that reach `select` as cases, perhaps through elementwise equations, and are not used else."""
    chosen: set[Var] = set()
    exposed = {atom for atom in program.outputs if isinstance(atom, Var)}
    for equation in reversed(program.equations):
        read = [atom for atom in equation.inputs if isinstance(atom, Var)]
        lower = equation.primitive.lower
        if isinstance(lower, Compare) or equation.primitive is is_finite_p:
            continue
        if equation.primitive in (select_p, select_n_p):
            chosen.update(read)
        elif isinstance(lower, Pointwise | Convert | Parts | IndexMap) or equation.primitive.splat:
            if any(v in exposed for v in equation.outputs):
                exposed.update(read)
            elif any(v in chosen for v in equation.outputs):
                chosen.update(read)
        else:
            exposed.update(read)
    return {v for v in chosen - exposed if is_float(v)}


def _upstream(equation: Equation, waiting: dict[Var, _Made]) -> list[_Made]:
    """Return the unchecked equations that an equation's operands come from, the first first."""
    found: dict[int, _Made] = {}

    def visit(equation: Equation) -> None:
        for atom in equation.inputs:
            made = waiting.get(atom) if isinstance(atom, Var) else None
            if made is not None and id(made.equation) not in found:
                visit(made.equation)
                found[id(made.equation)] = made

    visit(equation)
    return list(found.values())


def _check(group: Sequence[_Made], around: Loops, *, nans: bool, infs: bool) -> None:
    """Bind the check of the last equation's results. The host looks for the culprit in the whole group."""
    values: dict[int, Operand] = {}
    for made in group:
        values.update((id(x), x) for x in (*made.operands, *made.results) if isinstance(x, Array) and is_float(x))
    places = {key: len(around) + n for n, key in enumerate(values)}
    rows = [
        _Row(
            made.equation,
            [x.value if isinstance(x, Literal) else places.get(id(x), x.type) for x in made.operands],
            [places[id(y)] for y in made.results if id(y) in places],
        )
        for made in group
    ]
    loops = [loop.loop for loop in around]
    good = _are_good(group[-1].results, infs)
    if good is not None:
        counts = [loop.iteration for loop in around]
        check_by(good, partial(_judge, rows, loops, nans, infs), [*counts, *values.values()])


def _are_good(results: Sequence[Operand], infs: bool) -> Any:
    """Return whether all float results are finite, or not NaN unless `infs`: bool []; None without floats."""
    good: Any = None
    for y in results:
        if isinstance(y, Array) and is_float(y):
            flag = good_elements(y, infs)
            flag = reduce_and(flag, tuple(range(len(y.type.shape)))) if y.type.shape else flag
            good = flag if good is None else and_(good, flag)
    return good


def good_elements(x: Any, infs: bool) -> Any:
    """Return for each element whether it is finite, or not NaN unless `infs`."""
    dtype = x.type.dtype
    if dtypes.is_complex(dtype):
        return and_(good_elements(real(x), infs), good_elements(imag(x), infs))
    if dtypes.is_narrow(dtype):
        x = convert_element_type(x, dtypes.F32)
    return is_finite(x) if infs else not_(ne(x, x))


class _Row(NamedTuple):
    """Equation whose values the host judges: positions of arrays, literals' values, types of other operands."""

    equation: Equation
    operands: list[Any]
    results: list[int]


def _judge(rows: Sequence[_Row], loops: Sequence[Equation], nans: bool, infs: bool, *arrays: Any) -> None:
    """Raise NonFiniteError for the first equation that made a NaN or infinity from operands that have none."""
    iterations = [int(arrays[n]) for n in range(len(loops))]
    for row in rows:
        operands = [arrays[x] if type(x) is int else x for x in row.operands]
        fault = fault_of(operands, [arrays[n] for n in row.results], nans=nans, infs=infs)
        if fault is not None:
            where = list(zip(loops, iterations, strict=True))
            chosen = rows[-1].equation if row is not rows[-1] else None
            raise NonFiniteError(_text(row.equation, operands, fault, where, chosen))


def check_call(
    primitive: Primitive, operands: Sequence[Operand], results: Sequence[Array], *, nans: bool, infs: bool
) -> None:
    """Raise NonFiniteError if an operation outside `jit` made a NaN or infinity from operands that have none."""
    found = [y._value for y in results if is_float(y)]
    if not found or not may_make(primitive):
        return
    given = [x.value if isinstance(x, Literal) else x._value if is_float(x) else x.type for x in operands]
    fault = fault_of(given, found, nans=nans, infs=infs)
    if fault is not None:
        source = derivative_source(user_source()) if state.pulling else user_source()
        raise NonFiniteError(fault_text(primitive.name, source, given, fault))


class Fault(NamedTuple):
    """Elements of a result that are NaN or infinite, of finite operands."""

    kind: str
    elements: int
    size: int


def fault_of(operands: Sequence[Any], results: Sequence[Any], *, nans: bool, infs: bool) -> Fault | None:
    """Return the elements of NumPy results that are NaN, or infinite, where no element of the operands is.

    operands: NumPy arrays and scalars; operands of another class, such as types, are passed over.
    """
    given = [x for x in operands if isinstance(x, np.ndarray | np.generic)]
    for result in results:
        if nans and (count := _count(np.isnan, result)) and not any(_count(np.isnan, x) for x in given):
            return Fault("NaN", count, int(np.size(result)))
        if infs and (count := _count(np.isinf, result)) and all(_count(np.isfinite, x) == np.size(x) for x in given):
            return Fault("infinite", count, int(np.size(result)))
    return None


def _count(test: Callable[[Any], Any], value: Any) -> int:
    wide = value.astype(np.float32) if dtypes.is_narrow(value.dtype) else value
    return int(np.count_nonzero(test(wide)))


def _text(
    equation: Equation, operands: Sequence[Any], fault: Fault, around: Sequence[tuple[Equation, int]],
    chosen: Equation | None,
) -> str:  # fmt: skip
    loops = [f"in iteration {n} of the loop{site(loop.source)}" for loop, n in reversed(around)]
    choice = [f"chosen by {chosen.primitive.name}{site(chosen.source)}"] if chosen is not None else []
    return fault_text(equation.primitive.name, equation.source, operands, fault, [*choice, *loops])


def fault_text(
    name: str, source: Source | None, operands: Sequence[Any], fault: Fault, lines: Sequence[str] = ()
) -> str:
    """Return the error of an operation: its line, the elements, and its operands' ranges."""
    scope = f" in {source.scope}" if source is not None and source.scope else ""
    texts = [_operand(x) for x in operands]
    more = [f"and {len(texts) - _SHOWN} operands more"] if len(texts) > _SHOWN else []
    origin = "operands without NaN" if fault.kind == "NaN" else "finite operands"
    return message(
        f"{name}{site(source)}{scope}: {fault.elements} of {fault.size} elements are {fault.kind}, from {origin}",
        *lines, *texts[:_SHOWN], *more,
        help="tracer.debug.watch(f)(...) shows the range of every line's values",
    )  # fmt: skip


def site(source: Source | None) -> str:
    """Return ` at demo.py:3`, or ` in the gradient of demo.py:3`, or nothing."""
    if source is None:
        return ""
    return f" in the gradient of {source}" if source.derivative else f" at {source}"


def _operand(x: Any) -> str:
    if not isinstance(x, np.ndarray | np.generic):
        return f"operand {x}"
    return f"operand {_type(x)}{''.join(_range(x))}"


def _type(x: Any) -> str:
    return f"{dtypes.short_name(x.dtype)}[{','.join(map(str, x.shape))}]"


def _range(x: Any) -> Iterator[str]:
    """Yield the range of an array's elements that are not NaN, and the count of elements that are NaN."""
    if x.ndim == 0:
        yield f" = {x[()]!s}"
    elif x.size and not dtypes.is_complex(x.dtype):
        wide = np.asarray(x, np.float64)
        rest = wide[~np.isnan(wide)]
        yield f" in [{rest.min():.4g}, {rest.max():.4g}]" if rest.size else ""
        yield f", {wide.size - rest.size} NaN" if rest.size < wide.size else ""
