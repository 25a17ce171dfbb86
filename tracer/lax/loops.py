"""Loops: `while_loop`, `fori_loop` and `scan`. The body is traced once; the loop is native code."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import wraps
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, CarryTypeError, SettingError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.program import Literal
from tracer.ir.types import Type, array_type, with_shape
from tracer.lax.bodies import Body, Carry, fixpoint, stage_body
from tracer.primitives.control.scan import scan_program
from tracer.primitives.control.while_loop import while_program
from tracer.primitives.elementwise.arithmetic import add, sub
from tracer.primitives.elementwise.comparison import lt
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.runtime.values.loop_progress import Bar, bar_of
from tracer.settings import Config, config
from tracer.trace import trees
from tracer.trace.array import Array, concrete_value
from tracer.trace.captured_values import looked_at
from tracer.trace.convert import as_array
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.trace.trace import as_literal
from tracer.transforms.functions import call_rule, check_callable, flatten_arguments


def while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], init_val: Any, *, memory: int | None = None,
    progress: str | None = None,
) -> Any:  # fmt: skip
    """Repeat `val = body_fun(val)` from `init_val` while `cond_fun(val)` holds, and return the last val.

    init_val: a tree of arrays. The number of iterations is known only at run time. The body returns the structure,
    shapes and dtypes that it takes; Python numbers in `init_val` take the dtypes that it returns. cond_fun returns one
    bool []. memory: bytes of residuals that the derivative in reverse may keep, `config.loop_memory` if None; where
    they do not fit, it keeps checkpoints and reruns parts of the loop. progress: a text beside a bar, which is shown
    while the loop runs, on terminals and in notebooks; derivatives show none of their own. Raises CarryTypeError where
    the types do not agree.

    >>> tracer.lax.while_loop(lambda x: x < 100.0, lambda x: 2.0 * x, 3.0)
    Array(192., f64*)
    """
    check_callable(cond_fun, "while_loop")
    check_callable(body_fun, "while_loop")
    if progress is None:
        return _while_loop(cond_fun, body_fun, memory, init_val)
    bar = bar_of(progress, "while_loop")
    bar.begin()
    result = _while_loop(cond_fun, _counting(body_fun, bar), memory, init_val)
    bar.end()
    return result


def _counting(function: Callable[..., Any], bar: Bar) -> Callable[..., Any]:
    """Return the body with a count of its iterations."""

    @wraps(function)
    def counted(*values: Any) -> Any:
        bar.count()
        return function(*values)

    return counted


def _while_loop(
    cond_fun: Callable[[Any], Any], body_fun: Callable[[Any], Any], memory: int | None, init_val: Any
) -> Any:
    carry = Carry("while_loop", body_fun, 0, init_val)
    arguments = trees.tuple_of(carry.structure)

    def stage_with(types: list[Type]) -> Body:
        body = stage_body(body_fun, arguments, types, "the body of while_loop", types)
        carry.check_structure(body.structure)
        return body

    body = fixpoint(carry, stage_with, 0)
    cond = stage_body(cond_fun, arguments, carry.types, "the condition of while_loop")
    _check_condition("while_loop", cond)
    limit = _loop_memory("while_loop", memory)
    results = while_program(cond.program, body.program, cond.constants, body.constants, carry.values, memory=limit)
    return trees.unflatten(carry.structure, results)


def _loop_memory(name: str, given: int | None) -> int:
    """Return the limit in bytes as the primitive takes it: 0 for none."""
    if given is None:
        return config.loop_memory or 0
    try:
        return Config.loop_memory.checked(given, f"{name}{here()}: memory") or 0
    except SettingError as error:
        raise ArgumentError(str(error)) from None


def _check_condition(name: str, cond: Body) -> None:
    types = cond.program.output_types
    if len(types) != 1 or types[0] != as_array(True).type:
        raise CarryTypeError(
            message(
                f"{name}{here()}: the condition must return one bool[]",
                f"got {', '.join(map(str, types)) or 'nothing'}",
                help="compare, or reduce with .any() or .all()",
            )
        )


def fori_loop(
    lower: Any, upper: Any, body_fun: Callable[[Any, Any], Any], init_val: Any, *, unroll: int | bool | None = None,
    memory: int | None = None, progress: str | None = None,
) -> Any:  # fmt: skip
    """Repeat `val = body_fun(i, val)` for i from lower to upper (excluded), and return the last val.

    With concrete bounds it is a `scan`; otherwise, or with a limit of memory, a `while_loop`. unroll: as in `scan`, and
    only there. memory, progress: as in `while_loop`.

    lower, upper: both integers, or both floats, or arrays [] of them; init_val: a tree of arrays of any shapes, which
    body_fun returns again; i: weak int64 for concrete bounds, from which floats lose their fractions; else of their
    dtype: i = 0.0, 1.0, ... below upper. All as in JAX. Raises CarryTypeError where body_fun returns other types,
    ArgumentError for other bounds.

    >>> tracer.lax.fori_loop(0, 5, lambda i, total: total + i, 0)
    Array(10, i64*)
    """
    check_callable(body_fun, "fori_loop")
    if progress is None:
        return _fori_loop(body_fun, lower, upper, unroll, memory, init_val)
    bar = bar_of(progress, "fori_loop")
    first, limit = _known_bound(lower), _known_bound(upper)
    bar.begin(sub(as_array(upper), as_array(lower)) if first is None or limit is None else max(0, limit - first))
    result = _fori_loop(_counting(body_fun, bar), lower, upper, unroll, memory, init_val)
    bar.end()
    return result


def _fori_loop(
    body_fun: Callable[[Any, Any], Any], lower: Any, upper: Any, unroll: int | bool | None, memory: int | None,
    init_val: Any,
) -> Any:  # fmt: skip
    first, limit = _known_bound(lower), _known_bound(upper)
    if unroll is not None and (first is None or limit is None):
        text = f"fori_loop{here()}: unroll={unroll!r} needs bounds that are known while tracing"
        raise ArgumentError(message(text, help="leave unroll out, or pass the bounds as Python integers"))
    carry = Carry("fori_loop", body_fun, 1, init_val)
    low, high = _bounds(as_array(lower, "fori_loop"), as_array(upper, "fori_loop"))
    if first is not None and limit is not None:
        # The index counts like a Python number, even for bounds of a fixed dtype
        ends: tuple[Array | Literal, ...] = (as_literal(first), as_literal(limit))
        index = as_literal(first).type
    else:
        ends, index = (low, high), array_type(low.dtype, (), low.weak_type)
    arguments = trees.tuple_of(*_BOUNDS, carry.structure)

    one = Literal(index.dtype.type(1), index)

    def step(i: Any, end: Any, val: Any) -> tuple[Any, Any, Any]:
        return add(i, one), end, call_rule(body_fun, (i, val), "the body of fori_loop")

    def stage_with(types: list[Type]) -> Body:
        every = [*(end.type for end in ends), *types]
        body = stage_body(step, arguments, every, "the body of fori_loop", every)
        carry.check_structure(body.structure.child(2))
        return body

    body = fixpoint(carry, stage_with, 2)
    values = [*ends, *carry.values]
    kept = _loop_memory("fori_loop", memory)
    if first is not None and limit is not None and (not kept or unroll is not None):
        length = max(0, limit - first)
        steps = _steps_per_iteration("fori_loop", False if unroll is None else unroll, length)
        results = scan_program(body.program, body.constants, values, [], length=length, unroll=steps)
    else:
        cond = stage_body(lambda i, end, _: lt(i, end), arguments, [x.type for x in values], "fori_loop")
        results = while_program(cond.program, body.program, cond.constants, body.constants, values, memory=kept)
    return trees.unflatten(carry.structure, results[2:])


_BOUNDS = [trees.flatten(0)[1]] * 2  # two leaves


def _bounds(low: Array, high: Array) -> tuple[Array, Array]:
    """Return both bounds in one dtype; the lower one, where the index starts, keeps its weak flag."""
    is_kind = next(
        (kind for kind in (dtypes.is_integer, dtypes.is_float) if kind(low.dtype) and kind(high.dtype)), None
    )
    if is_kind is None or low.ndim or high.ndim:
        raise ArgumentError(
            message(
                f"fori_loop{here()}: the bounds are two integers, or two floats, without axes",
                f"got {low.type} and {high.type}",
                help="cast them, int(n) or n.astype(int); while_loop takes other conditions",
            )
        )
    found = dtypes.promote((low.dtype, low.weak_type), (high.dtype, high.weak_type))
    assert found is not None  # numbers of one kind always join
    dtype, weak = found if is_kind(found[0]) else (dtypes.I64, False)
    stays = weak or (low.weak_type and low.dtype == dtype)
    return convert_element_type(low, dtype, weak=stays), convert_element_type(high, dtype, weak=weak)


def _known_bound(bound: Any) -> int | None:
    """Return a concrete bound as a Python integer, a float without its fraction; None for any other bound."""
    if isinstance(bound, Array):
        bound = concrete_value(bound) if state.staging is None else None
    if isinstance(bound, np.ndarray) and bound.ndim == 0:
        bound = looked_at(bound).item()
    if isinstance(bound, np.generic):
        bound = bound.item()
    if isinstance(bound, float):
        return int(bound) if math.isfinite(bound) else None  # a loop to infinity is a while_loop
    return bound if isinstance(bound, int) else None


def scan(
    f: Callable[[Any, Any], tuple[Any, Any]], init: Any, xs: Any = None, length: int | None = None,
    reverse: bool = False, unroll: int | bool = 1, _split_transpose: bool = False, *, progress: str | None = None,
) -> tuple[Any, Any]:  # fmt: skip
    """Carry a value along axis 0 of `xs`, `carry, y = f(carry, x)`, and return (last carry, stacked ys).

    init: a tree of arrays [*s]; xs, ys: trees of arrays [n, ...]; `xs=None` repeats `length` times. reverse: from the
    last slice to the first. unroll: steps per iteration of the compiled loop; 0 or True for all of them, without a
    loop. progress: as in `while_loop`.
    Raises CarryTypeError where f does not return the carry's types, ShapeError where the xs differ in length.

    >>> tracer.lax.scan(lambda c, x: (c + x, c * x), 0.0, tnp.arange(4.0))
    (Array(6., f64), Array([0., 0., 2., 9.], f64))
    """
    del _split_transpose
    check_callable(f, "scan")
    if progress is None:
        return _scan(f, length, reverse, unroll, init, xs)
    bar = bar_of(progress, "scan")
    bar.begin(scan_length(flatten_arguments(xs, "scan", lambda: trees.leaf_names(xs, "xs"))[0], xs, length))
    result = _scan(_counting(f, bar), length, reverse, unroll, init, xs)
    bar.end()
    return result


def _scan(
    f: Callable[[Any, Any], tuple[Any, Any]], length: int | None, reverse: bool, unroll: int | bool, init: Any, xs: Any
) -> tuple[Any, Any]:
    carry = Carry("scan", f, 0, init)
    slices, sliced = flatten_arguments(xs, "scan", lambda: trees.leaf_names(xs, "xs"))
    size = scan_length(slices, xs, length)
    slice_types = [with_shape(x.type, x.shape[1:]) for x in slices]
    arguments = trees.tuple_of(carry.structure, sliced)

    def stage_with(types: list[Type]) -> Body:
        body = stage_body(f, arguments, [*types, *slice_types], "the body of scan", types)
        _check_pair(body, carry)
        return body

    body = fixpoint(carry, stage_with, 0)
    results = scan_program(
        body.program, body.constants, carry.values, slices, length=size, reverse=reverse,
        unroll=_steps_per_iteration("scan", unroll, size),
    )  # fmt: skip
    count = len(carry.values)
    last, stacked = trees.unflatten(body.structure, [*results[:count], *results[count:]])
    return last, stacked


def _steps_per_iteration(name: str, unroll: Any, length: int) -> int:
    """Return the argument `unroll` as a number of steps."""
    if isinstance(unroll, bool | np.bool_):
        return max(1, length) if unroll else 1
    if isinstance(unroll, Array):
        unroll = integer(name, "unroll", unroll)
    if not isinstance(unroll, int | np.integer) or unroll < 0:
        text = f"{name}{here()}: unroll is a number of steps, or 0 or True for all"
        raise ArgumentError(message(text, f"got {unroll!r}", help="leave it out for one step an iteration"))
    return int(unroll) or max(1, length)


def _check_pair(body: Body, carry: Carry) -> None:
    structure = body.structure
    if structure.type is not tuple or structure.num_children != 2:
        raise CarryTypeError(
            message(
                f"scan{here()}: the body must return a pair (carry, y)",
                f"got {trees.structure_text(structure)}",
                help="return (carry, None) where there is nothing to stack",
            )
        )
    carry.check_structure(structure.child(0))


def scan_length(slices: list[Array], xs: Any, given: int | None, caller: str = "scan") -> int:
    """Return the common length of the xs and of `length`, if given. caller: the function's name, for errors."""
    names = trees.leaf_names(xs, "xs")
    if any(x.ndim == 0 for x in slices):
        name = next(name for name, x in zip(names, slices, strict=True) if x.ndim == 0)
        alike = "a function may read further values by name"
        remedy = f"length=n repeats without xs; {alike}" if caller == "scan" else f"give it an axis, x[None]; {alike}"
        raise ShapeError(message(f"{caller}{here()}: the xs are scanned along axis 0", f"{name} has none", help=remedy))
    sizes = {name: x.shape[0] for name, x in zip(names, slices, strict=True)}
    if given is not None:
        sizes["length"] = integer(caller, "length", given)
        if sizes["length"] < 0:
            raise ArgumentError(
                message(
                    f"{caller}{here()}: the length is 0 or more",
                    f"got {given}",
                    help="use max(0, n) where n may be negative",
                )
            )
    if not sizes:
        scans = caller == "scan"
        raise ArgumentError(
            message(
                f"{caller}{here()}: the number of iterations is unknown",
                "got neither xs nor length" if scans else "got no arrays",
                help="give length=n" if scans else "give arrays with an axis",
            )
        )
    if len(set(sizes.values())) > 1:
        shown = [f"{name} has length {n}" if name != "length" else f"length is {n}" for name, n in sizes.items()]
        raise ShapeError(
            message(f"{caller}{here()}: the lengths differ", *shown, help="slice or pad them along axis 0")
        )
    return next(iter(sizes.values()))
