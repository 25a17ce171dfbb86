"""`custom_linear`: the tangents of a custom_vjp function, defined by their transpose, the user's backward function.

In reverse mode the equation stands in linear programs until they are transposed, and is not executed. In forward mode,
or if residuals have tangents, it expands to the transpose of the backward function. This function must be linear in its
cotangents. Its own derivative uses a rule whose backward function is the derivative of the user's. So a second
derivative only requires that the user's functions are differentiable.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tracer.errors import NoRuleError, message
from tracer.ir.primitive import Composite, Linearized, Primitive, Zero
from tracer.ir.program import Program
from tracer.ir.types import Type, is_differentiable, tangent_type, with_shape
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.base.nested_programs import Axes, batched_of, move_to_front, nonzero, pick, spread
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.rules import is_linear
from tracer.primitives.control.custom.constants_to_literals import closed
from tracer.primitives.control.custom.rule_functions import Operands, VjpRule, batched_backward, stage_backward
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.stage import Staged
from tracer.trace.trace import bind_all


def linear_params(
    rule: VjpRule, xs: Operands, active: Sequence[bool], ys: Operands, residuals: Operands
) -> dict[str, Any]:
    """Return the parameters of the tangents of a function, from the operands and results of its forward function.

    types, differentiated: of all arguments. results: types of the tangents. kept: types of the residuals.
    """
    results = tuple(tangent_type(y.type) for y in ys if is_differentiable(y.type))
    return {
        "rule": rule, "types": tuple(x.type for x in xs), "differentiated": tuple(active), "results": results,
        "kept": tuple(r.type for r in residuals),
    }  # fmt: skip


def _transposed(
    *, rule: VjpRule, types: Sequence[Type], differentiated: tuple[bool, ...], results: Sequence[Type],
    kept: Sequence[Type],
) -> tuple[Staged, list[bool]]:  # fmt: skip
    """Stage the tangents as a program of (constants..., residuals..., active tangents that the flags returned select).

    Raises NoRuleError if the backward function is not linear.
    """
    staged, nonzeros = stage_backward(rule, kept, results, [True] * len(results), differentiated)
    given = iter(staged.program.outputs)
    found = [next(given) if on else None for on in nonzeros]
    moving = pick(found, differentiated)
    program = staged.program
    backward = Program(program.inputs, program.equations, tuple(x for x in moving if x is not None), program.name)
    flags = (False,) * (len(staged.constants) + len(kept)) + (True,) * len(results)
    try:
        forward = rule.transpose(backward, flags).program
    except NoRuleError as error:
        raise NoRuleError(
            message(
                f"forward derivative of custom_vjp {rule.name}{here()}: its backward function is not linear",
                str(error).splitlines()[0],
                help="use grad, vjp or jacrev, or give it a rule with custom_jvp",
            )
        ) from None
    return Staged(forward, staged.constants), [x is not None for x in moving]


def push_forward(residuals: Operands, dxs: Operands, params: Mapping[str, Any]) -> list[Any]:
    """Return the tangents from the active arguments' tangents, by the transpose of the backward function.

    Raises NoRuleError if the backward function is not linear.
    """
    staged, reached = _transposed(**params)
    return evaluate(staged.program, [*staged.constants, *residuals, *pick(dxs, reached)])


def _reference(*values: Any, **params: Any) -> list[Any]:
    staged, reached = _transposed(**params)
    count = len(params["kept"])
    constants = [array._value for array in staged.constants]
    return run_reference(staged.program, [*constants, *values[:count], *pick(values[count:], reached)])


def _written(params: Mapping[str, Any]) -> tuple[Program, list[bool]]:
    """Return the tangents as a program, and the flags of the operands it takes."""
    staged, reached = _transposed(**params)
    return closed(staged), [*[True] * len(params["kept"]), *reached]


def _expand(*operands: Any, **params: Any) -> list[Any]:
    program, read = _written(params)
    return evaluate(program, pick(operands, read))


def _jvp(ctx: Any, xs: Sequence[Any], dxs: Sequence[Any], **params: Any) -> list[Any]:
    count, results = len(params["kept"]), params["results"]
    moved = [ctx.instantiate(dx) for dx in dxs[count:]]
    active = [not isinstance(dx, Zero) for dx in dxs[:count]]
    if not any(active):
        return bind_all(custom_linear_p, [*xs[:count], *moved], params)
    arguments = pick(params["types"], params["differentiated"])
    new = {
        "rule": _derivative(params, active, ctx.transform),
        "types": (*arguments, *arguments),
        "differentiated": (True,) * (2 * len(arguments)),
        "results": (*results, *results),
        "kept": (*params["kept"], *(dx.type for dx in nonzero(dxs[:count]))),
    }
    operands = [*xs[:count], *nonzero(dxs[:count]), *xs[count:], *moved]
    return bind_all(custom_linear_p, operands, new)[len(results) :]


def _derivative(params: Mapping[str, Any], active: Sequence[bool], jvp: Any) -> VjpRule:
    """Return the rule of (tangents, their tangents). Its residuals end with the tangents of the active residuals.

    Backwards it takes the cotangents of both. The second half goes to the user's function, the first half is its
    tangents.
    """
    rule, results, kept, differentiated = (params[name] for name in ("rule", "results", "kept", "differentiated"))

    def backward(residuals: Operands, cotangents: Sequence[Any], _: tuple[bool, ...]) -> list[Any]:
        dense = [zeros(c.type) if isinstance(c, Zero) else c for c in cotangents]
        tangents, primals = dense[: len(results)], dense[len(results) :]
        staged, reached = stage_backward(rule, kept, results, [True] * len(results), differentiated)
        flags = (False,) * len(staged.constants) + (*active, *[True] * len(results))
        derived = jvp(staged.program, flags, True).program
        operands = [*staged.constants, *residuals[: len(kept)], *primals, *residuals[len(kept) :], *tangents]
        found = evaluate(derived, operands)
        half = len(found) // 2
        ends = [spread(part, reached, params["types"]) for part in (found[half:], found[:half])]
        return [*pick(ends[0], differentiated), *pick(ends[1], differentiated)]

    return VjpRule(rule.name, rule.forward, backward, rule.transpose)


def _linearize(ctx: Any, xs: Sequence[Any], active: tuple[bool, ...], **params: Any) -> Linearized:
    count, results = len(params["kept"]), params["results"]
    if any(active[:count]):
        program, read = _written(params)
        flags = tuple(on for on, reads in zip(active, read, strict=True) if reads)
        split = ctx.transform(program, flags, True)
        operands = pick(xs, read)
        found = evaluate(split.forward, operands)
        moving = [reads for on, reads in zip(active, read, strict=True) if on]

        def apply_written(residuals: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
            return evaluate(split.linear, [*residuals, *pick(dxs, moving)])

        return Linearized(found[: len(results)], split.residuals(operands, found), apply_written)
    types = [x.type for x in xs[count:]]

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
        moved = [ctx.instantiate(dx) for dx in spread(dxs, active[count:], types)]
        return bind_all(custom_linear_p, [*residuals, *moved], params)

    return Linearized(bind_all(custom_linear_p, xs, params), list(xs[:count]), apply)


def _transpose(ctx: Any, cts: Sequence[Any], xs: Sequence[Any], **params: Any) -> list[Any]:
    """Run the user's backward function, or the transpose of its transpose if residuals are linear."""
    count = len(params["kept"])
    if any(map(is_linear, xs[:count])):
        program, read = _written(params)
        operands = pick(xs, read)
        derived = ctx.transform(program, tuple(map(is_linear, operands))).program
        known = [x for x in operands if not is_linear(x)]
        given = iter(evaluate(derived, [*known, *map(ctx.instantiate, cts)]))
        return [next(given) if reads and is_linear(x) else None for x, reads in zip(xs, read, strict=True)]
    differentiated = params["differentiated"]
    gradients = pick(params["rule"].backward(xs[:count], cts, differentiated), differentiated)
    return [None] * count + [
        g if not is_linear(x) or not isinstance(g, Zero) else None for g, x in zip(gradients, xs[count:], strict=True)
    ]


def _batch(ctx: Any, xs: Sequence[Any], axes: Axes, **params: Any) -> Any:
    """Batch all tangents, with a rule that runs the backward function in batches."""
    count, rule, size = len(params["kept"]), params["rule"], ctx.size
    batched = batched_of(axes[:count])
    residuals = move_to_front(ctx, xs[:count], axes[:count])
    tangents = [ctx.to_front(x, axis) for x, axis in zip(xs[count:], axes[count:], strict=True)]
    arguments = [with_shape(t, (size, *t.shape)) for t in params["types"]]

    def backward(values: Operands, cotangents: Sequence[Any], active: tuple[bool, ...]) -> list[Any]:
        results = batched_backward(rule, ctx, values, batched, cotangents, active)
        return [Zero(tangent_type(t)) if r is None else r for r, t in zip(results, arguments, strict=True)]

    new = {
        "rule": VjpRule(rule.name, rule.forward, backward, rule.transpose),
        "types": tuple(arguments),
        "differentiated": params["differentiated"],
        "results": tuple(with_shape(t, (size, *t.shape)) for t in params["results"]),
        "kept": tuple(r.type for r in residuals),
    }
    results = bind_all(custom_linear_p, [*residuals, *tangents], new)
    return results, [0] * len(results)


custom_linear_p = Primitive(
    name="custom_linear",
    infer=lambda *inputs, results, **params: results,
    reference=_reference, jvp=_jvp, linearize=_linearize, transpose=_transpose, batch=_batch,
    lower=Composite(_expand), multiple=True,
    laws={"all": "it stands for the transpose of the user's Python function"},
)  # fmt: skip
