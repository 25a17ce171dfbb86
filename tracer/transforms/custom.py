"""The user's custom rules: custom_jvp, custom_vjp, and what is built on them."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, update_wrapper
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir.primitive import Primitive, Zero
from tracer.ir.program import Var
from tracer.ir.types import Type, is_differentiable, same_up_to_weakness, tangent_type
from tracer.primitives.arithmetic import add
from tracer.primitives.conversion import convert_element_type
from tracer.primitives.custom import JvpRule, VjpRule, custom_jvp_p, custom_vjp_p
from tracer.primitives.nested import nonzero, spread
from tracer.primitives.zeros import zeros
from tracer.trace import trees
from tracer.trace.array import Array, concrete_value
from tracer.trace.convert import as_array
from tracer.trace.evaluate import evaluate
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

    @cached_property
    def _signature(self) -> inspect.Signature:
        return inspect.signature(self.fun)

    def _arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[int], list[Any], list[Any]]:
        """Positional arguments (keywords and defaults filled in): where the fixed ones stand, they, and the others."""
        text = f"{self._kind} {name_of(self.fun)}{here()}: the arguments do not fit the function"
        try:
            bound = self._signature.bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(message(text, str(error))) from None
        except ValueError:  # a function of C without a signature
            bound = None
        if bound is not None:
            bound.apply_defaults()
            args, kwargs = bound.args, bound.kwargs
        if kwargs:
            names = ", ".join(kwargs)
            raise ArgumentError(message(text, f"{names} can be given by name only", help="drop the `*` before it"))
        count = len(args)
        fixed_at = {n % count for n in self.nondiff_argnums if -count <= n < count}
        fixed = [a for i, a in enumerate(args) if i in fixed_at]
        moving = [a for i, a in enumerate(args) if i not in fixed_at]
        return sorted(fixed_at), fixed, moving

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
    types = [x.type for x in operands]
    staged = stage(flat, types, name=name)
    captured = [*staged.constants, *_captured(rule, types)]
    first, rest = staged.program.inputs[: len(staged.constants)], staged.program.inputs[len(staged.constants) :]
    unread = tuple(Var(x.type) for x in captured[len(first) :])
    program = replace(staged.program, inputs=(*first, *unread, *rest))
    return bind_all(
        primitive, [*captured, *operands], {"program": program, "rule": _closed(rule, captured) if captured else rule}
    )


# Rules close over arrays, programs do not: what a rule captures becomes operands in front of its function's own.


class _Open(threading.local):
    """The rules being traced for their captures on this thread: a rule may call its own function."""

    def __init__(self) -> None:
        self.names: set[Any] = set()


_open = _Open()


def _captured(rule: Any, types: Sequence[Type]) -> list[Array]:
    """The arrays that the user's rule closes over, found by tracing it once. A rule that raises will do so in use."""
    if rule.owner in _open.names:
        return []
    _open.names.add(rule.owner)
    try:
        if isinstance(rule, JvpRule):
            moving = [tangent_type(t) if is_differentiable(t) else None for t in types]
            return stage(_flat_jvp(rule, moving, []), [*types, *(t for t in moving if t)], name=rule.name).constants
        counts: list[int] = []
        forward = stage(_flat_forward(rule, counts), types, name=rule.name)
        outputs = forward.program.output_types
        given = [*outputs[counts[0] :], *(tangent_type(t) for t in outputs[: counts[0]] if is_differentiable(t))]
        zeros_ = [None if is_differentiable(t) else Zero(tangent_type(t)) for t in outputs[: counts[0]]]
        backward = stage(_flat_backward(rule, len(outputs) - counts[0], zeros_, []), given, name=rule.name)
        return [*forward.constants, *backward.constants]
    except Exception:  # noqa: BLE001  # whatever a user's rule raises; it may never be used
        return []
    finally:
        _open.names.discard(rule.owner)


def _flat_jvp(rule: JvpRule, moving: Sequence[Any], reached: list[bool]) -> Callable[[list[Any]], list[Any]]:
    """The rule on (primals..., tangents that are not None or zero...); `reached` says which tangents it returns."""

    def run(inputs: list[Any]) -> list[Any]:
        primals, given = inputs[: len(moving)], iter(inputs[len(moving) :])
        dxs = [
            Zero(tangent_type(x.type)) if t is None or isinstance(t, Zero) else next(given)
            for x, t in zip(primals, moving, strict=True)
        ]
        ys, dys = rule.rule(primals, dxs)
        reached[:] = [not isinstance(dy, Zero) for dy in dys]
        return [*ys, *nonzero(dys)]

    return run


def _flat_forward(rule: VjpRule, counts: list[int]) -> Callable[[list[Any]], list[Any]]:
    def run(inputs: list[Any]) -> list[Any]:
        ys, residuals = rule.forward(inputs)
        counts[:] = [len(ys)]
        return [*ys, *residuals]

    return run


def _flat_backward(
    rule: VjpRule, residuals: int, cotangents: Sequence[Any], reached: list[Any]
) -> Callable[[list[Any]], list[Any]]:
    """The backward function on (residuals..., cotangents that are not zero...)."""

    def run(inputs: list[Any]) -> list[Any]:
        given = iter(inputs[residuals:])
        gradients = rule.backward(
            inputs[:residuals], [c if isinstance(c, Zero) else next(given) for c in cotangents]
        )
        reached[:] = [g if isinstance(g, Zero) else None for g in gradients]
        return nonzero(gradients)

    return run


def _run_closed(
    function: Callable[[list[Any]], list[Any]], captured: Sequence[Array], given: Sequence[Operand],
    operands: Sequence[Operand], name: str,
) -> list[Any]:  # fmt: skip
    """Run a function with operands in place of the arrays that it captures."""
    staged = stage(function, [x.type for x in operands], name=name)
    places = {id(array): operand for array, operand in zip(captured, given, strict=True)}
    constants = [places[id(c)] if id(c) in places else _equal_one(c, captured, given, name) for c in staged.constants]
    return evaluate(staged.program, [*constants, *operands])


def _equal_one(array: Array, captured: Sequence[Array], given: Sequence[Operand], name: str) -> Operand:
    """The operand for a captured constant that was made anew, as from a NumPy array."""
    value = concrete_value(array)
    for other, operand in zip(captured, given, strict=True):
        known = concrete_value(other)
        if value is not None and known is not None and other.type == array.type and known.tobytes() == value.tobytes():
            return operand
    raise ArgumentError(
        message(
            f"the rule of {name}{here()} captures an array that it did not capture when it was traced",
            f"got {array.type}",
            help="make it an argument of the function",
        )
    )


def _closed(rule: Any, captured: Sequence[Array]) -> Any:
    """The rule on operands that start with what it captures."""
    count, name = len(captured), rule.name

    def enter(xs: Sequence[Operand]) -> list[Any]:
        return rule.enter(xs[count:])  # type: ignore[no-any-return]

    def jvp(xs: Sequence[Operand], dxs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        own, reached = xs[count:], list[bool]()
        flat = _flat_jvp(rule, dxs[count:], reached)
        results = _run_closed(flat, captured, xs[:count], [*own, *nonzero(dxs[count:])], name)
        ys = results[: len(reached)]
        return ys, spread(results[len(reached) :], reached, [y.type for y in ys])

    def forward(xs: Sequence[Operand]) -> tuple[list[Any], list[Any]]:
        counts: list[int] = []
        results = _run_closed(_flat_forward(rule, counts), captured, xs[:count], xs[count:], name)
        return results[: counts[0]], [*results[counts[0] :], *xs[:count]]

    def backward(residuals: Sequence[Operand], cts: Sequence[Any]) -> list[Any]:
        split = len(residuals) - count
        given, reached = residuals[split:], list[Any]()
        flat = _flat_backward(rule, split, cts, reached)
        results = iter(_run_closed(flat, captured, given, [*residuals[:split], *nonzero(cts)], name))
        zero = [Zero(tangent_type(x.type)) for x in given]
        return [*zero, *(next(results) if z is None else z for z in reached)]

    if isinstance(rule, JvpRule):
        return JvpRule(name, enter, jvp, count, rule.owner)
    return VjpRule(name, enter, forward, backward, count, rule.owner)


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
        fixed_at, fixed, moving = self._arguments(args, kwargs)
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

        rule = JvpRule(name, enter, run_rule, owner=self)
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
        fixed_at, fixed, moving = self._arguments(args, kwargs)
        leaves, structure = flatten_arguments(tuple(moving), name, lambda: argument_names(moving))
        types, parts = [x.type for x in leaves], [trees.flatten(argument)[1] for argument in moving]
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
            cotangents = trees.unflatten(holder["out"], [_dense(c) for c in cts])
            arguments = [*fixed, trees.unflatten(holder["residuals"], residuals), cotangents]
            result = call_rule(bwd, arguments, f"the backward function of custom_vjp {name}")
            return _checked_gradients(result, parts, types, name)

        rule = VjpRule(name, enter, forward, backward, owner=self)
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
    result: Any, parts: Sequence[trees.Structure], types: Sequence[Any], name: str
) -> list[Any]:
    """What `backward` returned, one entry a leaf of the arguments: None stands for zeros."""
    if not isinstance(result, tuple | list) or len(result) != len(parts):
        got = type(result).__name__ + (f" of {len(result)}" if isinstance(result, tuple | list) else "")
        raise ArgumentError(
            message(
                f"custom_vjp {name}{here()}: the backward function must return a tuple, one entry an argument",
                f"expected {len(parts)}, got {got}",
                help="a function of one argument returns (gradient,); None stands for no gradient",
            )
        )
    gradients: list[Any] = []
    remaining = list(types)
    for wanted_structure, part in zip(parts, result, strict=True):
        count = wanted_structure.num_leaves
        own, remaining = remaining[:count], remaining[count:]
        if part is None:
            gradients += [Zero(tangent_type(t)) for t in own]
            continue
        leaves = trees.flatten(part)[0]
        if len(leaves) != count:
            raise ArgumentError(
                message(
                    f"custom_vjp {name}{here()}: a gradient must have the structure of its argument",
                    f"expected {trees.structure_text(wanted_structure)}",
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
