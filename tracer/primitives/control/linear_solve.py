"""`linear_solve`: the solution of a linear equation given by functions, found by a user's function.

It holds four programs: `matvec` is the linear map, `solve` finds x with matvec(x) = b. `vecmat` and `transpose_solve`
are their counterparts for the transposed map. The solution is differentiated implicitly, never through `solve`:

    dx = solve(db - dmatvec(x))          and, transposed,  ct_b = transpose_solve(ct_x)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate, pairwise
from typing import Any

from tracer.errors import NoRuleError, message
from tracer.ir.primitive import Composite, Eager, Primitive, Zero
from tracer.ir.program import Program
from tracer.ir.types import tangent_type
from tracer.primitives.base.nested_programs import (
    Axes,
    active_of,
    batched_of,
    effects_of,
    move_to_front,
    nonzero,
    spread,
)
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.rules import operand_of
from tracer.primitives.elementwise.arithmetic import neg
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.trace import bind_all

_PROGRAMS = ("matvec", "solve", "vecmat", "transpose_solve")


def _split(values: Sequence[Any], counts: Sequence[int]) -> list[list[Any]]:
    """Return the captured values of each program, in the order of `_PROGRAMS`, and the right-hand side."""
    ends = [0, *accumulate(counts), len(values)]
    return [list(values[start:stop]) for start, stop in pairwise(ends)]


def _solution(values: Sequence[Any], params: Mapping[str, Any]) -> tuple[Program, list[Any]]:
    parts = _split(values, params["counts"])
    return params["solve"], [*parts[1], *parts[4]]


def _reference(*values: Any, **params: Any) -> list[Any]:
    return run_reference(*_solution(values, params))


def _expand(*operands: Any, **params: Any) -> list[Any]:
    return evaluate(*_solution(operands, params))


def _jvp(ctx: Any, xs: Sequence[Any], dxs: Sequence[Any], **params: Any) -> list[Any]:
    captured, _, _, _, given = _split(xs, params["counts"])
    moved_map, _, _, _, moved = _split(dxs, params["counts"])
    found = ctx.outputs[: len(given)]
    active = active_of(moved_map)
    if any(active):
        derived = ctx.transform(params["matvec"], active + (False,) * len(found))
        results = evaluate(derived.program, [*captured, *found, *nonzero(moved_map)])
        types = params["matvec"].output_types
        turned = spread(results[len(types) :], derived.active_outputs, types)
        moved = [_less(ctx, dy, part) for dy, part in zip(moved, turned, strict=True)]
    still = [Zero(tangent_type(y.type)) for y in ctx.outputs]
    if all(isinstance(dy, Zero) for dy in moved):
        return still
    operands = [*xs[: len(xs) - len(given)], *map(ctx.instantiate, moved)]
    return [*bind_all(linear_solve_p, operands, params)[: len(given)], *still[len(given) :]]


def _less(ctx: Any, x: Any, y: Any) -> Any:
    """Subtract two tangents."""
    if isinstance(y, Zero):
        return x
    return neg(y) if isinstance(x, Zero) else ctx.add(x, neg(y))


def _transpose(ctx: Any, cts: Sequence[Any], xs: Sequence[Any], **params: Any) -> list[Any]:
    """Solve the transposed equation, whose transpose is this one. Raises NoRuleError without `transpose_solve`."""
    if params["transpose_solve"] is None:
        raise NoRuleError(
            message(
                f"transpose of custom_linear_solve{here()}: nothing solves the transposed equation",
                help="give it transpose_solve, or symmetric=True if the map is its own transpose",
            )
        )
    captured, of_solve, of_vecmat, of_transposed, given = _split(xs, params["counts"])
    known = [operand_of("custom_linear_solve", x) for x in (*of_vecmat, *of_transposed, *captured, *of_solve)]
    swapped = {
        "matvec": params["vecmat"], "solve": params["transpose_solve"], "vecmat": params["matvec"],
        "transpose_solve": params["solve"], "counts": params["counts"][2:] + params["counts"][:2],
    }  # fmt: skip
    arriving = [ctx.instantiate(ct) for ct in cts[: len(given)]]
    return [None] * len(known) + bind_all(linear_solve_p, [*known, *arriving], swapped)[: len(given)]


def _batch(ctx: Any, xs: Sequence[Any], axes: Axes, **params: Any) -> Any:
    """Batch all equations as one of batches. Every right-hand side is batched."""
    count = sum(params["counts"])
    new = dict(params)
    for name, of_captured in zip(_PROGRAMS, _split(axes, params["counts"]), strict=False):
        program = params[name]
        if program is not None:
            beside = len(program.inputs) - len(of_captured)
            flags = batched_of(of_captured) + (True,) * beside
            new[name] = ctx.transform(program, flags, ctx.size, ctx.axis_name, True).program
    sides = [ctx.to_front(x, axis) for x, axis in zip(xs[count:], axes[count:], strict=True)]
    outputs = bind_all(linear_solve_p, [*move_to_front(ctx, xs[:count], axes[:count]), *sides], new)
    return outputs, [0] * len(outputs)


linear_solve_p: Primitive = Primitive(
    name="linear_solve",
    infer=lambda *types, solve, **params: solve.output_types,
    reference=_reference, jvp=_jvp, transpose=_transpose, batch=_batch,
    lower=Composite(_expand), effects=effects_of("solve"), multiple=True, eager=Eager.COMPILED,
    laws={"all": "it solves what the user's functions say, if they do: see tests/lax/test_linear_solves.py"},
)  # fmt: skip

LINEAR_SOLVES = (linear_solve_p,)
