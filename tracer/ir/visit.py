"""Walks over programs: every equation, use counts, substitution of operands, liveness."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

from tracer.ir.program import Atom, Equation, Program, Var


def equations(program: Program) -> Iterator[Equation]:
    """Yield every equation in program order; equations of nested programs follow the equation that holds them."""
    for equation in program.equations:
        yield equation
        for _, nested in equation.nested():
            yield from equations(nested)


def use_counts(program: Program) -> dict[Var, int]:
    """Count the reads of each variable, by equations and as an output; 0 for the unread.

    Nested programs are closed, so they read none of these variables.
    """
    counts = dict.fromkeys(program.inputs, 0)
    for equation in program.equations:
        for atom in equation.inputs:
            if isinstance(atom, Var):
                counts[atom] += 1
        counts.update(dict.fromkeys(equation.outputs, 0))
    for atom in program.outputs:
        if isinstance(atom, Var):
            counts[atom] += 1
    return counts


def substitute(equation: Equation, replacements: Mapping[Var, Atom]) -> Equation:
    """Return the equation with its operands replaced; the same object if nothing was."""
    inputs = substitute_atoms(equation.inputs, replacements)
    if inputs is equation.inputs:
        return equation
    return Equation(equation.primitive, inputs, equation.params, equation.outputs, equation.source)


def substitute_atoms(atoms: tuple[Atom, ...], replacements: Mapping[Var, Atom]) -> tuple[Atom, ...]:
    """Return the atoms with variables replaced; the same object if nothing was."""
    for atom in atoms:
        if type(atom) is Var and atom in replacements:
            return tuple([replacements.get(a, a) if type(a) is Var else a for a in atoms])
    return atoms


def live_equations(
    program: Program, stays: Callable[[Equation], bool] = lambda equation: False
) -> tuple[Equation, ...]:
    """Return the equations that the outputs need, directly or not, and every equation for which `stays` holds."""
    live = {atom for atom in program.outputs if isinstance(atom, Var)}
    kept: list[Equation] = []
    for equation in reversed(program.equations):
        if stays(equation) or any(variable in live for variable in equation.outputs):
            kept.append(equation)
            live.update(atom for atom in equation.inputs if isinstance(atom, Var))
    return tuple(kept[::-1])
