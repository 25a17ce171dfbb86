"""Steps of a block's plan, in order of execution.

Nest     one loop over a domain, with roots: arrays stored in it and reductions over some of its axes
Single   one equation without axes, computed in registers; in long programs a function is a nest of its own, since
         equal nests are written once
Rename   an array in memory under another shape: nothing is written
Other    an equation with a schedule of its own: control flow, library calls, scatters, cumulative operations
"""

from __future__ import annotations

from dataclasses import dataclass, field

from tracer.ir.program import Equation, Var
from tracer.schedule.elements.index_set_splitting import Box
from tracer.schedule.elements.puller import is_map


@dataclass(slots=True)
class Nest:
    """One loop over `domain`. axes: the reduced ones, in case a root reduces.

    boxes: where joins are read in it, the parts of the domain that have a loop of their own.
    """

    domain: tuple[int, ...]
    axes: tuple[int, ...] | None = None
    roots: list[Equation] = field(default_factory=list)
    operations: int = 0
    boxes: tuple[Box, ...] = ()


@dataclass(slots=True)
class Single:
    equation: Equation


@dataclass(slots=True)
class Other:
    equation: Equation


@dataclass(slots=True)
class Rename:
    equation: Equation


Step = Nest | Single | Rename | Other


@dataclass(slots=True)
class BlockPlan:
    """Plan of a block.

    inline: the equations of inline values. step_of: by value, the step that computes it. last_read, last_shifted_read:
    by value, the last step that reads it, at any index and at another index than its own. calls: whether functions of
    scalars are called.
    """

    steps: list[Step]
    inline: dict[Var, Equation]
    step_of: dict[Var, int]
    last_read: dict[Var, int]
    last_shifted_read: dict[Var, int]
    calls: bool

    def may_overwrite(self, old: Var, new: Var, equation: Equation | None) -> bool:
        """Whether `new` can be stored in the memory of `old`: `old` is not read later, nor at another index meanwhile.

        equation: computes `new`. A rename is stored together with its operand.
        """
        at = self.step_of.get(new, -1)
        while at >= 0 and isinstance(step := self.steps[at], Rename):
            (named,) = step.equation.inputs
            if named not in self.step_of:  # an input, which is copied then, if it is not `old` itself
                break
            assert isinstance(named, Var)
            at, equation = self.step_of[named], self._maker(named)
        pointwise = equation is not None and is_map(equation)
        return pointwise and self.last_read.get(old, -1) <= at and self.last_shifted_read.get(old, -1) < at

    def _maker(self, variable: Var) -> Equation | None:
        """Return the equation that computes a value."""
        match self.steps[self.step_of[variable]]:
            case Nest(roots=roots):
                return next(e for e in roots if variable in e.outputs)
            case step:
                return step.equation
