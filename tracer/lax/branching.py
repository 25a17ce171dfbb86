"""Branches: `cond` and `switch`. All branches are traced; the program runs one of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tracer.errors import ArgumentError, CarryTypeError, message
from tracer.ir import dtypes
from tracer.ir.program import Program, Var
from tracer.ir.types import ArrayType, Type
from tracer.lax.bodies import Body, stage_body, weak_join
from tracer.primitives.control.cond import cond_branches
from tracer.primitives.elementwise.arithmetic import clamp
from tracer.primitives.elementwise.comparison import ne
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array
from tracer.trace.docstrings import ABSENT
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.stage import stage
from tracer.transforms.functions import argument_names, call_rule, check_callable, flatten_arguments


def cond(
    pred: Any, true_fun: Callable[..., Any], false_fun: Callable[..., Any], *operands: Any, operand: Any = ABSENT,
    linear: Any = None,
) -> Any:  # fmt: skip
    """Call `true_fun(*operands)` if `pred` holds, else `false_fun(*operands)`; only one of them runs.

    pred: bool [], or a number, which holds unless it is 0; operands: trees of arrays of any shapes, or `operand` alone,
    by JAX's older name. Both functions return the same structure, shapes and dtypes. Raises CarryTypeError where they
    do not. `linear` is accepted as JAX's, and so is its older order of arguments, `cond(pred, true_operand, true_fun,
    false_operand, false_fun)`.

    >>> tracer.lax.cond(tnp.asarray(2.0) > 1.0, lambda x: x, lambda x: -x, 5.0)
    Array(5., f64*)
    """
    del linear
    if operand is not ABSENT:
        operands = (operand,)
    if _are_in_the_older_order(true_fun, false_fun, operands):
        true_fun, false_fun, operands = _each_with_its_own(true_fun, false_fun, *operands)
    for function in (true_fun, false_fun):
        check_callable(function, "cond")
    return _cond(true_fun, false_fun, pred, *operands)


def _cond(true_fun: Callable[..., Any], false_fun: Callable[..., Any], pred: Any, *operands: Any) -> Any:
    flag = as_array(pred, "cond: the predicate")
    if flag.ndim:
        raise ArgumentError(
            message(
                f"cond{here()}: the predicate is one bool or number",
                f"got {flag.type}",
                help="reduce it with .any() or .all(); tnp.where chooses element by element",
            )
        )
    if flag.dtype != dtypes.BOOL:
        flag = ne(flag, 0)
    index = convert_element_type(flag, dtypes.I32)
    return _branch("cond", index, (false_fun, true_fun), ("false_fun", "true_fun"), operands)


def _are_in_the_older_order(first: Any, second: Any, rest: tuple[Any, ...]) -> bool:
    """Return whether the arguments are true_operand, true_fun, false_operand, false_fun."""
    return len(rest) == 2 and callable(rest[1]) and callable(second) and not callable(first)


def _each_with_its_own(x: Any, f: Callable[..., Any], y: Any, g: Callable[..., Any]) -> Any:
    """Return f(x) and g(y) as functions of (x, y)."""
    return (
        lambda mine, _: call_rule(f, (mine,), "true_fun of cond"),
        lambda _, mine: call_rule(g, (mine,), "false_fun of cond"),
        (x, y),
    )


def switch(index: Any, branches: Sequence[Callable[..., Any]], *operands: Any, operand: Any = ABSENT) -> Any:
    """Call `branches[index](*operands)`, with the index clamped to the branches.

    index: an integer []; operands: trees of arrays of any shapes, or `operand` alone, by JAX's older name. Raises
    CarryTypeError where the branches return different structures, shapes or dtypes.

    >>> tracer.lax.switch(1, [lambda x: x, lambda x: 10.0 * x], 5.0)
    Array(50., f64*)
    """
    if operand is not ABSENT:
        operands = (operand,)
    _check_branches(branches)
    for function in branches:
        check_callable(function, "switch")
    return _switch(tuple(branches), index, *operands)


def _switch(branches: Sequence[Callable[..., Any]], index: Any, *operands: Any) -> Any:
    position = as_array(index, "switch: the index")
    if not branches or position.ndim or not dtypes.is_integer(position.dtype):
        raise ArgumentError(
            message(
                f"switch{here()}: an integer chooses one of the branches",
                f"got an index {position.type} for {len(branches)} branches",
                help="cast the index, i.astype(int); cond takes a bool" if branches else "give one branch at least",
            )
        )
    if len(branches) == 1:
        return branches[0](*operands)
    chosen = convert_element_type(clamp(0, position, len(branches) - 1), dtypes.I32)
    names = tuple(f"branch {number}" for number in range(len(branches)))
    return _branch("switch", chosen, tuple(branches), names, operands)


def _check_branches(branches: Any) -> None:
    if not isinstance(branches, Sequence):
        text = f"switch{here()} takes a sequence of functions"
        raise ArgumentError(message(text, f"got {type(branches).__name__}", help="switch(index, [f, g], *operands)"))


def _branch(
    caller: str, index: Array, functions: Sequence[Callable[..., Any]], names: Sequence[str], operands: tuple[Any, ...]
) -> Any:
    leaves, structure = flatten_arguments(operands, caller, lambda: argument_names(operands))
    types = [x.type for x in leaves]
    bodies = [
        stage_body(function, structure, types, f"{name} of {caller}")
        for function, name in zip(functions, names, strict=True)
    ]
    _check_structures(caller, bodies, names)
    wanted = _common_types(caller, bodies, names)
    bodies = [_cast(body, wanted) for body in bodies]
    programs, constants = _with_all_constants(bodies)
    results = cond_branches(index, programs, *constants, *leaves)
    return trees.unflatten(bodies[0].structure, results)


def _check_structures(caller: str, bodies: Sequence[Body], names: Sequence[str]) -> None:
    first = bodies[-1]
    for body, name in zip(bodies, names, strict=True):
        if body.structure != first.structure:
            path, one, other = trees.parting(first.structure, body.structure, "result")
            raise CarryTypeError(
                message(
                    f"{caller}{here()}",
                    f"{names[-1]} returns {trees.structure_text(one)} "
                    f"but {name} returns {trees.structure_text(other)}{_for(path)}",
                    help="return the same structure from every branch",
                )
            )


def _common_types(caller: str, bodies: Sequence[Body], names: Sequence[str]) -> list[Type]:
    """Return the types that all branches return, where weak types follow the strong ones."""
    structure = bodies[-1].structure
    paths = trees.leaf_names(trees.unflatten(structure, range(structure.num_leaves)), "result")
    columns = list(zip(*(body.program.output_types for body in bodies), strict=True))
    wanted = [weak_join(column) for column in columns]
    lines = []
    for path, column, found in zip(paths, columns, wanted, strict=True):
        if found is None:
            other = next(i for i, type in enumerate(column) if weak_join((type, column[-1])) is None)
            lines.append(f"{names[-1]} returns {column[-1]} but {names[other]} returns {column[other]}{_for(path)}")
    if lines:
        raise CarryTypeError(
            message(f"{caller}{here()}", *lines, help="cast or reshape the results of one, so that all agree")
        )
    return [type for type in wanted if type is not None]


def _for(path: str) -> str:
    return f" for '{path}'" if path != "result" else ""


def _cast(body: Body, wanted: Sequence[Type]) -> Body:
    """Return the body with its outputs cast to the wanted types."""
    program = body.program
    if list(program.output_types) == list(wanted):
        return body

    def run(inputs: list[Array]) -> list[Any]:
        outputs = evaluate(program, inputs)
        return [
            convert_element_type(y, t.dtype, weak=t.weak) if isinstance(t, ArrayType) else y
            for y, t in zip(outputs, wanted, strict=True)
        ]

    return body._replace(program=stage(run, program.input_types, name=program.name).program)


def _with_all_constants(bodies: Sequence[Body]) -> tuple[tuple[Program, ...], list[Array]]:
    """Return the branches as functions of the constants of all of them."""
    everything: dict[int, Array] = {id(array): array for body in bodies for array in body.constants}
    programs = []
    for body in bodies:
        program, count = body.program, len(body.constants)
        own = dict(zip(map(id, body.constants), program.inputs, strict=False))
        inputs = tuple(own.get(key) or Var(array.type) for key, array in everything.items())
        programs.append(Program((*inputs, *program.inputs[count:]), program.equations, program.outputs, program.name))
    return tuple(programs), list(everything.values())
