"""`checkpoint`: a nested program whose derivative computes again what it did not save.

It runs as a call does. Linearised, it returns the values that its policy saves; its linear part is a `checkpoint` of
(inputs, saved values, tangents) that runs what is needed of the program once more, and so is the transpose of that,
when the cotangents are there. Chen, Xu, Zhang & Guestrin 2016, "Training deep nets with sublinear memory cost".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from tracer.ir.digest import opaque
from tracer.ir.primitive import Composite, Eager, Effect, Joint, Linearized, Primitive, Structured
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.ir.types import StackType
from tracer.ir.visit import live_equations, substitute, substitute_atoms
from tracer.primitives.calls import call_p, program_effects
from tracer.primitives.nested import Axes, active_of, batched_of, front_axes, move_to_front, nonzero, spread
from tracer.primitives.reference import run_reference
from tracer.primitives.rules import is_linear, pointwise_batch
from tracer.primitives.scan import scan_p
from tracer.primitives.shapes import optimization_barrier
from tracer.trace.array import Array
from tracer.trace.evaluate import Environment, evaluate, read
from tracer.trace.memo import remembered
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import Operand, bind, bind_all


class Policy:
    """Which values a checkpoint keeps: saves(primitive, *operand types, **params) -> bool. Equal by that function."""

    __slots__ = ("name", "saves")

    def __init__(self, name: str, saves: Callable[..., bool]) -> None:
        self.name = name
        self.saves = saves

    def __call__(self, primitive: Primitive, *types: Any, **params: Any) -> bool:
        return bool(self.saves(primitive, *types, **params))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Policy) and other.saves is self.saves

    def __hash__(self) -> int:
        return hash(self.saves)

    def __tracer_digest__(self) -> str:
        """Policies of one name are not one policy."""
        return f"{self.name} {opaque(self.saves)}"

    def __repr__(self) -> str:
        return self.name


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
    results = evaluate(split.forward, xs)
    count = len(program.outputs)

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> list[Any]:
        dys = checkpointed(split.linear, policy, prevent_cse, *residuals, *dxs)
        return spread(dys, split.active_outputs, program.output_types)

    return Linearized(results[:count], [*(xs[i] for i in split.inputs), *results[count:]], apply)


def _transpose(
    ctx: Any, cts: Sequence[Any], xs: Sequence[Any], *, program: Program, policy: Policy, prevent_cse: bool
) -> list[Any]:
    linear = tuple(map(is_linear, xs))
    derived = ctx.transform(program, linear, active_of(cts), False)
    known = [x for x in xs if not is_linear(x)]
    results = iter(checkpointed(derived.program, policy, prevent_cse, *known, *nonzero(cts)))
    reached = iter(derived.active_inputs)
    return [next(results) if on and next(reached) else None for on in linear]


def _batch(ctx: Any, xs: Sequence[Any], axes: Axes, *, program: Program, policy: Policy, prevent_cse: bool) -> Any:
    derived = ctx.transform(program, batched_of(axes), ctx.size, ctx.axis_name)
    outputs = checkpointed(derived.program, policy, prevent_cse, *move_to_front(ctx, xs, axes))
    return outputs, front_axes(derived.batched_outputs)


checkpoint_p = Primitive(
    name="checkpoint",
    infer=lambda *types, program, policy, prevent_cse: program.output_types,
    reference=lambda *values, program, policy, prevent_cse: run_reference(program, values),
    jvp=Joint(_jvp), linearize=_linearize, transpose=_transpose, batch=_batch,
    lower=Structured("call"), effects=program_effects, multiple=True, eager=Eager.COMPILED,
    laws={"text": "the policy is a Python function, which prints as its name"},
)  # fmt: skip


def checkpointed(program: Program, policy: Policy, prevent_cse: bool, *operands: Operand) -> list[Array]:
    """Run a program whose derivative computes again what the policy does not save.

    prevent_cse: whether that must not be shared with the first computation.
    """
    return bind_all(checkpoint_p, operands, {"program": program, "policy": policy, "prevent_cse": prevent_cse})


# checkpoint_name

checkpoint_name_p = Primitive(
    name="checkpoint_name", infer=lambda x, *, name: x, reference=lambda x, *, name: x.copy(),
    jvp=lambda ctx, xs, dxs, *, name: [dxs[0]], transpose=lambda ctx, cts, xs, *, name: [cts[0]],
    batch=pointwise_batch, lower=Composite(lambda x, *, name: x),
)  # fmt: skip


# The split of a program into what is computed first, and what is computed again


class _Split(NamedTuple):
    """forward: inputs -> (outputs..., saved...). linear: (inputs[i] for i..., saved..., tangents...) -> tangents."""

    forward: Program
    linear: Program
    inputs: tuple[int, ...]
    active_outputs: tuple[bool, ...]


@remembered
def _split(program: Program, policy: Policy, prevent_cse: bool, linearize: Any, active: tuple[bool, ...]) -> _Split:
    """Linearise the program, keep what the policy says, and put the rest into the linear part once more."""
    split = linearize(_marked(program, policy), active, nested=False)
    forward, marked = _without_marks(split.forward)
    count = len(program.outputs)
    residuals = tuple(split.residuals(forward.inputs, forward.outputs))
    again, kept = _needed(forward, residuals, marked)
    inputs = tuple(i for i, v in enumerate(forward.inputs) if v in kept)
    saved = tuple(v for e in forward.equations for v in e.outputs if v in kept)
    first = _live(Program(forward.inputs, forward.equations, (*forward.outputs[:count], *saved), program.name))
    known = tuple(forward.inputs[i] for i in inputs) + saved
    repeated = Program(known, tuple(again), residuals, f"{program.name}.again")

    def run(arrays: list[Array]) -> list[Operand]:
        values = arrays[: len(known)]
        if prevent_cse:
            values = [x if isinstance(x.type, StackType) else optimization_barrier([x])[0] for x in values]
        return evaluate(split.linear, [*evaluate(repeated, values), *arrays[len(known) :]])

    tangents = split.linear.input_types[len(residuals) :]
    linear = stage(run, [*repeated.input_types, *tangents], name=f"{program.name}.linear").program
    return _Split(first, linear, inputs, split.active_outputs)


def _live(program: Program) -> Program:
    """The program without equations that nothing reads: outside jit, they would run."""
    return replace(program, equations=live_equations(program, lambda equation: Effect.IO in equation.effects))


def _marked(program: Program, policy: Policy) -> Program:
    """The program with a nameless `checkpoint_name` behind every value that is saved, and its calls in line."""

    def run(inputs: list[Array]) -> list[Operand]:
        return _run_marked(program, policy, inputs)

    return stage(run, program.input_types, name=program.name).program


def _run_marked(program: Program, policy: Policy, operands: Sequence[Operand]) -> list[Operand]:
    environment: Environment = dict(zip(program.inputs, operands, strict=True))
    outer_source = state.source
    try:
        for equation in program.equations:
            state.source = equation.source
            xs = [read(environment, atom) for atom in equation.inputs]
            environment.update(zip(equation.outputs, _run_equation(equation, policy, xs), strict=True))
    finally:
        state.source = outer_source
    return [read(environment, atom) for atom in program.outputs]


def _run_equation(equation: Equation, policy: Policy, xs: Sequence[Operand]) -> Sequence[Operand]:
    primitive, params = equation.primitive, equation.params
    if primitive.lower == Structured("call") and primitive is not checkpoint_p:
        return _run_marked(params["program"], policy, xs)
    if isinstance(primitive.lower, Structured) and primitive.lower.kind in ("scan", "while", "for", "cond"):
        params = {name: _marked_parameter(value, policy) for name, value in params.items()}
    ys = bind_all(primitive, xs, params)
    if policy(primitive, *(x.type for x in xs), **equation.params):
        return [y if isinstance(y.type, StackType) else bind(checkpoint_name_p, y, name=None) for y in ys]
    return ys


def _marked_parameter(value: Any, policy: Policy) -> Any:
    if isinstance(value, Program):
        return _marked(value, policy)
    if isinstance(value, tuple) and value and all(isinstance(item, Program) for item in value):
        return tuple(_marked(item, policy) for item in value)
    return value


def _without_marks(program: Program) -> tuple[Program, set[Var]]:
    """The program with names read through, and the variables that were marked, or are stacked in a scan from such."""
    names: dict[Var, Atom] = {}
    marked: set[Var] = set()
    equations = []
    for equation in program.equations:
        equation = substitute(equation, names)
        if equation.primitive is checkpoint_name_p:
            (source,) = equation.inputs
            names[equation.outputs[0]] = source
            if equation.params["name"] is None and isinstance(source, Var):
                marked.add(source)
            continue
        equations.append(equation)
        if equation.primitive is scan_p:
            marked.update(_stacked(equation))
    outputs = substitute_atoms(program.outputs, names)
    return Program(program.inputs, tuple(equations), outputs, program.name), marked


def _stacked(equation: Equation) -> list[Var]:
    """The stacked results of a scan that its body marked."""
    body, marked = _without_marks(equation.params["body"])
    carries = equation.params["carries"]
    pairs = list(zip(equation.outputs, body.outputs, strict=True))[carries:]
    return [output for output, atom in pairs if atom in marked]


def _needed(program: Program, residuals: Sequence[Atom], marked: set[Var]) -> tuple[list[Equation], set[Var]]:
    """The equations to run again for the residuals, and the inputs and saved values that they start from.

    What input and output returned is always saved, for it happens once.
    """
    live = {atom for atom in residuals if isinstance(atom, Var)}
    again: list[Equation] = []
    for equation in reversed(program.equations):
        if Effect.IO in equation.effects:
            continue
        if any(v in live and v not in marked for v in equation.outputs):
            fresh = tuple(Var(v.type) if v in marked else v for v in equation.outputs)
            again.append(replace(equation, outputs=fresh))
            live.update(atom for atom in equation.inputs if isinstance(atom, Var))
    return again[::-1], live - {v for equation in again for v in equation.outputs}


CHECKPOINT = (checkpoint_p, checkpoint_name_p)
