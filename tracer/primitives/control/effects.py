"""Equations with effects: checks that fault, and callbacks into Python.

Callbacks run on the calling thread; ordered ones in program order. Their exceptions propagate unchanged.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tracer.errors import CheckError, DTypeError, InternalError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.primitive import FAULTS, IO, Effect, NoRule, Primitive, Structured
from tracer.ir.program import Literal
from tracer.ir.types import Type, array_type, storage_type, with_shape
from tracer.primitives.arrays.reductions.reductions import reduce_and, reduce_or
from tracer.primitives.base.rules import Value, operand_of, zero_jvp
from tracer.primitives.base.shapes import broadcast_in_dim
from tracer.primitives.control.scan import scan_program
from tracer.primitives.elementwise.bits import not_, or_
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.trace import Operand, as_literal, bind_all

# check


def _check_infer(condition: Type, guard: Type, *, text: str) -> tuple[Type, ...]:
    flag = array_type(dtypes.BOOL, ())
    if condition != flag or guard != flag:
        raise ShapeError(
            message(
                f"check{here()} takes a condition bool[]",
                f"got {condition}",
                help="reduce it, as with .all()",
            )
        )
    return ()


def _check_reference(condition: Any, guard: Any, *, text: str) -> tuple[()]:
    if guard and not condition:
        raise CheckError(text)
    return ()


def _check_batch(ctx: Any, xs: Sequence[Any], axes: Sequence[int | None], *, text: str) -> Any:
    """Check every live lane at once."""
    condition, guard = (ctx.to_front(x, axis) for x, axis in zip(xs, axes, strict=True))
    holds = or_(condition, not_(guard))
    return bind_all(check_p, [reduce_and(holds, (0,)), as_literal(True)], {"text": text}), []


check_p = Primitive(
    name="check", infer=_check_infer, reference=_check_reference,
    jvp=zero_jvp, transpose=NoRule("a check has no outputs"), batch=_check_batch,
    lower=Structured("check"), effects=FAULTS | IO, multiple=True, guard=1,
)  # fmt: skip


def check(condition: Value, text: str) -> None:
    """Raise CheckError(text, at the user's line) if the condition is false: eagerly, and from compiled code.

    condition: bool []; text: the error's text. Inside `cond` and `while_loop` under vmap, dead lanes are not checked.

    >>> check(tnp.asarray(True), "not shown")
    """
    where = message(f"check failed{here()}: {text}")
    bind_all(check_p, [operand_of("check", condition), as_literal(True)], {"text": where})


def check_by(condition: Value, fail: Callable[..., None], values: Sequence[Operand]) -> None:
    """Call a Python function that raises, on values of the running program, if the condition is false.

    condition: bool []. Inside `cond` and `while_loop` under vmap, dead lanes are not checked.
    """

    def host(*arrays: Any) -> tuple[()]:
        fail(*arrays)
        return ()

    operand = operand_of("check", condition)
    _check_infer(operand.type, array_type(dtypes.BOOL, ()), text="")
    params = {"host": HostFunction(host, "check"), "results": (), "ordered": True, "vmap_method": "sequential"}
    bind_all(callback_p, [not_(operand), *values], params)


# callbacks


_serials = itertools.count()


class HostFunction:
    """Python function of NumPy arrays that compiled programs call.

    called, results: names of the call, with its line, and of each result, for errors.
    """

    __slots__ = ("__weakref__", "_serial", "called", "function", "name", "results")

    def __init__(
        self, function: Callable[..., Sequence[Any]], name: str, called: str = "", results: Sequence[str] = ()
    ) -> None:
        self.function = function
        self.name = name
        self.called = called or f"callback {name}"
        self.results = results
        self._serial = next(_serials)

    def __tracer_digest__(self) -> str:
        """Tell functions of equal names apart."""
        return f"host#{self._serial}"

    def __repr__(self) -> str:
        return f"<function {self.name}>"

    def __call__(self, arrays: Sequence[Any], types: Sequence[Type]) -> list[Any]:
        """Return the results as NumPy arrays of the promised shapes, cast to the promised dtypes.

        Raises ShapeError or DTypeError if a result does not fit.
        """
        results = list(self.function(*arrays))
        if len(results) != len(types):
            raise ShapeError(f"{self.called}: returned {len(results)} arrays, {len(types)} were promised")
        names = self.results or ["a result"] * len(types)
        return [self._checked(*row) for row in zip(names, results, types, strict=True)]

    def _checked(self, name: str, result: Any, type: Type) -> Any:
        """Return one result as an array of the type. Raises ShapeError, or DTypeError if a cast would lose its kind."""
        expected, array = storage_type(type), np.asarray(result)
        known, alike = array.dtype in dtypes.SHORT_NAMES, array.shape == expected.shape
        if known and alike and dtypes.kind_order(array.dtype) <= dtypes.kind_order(expected.dtype):
            return np.asarray(array, expected.dtype)
        got = array_type(array.dtype, array.shape) if known else f"{array.dtype} of shape {array.shape}"
        raise (DTypeError if alike else ShapeError)(
            message(
                f"{self.called}: {name} has the wrong {'dtype' if alike else 'shape'}",
                f"expected {type}, got {got}",
                help="result_shape_dtypes must say what the function returns",
            )
        )


def _callback_infer(guard: Type, *types: Type, results: tuple[Type, ...], **params: Any) -> tuple[Type, ...]:
    if guard != array_type(dtypes.BOOL, ()):
        raise ShapeError(message(f"callback{here()} takes a guard bool[]", f"got {guard}"))
    return results


def _callback_reference(
    guard: Any, *arrays: Any, host: HostFunction, results: tuple[Type, ...], ordered: bool, vmap_method: str
) -> tuple[Any, ...]:
    if not guard:
        return tuple(np.zeros(storage.shape, storage.dtype) for storage in map(storage_type, results))
    return tuple(host([np.array(a) for a in arrays], results))


def _callback_batch(
    ctx: Any, xs: Sequence[Any], axes: Sequence[int | None], *, host: HostFunction, results: tuple[Type, ...],
    ordered: bool, vmap_method: str,
) -> Any:  # fmt: skip
    """Call once per live lane, in order, or once for the batch if the function takes batches."""
    params = {"host": host, "results": results, "ordered": ordered, "vmap_method": vmap_method}
    if vmap_method in ("expand_dims", "broadcast_all"):
        size = ctx.size if vmap_method == "broadcast_all" else 1
        guard = xs[0] if axes[0] is None else reduce_or(ctx.to_front(xs[0], axes[0]), (0,))
        moved = [
            ctx.to_front(x, axis) if axis is not None else broadcast_in_dim(x, (size, *x.type.shape), _after(x))
            for x, axis in zip(xs[1:], axes[1:], strict=True)
        ]
        params["results"] = tuple(with_shape(t, (ctx.size, *t.shape)) for t in results)
        outputs = bind_all(callback_p, [guard, *moved], params)
        return outputs, [0] * len(outputs)
    fixed = [x for x, axis in zip(xs, axes, strict=True) if axis is None and not isinstance(x, Literal)]
    mapped = [ctx.to_front(x, axis) for x, axis in zip(xs, axes, strict=True) if axis is not None]

    def body(inputs: list[Any]) -> list[Operand]:
        still, lanes = iter(inputs[: len(fixed)]), iter(inputs[len(fixed) :])
        full = [
            x if isinstance(x, Literal) else next(still) if axis is None else next(lanes)
            for x, axis in zip(xs, axes, strict=True)
        ]
        return list(bind_all(callback_p, full, params))

    types = [x.type for x in fixed] + [with_shape(x.type, x.type.shape[1:]) for x in mapped]
    program = stage(body, types, name=host.name).program
    outputs = scan_program(program, fixed, [], mapped, length=ctx.size)
    return outputs, [0] * len(outputs)


def _after(x: Operand) -> tuple[int, ...]:
    return tuple(range(1, len(x.type.shape) + 1))


def _callback_effects(params: Mapping[str, Any]) -> frozenset[Effect]:
    return FAULTS | IO if params["ordered"] else FAULTS  # an exception of the function is a fault


callback_p = Primitive(
    name="callback", infer=_callback_infer, reference=_callback_reference,
    jvp=NoRule("a callback has no derivative; wrap it in custom_jvp or custom_vjp"),
    transpose=NoRule("a callback is not linear"), batch=_callback_batch,
    lower=Structured("callback"), effects=_callback_effects, multiple=True, guard=0,
    laws={
        "jvp": "a function of the host has no known derivative",
        "text": "the function is a Python object, which prints as its name",
    },
)  # fmt: skip


def callback(
    host: HostFunction, operands: Sequence[Operand], results: Sequence[Type], *, ordered: bool, vmap_method: str
) -> list[Any]:
    """Call a Python function. ordered: it has effects, and is never dropped, repeated or moved past another.

    Inside `cond` and `while_loop` under vmap, it is not called for dead lanes.
    """
    if vmap_method not in ("sequential", "expand_dims", "broadcast_all"):
        raise InternalError(f"vmap_method {vmap_method}")
    params = {"host": host, "results": tuple(results), "ordered": ordered, "vmap_method": vmap_method}
    return bind_all(callback_p, [as_literal(True), *operands], params)


EFFECTS = (check_p, callback_p)
