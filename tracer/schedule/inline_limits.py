"""How much is computed inline before a value: where that grows too much, a value among it is stored.

Operations are counted once for each equation that is pulled, functions written out. Counts are kept, as upper bounds
once values behind them are stored, and taken anew where a bound is too large: so long programs take time in their
length.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tracer.ir.program import Equation, Var
from tracer.schedule.costs import operations_of

MOST_OPERATIONS = 800  # in one nest, functions written out: more would spill registers and cost compile time


def limited(equations: Sequence[Equation], inline: dict[Var, Equation]) -> dict[Var, int]:
    """The operations of each value that is not inline, with all before it. What is to be stored leaves `inline`."""
    counted = _Count(equations, inline)
    for number in range(len(equations)):
        counted.limit(number)
    return counted.operations()


class _Count:
    def __init__(self, equations: Sequence[Equation], inline: dict[Var, Equation]) -> None:
        self.equations = equations
        self.inline = inline
        self.own = [operations_of(equation) for equation in equations]
        number = {v: number for number, equation in enumerate(equations) for v in equation.outputs}
        self.operands = [[(a, number[a]) for a in e.inputs if isinstance(a, Var) and a in number] for e in equations]
        self.before: dict[Var, dict[int, int]] = {}  # of inline values: the equations pulled at most, their operations
        self.reads: dict[Var, int] = {}
        for equation in equations:
            for atom in equation.inputs:
                if isinstance(atom, Var):
                    self.reads[atom] = self.reads.get(atom, 0) + 1

    def limit(self, number: int) -> None:
        """Count an equation; store values before it until it is within the limit."""
        pulled = {number: self.own[number]}
        for variable, _ in self.operands[number]:
            if variable in self.inline:
                pulled |= self.before[variable]
        if sum(pulled.values()) > MOST_OPERATIONS:
            pulled = self._pulled(number)
            while sum(pulled.values()) > MOST_OPERATIONS and len(pulled) > 1:
                for variable in self._chosen(number, pulled):
                    del self.inline[variable]
                pulled = self._pulled(number)
        for variable in self.equations[number].outputs:
            if variable in self.inline:
                self.before[variable] = pulled

    def _pulled(self, number: int) -> dict[int, int]:
        """The equations that one pulls, itself among them, and their operations."""
        pulled, waiting = {number: self.own[number]}, [number]
        inline, operands = self.inline, self.operands
        while waiting:
            for variable, earlier in operands[waiting.pop()]:
                if earlier not in pulled and variable in inline:
                    pulled[earlier] = self.own[earlier]
                    waiting.append(earlier)
        return pulled

    def _chosen(self, number: int, pulled: Iterable[int]) -> Sequence[Var]:
        """The last value pulled that is read more than once, lest its readers compute it again on either side of the
        cut; else all operands."""
        for earlier in sorted(pulled, reverse=True):
            for variable in self.equations[earlier].outputs:
                if earlier != number and variable in self.inline and self.reads[variable] > 1:
                    return (variable,)
        return list(dict.fromkeys(variable for variable, _ in self.operands[number] if variable in self.inline))

    def operations(self) -> dict[Var, int]:
        found = {}
        for number, equation in enumerate(self.equations):
            if not all(variable in self.inline for variable in equation.outputs):
                total = sum(self._pulled(number).values())
                found.update(dict.fromkeys(equation.outputs, total))
        return found
