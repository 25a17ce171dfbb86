"""Define-by-run: derivatives of Python functions as they run.

Outside jit every array has a value, so Python's control flow works, and derivatives follow the path taken. Operations
on the differentiated arrays run at the enclosing level at once. In reverse mode each appends an `Entry` with its
residuals to a tape. In forward mode tangents move along. Under jit the enclosing level is the staging trace, so this
code writes the derivative into the program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from tracer.ir.primitive import NoRule, Primitive, Zero
from tracer.ir.program import Literal, Program, Source, Var
from tracer.ir.types import StackType, Type, is_differentiable, tangent_type
from tracer.primitives.base.nested_programs import spread
from tracer.primitives.base.rules import zero_jvp
from tracer.settings import gate, overrides
from tracer.trace.array import PROTECTED, Array, fixed, is_recorded, moving, renewed, traced
from tracer.trace.custom_rule_scope import check_enclosed
from tracer.trace.evaluate import evaluate
from tracer.trace.prepared_program import Operation, array_of_literal
from tracer.trace.source import derivative_source, user_source
from tracer.trace.state import state
from tracer.trace.trace import Operand, Origin, Trace, bind_all, eager, open_trace, stage_process
from tracer.transforms.context import Context, Tangent
from tracer.transforms.linearize import linearize_equation, push_equation
from tracer.transforms.residuals import is_lifted, operand_key, phantom, read_flags
from tracer.transforms.stepping import run_by_steps, runs_by_steps

Function = Callable[[list[Array]], Sequence[Operand]]


class Recipe:
    """Derivative of the operations with one primitive, parameters and operand types.

    apply: linear map from all residuals and input tangents to output tangents. template: the residuals, None where the
    call's own value belongs, a phantom where no value is read. moving: the types of the outputs, None without tangent.
    run: the prepared call; None where every call is linearised anew. one: the prepared call that returns the only
    output, if that has a tangent, else None. takes: indices of the residuals in (operands..., outputs...).
    """

    __slots__ = ("apply", "moving", "one", "pullback", "run", "takes", "template")

    def __init__(
        self, apply: Callable[..., Any], template: Sequence[Any], moving: Sequence[Type | None],
        prepared: Any = None, takes: Sequence[int] = (),
    ) -> None:  # fmt: skip
        self.apply = apply
        self.template = template
        self.moving = moving
        self.run: Callable[..., Sequence[Array]] | None = None
        self.one: Callable[..., Array] | None = None
        if prepared is not None:
            self.run = prepared.call
            self.one = None if moving[0] is None else prepared.one
        self.takes = takes
        self.pullback: Any = None  # made at the first call of `backward.pull`

    def residuals(self, xs: Sequence[Any], ys: Sequence[Any]) -> list[Any]:
        """Return the residuals of a call with these operands and outputs."""
        if not self.takes:
            return []
        everything = [*xs, *ys]
        return [everything[place] for place in self.takes]


class Entry(NamedTuple):
    """Operation on the tape. values: the residuals of this call. inputs: the variables of its active operands."""

    recipe: Recipe
    values: Sequence[Any]
    inputs: Sequence[Var]
    outputs: Sequence[Var | None]  # None for outputs without tangents
    source: Source | None

    @property
    def residuals(self) -> list[Any]:
        """All residuals, in the order of the template, with phantoms in place of unread values."""
        values = iter(self.values)
        return [next(values) if r is None else r for r in self.recipe.template]


@dataclass(slots=True)
class Tape:
    """Record of a function run at a point: its outputs, and the operations that its derivative needs."""

    inputs: list[Var]
    entries: list[Entry] = field(default_factory=list)
    outputs: list[Operand] = field(default_factory=list)  # at the enclosing level
    output_vars: list[Var | None] = field(default_factory=list)


def _lower(trace: Trace, operand: Operand) -> Operand:
    """Return the operand at the enclosing level, as a handle that `x[i] = v` cannot rebind, since the tape keeps it."""
    if not isinstance(operand, Array):
        return operand
    if operand._trace is trace:
        value = operand._value
        assert isinstance(value, Array)
        return value
    now = state.stand_ins.get(id(operand), operand)
    return now if not isinstance(now, Array) or _is_outside(now) else fixed(now)


def _is_outside(x: Array) -> bool:
    """Whether a concrete array is older than the program being traced, which reads it as a constant."""
    return state.staging is not None and not is_recorded(x) and 0 <= x._owner < state.staging.serial


_recipes: dict[Any, Recipe] = {}
_MAX_RECIPES = 16384


def _record(
    trace: Trace, primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any], source: Source | None
) -> list[Array]:
    if state.enclosure is not None:
        check_enclosed(trace, operands)
    xs: list[Any] = []
    inputs: list[Any] = []
    signature: list[Any] = [primitive, gate.epoch, overrides.token]
    is_concrete = state.staging is None and primitive.linearize is None
    on_device = False
    for operand in operands:
        if isinstance(operand, Literal):
            xs.append(operand)
            signature.append(operand_key(primitive, operand))
            continue
        if operand._trace is trace:
            x = operand._value
            inputs.append(operand._atom)
            signature += (x.type, True)  # behind the type: it is active
        else:
            x = _lower(trace, operand)
            signature.append(x.type)
        xs.append(x)
        if x._trace is not None:
            on_device = on_device or x._trace.is_device
            is_concrete = is_concrete and x._trace.is_device
    if params:
        signature += params.items()
    recipe = _recipe(tuple(signature)) if is_concrete else None
    if recipe is not None:
        ys: Sequence[Any] = bind_all(primitive, xs, params) if on_device else recipe.run(*xs)  # type: ignore[misc]  # never None in a cached recipe
        return _outputs(trace, recipe, recipe.residuals(xs, ys), inputs, ys, source)
    if state.staging is None and runs_by_steps(primitive, params):
        return run_by_steps(primitive, operands, params)
    active = [isinstance(x, Array) and x._trace is trace for x in operands]
    linearized = linearize_equation(primitive, xs, active, params, state.staging is None)  # Python holds no stacks
    ys, residuals = linearized.outputs, linearized.residuals
    reads = None if primitive.linearize is not None else read_flags(primitive, params, active, xs, linearized)
    if reads is not None:  # drops unread values, so that the function's last reference frees them
        residuals = [r if on else phantom(r.type) for r, on in zip(residuals, reads, strict=True)]
    template = [None if _is_value(primitive, r) else r for r in residuals]
    takes = tuple([place for place, r in enumerate(template) if r is None])
    constant = primitive.jvp is zero_jvp
    moving = tuple([None if constant or not is_differentiable(y.type) else y.type for y in ys])
    recipe = Recipe(linearized.apply, template, moving)
    if is_concrete and reads is not None and not isinstance(primitive.jvp, NoRule):
        recipe = Recipe(linearized.apply, template, moving, eager.prepare(primitive, xs, params), takes)
        _keep(tuple(signature), recipe)
    results = _outputs(trace, recipe, [residuals[place] for place in takes], inputs, ys, source)
    _keep_origins(trace, primitive, operands, params, source, results)
    return results


def _record_prepared(
    trace: Trace, operation: Operation, operands: Sequence[Any], active: int, inputs: list[Any], values: list[Any]
) -> Sequence[Array]:
    """Record an operation by the recipe that it keeps; the first time, and in nested traces, by `_record`.

    active: the bits of the operands that belong to the trace. inputs: their variables. values: the operands, with
    values of the enclosing level in place of these.
    """
    source = user_source(4)  # called by `Operation.on_traced`, which this package calls
    is_concrete = state.enclosure is None
    if len(inputs) < len(values):
        for place, x in enumerate(operands):
            if x.__class__ is Array and x._trace is None:
                values[place] = _lower(trace, x)
    on_device = False
    for x in values:
        if x.__class__ is Array and x._trace is not None:
            on_device = on_device or x._trace.is_device
            is_concrete = is_concrete and x._trace.is_device
    recipe = operation.recipes.get(active) if is_concrete else None
    if recipe is None and is_concrete and not on_device:
        recipe = _split_recipe(operation, active, values)
    if recipe is None:
        results = _record(trace, operation.primitive, operands, operation.params, source)
        found = _recipe(_signature(operation.primitive, values, active, operation.params)) if is_concrete else None
        if found is not None:
            operation.recipes[active] = found
        return results
    if recipe.one is None or on_device:
        ys = bind_all(operation.primitive, values, operation.params) if on_device else recipe.run(*values)
        return _outputs(trace, recipe, recipe.residuals(values, ys), inputs, ys, source)
    y = recipe.one(*values)
    takes = recipe.takes
    if len(takes) == 1:
        residuals: Sequence[Any] = (values[takes[0]] if takes[0] < len(values) else y,)
    else:
        residuals = recipe.residuals(values, (y,))
    variable = Var(recipe.moving[0])
    trace.sources[variable] = source
    trace.data.entries.append(_new_entry(Entry, (recipe, residuals, inputs, (variable,), source)))
    return (moving(trace, variable, y),)


def _split_recipe(operation: Operation, active: int, values: Sequence[Any]) -> Recipe | None:
    """Make and keep the recipe of an operation that splits into programs; None for any other."""
    if operation.split is None or any(x.__class__ is not Array for x in values):
        return None
    split = operation.split(tuple([bool(active >> place & 1) for place in range(len(values))]))
    if split is None:
        operation.split = None
        return None
    forward, linear, reached = split
    types = forward.program.output_types[: len(reached)]

    def apply(residuals: Sequence[Any], dxs: Sequence[Any]) -> Sequence[Any]:
        return spread(evaluate(linear, [*residuals, *dxs]), reached, types)

    def run(*xs: Array) -> list[Array]:
        return [x if x.__class__ is Array else array_of_literal(x) for x in forward.run(xs)]

    count = len(values) + len(reached)
    takes = range(count, len(values) + len(forward.results))
    recipe = Recipe(apply, [None] * len(takes), [t if is_differentiable(t) else None for t in types], takes=takes)
    recipe.run = run
    operation.recipes[active] = recipe
    return recipe


_new_entry = tuple.__new__  # faster than `Entry._make`


def _signature(primitive: Primitive, xs: Sequence[Any], mask: int, params: Mapping[str, Any]) -> Any:
    """Return the key of the recipe for operands of which the bits of `mask` tell the active ones."""
    parts: list[Any] = [primitive, gate.epoch, overrides.token]
    for place, x in enumerate(xs):
        parts.append(operand_key(primitive, x))
        if mask >> place & 1:
            parts.append(True)  # behind the type
    return (*parts, *params.items())


def _keep_origins(
    trace: Trace, primitive: Primitive, operands: Sequence[Operand], params: Mapping[str, Any], source: Source | None,
    results: Sequence[Any],
) -> None:  # fmt: skip
    """Remember the operation that made any stacks among the results, for `unstacked`."""
    stacks = [y._atom for y in results if isinstance(y.type, StackType) and y._trace is trace]
    if stacks:
        given = [fixed(x) if isinstance(x, Array) else x for x in operands]
        trace.origins.update(dict.fromkeys(stacks, Origin(primitive, given, params, source, results)))


def _outputs(
    trace: Trace, recipe: Recipe, values: Sequence[Any], inputs: Sequence[Var], ys: Sequence[Any], source: Source | None
) -> list[Any]:
    """Return handles on the outputs of an operation, and append its entry to the tape if any has a tangent."""
    outputs: list[Any] = []
    variables: list[Var | None] = []
    for y, type in zip(ys, recipe.moving):  # noqa: B905  # residuals of a split operation follow
        if type is None:
            outputs.append(renewed(y) if isinstance(y, Array) else y)  # a new handle: the tape may keep y
            variables.append(None)
        else:
            variable = Var(type)
            trace.sources[variable] = source
            outputs.append(traced(trace, variable, y))
            variables.append(variable)
    if any(variables):
        trace.data.entries.append(Entry._make((recipe, values, inputs, variables, source)))
    return outputs


def _recipe(signature: Any) -> Recipe | None:
    try:
        return _recipes.get(signature)
    except TypeError:  # an unhashable parameter
        return None


def _keep(signature: Any, recipe: Recipe) -> None:
    if len(_recipes) >= _MAX_RECIPES:
        _recipes.clear()
    _recipes[signature] = recipe


def _is_value(primitive: Primitive, residual: Any) -> bool:
    """Whether a residual is an array with a value, or a literal that becomes one."""
    if isinstance(residual, Literal):
        return is_lifted(primitive, residual)
    return isinstance(residual, Array) and (residual._trace is None or residual._trace.is_open)


def run_reverse(function: Function, primals: Sequence[Operand], active: Sequence[bool], name: str) -> Tape:
    """Run a function, and return a tape of the operations that its derivative in the active arguments needs."""
    with open_trace(_record, name, staging=False) as trace:
        trace.record_prepared = _record_prepared if state.staging is None else None
        tape = trace.data = Tape(trace.inputs, [], [], [])
        arguments: list[Any] = [
            trace.new_input(x._type or x.type, fixed(x), protected=True) if on and isinstance(x, Array) else x
            for x, on in zip(primals, active, strict=True)
        ]
        outputs = function(arguments)
        for y in outputs:
            mine = isinstance(y, Array) and y._trace is trace
            tape.outputs.append(_lower(trace, y))
            tape.output_vars.append(y._atom if mine else None)  # type: ignore[union-attr]
        trace.data = None
    tape.outputs = [_own(y) for y in tape.outputs]
    return tape


def _own(y: Operand) -> Operand:
    """Return a result as a new handle, which the caller may rebind."""
    return renewed(y) if isinstance(y, Array) else y


class LinearTape(NamedTuple):
    """Derivative of a tape as a program from (residuals..., input tangents...) to output tangents."""

    program: Program
    residuals: list[Array]

    @property
    def linear(self) -> tuple[bool, ...]:
        count = len(self.residuals)
        return tuple(i >= count for i in range(len(self.program.inputs)))


def linear_tape(tape: Tape) -> LinearTape:
    """Return the tape's derivative as a linear program. Its nonlinear parts are computed now, as residuals."""
    outer_source = state.source
    with open_trace(stage_process, "linear", staging=False) as linear:
        moving: dict[Var, Operand] = {v: linear.new_input(tangent_type(v.type)) for v in tape.inputs}
        try:
            for entry in tape.entries:
                dxs: list[Tangent] = [moving[v] if v in moving else Zero(tangent_type(v.type)) for v in entry.inputs]
                if all(isinstance(dx, Zero) for dx in dxs):
                    continue
                state.source = derivative_source(entry.source)
                dense = [_context.instantiate(dx) for dx in dxs]
                dys = entry.recipe.apply(entry.residuals, dense)
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
_context = Context(_no_primitive)  # only instantiates zeros


def _zero_output(y: Operand) -> Zero:
    return Zero(tangent_type(y.type))


def _is_float0(y: Tangent) -> bool:
    return isinstance(y, Zero) and not is_differentiable(y.type)


def run_forward(
    function: Function, primals: Sequence[Operand], tangents: Sequence[Tangent], name: str
) -> tuple[list[Operand], list[Tangent]]:
    """Return a function's outputs and their tangents; an output independent of the primals has a `Zero` tangent."""
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
    """Variable with its tangent, which is freed with the last array that has this variable."""

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
    if state.enclosure is not None:
        check_enclosed(trace, operands)
    xs = [_lower(trace, x) for x in operands]
    dxs = [_tangent(trace, x) for x in operands]
    innermost = state.innermost
    state.innermost = trace  # so that an inner linear trace does not own the zeros that rules make
    try:
        ys, dys = push_equation(primitive, xs, dxs, params)
    finally:
        state.innermost = innermost
    outputs: list[Any] = []
    for y, dy in zip(ys, dys, strict=True):
        if isinstance(dy, Zero):
            outputs.append(y)
        else:
            variable = _Moving(y.type, dy)
            trace.sources[variable] = source
            assert isinstance(y, Array)  # a literal has no tangent
            outputs.append(traced(trace, variable, y))
    _keep_origins(trace, primitive, operands, params, source, outputs)
    return outputs
