"""Define-by-run: derivatives of Python functions as they run.

Outside jit every array has a value, so Python's own control flow works, and derivatives follow the path that was taken.
Operations on the differentiated arrays run at the enclosing level at once. In reverse mode each leaves an `Entry`
on a tape: its residuals, and how its tangents depend on them. In forward mode tangents move along.
Under jit the enclosing level is the staging trace, so the same code writes the derivative into the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from tracer.ir.primitive import Linearized, NoRule, Primitive, Zero
from tracer.ir.program import Literal, Program, Source, Var
from tracer.ir.types import Type, is_differentiable, tangent_type
from tracer.primitives.rules import zero_jvp
from tracer.trace.array import PROTECTED, Array, fixed, renewed, traced
from tracer.trace.state import state
from tracer.trace.trace import Operand, Trace, eager, open_trace, stage_process
from tracer.transforms.context import Context, Tangent
from tracer.transforms.linearize import linearize_equation, push_equation
from tracer.transforms.residuals import operand_key, params_key, path_key, phantom, what_is_read
from tracer.transforms.stepping import run_by_steps, runs_by_steps

Function = Callable[[list[Array]], Sequence[Operand]]


class Entry(NamedTuple):
    """One operation on the tape."""

    linearized: Linearized
    inputs: tuple[Var, ...]  # the active ones
    outputs: tuple[Var | None, ...]  # None for outputs without tangents
    source: Source | None
    key: Any  # primitive, parameters, operands and which are active: what `linearized.apply` follows from


@dataclass(slots=True)
class Tape:
    """A function run at a point: its outputs, and its derivative there."""

    inputs: list[Var]
    entries: list[Entry]
    outputs: list[Operand] = field(default_factory=list)  # at the enclosing level
    output_vars: list[Var | None] = field(default_factory=list)


def _lower(trace: Trace, operand: Operand) -> Operand:
    """The operand at the enclosing level, as it is now: the tape keeps it, and `x[i] = v` may rebind its handle."""
    if not isinstance(operand, Array):
        return operand
    if operand._trace is trace:
        value = operand._value
        assert isinstance(value, Array)
        return value
    now = state.stand_ins.get(id(operand), operand)
    return fixed(now) if isinstance(now, Array) else now


class _Recipe(NamedTuple):
    """What recording an operation comes to, for operands of its types outside every other trace."""

    run: Callable[..., Sequence[Array]]
    apply: Callable[..., Any]
    reads: tuple[bool, ...]  # which of operands and outputs the derivative keeps
    key: Any  # the entry's


_recipes: dict[Any, _Recipe] = {}
_MOST_RECIPES = 16384


def _record(
    trace: Trace, primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any], source: Source | None
) -> list[Array]:
    xs = [_lower(trace, x) for x in operands]
    active = [isinstance(x, Array) and x._trace is trace for x in operands]
    kind = _kind(primitive, xs, active, params)
    recipe = _recipes.get(kind) if kind is not None else None
    if recipe is not None:
        ys: Sequence[Any] = recipe.run(*xs)
        kept = Linearized((), _residuals(recipe.reads, (*xs, *ys)), recipe.apply)
        key = recipe.key
    elif state.staging is None and runs_by_steps(primitive, params):
        return run_by_steps(primitive, operands, params)
    else:
        nested = state.staging is None  # compiled programs return no stacks to Python
        linearized = linearize_equation(primitive, xs, active, params, nested)
        ys, residuals = linearized.outputs, linearized.residuals
        paths = tuple([path_key(primitive, x) for x in xs])
        key = (primitive, params_key(params), tuple(active), paths, linearized.key)
        reads = None if primitive.linearize is not None else what_is_read(primitive, params, active, xs, linearized)
        if reads is not None:
            residuals = _residuals(reads, residuals)
            if kind is not None:
                _keep(kind, _Recipe(eager.prepare(primitive, xs, params), linearized.apply, reads, key))
        kept = Linearized((), residuals, linearized.apply)  # outputs live as long as the function keeps them
    inputs = tuple(x._atom for x in operands if isinstance(x, Array) and x._trace is trace)
    outputs: list[Any] = []
    variables: list[Var | None] = []
    constant = primitive.jvp is zero_jvp
    for y in ys:
        if not constant and is_differentiable(y.type):
            variable = Var(y.type)
            trace.sources[variable] = source
            outputs.append(traced(trace, variable, y))
            variables.append(variable)
        else:
            outputs.append(renewed(y) if isinstance(y, Array) else y)  # the tape may keep y itself
            variables.append(None)
    if any(v is not None for v in variables):
        trace.data.entries.append(Entry(kept, inputs, tuple(variables), source, key))  # type: ignore[arg-type]
    return outputs


def _kind(primitive: Primitive, xs: Sequence[Operand], active: Sequence[bool], params: Mapping[str, Any]) -> Any:
    """What a recipe depends on; None where there can be none."""
    if state.staging is not None or primitive.linearize is not None or isinstance(primitive.jvp, NoRule):
        return None
    if any(isinstance(x, Array) and x._trace is not None for x in xs):
        return None
    kind = (primitive, *params.items(), *active, *map(operand_key, xs))
    try:
        hash(kind)
    except TypeError:  # an unhashable parameter
        return None
    return kind


def _keep(kind: Any, recipe: _Recipe) -> None:
    if len(_recipes) >= _MOST_RECIPES:
        _recipes.clear()
    _recipes[kind] = recipe


def _residuals(reads: Sequence[bool], values: Sequence[Any]) -> list[Any]:
    return [x if on or isinstance(x, Literal) else phantom(x.type) for x, on in zip(values, reads, strict=True)]


def run_reverse(function: Function, primals: Sequence[Operand], active: Sequence[bool], name: str) -> Tape:
    """Run a function, recording what its derivative in the active arguments needs."""
    with open_trace(_record, name, staging=False) as trace:
        tape = trace.data = Tape([], [])
        arguments: list[Any] = [
            trace.new_input(x.type, fixed(x), protected=True) if on and isinstance(x, Array) else x
            for x, on in zip(primals, active, strict=True)
        ]
        outputs = function(arguments)
        tape.inputs = trace.inputs
        for y in outputs:
            mine = isinstance(y, Array) and y._trace is trace
            tape.outputs.append(_lower(trace, y))
            tape.output_vars.append(y._atom if mine else None)  # type: ignore[union-attr]
        trace.data = None
    tape.outputs = [_own(y) for y in tape.outputs]
    return tape


def _own(y: Operand) -> Operand:
    """A result as a handle of the caller's."""
    return renewed(y) if isinstance(y, Array) else y


class LinearTape(NamedTuple):
    """The derivative of a tape as a program of (residuals..., tangents of inputs...) -> tangents of outputs."""

    program: Program
    residuals: list[Array]

    @property
    def linear(self) -> tuple[bool, ...]:
        count = len(self.residuals)
        return tuple(i >= count for i in range(len(self.program.inputs)))


def linear_tape(tape: Tape) -> LinearTape:
    """Write the tape's derivative as a linear program. What is not linear in it is computed here, once."""
    outer_source = state.source
    with open_trace(stage_process, "linear", staging=False) as linear:
        moving: dict[Var, Operand] = {v: linear.new_input(tangent_type(v.type)) for v in tape.inputs}
        try:
            for entry in tape.entries:
                dxs: list[Tangent] = [moving[v] if v in moving else Zero(tangent_type(v.type)) for v in entry.inputs]
                if all(isinstance(dx, Zero) for dx in dxs):
                    continue
                state.source = entry.source
                dense = [_context.instantiate(dx) for dx in dxs]
                dys = entry.linearized.apply(entry.linearized.residuals, dense)
                moving.update(
                    (v, dy)
                    for v, dy in zip(entry.outputs, dys, strict=True)
                    if v is not None and not isinstance(dy, Zero)
                )
        finally:
            state.source = outer_source
        outputs = [
            moving[v] if v is not None and v in moving else _zero_output(y)
            for v, y in zip(tape.output_vars, tape.outputs, strict=True)
        ]
        program = linear.program([_context.instantiate(y) for y in outputs if not _is_float0(y)])
    return LinearTape(program, [array for _, array in linear.constants])


_no_primitive: Any = None
_context = Context(_no_primitive)  # used to instantiate zeros alone


def _zero_output(y: Operand) -> Zero:
    return Zero(tangent_type(y.type))


def _is_float0(y: Tangent) -> bool:
    return isinstance(y, Zero) and not is_differentiable(y.type)


def run_forward(
    function: Function, primals: Sequence[Operand], tangents: Sequence[Tangent], name: str
) -> tuple[list[Operand], list[Tangent]]:
    """Run a function with tangents moving along. Outputs that do not depend on the primals have `Zero` tangents."""
    with open_trace(_push, name, staging=False) as trace:
        trace.sources = WeakKeyDictionary()
        arguments: list[Any] = []
        for x, dx in zip(primals, tangents, strict=True):
            if isinstance(dx, Zero) or not isinstance(x, Array):
                arguments.append(x)
                continue
            variable = _Moving(x.type, dx)
            trace.inputs.append(variable)
            arguments.append(traced(trace, variable, x, PROTECTED))
        outputs = function(arguments)
        ys = [_lower(trace, y) for y in outputs]
        dys: list[Tangent] = [_tangent(trace, y) for y in outputs]
    return [_own(y) for y in ys], [dy if isinstance(dy, Zero) else _own(dy) for dy in dys]


class _Moving(Var):
    """A variable with its tangent, which lives as long as the arrays that have it."""

    __slots__ = ("__weakref__", "tangent")

    def __init__(self, type: Type, tangent: Operand) -> None:
        super().__init__(type)
        self.tangent = tangent


def _tangent(trace: Trace, x: Operand) -> Tangent:
    if isinstance(x, Array) and x._trace is trace:
        assert isinstance(x._atom, _Moving)
        return x._atom.tangent
    return Zero(tangent_type(x.type))


def _push(
    trace: Trace, primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any], source: Source | None
) -> list[Array]:
    xs = [_lower(trace, x) for x in operands]
    dxs = [_tangent(trace, x) for x in operands]
    ys, dys = push_equation(primitive, xs, dxs, params)
    outputs: list[Any] = []
    for y, dy in zip(ys, dys, strict=True):
        if isinstance(dy, Zero):
            outputs.append(y)
        else:
            variable = _Moving(y.type, dy)
            trace.sources[variable] = source
            assert isinstance(y, Array)  # a literal has no tangent
            outputs.append(traced(trace, variable, y))
    return outputs
