"""Report of the residuals that reverse mode keeps of a function, as a list or in print, for choosing checkpoints."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tracer.ir.program import Program, Var
from tracer.ir.types import Type, is_differentiable
from tracer.primitives.control.reverse.remat_partition import checkpoint_name_p
from tracer.trace import trees
from tracer.trace.source import place
from tracer.trace.stage import stage
from tracer.transforms.functions import argument_names, as_outputs, check_callable, flatten_arguments, name_of
from tracer.transforms.linearize import linearize_program


def saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> list[tuple[Type, str]]:
    """List the values that the derivative of `f` at these arguments keeps: the type and the origin of each.

    f: takes and returns trees of arrays of any shapes; args, kwargs: its arguments.

    >>> import tracer, tracer.numpy as tnp
    >>> [str(type) for type, _ in saved_residuals(lambda x: tnp.sin(tnp.sin(x)), 1.0)]
    ['f64*[]', 'f64*[]']
    """
    check_callable(f, "saved_residuals")
    name = name_of(f)
    leaves, structure = flatten_arguments(
        (args, kwargs), f"saved_residuals of {name}", lambda: argument_names(args, kwargs)
    )

    def flat(inputs: list[Any]) -> list[Any]:
        positional, keywords = trees.unflatten(structure, inputs)
        return as_outputs(f(*positional, **keywords), f"saved_residuals of {name}")[0]

    staged = stage(flat, [x.type for x in leaves], name=name)
    names = ["a captured array"] * len(staged.constants) + argument_names(args, kwargs, of=f)
    active = tuple(is_differentiable(t) for t in staged.program.input_types)
    split = linearize_program(staged.program, active)
    residuals = split.residuals(split.forward.inputs, split.forward.outputs)
    return [(atom.type, _origin(split.forward, atom, names)) for atom in dict.fromkeys(residuals)]


def print_saved_residuals(f: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Print the list of `saved_residuals`, one value a line.

    f, args, kwargs: as in `saved_residuals`.

    >>> import tracer
    >>> print_saved_residuals(lambda x: x * 2.0 * x, tracer.numpy.asarray(1.0))  # doctest: +ELLIPSIS
    f64*[] from argument 0
    f64*[] made at ...
    """
    for type, origin in saved_residuals(f, *args, **kwargs):
        print(f"{type} {origin}")  # noqa: T201  # the purpose of the function


def _origin(program: Program, atom: Any, names: list[str]) -> str:
    if not isinstance(atom, Var):
        return "a constant"
    if atom in program.inputs:
        return f"from {names[program.inputs.index(atom)]}"
    equation = next(e for e in program.equations if atom in e.outputs)
    naming = (e for e in program.equations if e.primitive is checkpoint_name_p and atom in (*e.inputs, *e.outputs))
    name = next((e.params["name"] for e in naming if e.params["name"] is not None), None)
    made = f"made{place(equation.source)}"
    return f"named {name!r}, {made}" if name is not None else f"{made} by {equation.primitive.name}"
