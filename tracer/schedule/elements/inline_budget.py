"""The inline budget: where too much is computed inline before a value, a value on the way is stored.

Operations are counted once for each equation that is pulled, functions written out. Counts are kept as upper bounds
once values behind them are stored, and recomputed where a bound is too large. So long programs take linear time.

Values that cross a narrow cut of the program are stored. For a long sum of weighted values and the sum of its weights,
these are both partial sums. Values computed from the same operands but read elsewhere are stored too. Otherwise the
operands would be computed again for them.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final

from tracer.ir.program import Equation, Var
from tracer.schedule.terms.element_cost import operations_of

_NARROW: Final = 4  # values
_CUTS: Final = 8  # that are tried
_CHEAP: Final = 2  # operations that are repeated rather than stored


def limited(equations: Sequence[Equation], inline: dict[Var, Equation], most: int) -> dict[Var, int]:
    """Return the operations of each value that is not inline, with all inline ones before it.

    Removes values from `inline`, to be stored, until no value has more than `most` operations.
    """
    counted = _Count(equations, inline, most)
    for number in range(len(equations)):
        counted.limit(number)
    return counted.operations()


class _Count:
    def __init__(self, equations: Sequence[Equation], inline: dict[Var, Equation], most: int) -> None:
        self.most = most
        self.equations = equations
        self.inline = inline
        self.own = [operations_of(equation) for equation in equations]
        number = {v: number for number, equation in enumerate(equations) for v in equation.outputs}
        self.operands = [[(a, number[a]) for a in e.inputs if isinstance(a, Var) and a in number] for e in equations]
        self.before: dict[Var, dict[int, int]] = {}  # of inline values: the equations pulled at most, their operations
        self.total: dict[Var, int] = {}  # their operations, as one number
        self.readers: dict[Var, list[int]] = {}
        for at, equation in enumerate(equations):
            for atom in equation.inputs:
                if isinstance(atom, Var):
                    self.readers.setdefault(atom, []).append(at)

    def limit(self, number: int) -> None:
        """Count an equation; store values before it until it is within the limit."""
        pulled = {number: self.own[number]}
        for variable, _ in self.operands[number]:
            if variable in self.inline:
                pulled |= self.before[variable]
        if sum(pulled.values()) > self.most:
            pulled = self._pulled(number)
            while sum(pulled.values()) > self.most and len(pulled) > 1:
                for variable in self._at_narrow_cut(number, pulled) or self._chosen(number, pulled):
                    del self.inline[variable]
                pulled = self._pulled(number)
        for variable in self.equations[number].outputs:
            if variable in self.inline:
                self.before[variable] = pulled
                self.total[variable] = sum(pulled.values())

    def _pulled(self, number: int) -> dict[int, int]:
        """Return the equations that an equation pulls, itself included, and their operations."""
        pulled, waiting = {number: self.own[number]}, [number]
        inline, operands = self.inline, self.operands
        while waiting:
            for variable, earlier in operands[waiting.pop()]:
                if earlier not in pulled and variable in inline:
                    pulled[earlier] = self.own[earlier]
                    waiting.append(earlier)
        return pulled

    def _at_narrow_cut(self, number: int, pulled: Mapping[int, int]) -> Sequence[Var]:
        """Return the values that cross the last of the narrowest cuts in the second half of the pulled equations.

        Return none if no cut is narrow.
        """
        order = sorted(pulled)
        crossing, before, total, places = 0, 0, sum(pulled.values()), []
        ends: dict[int, int] = {}  # how many values are read last, of the readers so far, by an equation
        for earlier, following in pairwise(order):
            before += pulled[earlier]
            for variable in self._expensive_results(earlier):
                last = self._last_reader(variable, number)
                if last > earlier:
                    crossing += 1
                    ends[last] = ends.get(last, 0) + 1
            crossing -= sum(ends.pop(reader) for reader in [r for r in ends if r < following])
            if 2 * before >= total and 0 < crossing <= _NARROW:
                places.append((crossing, -following))
        for _, place in sorted(places)[:_CUTS]:
            found = self._passing(number, pulled, -place)
            if found:
                return found
        return ()

    def _passing(self, number: int, pulled: Mapping[int, int], place: int) -> Sequence[Var]:
        """Return the values computed before `place` and read from there on.

        These are values of the pulled equations and of equations that share expensive values with them. Return none if
        they are too many for one nest.
        """
        found = []
        together = {earlier: count for earlier, count in pulled.items() if earlier < place}
        waiting = list(together)
        while waiting:
            earlier = waiting.pop()
            for variable in self._expensive_results(earlier):
                readers = self.readers.get(variable, [])
                late = self._last_reader(variable, number) if earlier in pulled else readers[-1] if readers else -1
                if late >= place:
                    found.append(variable)
                for reader in readers:
                    inline = [v for v in self.equations[reader].outputs if v in self.inline]
                    if reader < place and reader not in together and inline:
                        together |= self.before[inline[0]]
                        waiting.append(reader)
            if len(found) > _NARROW:
                return ()
        return found if sum(together.values()) <= self.most else ()

    def _expensive_results(self, number: int) -> Sequence[Var]:
        """Return the inline results of an equation that are too expensive to compute again."""
        return [v for v in self.equations[number].outputs if v in self.inline and self.total[v] > _CHEAP]

    def _last_reader(self, variable: Var, number: int) -> int:
        """Return the last equation up to `number` that reads a value, or -1."""
        readers = self.readers.get(variable, [])
        at = bisect_right(readers, number)
        return readers[at - 1] if at else -1

    def _chosen(self, number: int, pulled: Iterable[int]) -> Sequence[Var]:
        """Return the last pulled value with several readers, which would compute it on both sides of the cut.

        Return all operands where there is none.
        """
        for earlier in sorted(pulled, reverse=True):
            for variable in self.equations[earlier].outputs:
                if earlier != number and variable in self.inline and len(self.readers[variable]) > 1:
                    return (variable,)
        return list(dict.fromkeys(variable for variable, _ in self.operands[number] if variable in self.inline))

    def operations(self) -> dict[Var, int]:
        found = {}
        for number, equation in enumerate(self.equations):
            if not all(variable in self.inline for variable in equation.outputs):
                total = sum(self._pulled(number).values())
                found.update(dict.fromkeys(equation.outputs, total))
        return found
