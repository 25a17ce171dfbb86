"""Custom batching: `custom_vmap`, functions with a batching rule of the user's own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import update_wrapper
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.primitives.control.custom.custom_vmap import VmapRule, custom_vmap_p
from tracer.primitives.control.custom.rule_functions import closing_over, is_moved
from tracer.trace import trees
from tracer.trace.custom_rule_scope import enclosed
from tracer.trace.evaluate import evaluate
from tracer.trace.pickling import reduce_named
from tracer.trace.source import here
from tracer.trace.state import standing_in, state
from tracer.trace.trace import Operand, bind_all, stood_in
from tracer.trace.tracebacks import call_user
from tracer.transforms.custom.rule_results import checked_pair
from tracer.transforms.functions import (
    argument_names,
    as_output,
    call_rule,
    check_callable,
    flatten_arguments,
    name_of,
)


class custom_vmap:  # noqa: N801  # the name that users know
    """Function with a batching rule of your own, for `vmap`; jvp and vmap of jvp follow it, reverse mode does not.

    `f.def_vmap(rule)` with rule(axis_size, in_batched, *args) -> (outputs, out_batched): in_batched and out_batched
    are trees of bools like the arguments and the outputs; batch axes come first.

    >>> import tracer, tracer.numpy as tnp
    >>> @tracer.custom_batching.custom_vmap
    ... def f(x): return tnp.sin(x)
    >>> @f.def_vmap
    ... def rule(axis_size, in_batched, x): return 10.0 * tnp.sin(x), in_batched[0]
    >>> tracer.vmap(f)(tnp.asarray([0.0, tnp.pi / 2]))
    Array([ 0., 10.], f64)
    """

    __reduce_ex__ = reduce_named

    def __init__(self, fun: Callable[..., Any]) -> None:
        check_callable(fun, "custom_vmap")
        update_wrapper(self, fun)  # instances are called like the function
        self.fun = fun
        self.vmap_rule: Callable[..., Any] | None = None

    def def_vmap(self, vmap_rule: Callable[..., Any]) -> Callable[..., Any]:
        """Set the rule."""
        self.vmap_rule = vmap_rule
        return vmap_rule

    def __call__(self, *args: Any) -> Any:
        name, given_rule = name_of(self.fun), self.vmap_rule
        if given_rule is None:
            raise ArgumentError(
                message(f"custom_vmap {name}{here()} has no rule yet", help=f"define it with {name}.def_vmap(...)")
            )
        if state.innermost is None:
            return self.fun(*args)
        leaves, structure = flatten_arguments(args, f"custom_vmap {name}", lambda: argument_names(args))
        structures: list[trees.Structure] = []

        def flat(inputs: list[Any]) -> list[Any]:
            outputs, found = trees.flatten(call_user(self.fun, trees.unflatten(structure, inputs), {}))
            structures.append(found)
            return [as_output(y, f"custom_vmap {name}") for y in outputs]

        closing = closing_over(flat, [x.type for x in leaves], name, [given_rule])
        out_structure, count, caller = structures[-1], len(closing.closure), f"custom_vmap {name}"

        def rule(size: int, batched: Sequence[bool], xs: Sequence[Operand]) -> tuple[list[Any], list[bool]]:
            if not is_moved(caller, closing.closure, batched):
                ys = evaluate(closing.program, xs)
                return ys, [False] * len(ys)
            in_batched = list(trees.unflatten(structure, batched[count:]))
            arguments = [size, in_batched, *trees.unflatten(structure, xs[count:])]
            with standing_in(closing.stand_ins(xs)), enclosed(caller, None):
                ys, flags = _checked(name, call_rule(given_rule, arguments, f"the rule of {name}"), out_structure)
                return [stood_in(y) for y in ys], flags

        params = {"program": closing.program, "rule": VmapRule(name, rule)}
        return trees.unflatten(out_structure, bind_all(custom_vmap_p, [*closing.operands, *leaves], params))


def _checked(name: str, result: Any, structure: trees.Structure) -> tuple[list[Any], list[bool]]:
    ys, batched = checked_pair(
        result, f"custom_vmap {name}", "the rule must return (outputs, out_batched)",
        "out_batched is True for an output with a batch axis in front",
    )  # fmt: skip
    outputs, found = trees.flatten(ys)
    flags, flagged = trees.flatten(batched)
    if found != structure or flagged != structure:
        raise ArgumentError(
            message(
                f"custom_vmap {name}{here()}: the rule must return outputs and out_batched of the function's structure",
                f"expected {trees.structure_text(structure)}",
                f"got {trees.structure_text(found)} and {trees.structure_text(flagged)}",
            )
        )
    return [as_output(y, f"custom_vmap {name}") for y in outputs], [bool(flag) for flag in flags]
