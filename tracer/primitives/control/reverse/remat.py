"""`checkpoint`: a nested program whose derivative recomputes the values it did not save.

It runs as a call does. Linearised, it returns the values that its policy saves. Its linear part is a `checkpoint` of
(inputs, saved values, tangents) that recomputes the values it reads. So is that part's transpose. Chen, Xu, Zhang &
Guestrin 2016, "Training deep nets with sublinear memory cost".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from tracer.ir.digest import opaque
from tracer.ir.primitive import Eager, Effect, Joint, Linearized, Primitive, Structured
from tracer.ir.program import Program
from tracer.ir.types import StackType
from tracer.ir.visit import equations, live_equations
from tracer.primitives.base.nested_programs import (
    Axes,
    active_of,
    batched_of,
    effects_of,
    front_axes,
    move_to_front,
    nonzero,
    spread,
    transpose_nested,
)
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.shapes import optimization_barrier
from tracer.primitives.control.calls import call, call_p
from tracer.primitives.control.reverse.remat_partition import Divider, checkpoint_name_p
from tracer.trace.array import Array
from tracer.trace.evaluate import evaluate
from tracer.trace.memo import remembered
from tracer.trace.stage import stage
from tracer.trace.trace import Operand, bind_all


class Policy:
    """Choice of the values that a checkpoint saves: saves(primitive, *operand types, **params) -> bool.

    Policies are equal if these functions are. `a | b` saves values that either saves.
    """

    __slots__ = ("name", "saves")

    def __init__(self, name: str, saves: Callable[..., bool]) -> None:
        self.name = name
        self.saves = saves

    def __call__(self, primitive: Primitive, *types: Any, **params: Any) -> bool:
        return bool(self.saves(primitive, *types, **params))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and other.saves == self.saves

    def __hash__(self) -> int:
        return hash(self.saves)

    def __or__(self, other: Policy) -> Policy:
        parts = tuple(dict.fromkeys((*self._parts, *other._parts)))
        return parts[0] if len(parts) == 1 else Policy(" or ".join(part.name for part in parts), _Any(parts))

    @property
    def _parts(self) -> tuple[Policy, ...]:
        return self.saves.policies if isinstance(self.saves, _Any) else (self,)

    def __tracer_digest__(self) -> str:
        """Tell policies of equal names apart."""
        return f"{self.name} {opaque(self.saves)}"

    def __repr__(self) -> str:
        return self.name


@dataclass(frozen=True)
class _Any:
    """Union of several policies."""

    policies: tuple[Policy, ...]

    def __call__(self, primitive: Primitive, *types: Any, **params: Any) -> bool:
        return any(policy(primitive, *types, **params) for policy in self.policies)


def _jvp(
    ctx: Any, xs: Sequence[Any], dxs: Sequence[Any], *, program: Program, policy: Policy, prevent_cse: bool
) -> Any:
    derived = ctx.transform(program, active_of(dxs))
    results = checkpointed(derived.program, policy, prevent_cse, *xs, *nonzero(dxs))
    count = len(program.outputs)
    return results[:count], spread(results[count:], derived.active_outputs, program.output_types)


def _linearize(
    ctx: Any, xs: Sequence[Any], active: tuple[bool, ...], *, program: Program, policy: Policy, prevent_cse: bool
) -> Linearized:
    split = _split(program, policy, prevent_cse, ctx.transform, active)
    if ctx.nested and any(isinstance(t, StackType) for t in split.forward.output_types):
        assert call_p.linearize is not None
        repeated: Linearized = call_p.linearize(ctx, xs, active, program=program, inline=True)
        return repeated
    # stacks that nothing reads are dropped by compiling, so the program runs as one call
    leaves_stacks = any(isinstance(v.type, StackType) for e in split.forward.equations for v in e.outputs)
    results = call(split.forward, *xs) if ctx.nested and leaves_stacks else evaluate(split.forward, xs)
    count = len(program.outputs)

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
        dys = checkpointed(split.linear, policy, prevent_cse, *residuals, *dxs)
        return spread(dys, split.active_outputs, program.output_types)

    return Linearized(results[:count], [*(xs[i] for i in split.inputs), *results[count:]], apply)


def _transpose(
    ctx: Any, cts: Sequence[Any], xs: Sequence[Any], *, program: Program, policy: Policy, prevent_cse: bool
) -> list[Any]:
    def run(derived: Program, operands: Sequence[Any]) -> list[Any]:
        return checkpointed(derived, policy, prevent_cse, *operands)

    return transpose_nested(ctx, cts, xs, program, run)


def _batch(ctx: Any, xs: Sequence[Any], axes: Axes, *, program: Program, policy: Policy, prevent_cse: bool) -> Any:
    derived = ctx.transform(program, batched_of(axes), ctx.size, ctx.axis_name)
    outputs = checkpointed(derived.program, policy, prevent_cse, *move_to_front(ctx, xs, axes))
    return outputs, front_axes(derived.batched_outputs)


checkpoint_p = Primitive(
    name="checkpoint",
    infer=lambda *types, program, policy, prevent_cse: program.output_types,
    reference=lambda *values, program, policy, prevent_cse: run_reference(program, values),
    jvp=Joint(_jvp), linearize=_linearize, transpose=_transpose, batch=_batch,
    lower=Structured("call"), effects=effects_of("program"), multiple=True, eager=Eager.COMPILED,
    laws={"text": "the policy is a Python function, which prints as its name"},
)  # fmt: skip


def checkpointed(program: Program, policy: Policy, prevent_cse: bool, *operands: Operand) -> list[Array]:
    """Run a program whose derivative recomputes values that the policy does not save.

    prevent_cse: whether the recomputation must not be shared with the first computation.
    """
    return bind_all(checkpoint_p, operands, {"program": program, "policy": policy, "prevent_cse": prevent_cse})


# The split of a program into a part that is computed first, and a part that is computed again


class _Split(NamedTuple):
    """Checkpointed program split. forward: inputs -> (outputs..., saved...).

    linear: (inputs[i] for i in `inputs`, saved..., tangents...) -> tangents.
    """

    forward: Program
    linear: Program
    inputs: tuple[int, ...]
    active_outputs: tuple[bool, ...]


@remembered
def _split(program: Program, policy: Policy, prevent_cse: bool, linearize: Any, active: tuple[bool, ...]) -> _Split:
    """Linearise the program, save values by the policy, and recompute all other values in the linear part.

    Nested checkpoints save the policy's values too, since these are kept in any case.
    """
    split = linearize(_keeping(program, policy), active, nested=False)
    count, total = len(program.outputs), len(split.forward.outputs)
    found = split.residuals(split.forward.inputs, range(total))
    wanted = [a for a in found if isinstance(a, int)]
    parts = Divider(policy).divided(split.forward, [n in wanted for n in range(total)])
    forward = parts.first
    again = tuple(split.residuals(forward.inputs, forward.outputs))
    inputs = tuple(i for i, v in enumerate(forward.inputs) if v in parts.inputs or v in again)
    first = _live(replace(forward, outputs=(*forward.outputs[:count], *parts.saved)))
    known = (*(forward.inputs[i] for i in inputs), *parts.saved)
    repeated = Program(known, parts.again, again, f"{program.name}.again")

    def run(arrays: list[Array]) -> list[Operand]:
        values = arrays[: len(known)]
        if prevent_cse:
            values = [x if isinstance(x.type, StackType) else optimization_barrier([x])[0] for x in values]
        return evaluate(split.linear, [*evaluate(repeated, values), *arrays[len(known) :]])

    tangents = split.linear.input_types[len(again) :]
    linear = stage(run, [*repeated.input_types, *tangents], name=f"{program.name}.linear").program
    return _Split(first, linear, inputs, split.active_outputs)


def _keeping(program: Program, policy: Policy) -> Program:
    """Return the program with this policy joined to the policy of every nested checkpoint."""

    def told(value: Any) -> Any:
        if isinstance(value, Policy):
            return value | policy
        if isinstance(value, tuple) and any(isinstance(item, Program) for item in value):
            return tuple(map(told, value))
        return _keeping(value, policy) if isinstance(value, Program) else value

    if not any(equation.primitive is checkpoint_p for equation in equations(program)):
        return program
    changed = [replace(e, params={key: told(value) for key, value in e.params.items()}) for e in program.equations]
    return replace(program, equations=tuple(changed))


def _live(program: Program) -> Program:
    """Drop equations that nothing reads: outside jit they would run. Names stay, for policies of outer checkpoints."""
    stays = lambda equation: equation.primitive is checkpoint_name_p or Effect.IO in equation.effects  # noqa: E731
    return replace(program, equations=live_equations(program, stays))


CHECKPOINT = (checkpoint_p, checkpoint_name_p)
