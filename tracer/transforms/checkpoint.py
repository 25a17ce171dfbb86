"""Rematerialisation, `checkpoint` or `remat`: less memory for more time in reverse mode, and its policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from tracer.errors import ArgumentError, message
from tracer.ir.primitive import Primitive
from tracer.primitives.control.reverse.remat import Policy, checkpointed
from tracer.primitives.control.reverse.remat_partition import checkpoint_name_p
from tracer.primitives.linalg.convolution import conv_p
from tracer.primitives.linalg.dot_general import dot_general_p
from tracer.trace import trees
from tracer.trace.convert import as_array
from tracer.trace.integers import argument_numbers
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import bind
from tracer.trace.tracebacks import call_user, wrapping
from tracer.transforms.functions import (
    argument_names,
    as_outputs,
    check_callable,
    check_positions,
    flatten_arguments,
    name_of,
    parameter_names,
)

Predicate = Callable[..., bool]


def checkpoint(
    fun: Callable[..., Any], *, prevent_cse: bool = True, policy: Predicate | None = None,
    static_argnums: int | Sequence[int] = (), static_argnames: str | Sequence[str] = (), concrete: bool = False,
) -> Callable[..., Any]:  # fmt: skip
    """Rematerialise a function: reverse mode keeps its arguments alone and recomputes other values when needed.

    fun: takes and returns trees of arrays of any shapes. policy: which values are kept nevertheless, one of
    `tracer.checkpoint_policies`, or any policy(primitive, *operand types, **params) -> bool. prevent_cse: keep the
    compiler from sharing the two computations; False is safe, and faster, for the body of a `scan`. static_argnums,
    static_argnames: which arguments are Python values. The function prints once, not again when recomputed. `concrete`
    is accepted for JAX's sake.

    >>> import tracer, tracer.numpy as tnp
    >>> tracer.grad(tracer.checkpoint(lambda x: tnp.sin(tnp.sin(x))))(0.0)
    Array(1., f64*)
    """
    del concrete
    check_callable(fun, "checkpoint")
    name = name_of(fun)
    kept = nothing_saveable if policy is None else _policy(policy)
    numbers = argument_numbers(f"checkpoint of {name}", "static_argnums", static_argnums)
    check_positions(numbers, fun, "static_argnums", f"checkpoint of {name}")
    names = {static_argnames} if isinstance(static_argnames, str) else set(static_argnames)
    numbers += tuple(i for i, parameter in enumerate(parameter_names(fun)) if parameter in names)

    @wrapping(fun)
    def run(*args: Any, **kwargs: Any) -> Any:
        if state.innermost is None:
            return call_user(fun, args, kwargs)
        values = {key: kwargs.pop(key) for key in list(kwargs) if key in names}
        static = {n % len(args) for n in numbers if -len(args) <= n < len(args)}
        places = [i for i in range(len(args)) if i not in static]
        moving = [args[i] for i in places]
        leaves, structure = flatten_arguments(
            (moving, kwargs), f"checkpoint of {name}", lambda: argument_names(moving, kwargs, of=fun, positions=places)
        )
        structures: list[trees.Structure] = []

        def flat(inputs: list[Any]) -> list[Any]:
            given, keywords = trees.unflatten(structure, inputs)
            positional = iter(given)
            full = [a if i in static else next(positional) for i, a in enumerate(args)]
            outputs, found = as_outputs(call_user(fun, full, {**keywords, **values}), f"checkpoint of {name}")
            structures.append(found)
            return outputs

        staged = stage(flat, [x.type for x in leaves], name=name)
        outputs = checkpointed(staged.program, kept, prevent_cse, *staged.constants, *leaves)
        return trees.unflatten(structures[-1], outputs)

    return run


remat = checkpoint


def checkpoint_name(x: Any, name: str) -> Any:
    """Return the tree with its values named, for policies such as `save_only_these_names`.

    x: a tree of arrays [*s]. Raises ArgumentError if the name is not a string.

    >>> import tracer, tracer.numpy as tnp
    >>> f = lambda x: tnp.sin(tracer.ad_checkpoint.checkpoint_name(tnp.exp(x), "e"))
    >>> tracer.grad(tracer.checkpoint(f, policy=tracer.checkpoint_policies.save_only_these_names("e")))(0.0).round(4)
    Array(0.5403, f64*)
    """
    if not isinstance(name, str):
        raise ArgumentError(message(f"checkpoint_name{here()}: a name is a string", f"got {type(name).__name__}"))
    return trees.tree_map(lambda leaf: bind(checkpoint_name_p, as_array(leaf, "checkpoint_name"), name=name), x)


# Policies


def _policy(predicate: Predicate) -> Policy:
    check_callable(predicate, "the policy of checkpoint")
    return predicate if isinstance(predicate, Policy) else Policy(name_of(predicate), predicate)


def _is_dot(primitive: Primitive, *_: Any, **params: Any) -> bool:
    return primitive is dot_general_p or primitive is conv_p


def _is_dot_of_no_batch(primitive: Primitive, *_: Any, **params: Any) -> bool:
    return primitive is dot_general_p and not params["dimension_numbers"][1][0]


everything_saveable = Policy("everything_saveable", lambda *_, **params: True)
nothing_saveable = Policy("nothing_saveable", lambda *_, **params: False)
dots_saveable = checkpoint_dots = Policy("dots_saveable", _is_dot)
dots_with_no_batch_dims_saveable = checkpoint_dots_with_no_batch_dims = Policy(
    "dots_with_no_batch_dims_saveable", _is_dot_of_no_batch
)


@lru_cache
def save_only_these_names(*names_which_can_be_saved: str) -> Policy:
    """Keep the values that `checkpoint_name` gave one of these names, and no other values."""
    names = frozenset(names_which_can_be_saved)

    def saves(primitive: Primitive, *_: Any, **params: Any) -> bool:
        return primitive is checkpoint_name_p and params["name"] in names

    return Policy(f"save_only_these_names{names_which_can_be_saved}", saves)


@lru_cache
def save_any_names_but_these(*names_not_to_save: str) -> Policy:
    """Keep the values that `checkpoint_name` gave any other name, and no values without a name."""
    names = frozenset(names_not_to_save)

    def saves(primitive: Primitive, *_: Any, **params: Any) -> bool:
        return primitive is checkpoint_name_p and params["name"] not in names

    return Policy(f"save_any_names_but_these{names_not_to_save}", saves)


@lru_cache
def save_anything_except_these_names(*names_not_to_save: str) -> Policy:
    """Keep everything but the values that `checkpoint_name` gave one of these names."""
    names = frozenset(names_not_to_save)

    def saves(primitive: Primitive, *_: Any, **params: Any) -> bool:
        return primitive is not checkpoint_name_p or params["name"] not in names

    return Policy(f"save_anything_except_these_names{names_not_to_save}", saves)


@lru_cache
def save_from_both_policies(policy_1: Predicate, policy_2: Predicate) -> Policy:
    """Keep values that either policy keeps."""
    return _policy(policy_1) | _policy(policy_2)


POLICIES = (
    "checkpoint_dots", "checkpoint_dots_with_no_batch_dims", "dots_saveable", "dots_with_no_batch_dims_saveable",
    "everything_saveable", "nothing_saveable", "save_any_names_but_these", "save_anything_except_these_names",
    "save_from_both_policies", "save_only_these_names",
)  # fmt: skip
"""The names of `tracer.checkpoint_policies`."""
