"""Choice of the residuals of a loop's step: values to keep, and values to recompute from them.

A loop's linear part reads values of the forward steps. Kept values go to memory and back. So the sum of two kept values
is added again instead, and of a broadcast only the operand is kept. The cheapest set of kept values is a minimum cut
(as in the partitioner of PyTorch's AOTAutograd). It lies between the step's inputs and the values that its linear part
reads. Keeping a value costs its bytes, recomputing it its operations. Only operations that are cheap and move no more
than they read are candidates. Among equal cuts the one nearest to the readers is taken: it recomputes least.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, Final

from tracer.ir import dtypes
from tracer.ir.linearized import LinearizedProgram
from tracer.ir.primitive import Checked, Compare, Convert, IndexMap, Join, Pointwise
from tracer.ir.program import Atom, Equation, Program, Var
from tracer.ir.scalar import MATH_FUNCTIONS, ScalarOp
from tracer.ir.types import ArrayType, size
from tracer.ir.visit import substitute, substitute_atoms

_EXPENSIVE: Final = {*MATH_FUNCTIONS, ScalarOp.DIV, ScalarOp.REM, ScalarOp.SQRT, ScalarOp.IDIV, ScalarOp.IREM}
_MAX_EQUATIONS: Final = 2000
_SCALAR: Final = 4  # cost of a scalar operation, in bytes moved; one element of a vector operation costs 1
_KEY: Final = 8  # bytes of a random key
_NEVER: Final = 1 << 60


def economical(split: LinearizedProgram, carries: int, free: Sequence[bool]) -> LinearizedProgram:
    """Return a linearised loop body with the cheapest residuals.

    split: the linearised body. carries: the number of outputs that are carries; other outputs are kept in any case.
    free: inputs that are available at no cost, such as constants and slices.
    """
    forward, count = split.forward, len(split.active_outputs)
    if len(forward.equations) > _MAX_EQUATIONS:
        return split
    read = split.residual_atoms()
    wanted = {a for a in read if isinstance(a, Var)}
    at_hand = {v for v, on in zip(forward.inputs, free, strict=True) if on}
    at_hand.update(a for a in forward.outputs[carries:count] if isinstance(a, Var))
    kept = _cheapest(forward, wanted, at_hand)
    again = _repeated(forward.equations, wanted, kept)
    if not again:
        return split
    return _rebuilt(split, read, again)


def _rebuilt(split: LinearizedProgram, read: Sequence[Atom], again: Sequence[Equation]) -> LinearizedProgram:
    """Return the split whose linear program starts with the equations to recompute."""
    made = {v for e in again for v in e.outputs}
    starts = [a for e in again for a in e.inputs if isinstance(a, Var) and a not in made]
    kept = list(dict.fromkeys([*(a for a in read if isinstance(a, Var) and a not in made), *starts]))
    linear = split.linear
    own: dict[Var, Atom] = {v: Var(v.type) for v in (*kept, *(v for e in again for v in e.outputs))}
    own.update({v: own[a] if isinstance(a, Var) else a for v, a in zip(linear.inputs, read, strict=False)})
    equations = [
        *(replace(substitute(e, own), outputs=tuple(_variable(own[v]) for v in e.outputs)) for e in again),
        *(substitute(e, own) for e in linear.equations),
    ]
    inputs = (*(_variable(own[v]) for v in kept), *linear.inputs[len(read) :])
    outputs = substitute_atoms(linear.outputs, own)
    forward = split.forward
    count = len(split.active_outputs)
    known: dict[Var, tuple[str, int]] = {v: ("input", i) for i, v in enumerate(forward.inputs)}
    known.update({a: ("output", i) for i, a in enumerate(forward.outputs[:count]) if isinstance(a, Var)})
    fresh = [v for v in kept if v not in known]
    known.update({v: ("residual", i) for i, v in enumerate(fresh)})
    return LinearizedProgram(
        replace(forward, outputs=(*forward.outputs[:count], *fresh)),
        Program(inputs, tuple(equations), outputs, linear.name),
        tuple(known[v] for v in kept),
        split.active_outputs,
    )


def _variable(atom: Atom) -> Var:
    assert isinstance(atom, Var)
    return atom


def _repeated(equations: Sequence[Equation], wanted: Iterable[Var], kept: set[Var]) -> list[Equation]:
    """Return the equations that compute the wanted values that are not kept."""
    missing = {v for v in wanted if v not in kept}
    found = []
    for equation in reversed(equations):
        if not missing.isdisjoint(equation.outputs):
            found.append(equation)
            missing.update(a for a in equation.inputs if isinstance(a, Var) and a not in kept)
    return found[::-1]


def _repeating_costs(equation: Equation) -> int | None:
    """Return the cost of recomputing an equation, in bytes moved. None if it is no candidate."""
    checks = isinstance(equation.primitive.lower, Checked)  # readers of the indices keep the check
    if len(equation.outputs) != 1 or not isinstance(equation.outputs[0].type, ArrayType):
        return None
    if equation.effects and not checks:
        return None
    type = equation.outputs[0].type
    match equation.primitive.lower:
        case Pointwise(op) if op in _EXPENSIVE:
            return None
        case Pointwise() | Compare() | Convert() | Checked() | IndexMap() | Join():
            parts = 4 if dtypes.is_complex(type.dtype) else 1
            return parts * (size(type) if type.shape else _SCALAR)
        case _:
            return None


def _moved_bytes(variable: Var) -> int:
    """Return the cost of keeping a value: it is written, and read."""
    type = variable.type
    return 2 * size(type) * (type.dtype.itemsize if isinstance(type, ArrayType) else _KEY)


def _cheapest(program: Program, wanted: set[Var], at_hand: set[Var]) -> set[Var]:
    """Return the values to keep, and the values available in any case."""
    network, definition = _Network(), {v: e for e in program.equations for v in e.outputs}
    waiting, seen = list(wanted), set(wanted)
    for variable in wanted:
        network.connect(("after", variable), "sink", _NEVER)
    while waiting:
        variable = waiting.pop()
        if variable in at_hand:
            continue
        network.connect(("before", variable), ("after", variable), _moved_bytes(variable))
        equation = definition.get(variable)
        again = None if equation is None else _repeating_costs(equation)
        network.connect("source", ("before", variable), _NEVER if again is None else again)
        if equation is None or again is None:
            continue
        for atom in equation.inputs:
            if isinstance(atom, Var) and atom not in at_hand:
                network.connect(("after", atom), ("before", variable), _NEVER)
                if atom not in seen:
                    seen.add(atom)
                    waiting.append(atom)
    beyond = network.sink_side()
    return at_hand | {v for v in seen if ("before", v) not in beyond and ("after", v) in beyond}


@dataclass(slots=True)
class _Network:
    """Directed graph with capacities."""

    room: dict[Any, dict[Any, int]] = field(default_factory=dict)

    def connect(self, start: Any, end: Any, capacity: int) -> None:
        """Add capacity to an edge. The reverse edge takes the flow."""
        forth, back = self.room.setdefault(start, {}), self.room.setdefault(end, {})
        forth[end] = forth.get(end, 0) + capacity
        back.setdefault(start, 0)

    def sink_side(self) -> set[Any]:
        """Return the nodes beyond the minimum cut that is nearest to the sink, by maximum flow (Dinic 1970)."""
        while levels := self._levels():
            self._block(levels)
        found, waiting = {"sink"}, ["sink"]
        while waiting:
            node = waiting.pop()
            for before in self.room.get(node, ()):
                if before not in found and self.room[before][node]:
                    found.add(before)
                    waiting.append(before)
        return found

    def _levels(self) -> dict[Any, int]:
        """Return the distance of nodes from the source. Empty if the sink is out of reach."""
        levels, waiting = {"source": 0}, deque(["source"])
        while waiting:
            node = waiting.popleft()
            for after, room in self.room.get(node, {}).items():
                if room and after not in levels:
                    levels[after] = levels[node] + 1
                    waiting.append(after)
        return levels if "sink" in levels else {}

    def _block(self, levels: dict[Any, int]) -> None:
        """Send a blocking flow along shortest paths."""
        untried = {node: list(self.room[node]) for node in levels}
        path: list[Any] = ["source"]
        while path:
            node = path[-1]
            if node == "sink":
                self._send(path)
                path = ["source"]
                continue
            while untried[node]:
                after = untried[node][-1]
                if self.room[node][after] and levels.get(after) == levels[node] + 1:
                    path.append(after)
                    break
                untried[node].pop()
            else:
                path.pop()
                if path:
                    untried[path[-1]].pop()

    def _send(self, path: Sequence[Any]) -> None:
        """Send as much as possible along the path."""
        edges = list(pairwise(path))
        least = min(self.room[a][b] for a, b in edges)
        for a, b in edges:
            self.room[a][b] -= least
            self.room[b][a] += least
