"""Control flow, custom rules and batches around random programs: how a writer of programs draws each.

The nested programs are closed: their operands are values of the program that is being written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.laws.families.dense import dense
from tracer.ir import dtypes
from tracer.ir.program import Program
from tracer.ir.types import ArrayType, array_type, is_differentiable
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.catalogue import BY_NAME
from tracer.primitives.control.calls import call
from tracer.primitives.control.cond import cond_branches
from tracer.primitives.control.custom.rule_functions import JvpRule, VjpRule
from tracer.primitives.control.for_loop import for_program
from tracer.primitives.control.scan import scan_program
from tracer.primitives.control.while_loop import while_program
from tracer.primitives.elementwise.arithmetic import sub
from tracer.primitives.elementwise.bits import and_
from tracer.primitives.elementwise.comparison import gt
from tracer.trace.evaluate import evaluate
from tracer.trace.stage import stage
from tracer.trace.trace import bind, bind_all
from tracer.transforms.batch import batch_forward
from tracer.transforms.linearize import linearize_program
from tracer.transforms.run import run_forward
from tracer.transforms.transpose import transpose_program

if TYPE_CHECKING:
    from tests.laws.programs import Writer

STEP = array_type(dtypes.I64, ())


def draw_call(writer: Writer) -> Sequence[Any]:
    """A call, to be inlined or not."""
    inputs, outputs = writer.types(), writer.types()
    return call(writer.body(inputs, outputs), *writer.given(inputs), inline=writer.coin())


def draw_cond(writer: Writer) -> Sequence[Any]:
    """A choice among one to three branches; the index may lie beyond them."""
    inputs, outputs = writer.types(), writer.types()
    branches = tuple(writer.body(inputs, outputs) for _ in range(writer.small(1, 4)))
    return cond_branches(writer.integer("i32", -1, 4), branches, *writer.given(inputs))


def draw_scan(writer: Writer) -> Sequence[Any]:
    """Up to three steps, forwards or backwards."""
    consts, carries, rows, outputs = (writer.types() for _ in range(4))
    body = writer.body([*consts, *carries, *rows], [*carries, *outputs])
    length = writer.small(0, 4)
    stacked = [array_type(t.dtype, (length, *t.shape)) for t in rows]
    fixed, entry, xs = writer.given(consts), writer.given(carries), writer.given(stacked)
    return scan_program(body, fixed, entry, xs, length=length, reverse=writer.coin())


def draw_for_loop(writer: Writer) -> Sequence[Any]:
    """Up to three rounds, as many as an operand says."""
    consts, carries = writer.types(), writer.types()
    body = writer.body([STEP, *consts, *carries], carries)
    operands = [writer.integer("i64", 0, 4), *writer.given(consts), *writer.given(carries)]
    return for_program(body, operands, consts=len(consts), reverse=writer.coin())


def draw_while_loop(writer: Writer) -> Sequence[Any]:
    """At most three rounds; where nothing is differentiated, a condition on the carries may end them before."""
    asked, consts, carries = writer.types(), writer.types(), writer.types()
    body = writer.body([*consts, STEP, *carries], carries)
    flag = [array_type(dtypes.BOOL, ())]
    condition = None if writer.smooth else writer.body([*asked, *carries], flag)

    def goes_on(operands: list[Any]) -> list[Any]:
        fixed, (left, *moving) = operands[: len(asked)], operands[len(asked) :]
        counted = gt(left, 0)
        return [counted if condition is None else and_(counted, *evaluate(condition, [*fixed, *moving]))]

    def round_of(operands: list[Any]) -> list[Any]:
        return [sub(operands[len(consts)], 1), *evaluate(body, operands)]

    cond = stage(goes_on, [*asked, STEP, *carries], name="cond").program
    step = stage(round_of, [*consts, STEP, *carries], name="body").program
    entry = [writer.integer("i64", 0, 4), *writer.given(carries)]
    return while_program(cond, step, writer.given(asked), writer.given(consts), entry)


def draw_custom_jvp(writer: Writer) -> Sequence[Any]:
    """A function whose rule is its own derivative, so that nothing in it may have a reverse rule only."""
    inputs, outputs = writer.types(), writer.types()
    body = writer.body(inputs, outputs, without=["custom_vjp"])

    def rule(xs: Sequence[Any], dxs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        return run_forward(partial(evaluate, body), xs, dxs, "rule")

    given = JvpRule("drawn", rule)
    return bind_all(BY_NAME["custom_jvp"], writer.given(inputs), {"program": body, "rule": given})


def draw_custom_vjp(writer: Writer) -> Sequence[Any]:
    """A function whose rule is its own gradient."""
    inputs, outputs = writer.types(), writer.types()
    body = writer.body(inputs, outputs)
    active = tuple(map(is_differentiable, inputs))

    def backward(xs: Sequence[Any], cotangents: Sequence[Any], _: tuple[bool, ...]) -> list[Any]:
        split = linearize_program(body, active)
        residuals = split.residuals(list(xs), evaluate(split.forward, list(xs)))
        reached = [dense(ct) for ct, on in zip(cotangents, split.active_outputs, strict=True) if on]
        linear = (False,) * len(residuals) + (True,) * sum(active)
        pulled = iter(evaluate(transpose_program(split.linear, linear).program, [*residuals, *reached]))
        return [next(pulled) if on else zeros(type) for on, type in zip(active, inputs, strict=True)]

    def forward(xs: Sequence[Any], active: Sequence[bool]) -> tuple[list[Any], list[Any]]:
        return evaluate(body, list(xs)), list(xs)

    given = VjpRule("drawn", forward, backward, transpose_program)
    return bind_all(BY_NAME["custom_vjp"], writer.given(inputs), {"program": body, "rule": given})


def draw_batch(writer: Writer) -> Sequence[Any]:
    """A program on one to three lanes along drawn axes, which its collectives reach across."""
    inputs, outputs = writer.types(), writer.types()
    name, size = f"lanes{writer.depth}", writer.small(1, 4)
    body: Program = writer.body(inputs, outputs, axis=(name, size))
    axes = [None if writer.rng.random() < 0.3 else writer.small(0, len(t.shape) + 1) for t in inputs]
    stacked = [
        t if axis is None else array_type(t.dtype, (*t.shape[:axis], size, *t.shape[axis:]))
        for t, axis in zip(inputs, axes, strict=True)
    ]
    return batch_forward(body, writer.given(stacked), axes, size, name)[0]


NESTED: dict[str, Callable[[Writer], Sequence[Any]]] = {
    "call": draw_call, "cond": draw_cond, "scan": draw_scan, "for_loop": draw_for_loop, "while_loop": draw_while_loop,
    "custom_jvp": draw_custom_jvp, "custom_vjp": draw_custom_vjp, "batch": draw_batch,
}  # fmt: skip


def collective(writer: Writer) -> tuple[str, Sequence[Any]]:
    """An operation across the lanes of one of the batch axes around, and its name."""
    axis_name, size = writer.one(writer.axes)
    which = writer.one(LINEAR if writer.smooth else (*LINEAR, "pmax", "pmin", "axis_index"))
    if which == "axis_index":
        return which, [bind(BY_NAME[which], axis_name=axis_name)]
    type: ArrayType = writer.one(writer.types())
    if which in ("pmax", "pmin") and dtypes.is_complex(type.dtype):
        which = "psum"
    if which in ("psum", "pmax", "pmin") and dtypes.is_bool(type.dtype):
        type = array_type(dtypes.I8, type.shape)
    if which == "all_to_all":
        type = array_type(type.dtype, (size, *type.shape))
    (x,) = writer.given([type])
    params: dict[str, Any] = {"axis_name": axis_name}
    match which:
        case "all_gather":
            params |= {"axis_size": size, "axis": writer.small(0, len(type.shape) + 1)}
        case "all_to_all":
            params |= {"axis_size": size, "split_axis": 0, "concat_axis": writer.small(0, len(type.shape))}
        case "ppermute":
            targets = writer.rng.permutation(size)[: writer.small(0, size + 1)]
            params["perm"] = tuple((source, int(target)) for source, target in enumerate(targets))
    return which, [bind(BY_NAME[which], x, **params)]


LINEAR = ("psum", "all_gather", "ppermute", "all_to_all")
