"""Custom derivatives: `custom_jvp` and `custom_vjp`, functions with derivative rules of the user's own."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.ir.primitive import Primitive, Zero
from tracer.ir.types import is_differentiable, tangent_type
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.control.custom.custom_rules import custom_jvp_p, custom_vjp_p
from tracer.primitives.control.custom.rule_functions import JvpRule, VjpRule, closed_over, closing_over, enclosing
from tracer.primitives.elementwise.arithmetic import add
from tracer.trace import trees
from tracer.trace.array import Array, is_recorded
from tracer.trace.convert import as_array
from tracer.trace.custom_rule_scope import enclosed
from tracer.trace.integers import argument_numbers
from tracer.trace.pickling import reduce_named
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.trace.trace import Operand, bind_all, stage_process
from tracer.trace.tracebacks import call_user
from tracer.transforms.custom.rule_results import Residuals, checked_gradients, checked_pair, checked_tangents
from tracer.transforms.custom.symbolic_zeros import (
    CustomVJPPrimal,
    SymbolicZero,
    dense_zero,
    instantiated,
    symbolic_zero,
)
from tracer.transforms.functions import (
    argument_names,
    as_output,
    call_rule,
    check_callable,
    check_positions,
    flatten_arguments,
    name_of,
    parameter_names,
)
from tracer.transforms.transpose import transpose_program


class _Custom:
    """Base of functions with custom derivatives: the function, its fixed arguments, and the call at the right level."""

    _kind = "custom"
    __reduce_ex__ = reduce_named

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] | int = (),
        nondiff_argnames: Sequence[str] | str = (),
    ) -> None:  # fmt: skip
        check_callable(fun, self._kind)
        update_wrapper(self, fun)  # type: ignore[arg-type]  # instances are called like the function
        self.fun = fun
        self._parameters = parameter_names(fun)
        where = f"{self._kind} {name_of(fun)}"
        numbers = argument_numbers(where, "nondiff_argnums", nondiff_argnums)
        check_positions(numbers, fun, "nondiff_argnums", where)
        names = (nondiff_argnames,) if isinstance(nondiff_argnames, str) else tuple(nondiff_argnames)
        self.nondiff_argnums = (*numbers, *(self._position(name) for name in names))

    def _position(self, name: str) -> int:
        if name in self._parameters:
            return self._parameters.index(name)
        raise ArgumentError(
            message(
                f"{self._kind} {name_of(self.fun)}{here()}: nondiff_argnames names no positional parameter",
                f"got {name!r}, of {', '.join(self._parameters) or 'none'}",
            )
        )

    def _arguments(self, args: Sequence[Any], kwargs: dict[str, Any]) -> tuple[list[int], list[Any], list[Any]]:
        """Bind arguments, keywords and defaults. Return the positions of fixed arguments, these, and moving ones."""
        if kwargs or len(args) < len(self._parameters):
            args = self._by_position(args, kwargs)
        count = len(args)
        fixed_at = {n % count for n in self.nondiff_argnums if -count <= n < count}
        fixed = [a for i, a in enumerate(args) if i in fixed_at]
        moving = [a for i, a in enumerate(args) if i not in fixed_at]
        return sorted(fixed_at), fixed, moving

    def _by_position(self, args: Sequence[Any], kwargs: dict[str, Any]) -> Sequence[Any]:
        problem = f"{self._kind} {name_of(self.fun)}{here()}: the arguments do not fit the function"
        try:
            bound = inspect.signature(self.fun).bind(*args, **kwargs)
        except TypeError as error:
            raise ArgumentError(message(problem, str(error))) from None
        bound.apply_defaults()
        given = [name for name in kwargs if name in bound.kwargs or name not in self._parameters]
        if given:
            raise ArgumentError(
                message(problem, f"{given[0]!r} can be given by keyword only", help="rules take arguments by position")
            )
        return bound.args

    def _rules(self) -> list[Any]:
        """Return the user's functions that make the rule."""
        return []

    @staticmethod
    def _merge(fixed: Sequence[Any], fixed_at: Sequence[int], moving: Sequence[Any]) -> list[Any]:
        full = list(moving)
        for position, value in zip(fixed_at, fixed, strict=True):
            full.insert(position, value)
        return full


def _run(
    primitive: Primitive, flat: Callable[[list[Any]], list[Any]], rule: Any, operands: Sequence[Operand], name: str,
    *functions: Any,
) -> list[Any]:  # fmt: skip
    """Run the function directly if no trace differentiates or stages it; else as an equation with its rule.

    functions: the user's functions that make the rule. The arrays that they close over become operands of the equation.
    """
    caller = f"{primitive.name} {name}"
    levels = [x._trace for x in operands if isinstance(x, Array) and x._trace is not None and is_recorded(x)]
    top = max(levels, key=lambda t: t.level, default=None)
    if state.staging is not None and (top is None or state.staging.level > top.level):
        top = state.staging
    if top is None:
        with enclosed(caller, 0):
            return flat(list(operands))
    if top.process is not stage_process:
        rule = enclosing(rule, caller, top.level - 1)
        return bind_all(primitive, operands, {"program": None, "rule": rule})
    closing = closing_over(flat, [x.type for x in operands], name, functions)
    rule = closed_over(enclosing(rule, caller, None), closing)
    return bind_all(primitive, [*closing.operands, *operands], {"program": closing.program, "rule": rule})


class custom_jvp(_Custom):  # noqa: N801  # the name that users know
    """Function with a forward derivative of your own; reverse mode follows from it.

    fun: takes and returns trees of arrays; a tangent has the shape and dtype of its value.

    `f.defjvp(rule)` with rule(primals, tangents) -> (outputs, tangents), tuples in the order of the arguments; or
    `f.defjvps(rule0, rule1, ...)` with rule(tangent, output, *primals) for each argument, None for none.
    nondiff_argnums, nondiff_argnames: arguments that are not arrays; the rule takes them first. Raises ClosureError
    if the function or its rule closes over an array that is differentiated.

    >>> import tracer, tracer.numpy as tnp
    >>> @tracer.custom_jvp
    ... def f(x): return tnp.sin(x)
    >>> @f.defjvp
    ... def rule(primals, tangents): return f(primals[0]), 10.0 * tangents[0]
    >>> tracer.grad(f)(0.0)
    Array(10., f64*)
    """

    _kind = "custom_jvp"

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] | int = (),
        nondiff_argnames: Sequence[str] | str = (),
    ) -> None:  # fmt: skip
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def _rules(self) -> list[Any]:
        return [self.jvp]

    def defjvp(self, jvp: Callable[..., Any], symbolic_zeros: bool = False) -> Callable[..., Any]:
        """Set the rule. symbolic_zeros: zero tangents come as `SymbolicZero` instead of arrays of zeros."""
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps: Callable[..., Any] | None) -> None:
        """Set one rule for each argument: rule(tangent, output, *primals), summed; None for no derivative.

        Rules of arguments that are not differentiated are not called: their factors may be infinite.
        """

        def jvp(primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
            output = self(*primals)
            total = None
            for rule, tangent in zip(jvps, tangents, strict=True):
                if rule is None or all(isinstance(leaf, SymbolicZero) for leaf in trees.flatten(tangent)[0]):
                    continue
                part = rule(trees.tree_map(instantiated, tangent), output, *primals)
                total = part if total is None else trees.tree_map(_add, total, part)
            if total is None:
                total = trees.tree_map(lambda y: zeros(tangent_type(as_array(y).type)), output)
            return output, total

        self.jvp, self.symbolic_zeros = jvp, True

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = name_of(self.fun)
        jvp = self.jvp
        if jvp is None:
            raise ArgumentError(
                message(f"custom_jvp {name}{here()} has no rule yet", help=f"define it with {name}.defjvp(...)")
            )
        fixed_at, fixed, moving = self._arguments(args, kwargs)
        functions = (*self._rules(), *fixed)
        leaves, structure = flatten_arguments(tuple(moving), name, lambda: argument_names(moving))
        structures: dict[str, trees.Structure] = {}

        def flat(inputs: list[Any]) -> list[Any]:
            result = call_user(self.fun, self._merge(fixed, fixed_at, trees.unflatten(structure, inputs)), {})
            outputs, structures["out"] = trees.flatten(result)
            return [as_output(y, name) for y in outputs]

        def run_rule(xs: Sequence[Operand], dxs: Sequence[Any]) -> tuple[list[Any], list[Any]]:
            primals = trees.unflatten(structure, xs)
            given = [symbolic_zero(dx) if self.symbolic_zeros else dense_zero(dx) for dx in dxs]
            result = call_user(jvp, (*fixed, primals, trees.unflatten(structure, given)), {})
            if not isinstance(result, tuple | list) or len(result) != 2:
                raise ArgumentError(
                    message(
                        f"custom_jvp {name}{here()}: the rule returns a pair (outputs, tangents)",
                        f"got {trees.structure_text(trees.flatten(result)[1])}",
                        help="rule(primals, tangents): return f(*primals), the tangents of its outputs",
                    )
                )
            ys, dys = result
            flat_ys, structures["out"] = trees.flatten(ys)
            return checked_tangents(flat_ys, structures["out"], dys, name)

        rule = JvpRule(name, run_rule)
        outputs = _run(custom_jvp_p, flat, rule, leaves, name, *functions)
        return trees.unflatten(structures["out"], outputs)


class custom_vjp(_Custom):  # noqa: N801  # the name that users know
    """Function with a reverse derivative of your own.

    fun: takes and returns trees of arrays; a cotangent has the shape and dtype of its value.

    `f.defvjp(forward, backward)` with forward(*args) -> (outputs, residuals) and backward(residuals, cotangents) ->
    a tuple with the cotangent of each argument, None where there is none. nondiff_argnums, nondiff_argnames:
    arguments that are not arrays; `backward` takes them first. Raises ClosureError if one of the functions closes
    over an array that is differentiated.

    >>> import tracer, tracer.numpy as tnp
    >>> @tracer.custom_vjp
    ... def clipped(x): return x
    >>> clipped.defvjp(lambda x: (x, None), lambda _, g: (tnp.clip(g, -1, 1),))
    >>> tracer.grad(lambda x: 5.0 * clipped(x))(2.0)
    Array(1., f64*)
    """

    _kind = "custom_vjp"

    def __init__(
        self, fun: Callable[..., Any], nondiff_argnums: Sequence[int] | int = (),
        nondiff_argnames: Sequence[str] | str = (),
    ) -> None:  # fmt: skip
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd: Callable[..., Any] | None = None
        self.bwd: Callable[..., Any] | None = None
        self.symbolic_zeros = False

    def _rules(self) -> list[Any]:
        return [self.fwd, self.bwd]

    def defvjp(
        self, fwd: Callable[..., Any], bwd: Callable[..., Any], symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:  # fmt: skip
        """Set the rules.

        Scalars and NumPy arrays among the residuals reach backward as they are, arrays perhaps as traced ones.
        symbolic_zeros: forward takes every leaf as an object with `value` and `perturbed`, whether it is
        differentiated; backward takes cotangents that are zero by construction as `SymbolicZero`.
        `optimize_remat` is accepted for JAX's sake.
        """
        del optimize_remat
        self.fwd, self.bwd, self.symbolic_zeros = fwd, bwd, symbolic_zeros

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        name = name_of(self.fun)
        fwd, bwd = self.fwd, self.bwd
        if fwd is None or bwd is None:
            raise ArgumentError(
                message(f"custom_vjp {name}{here()} has no rule yet", help=f"define it with {name}.defvjp(...)")
            )
        fixed_at, fixed, moving = self._arguments(args, kwargs)
        functions = (*self._rules(), *fixed)
        leaves, structure = flatten_arguments(tuple(moving), name, lambda: argument_names(moving))
        types = [x.type for x in leaves]
        holder: dict[Any, Any] = {}  # residuals by the active arguments, which they may depend on

        def flat(inputs: list[Any]) -> list[Any]:
            result = call_user(self.fun, self._merge(fixed, fixed_at, trees.unflatten(structure, inputs)), {})
            outputs, holder["out"] = trees.flatten(result)
            return [as_output(y, name) for y in outputs]

        def forward(xs: Sequence[Operand], active: tuple[bool, ...]) -> tuple[list[Any], list[Any]]:
            given = [CustomVJPPrimal(x, on) for x, on in zip(xs, active, strict=True)] if self.symbolic_zeros else xs
            arguments = self._merge(fixed, fixed_at, trees.unflatten(structure, given))
            result = call_rule(fwd, arguments, f"the forward function of custom_vjp {name}")
            outs, kept = checked_pair(
                result, f"custom_vjp {name}", "the forward function must return (outputs, residuals)",
                "return (outputs, None) where backward needs nothing",
            )  # fmt: skip
            ys, holder["out"] = trees.flatten(outs)
            holder[active], residuals = Residuals.of(kept, name)
            outputs = [as_output(y, name) for y in ys]
            holder["types"] = [y.type for y in outputs]
            return outputs, residuals

        def backward(residuals: Sequence[Operand], cts: Sequence[Any], active: tuple[bool, ...]) -> list[Any]:
            arriving = iter(cts)
            every = [next(arriving) if is_differentiable(t) else Zero(tangent_type(t)) for t in holder["types"]]
            given = [symbolic_zero(c) if self.symbolic_zeros else dense_zero(c) for c in every]
            cotangents = trees.unflatten(holder["out"], given)
            arguments = [*fixed, holder[active].tree(residuals), cotangents]
            result = call_rule(bwd, arguments, f"the backward function of custom_vjp {name}")
            return checked_gradients(result, moving, structure, types, name)

        rule = VjpRule(name, forward, backward, transpose_program)
        outputs = _run(custom_vjp_p, flat, rule, leaves, name, *functions)
        return trees.unflatten(holder["out"], outputs)


def _add(x: Any, y: Any) -> Any:
    return add(x, y)
