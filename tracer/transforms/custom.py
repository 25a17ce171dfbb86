"""The user's custom rules: custom_jvp, custom_vjp, and what is built on them."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir.primitive import Primitive, Zero
from tracer.ir.types import is_differentiable, same_up_to_weakness, tangent_type
from tracer.primitives.arithmetic import add
from tracer.primitives.conversion import convert_element_type
from tracer.primitives.custom import JvpRule, VjpRule, custom_jvp_p, custom_vjp_p
from tracer.primitives.zeros import zeros
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import Operand, bind_all, stage_process
from tracer.transforms.functions import (
    argument_names,
    as_output,
    call_rule,
    check_callable,
    flatten_arguments,
    name_of,
)


class _Custom:
    """What both kinds share: the function, its fixed arguments, and the way into the right level."""

    _kind = "custom"

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] | int = ()) -> None:
        check_callable(fun, self._kind)
        update_wrapper(self, fun)  # type: ignore[arg-type]  # instances are called like the function
        self.fun = fun
        numbers = (nondiff_argnums,) if isinstance(nondiff_argnums, int) else tuple(nondiff_argnums)
        self.nondiff_argnums = numbers

    def _arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[Any], list[Any]]:
        """Positional arguments (keywords and defaults filled in), split into fixed and differentiated ones."""
        if kwargs:
            try:
                bound = inspect.signature(self.fun).bind(*args, **kwargs)
            except TypeError as error:
                text = f"{self._kind} {name_of(self.fun)}{here()}: the arguments do not fit the function"
                raise ArgumentError(message(text, str(error))) from None
            bound.apply_defaults()
            args = bound.args
        count = len(args)
        fixed_at = {n % count for n in self.nondiff_argnums if -count <= n < count}
        fixed = [a for i, a in enumerate(args) if i in fixed_at]
        moving = [a for i, a in enumerate(args) if i not in fixed_at]
        self._fixed_at = sorted(fixed_at)
        return fixed, moving

    @staticmethod
    def _merge(fixed: Sequence[Any], fixed_at: Sequence[int], moving: Sequence[Any]) -> list[Any]:
        full = list(moving)
        for position, value in zip(fixed_at, fixed, strict=True):
            full.insert(position, value)
        return full


def _run(
    primitive: Primitive, flat: Callable[[list[Any]], list[Any]], rule: Any, operands: Sequence[Operand], name: str
) -> list[Any]:
    """Run the function directly where nobody differentiates or stages; else as an equation with its rule."""
    levels = [x._trace for x in operands if isinstance(x, Array) and x._trace is not None]
    top = max(levels, key=lambda t: t.level, default=None)
    if state.staging is not None and (top is None or state.staging.level > top.level):
        top = state.staging
    if top is None:
        return flat(list(operands))
    if top.process is not stage_process:
        return bind_all(primitive, operands, {"program": None, "rule": rule})
    staged = stage(flat, [x.type for x in operands], name=name)
    program = staged.program
    constants = len(staged.constants)
    if constants:
        rule = _shifted(rule, constants)
    return bind_all(primitive, [*staged.constants, *operands], {"program": program, "rule": rule})


def _shifted(rule: Any, constants: int) -> Any:
    """The rule of a function whose program takes captured arrays first: they are not differentiated."""
    if isinstance(rule, JvpRule):
        return JvpRule(
            rule.name, lambda xs: rule.enter(xs[constants:]), lambda xs, dxs: rule.rule(xs[constants:], dxs[constants:])
        )

    def forward(xs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        ys, residuals = rule.forward(xs[constants:])
        return ys, [*residuals, *xs[:constants]]

    def backward(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        split = len(residuals) - constants
        gone = [Zero(tangent_type(x.type)) for x in residuals[split:]]
        return [*gone, *rule.backward(residuals[:split], cts)]

    return VjpRule(rule.name, lambda xs: rule.enter(xs[constants:]), forward, backward)


class custom_jvp(_Custom):  # noqa: N801  # the name that users know
    """A function with a forward derivative of your own; reverse mode follows from it.

    `f.defjvp(rule)` with rule(primals, tangents) -> (outputs, tangents), tuples in the order of the arguments; or
    `f.defjvps(rule0, rule1, ...)` with rule(tangent, output, *primals) for each argument, None for none.
    nondiff_argnums: arguments that are not arrays; the rule takes them first.

    >>> import tracer, tracer.numpy as tnp
    >>> @tracer.custom_jvp
    ... def f(x): return tnp.sin(x)
    >>> @f.defjvp
    ... def rule(primals, tangents): return f(primals[0]), 10.0 * tangents[0]
    >>> tracer.grad(f)(0.0)
    Array(10., f64)
    """

    _kind = "custom_jvp"

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] | int = ()) -> None:
        super().__init__(fun, nondiff_argnums)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule. symbolic_zeros: zero tangents come as `tracer.Zero` in place of arrays of zeros."""
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule for each argument: rule(tangent, output, *primals), summed; None for no derivative."""

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            output = self(*primals)
            parts = [rule(t, output, *primals) for rule, t in zip(jvps, tangents, strict=True) if rule is not None]
            total = parts[0] if parts else trees.tree_map(lambda y: zeros(tangent_type(as_array(y).type)), output)
            for part in parts[1:]:
                total = trees.tree_map(_add, total, part)
            return output, total

        self.jvp = jvp

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = name_of(self.fun)
        jvp = self.jvp
        if jvp is None:
            raise ArgumentError(
                message(f"custom_jvp {name}{here()} has no rule yet", help=f"define it with {name}.defjvp(...)")
            )
        fixed, moving = self._arguments(args, kwargs)
        fixed_at = self._fixed_at
        leaves, structure = flatten_arguments(tuple(moving), name, lambda: argument_names(moving))
        holder: list[Any] = []

        def flat(inputs: list[Any]) -> list[Any]:
            result = self.fun(*self._merge(fixed, fixed_at, trees.unflatten(structure, inputs)))
            outputs, holder[:] = (lambda pair: (pair[0], [pair[1]]))(trees.flatten(result))
            return [as_output(y, name) for y in outputs]

        def enter(xs: Sequence[Operand]) -> list[Any]:
            return _run(custom_jvp_p, flat, rule, xs, name)

        def run_rule(xs: Sequence[Operand], dxs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            primals = trees.unflatten(structure, xs)
            given = [dx if self.symbolic_zeros else _dense(dx) for dx in dxs]
            ys, dys = jvp(*fixed, primals, trees.unflatten(structure, given))
            flat_ys, holder[:] = (lambda pair: (pair[0], [pair[1]]))(trees.flatten(ys))
            return _checked_tangents(flat_ys, holder[0], dys, name)

        rule = JvpRule(name, enter, run_rule)
        outputs = _run(custom_jvp_p, flat, rule, leaves, name)
        return trees.unflatten(holder[0], outputs)


class custom_vjp(_Custom):  # noqa: N801  # the name that users know
    """A function with a reverse derivative of your own.

    `f.defvjp(forward, backward)` with forward(*args) -> (outputs, residuals) and backward(residuals, cotangents) ->
    a tuple with the cotangent of each argument, None where there is none. nondiff_argnums: arguments that are no
    arrays; `backward` takes them first.

    >>> import tracer, tracer.numpy as tnp
    >>> @tracer.custom_vjp
    ... def clipped(x): return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, g: (tnp.clip(g, -1, 1),))
    >>> tracer.grad(lambda x: 5.0 * clipped(x))(2.0)
    Array(1., f64)
    """

    _kind = "custom_vjp"

    def __init__(self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] | int = ()) -> None:
        super().__init__(fun, nondiff_argnums)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None

    def defvjp(self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False) -> None:
        """Set the rules."""
        self.fwd, self.bwd = fwd, bwd

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = name_of(self.fun)
        fwd, bwd = self.fwd, self.bwd
        if fwd is None or bwd is None:
            raise ArgumentError(
                message(f"custom_vjp {name}{here()} has no rule yet", help=f"define it with {name}.defvjp(...)")
            )
        fixed, moving = self._arguments(args, kwargs)
        fixed_at = self._fixed_at
        leaves, structure = flatten_arguments(tuple(moving), name, lambda: argument_names(moving))
        types = [x.type for x in leaves]
        holder: dict[str, Any] = {}

        def flat(inputs: list[Any]) -> list[Any]:
            result = self.fun(*self._merge(fixed, fixed_at, trees.unflatten(structure, inputs)))
            outputs, holder["out"] = trees.flatten(result)
            return [as_output(y, name) for y in outputs]

        def enter(xs: Sequence[Operand]) -> list[Any]:
            return _run(custom_vjp_p, flat, rule, xs, name)

        def forward(xs: Sequence[Operand]) -> tuple[list[Any], list[Any]]:
            arguments = self._merge(fixed, fixed_at, trees.unflatten(structure, xs))
            result = call_rule(fwd, arguments, f"the forward function of custom_vjp {name}")
            if not isinstance(result, tuple) or len(result) != 2:
                raise ArgumentError(
                    message(
                        f"custom_vjp {name}{here()}: the forward function must return (outputs, residuals)",
                        f"got {type(result).__name__}",
                        help="return (outputs, None) where backward needs nothing",
                    )
                )
            ys, holder["out"] = trees.flatten(result[0])
            residuals, holder["residuals"] = trees.flatten(result[1])
            return [as_output(y, name) for y in ys], [as_output(r, name) for r in residuals]

        def backward(residuals: Sequence[Operand], cts: Sequence[Any]) -> list[Any]:
            moved = iter(_dense(c) for c in cts)
            out_types = holder["out"]
            cotangents = trees.unflatten(out_types, list(moved))
            arguments = [*fixed, trees.unflatten(holder["residuals"], residuals), cotangents]
            result = call_rule(bwd, arguments, f"the backward function of custom_vjp {name}")
            return _checked_gradients(result, moving, structure, types, name)

        rule = VjpRule(name, enter, forward, backward)
        outputs = _run(custom_vjp_p, flat, rule, leaves, name)
        return trees.unflatten(holder["out"], outputs)


def _add(x: Any, y: Any) -> Any:
    return add(x, y)


def _dense(dx: Any) -> Any:
    if not isinstance(dx, Zero):
        return dx
    if not is_differentiable(dx.type):
        return np.zeros(dx.type.shape, np.dtype([("float0", np.void, 0)]))
    return zeros(dx.type)


def _checked_tangents(ys: Sequence[Any], structure: Any, dys: Any, name: str) -> tuple[list[Any], list[Any]]:
    """A rule's outputs and tangents as operands, of matching structures and types."""
    outputs = [as_output(y, name) for y in ys]
    tangents, got = trees.flatten(dys)
    if got != structure:
        raise ArgumentError(
            message(
                f"custom_jvp {name}{here()}: outputs and tangents must have the same structure",
                f"outputs {trees.structure_text(structure)}, tangents {trees.structure_text(got)}",
            )
        )
    checked = []
    for y, dy in zip(outputs, tangents, strict=True):
        wanted = tangent_type(y.type)
        if isinstance(dy, Zero) or not is_differentiable(y.type):
            checked.append(Zero(wanted))
            continue
        checked.append(_of_type(dy, wanted, f"custom_jvp {name}: a tangent"))
    return outputs, checked


def _checked_gradients(
    result: Any, moving: Sequence[Any], structure: Any, types: Sequence[Any], name: str
) -> list[Any]:
    """What `backward` returned, one entry a leaf of the arguments: None stands for zeros."""
    if not isinstance(result, tuple | list) or len(result) != len(moving):
        got = type(result).__name__ + (f" of {len(result)}" if isinstance(result, tuple | list) else "")
        raise ArgumentError(
            message(
                f"custom_vjp {name}{here()}: the backward function must return a tuple, one entry an argument",
                f"expected {len(moving)}, got {got}",
                help="a function of one argument returns (gradient,); None stands for no gradient",
            )
        )
    gradients: list[Any] = []
    remaining = list(types)
    for argument, part in zip(moving, result, strict=True):
        count = len(trees.flatten(argument)[0])
        own, remaining = remaining[:count], remaining[count:]
        if part is None:
            gradients += [Zero(tangent_type(t)) for t in own]
            continue
        leaves = trees.flatten(part)[0]
        if len(leaves) != count:
            raise ArgumentError(
                message(
                    f"custom_vjp {name}{here()}: a gradient must have the structure of its argument",
                    f"expected {trees.structure_text(trees.flatten(argument)[1])}",
                    f"got {trees.structure_text(trees.flatten(part)[1])}",
                    help="None stands for the gradient of a whole argument",
                )
            )
        for leaf, t in zip(leaves, own, strict=True):
            wanted = tangent_type(t)
            if not is_differentiable(t) or isinstance(leaf, Zero):
                gradients.append(Zero(wanted))
            else:
                gradients.append(_of_type(leaf, wanted, f"custom_vjp {name}: a gradient"))
    return gradients


def _of_type(value: Any, wanted: Any, what: str) -> Any:
    array = as_output(value, what)
    if array.type.shape == wanted.shape and not same_up_to_weakness(array.type, wanted) and array.type.weak:
        array = convert_element_type(array, wanted.dtype)
    if not same_up_to_weakness(array.type, wanted):
        raise ArgumentError(
            message(
                f"{what}{here()} has the wrong type",
                f"expected {wanted}, got {array.type}",
                help="it has the shape and dtype of the value that it belongs to",
            )
        )
    return array
