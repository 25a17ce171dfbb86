"""Cases of control flow, stacks, custom rules and effects: small functions around the primitives."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

import numpy as np

from tests.laws.cases import ALL, WIDE, Case, program_case, typed
from tests.laws.families.dense import dense
from tests.laws.values import Between, Draw, Interval, additive, anything, constant, ordinary
from tracer.ir import dtypes
from tracer.ir.program import Program
from tracer.ir.types import Type, array_type, with_shape
from tracer.primitives.arrays.dynamic_slice import GatherDimensionNumbers, gather
from tracer.primitives.arrays.random import random_bits, random_split
from tracer.primitives.arrays.reductions.reductions import reduce_sum
from tracer.primitives.base.shapes import broadcast_in_dim, reshape
from tracer.primitives.catalogue import BY_NAME
from tracer.primitives.control.calls import call
from tracer.primitives.control.cond import cond_branches
from tracer.primitives.control.custom.custom_vmap import VmapRule
from tracer.primitives.control.custom.rule_functions import JvpRule, VjpRule
from tracer.primitives.control.effects import HostFunction, callback
from tracer.primitives.control.for_loop import for_program
from tracer.primitives.control.reverse.remat import Policy, checkpointed
from tracer.primitives.control.reverse.residual_stacks import add_at, add_stacks, empty, item, pop, push, put, spread
from tracer.primitives.control.safe_operands import stand_in_p
from tracer.primitives.control.scan import scan_program
from tracer.primitives.control.shared_words import Word, count_in
from tracer.primitives.control.while_loop import while_program
from tracer.primitives.elementwise.arithmetic import add, max, mul, sub
from tracer.primitives.elementwise.bits import or_
from tracer.primitives.elementwise.comparison import eq, lt, ne
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.primitives.elementwise.exponential import exp
from tracer.primitives.elementwise.stop_gradient import live, masked
from tracer.primitives.elementwise.trigonometric import cos, sin
from tracer.trace.stage import stage
from tracer.trace.trace import as_literal, bind_all
from tracer.transforms.checkpoint import everything_saveable, nothing_saveable, save_only_these_names
from tracer.transforms.transpose import transpose_program

Function = Callable[..., Sequence[Any]]
POINTS = Interval(0.3, 1.7)
COUNT = Between(0, 5)
STEP = array_type(dtypes.I64, ())


def program_of(function: Function, types: Sequence[Type]) -> Program:
    """A nested program, closed."""
    staged = stage(lambda inputs: list(function(*inputs)), list(types), name=function.__name__)
    assert not staged.constants
    return staged.program


def control_cases() -> Iterator[Case]:
    """All of them."""
    plain = (_calls, _lives, _stand_ins, _checkpoints, _branches, _effects, _progress, _customs)
    for family in (*plain, _loops, _counted, _scans, _nested, _stacks):
        yield from family()


def _smooth(short: str, *draws: Draw) -> Sequence[Draw] | None:
    return draws if short in WIDE else None


# call


def _calls() -> Iterator[Case]:
    for short, shape in (
        ("f64", (3, 4)),
        ("c128", (3,)),
        ("f32", (37,)),
        ("i16", (0, 2)),
        ("i64", (1,)),
        ("f64", ()),
        ("f64", (4099,)),
    ):
        for inline in (True, False):
            types = [typed(short, *shape), typed(short, *shape)]

            def calls_twice(x: Any, y: Any, inline: bool = inline, types: Any = types) -> Sequence[Any]:
                program = program_of(lambda a, b: [mul(a, add(b, b)), b, a], types)
                product, *others = call(program, x, y, inline=inline)
                return [*call(program, product, y, inline=inline), *others]

            yield program_case(BY_NAME["call"], types, calls_twice, additive, _smooth(short, POINTS, POINTS))

    def calls_on_nothing() -> Sequence[Any]:
        return call(program_of(lambda: [as_literal(2.5, dtypes.F64)], []))

    yield program_case(BY_NAME["call"], [], calls_on_nothing, [])


# live and masked


def _lives() -> Iterator[Case]:
    sizes = (("f64", (3,), (2,)), ("c128", (), (3,)), ("f32", (37,), ()), ("f64", (), ()), ("f32", (1,), (1,)),
             ("f64", (0,), (2,)), ("c128", (), ()), ("f64", (), (4099,)))  # fmt: skip
    for short, lanes, shape in sizes:
        types = [typed("bool", *lanes), typed(short, *lanes, *shape)]
        yield program_case(BY_NAME["live"], types, lambda mask, x: [live(mask, x)], anything,
                           _smooth(short, anything, POINTS))  # fmt: skip
        yield program_case(BY_NAME["masked"], types, lambda mask, x: [masked(mask, x)], anything,
                           _smooth(short, anything, POINTS))  # fmt: skip


# stand_in


def _stand_ins() -> Iterator[Case]:
    sizes = (("f64", (3,), (2,)), ("c128", (2,), ()), ("f32", (37,), (1,)), ("i32", (0,), (2,)), ("f64", (3,), (1031,)))
    for short, lanes, shape in sizes:
        types = [typed("bool", *lanes), typed(short, *lanes, *shape), typed(short, *shape), typed(short, *lanes)]

        def stood_in(mask: Any, x: Any, shared: Any, y: Any) -> Sequence[Any]:
            return bind_all(stand_in_p, [mask, x, shared, y], {"lanes": (1, 0, 1)})

        yield program_case(BY_NAME["stand_in"], types, stood_in, anything,
                           _smooth(short, anything, POINTS, POINTS, POINTS))  # fmt: skip


# checkpoint


def _checkpoints() -> Iterator[Case]:
    policies = (nothing_saveable, everything_saveable, save_only_these_names("middle"))
    for short, shape in (("f64", (3,)), ("c128", ()), ("f32", (37,)), ("i16", (0, 2)), ("i64", (1,)), ("f64", (4099,))):
        for policy in policies:
            types = [typed(short, *shape), typed(short, *shape)]

            def computes_again(x: Any, y: Any, policy: Policy = policy, types: Any = types) -> Sequence[Any]:
                def inner(a: Any, b: Any) -> Sequence[Any]:
                    """Linear in a."""
                    middle = bind_all(BY_NAME["checkpoint_name"], [mul(a, mul(b, b))], {"name": "middle"})[0]
                    return [mul(middle, b), add(a, a)]

                return checkpointed(program_of(inner, types), policy, True, x, y)

            yield program_case(BY_NAME["checkpoint"], types, computes_again, additive, _smooth(short, POINTS, POINTS))

        def is_named(x: Any) -> Sequence[Any]:
            return bind_all(BY_NAME["checkpoint_name"], [x], {"name": "x"})

        name_p = BY_NAME["checkpoint_name"]
        yield program_case(name_p, [typed(short, *shape)], is_named, anything, _smooth(short, POINTS))


# cond


def _row(x: Any, place: Any) -> Any:
    """x[place], checked."""
    index = reshape(place, (1, 1))
    return reshape(gather(x, index, GatherDimensionNumbers((), (0,), (0,)), (1,)), ())


def _branches() -> Iterator[Case]:
    cond_p = BY_NAME["cond"]

    def chooses(index: Any, x: Any, y: Any, n: Any) -> Sequence[Any]:
        types = [v.type for v in (x, y, n)]
        branches = (
            program_of(lambda a, b, k: [mul(a, b), k], types),
            program_of(lambda a, b, k: [add(a, mul(b, mul(a, a))), add(k, k)], types),
            program_of(lambda a, b, k: [b, as_literal(7, dtypes.I32)], types),
        )
        return cond_branches(index, branches, x, y, n)

    for short, shape in (
        ("f64", (3,)), ("f64", ()), ("c128", (2, 2)), ("f32", (35,)), ("i8", ()), ("u64", (0,)), ("i64", (1,)),
        ("f32", (4099,)),
    ):  # fmt: skip
        types = [typed("i32"), typed(short, *shape), typed(short, *shape), typed("i32")]
        draws = (Between(-1, 3), additive, additive, anything)
        smooth = _smooth(short, Between(-1, 3), POINTS, POINTS, anything)
        yield program_case(cond_p, types, chooses, draws, smooth)

    def is_linear(index: Any, x: Any, w: Any) -> Sequence[Any]:
        """In x, whichever branch it is."""
        types = [x.type, w.type]
        branches = (
            program_of(lambda a, b: [mul(a, b), a], types),
            program_of(lambda a, b: [add(a, a), broadcast_in_dim(reduce_sum(a, (0,)), a.shape, ())], types),
        )
        return cond_branches(index, branches, x, w)

    for short in WIDE:
        types, draws = [typed("i32"), typed(short, 3), typed(short, 3)], (Between(-1, 2), POINTS, POINTS)
        yield program_case(cond_p, types, is_linear, draws, draws)

    def faults_in_no_branch_that_runs(index: Any, x: Any) -> Sequence[Any]:
        """The index is out of bounds for every lane that takes another branch."""
        place = mul(convert_element_type(max(index, 0), dtypes.I64), 9)
        types = [x.type, place.type]
        takes = program_of(lambda a, i: [mul(_row(a, i), 2.0)], types)
        sums = program_of(lambda a, i: [reduce_sum(sin(a), (0,))], types)
        return cond_branches(index, (takes, sums), x, place)

    smooth = (Between(-1, 2), POINTS)
    yield program_case(cond_p, [typed("i32"), typed("f64", 4)], faults_in_no_branch_that_runs, smooth, smooth)

    def of_keys(index: Any, keys: Any) -> Sequence[Any]:
        first = program_of(lambda k: [k], [keys.type])
        second = program_of(lambda k: [reshape(random_split(k, (1,)), (2,))], [keys.type])
        return [random_bits(cond_branches(index, (first, second), keys)[0], 32, (3,))]

    yield program_case(cond_p, [typed("i32"), typed("key", 2)], of_keys, (Between(0, 1), anything))


# while_loop


def _loops() -> Iterator[Case]:
    while_p = BY_NAME["while_loop"]

    def doubles_below_a_limit(limit: Any, step: Any, n: Any, x: Any) -> Sequence[Any]:
        kinds = [step.type, n.type, x.type]
        cond = program_of(lambda top, k, a: [lt(reduce_sum(a, (0,)), top)], [limit.type, n.type, x.type])
        body = program_of(lambda s, k, a: [add(k, 1), add(mul(a, a), s)], kinds)
        return while_program(cond, body, [limit], [step], [n, x])

    for short, size in (("f64", 3), ("f32", 1), ("f64", 0), ("f16", 5), ("f32", 37), ("f64", 4099)):
        types = [typed(short), typed(short, size), typed("i64"), typed(short, size)]
        limit = constant(0.0) if size == 0 else Interval(3.0 * size, 13.0 * size)
        draws = (limit, Interval(0.5, 1.5), anything, POINTS)
        yield program_case(while_p, types, doubles_below_a_limit, draws, draws if short == "f64" and size else None)

    def counts_down(n: Any, x: Any, flag: Any) -> Sequence[Any]:
        """Scalars in registers, a bool among them; every lane stops on its own."""
        types = [n.type, x.type, flag.type]
        cond = program_of(lambda k, a, on: [lt(0, k)], types)
        body = program_of(lambda k, a, on: [sub(k, 1), mul(a, a), ne(on, eq(k, 2))], types)
        return while_program(cond, body, [], [], [n, x, flag])

    for short in ("f64", "c128", "i32", "u8", "bf16"):
        types = [typed("i32"), typed(short), typed("bool")]
        draws = (Between(-1, 4), ordinary if short != "bf16" else POINTS, anything)
        yield program_case(while_p, types, counts_down, draws, _smooth(short, Between(-1, 4), POINTS, anything))

    def faults_in_no_lane_that_runs(count: Any, n: Any, x: Any) -> Sequence[Any]:
        types = [count.type, n.type, x.type]
        cond = program_of(lambda k, i, a: [lt(i, k)], types)
        body = program_of(lambda k, i, a: [add(i, 1), add(a, broadcast_in_dim(_row(a, i), a.shape, ()))], types)
        return while_program(cond, program_of(lambda i, a: _tail(body, i, a), types[1:]), [count], [], [n, x])

    def _tail(body: Program, i: Any, a: Any) -> Sequence[Any]:
        return call(body, i, i, a)

    types = [typed("i64"), typed("i64"), typed("f64", 4)]
    draws = (Between(0, 4), constant(0), POINTS)
    yield program_case(while_p, types, faults_in_no_lane_that_runs, draws, draws)

    def runs_down(factor: Any, left: Any, x: Any, y: Any) -> Sequence[Any]:
        """Linear in two carries, beside a third that says how long, and is a factor."""
        types = [factor.type, left.type, x.type, y.type]
        cond = program_of(lambda k, a, b: [lt(0.0, k)], types[1:])
        body = program_of(lambda w, k, a, b: [sub(k, 1.0), add(mul(a, w), b), mul(b, k)], types)
        return while_program(cond, body, [], [factor], [left, x, y])

    draws = (POINTS, Interval(1.3, 1.7), POINTS, POINTS)
    yield program_case(while_p, [typed("f64")] * 4, runs_down, draws, draws)

    def swaps(n: Any, x: Any, y: Any) -> Sequence[Any]:
        """Carries that change places: neither may be overwritten before it is read."""
        types = [n.type, x.type, y.type]
        cond = program_of(lambda k, a, b: [lt(0, k)], types)
        body = program_of(lambda k, a, b: [sub(k, 1), b, a], types)
        return while_program(cond, body, [], [], [n, x, y])

    for short in ("f64", "key", "c64"):
        for shape in ((), (3,)):
            types = [typed("i64"), typed(short, *shape), typed(short, *shape)]
            yield program_case(
                while_p, types, swaps, (COUNT, anything, anything), _smooth(short, COUNT, POINTS, POINTS)
            )


# for_loop


def _spread_step(step: Any, x: Any) -> Any:
    return broadcast_in_dim(convert_element_type(step, x.dtype), x.shape, ())


def _counted() -> Iterator[Case]:
    for_p = BY_NAME["for_loop"]
    for reverse in (False, True):

        def sums_up(count: Any, weight: Any, n: Any, x: Any, reverse: bool = reverse) -> Sequence[Any]:
            types = [STEP, weight.type, n.type, x.type]
            body = program_of(
                lambda step, w, k, a: [add(k, step), add(mul(a, w), convert_element_type(step, a.dtype))], types
            )
            return for_program(body, [count, weight, n, x], consts=1, reverse=reverse)

        for short in ("f64", "c128", "f32", "i32", "u16"):
            types = [STEP, typed(short), typed("i64"), typed(short)]
            smooth = _smooth(short, COUNT, POINTS, anything, POINTS)
            yield program_case(for_p, types, sums_up, (COUNT, additive, anything, additive), smooth)

        def on_arrays(count: Any, w: Any, x: Any, y: Any, reverse: bool = reverse) -> Sequence[Any]:
            types = [STEP, w.type, x.type, y.type]
            body = program_of(lambda step, w, a, b: [mul(b, sin(w)), add(a, cos(mul(a, w)))], types)
            return for_program(body, [count, w, x, y], consts=1, reverse=reverse)

        draws = (COUNT, POINTS, POINTS, POINTS)
        for shape in ((2, 3), (37,), (1,), (2, 0), (4099,)):
            yield program_case(for_p, [STEP, *[typed("f64", *shape)] * 3], on_arrays, draws, draws)

        def is_linear(count: Any, w: Any, x: Any, y: Any, reverse: bool = reverse) -> Sequence[Any]:
            """In x and y."""
            types = [STEP, w.type, x.type, y.type]
            body = program_of(lambda step, w, a, b: [add(b, a), mul(mul(a, w), _spread_step(step, a))], types)
            return for_program(body, [count, w, x, y], consts=1, reverse=reverse)

        for short in WIDE:
            yield program_case(for_p, [STEP, *[typed(short, 2)] * 3], is_linear, draws, draws)


# scan


def _scans() -> Iterator[Case]:
    scan_p = BY_NAME["scan"]
    for length in (5, 0, 1):
        for reverse in (False, True):

            def recurs(w: Any, n: Any, x: Any, xs: Any, ks: Any, length: int = length, reverse: bool = reverse) -> Any:
                types = [w.type, n.type, x.type, typed_like(xs), typed_like(ks)]
                body = program_of(lambda w, n, a, x, k: [add(n, k), add(mul(a, w), x), mul(a, x), mul(a, a), n], types)
                return scan_program(body, [w], [n, x], [xs, ks], length=length, reverse=reverse)

            for short, shape in (("f64", (2,)), ("c128", ()), ("f32", (11,)), ("i16", (2, 3)), ("f64", (1031,))):
                types = [
                    typed(short, *shape), typed("i64"), typed(short, *shape), typed(short, length, *shape),
                    typed("i64", length),
                ]  # fmt: skip
                draws = (additive, anything, additive, additive, anything)
                smooth = _smooth(short, POINTS, anything, POINTS, POINTS, anything)
                yield program_case(scan_p, types, recurs, draws, smooth)

    def is_linear(w: Any, x: Any, xs: Any, ws: Any) -> Sequence[Any]:
        """In x and xs."""
        types = [w.type, x.type, typed_like(xs), typed_like(ws)]
        body = program_of(lambda w, a, x, v: [add(mul(a, w), x), add(mul(x, v), a)], types)
        return scan_program(body, [w], [x], [xs, ws], length=xs.shape[0])

    for short in WIDE:
        row, rows = typed(short, 2), typed(short, 3, 2)
        yield program_case(scan_p, [row, row, rows, rows], is_linear, POINTS, POINTS)

    def of_nothing_carried(xs: Any) -> Sequence[Any]:
        body = program_of(lambda x: [exp(x), as_literal(1, dtypes.I8)], [typed_like(xs)])
        return scan_program(body, [], [], [xs], length=4)

    def of_nothing_else(x: Any) -> Sequence[Any]:
        body = program_of(lambda a: [mul(a, a)], [x.type])
        return scan_program(body, [], [x], [], length=3)

    def of_keys(key: Any, xs: Any) -> Sequence[Any]:
        body = program_of(lambda k, x: [reshape(random_split(k, (1,)), ()), random_bits(k, 16, (2,)), x],
                          [key.type, typed_like(xs)])  # fmt: skip
        return scan_program(body, [], [key], [xs], length=3)[1:]

    yield program_case(scan_p, [typed("f64", 4, 3)], of_nothing_carried, POINTS, POINTS)
    yield program_case(scan_p, [typed("f64", 3)], of_nothing_else, POINTS, POINTS)
    yield program_case(scan_p, [typed("key"), typed("key", 3, 2)], of_keys, anything)


def typed_like(xs: Any) -> Type:
    """One step of an array."""

    return with_shape(xs.type, xs.shape[1:])


# loops in loops


def _nested() -> Iterator[Case]:
    def scans_while_it_loops(n: Any, xs: Any) -> Sequence[Any]:
        """A while_loop whose body scans, whose body chooses."""
        row = typed_like(xs)
        first, second = program_of(lambda a: [mul(a, 0.5)], [row]), program_of(lambda a: [sin(a)], [row])

        def step(total: Any, x: Any) -> Sequence[Any]:
            (y,) = cond_branches(convert_element_type(lt(reduce_sum(x, (0,)), 1.0), dtypes.I32), (first, second), x)
            return [add(total, y), y]

        def body(k: Any, xs: Any) -> Sequence[Any]:
            zero = broadcast_in_dim(as_literal(0.25, dtypes.F64), row.shape, ())
            total, ys = scan_program(program_of(step, [row, row]), [], [zero], [xs], length=xs.shape[0])
            return [sub(k, 1), mul(ys, broadcast_in_dim(total, ys.shape, (1,)))]

        types = [n.type, xs.type]
        return while_program(program_of(lambda k, a: [lt(0, k)], types), program_of(body, types), [], [], [n, xs])

    draws = (Between(0, 3), POINTS)
    types = [typed("i64"), typed("f64", 3, 2)]
    yield program_case(BY_NAME["while_loop"], types, scans_while_it_loops, draws, draws)

    def loops_in_a_branch(index: Any, n: Any, x: Any) -> Sequence[Any]:
        types = [n.type, x.type]
        cond = program_of(lambda k, a: [lt(0, k)], types)
        body = program_of(lambda k, a: [sub(k, 1), sin(mul(a, a))], types)
        loops = program_of(lambda k, a: while_program(cond, body, [], [], [k, a])[1:], types)
        plain = program_of(lambda k, a: [a], types)
        return cond_branches(index, (plain, loops), n, x)

    draws = (Between(0, 1), Between(0, 3), POINTS)
    yield program_case(BY_NAME["cond"], [typed("i32"), typed("i64"), typed("f64", 2)], loops_in_a_branch, draws, draws)


# stacks


def _stacks() -> Iterator[Case]:
    """Derivatives where stacks are used as loops do: what is pushed all moves, and every item is read, none beyond.

    Lanes share the steps, so places are no operands.
    """
    for short, shapes in (
        ("f64", ((), (1,), (37,), (2, 0), (1031,))), ("c128", ((), (2, 3))), ("f32", ((2, 3),)), ("bool", ((), (2, 3))),
        ("i64", ((), (2, 3))), ("bf16", ((2, 3),)),
    ):  # fmt: skip
        for shape in shapes:
            kind, smooth = typed(short, *shape), _smooth(short, POINTS)
            for name in ("stack_empty", "stack_push", "stack_pop"):
                yield program_case(BY_NAME[name], [kind], _pushes_and_pops, anything, smooth)
            if short == "bool":
                continue
            for at in (0, 1, 4):
                for name in ("stack_item", "stack_put", "stack_add_at"):
                    yield program_case(BY_NAME[name], [kind], partial(_reads_and_writes, at), additive)
                    if at < 2:
                        yield program_case(BY_NAME[name], [kind], partial(_stays_inside, at), additive, smooth)
                yield program_case(BY_NAME["stack_sum"], [kind], partial(_adds_stacks, at), additive)
            yield program_case(BY_NAME["stack_sum"], [kind], _adds_equal_stacks, additive, smooth)
            for axis in range(len(shape) + 1):
                yield program_case(BY_NAME["stack_spread"], [kind], partial(_spreads, axis), anything, smooth)


def _other(x: Any) -> Any:
    return x if dtypes.is_bool(x.dtype) else add(x, x)


def _place(n: int) -> Any:
    return as_literal(n, dtypes.I64)


def _pushes_and_pops(x: Any) -> Sequence[Any]:
    stack = push(push(push(empty(x.type), x), _other(x)), x)
    stack, top = pop(stack)
    stack, second = pop(stack)
    stack, third = pop(stack)
    return [top, second, third, *pop(stack)[1:]]


def _reads_and_writes(at: int, x: Any) -> Sequence[Any]:
    """Beyond the length there are zeros; writing there extends."""
    stack = push(push(empty(x.type), x), _other(x))
    wider = put(add_at(stack, _place(at), _other(x)), _place(at + 1), x)
    return [*(item(wider, _place(n)) for n in range(7)), item(stack, _place(at)), pop(wider)[1]]


def _stays_inside(at: int, x: Any) -> Sequence[Any]:
    stack = push(push(push(empty(x.type), x), _other(x)), x)
    changed = put(add_at(stack, _place(at), _other(x)), _place(1), x)
    return [item(changed, _place(n)) for n in range(3)]


def _adds_equal_stacks(x: Any) -> Sequence[Any]:
    one, other = push(push(empty(x.type), x), _other(x)), push(push(empty(x.type), _other(x)), x)
    total = add_stacks(add_stacks(one, other), one)
    return [item(total, _place(n)) for n in range(2)]


def _adds_stacks(at: int, x: Any) -> Sequence[Any]:
    one, other = push(empty(x.type), x), put(push(push(empty(x.type), _other(x)), x), _place(at), _other(x))
    total = add_stacks(add_stacks(one, other), one)
    return [item(total, _place(n)) for n in range(6)]


def _spreads(axis: int, x: Any) -> Sequence[Any]:
    stack = spread(push(push(empty(x.type), x), _other(x)), 3, axis)
    return [item(stack, _place(n)) for n in range(3)]


# custom rules


def _customs() -> Iterator[Case]:
    def tangent(xs: Any, dxs: Any) -> Any:

        x, y = xs
        dx, dy = map(dense, dxs)
        return _product(x, y), [add(mul(cos(x), mul(dx, y)), mul(sin(x), dy)), add(dx, dy)]

    def _product(x: Any, y: Any) -> list[Any]:
        return [mul(sin(x), y), add(x, y)]

    jvp_rule = JvpRule("product", tangent)

    def with_a_jvp(x: Any, y: Any) -> Sequence[Any]:
        program = program_of(_product, [x.type, y.type])
        return bind_all(BY_NAME["custom_jvp"], [x, y], {"program": program, "rule": jvp_rule})

    def forward(xs: Any, active: Any) -> Any:
        return _product(*xs), list(xs)

    def backward(residuals: Any, cts: Any, active: Any) -> Any:
        (x, y), (ct, other) = residuals, map(dense, cts)
        return [add(mul(ct, mul(cos(x), y)), other), add(mul(ct, sin(x)), other)]

    vjp_rule = VjpRule("product", forward, backward, transpose_program)

    def with_a_vjp(x: Any, y: Any) -> Sequence[Any]:
        program = program_of(_product, [x.type, y.type])
        return bind_all(BY_NAME["custom_vjp"], [x, y], {"program": program, "rule": vjp_rule})

    def twice_in_a_batch(size: int, batched: Any, xs: Any) -> Any:
        x, y = (v if on else broadcast_in_dim(v, (size, *v.type.shape), tuple(range(1, len(v.type.shape) + 1)))
                for v, on in zip(xs, batched, strict=True))  # fmt: skip
        return _scaled(x, y), [True, True]

    def _scaled(x: Any, y: Any) -> list[Any]:
        """Linear in y."""
        return [mul(sin(x), y), add(y, y)]

    def with_a_vmap(x: Any, y: Any) -> Sequence[Any]:
        program = program_of(_scaled, [x.type, y.type])
        rule = VmapRule("product", twice_in_a_batch)
        return bind_all(BY_NAME["custom_vmap"], [x, y], {"program": program, "rule": rule})

    for short, shapes in (("f64", ((), (1,), (37,), (0, 2), (4099,))), ("f32", ((), (3, 2))), ("c128", ((3, 2),))):
        for shape in shapes:
            types, smooth = [typed(short, *shape)] * 2, _smooth(short, POINTS, POINTS)
            yield program_case(BY_NAME["custom_jvp"], types, with_a_jvp, additive, smooth)
            yield program_case(BY_NAME["custom_vmap"], types, with_a_vmap, additive, smooth)
            if short != "c128":
                yield program_case(BY_NAME["custom_vjp"], types, with_a_vjp, additive, smooth)


# effects


def _effects() -> Iterator[Case]:
    def checks(flag: Any, guard: Any) -> Sequence[Any]:
        """What is guarded or holds does not fault."""
        bind_all(BY_NAME["check"], [or_(flag, eq(guard, False)), guard], {"text": "holds or is not asked"})
        return [flag]

    flags = [typed("bool"), typed("bool")]
    yield program_case(BY_NAME["check"], flags, checks, (constant(True), anything))

    def twice(x: Any, n: Any) -> Sequence[Any]:
        with np.errstate(invalid="ignore"):
            return [np.asarray(x) * 2 + n, np.asarray(n) + 1]

    host = HostFunction(twice, "twice")
    for short in ALL[1:]:
        for shape, method in (
            ((), "sequential"),
            ((2, 3), "sequential"),
            ((3,), "broadcast_all"),
            ((0,), "sequential"),
            ((1,), "sequential"),
            ((37,), "broadcast_all"),
            *([((4099,), "sequential")] if short == "f32" else []),
        ):
            kind = typed(short, *shape)

            def calls_back(x: Any, n: Any, kind: Type = kind, method: str = method) -> Sequence[Any]:
                return callback(host, [x, n], [kind, kind], ordered=False, vmap_method=method)

            yield program_case(BY_NAME["callback"], [kind, kind], calls_back, additive)


def _progress() -> Iterator[Case]:
    word = Word()

    def counts(x: Any) -> Sequence[Any]:
        def body(c: Any) -> Sequence[Any]:
            count_in(word)
            return [mul(c, 0.5)]

        return scan_program(program_of(body, [x.type]), [], [x], [], length=3)

    for shape in ((), (0,), (1,), (2, 3), (37,), (4099,)):
        yield program_case(BY_NAME["progress"], [typed("f32", *shape)], counts, additive)
    yield program_case(BY_NAME["progress"], [typed("f64", 3)], counts, additive, _smooth("f64", POINTS))
