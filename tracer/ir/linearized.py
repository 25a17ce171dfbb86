"""Linearised programs: the part that is computed now, and the part that is linear in the tangents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracer.ir.program import Atom, Program


@dataclass(frozen=True, slots=True)
class LinearizedProgram:
    """Program split in two, for its derivative or its transpose.

    forward: inputs -> (outputs..., new residuals...). linear: (residuals..., active tangents...) -> active tangents.
    sources: the origin of each residual: ("input", i), ("output", i), or ("residual", i) of `forward`.
    If the program is itself linear in its active inputs, `linear` takes these inputs instead of tangents; `forward` has
    zeros for them and for the outputs that they reach.
    """

    forward: Program
    linear: Program
    sources: tuple[tuple[str, int], ...]
    active_outputs: tuple[bool, ...]

    def residual_atoms(self) -> list[Atom]:
        """Return the residuals as atoms of the forward program."""
        return self.residuals(self.forward.inputs, self.forward.outputs)

    def residuals(self, inputs: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """Return the residuals, from the forward program's inputs and results."""
        outputs = len(self.active_outputs)
        starts = {"output": 0, "residual": outputs}
        return [inputs[i] if kind == "input" else results[starts[kind] + i] for kind, i in self.sources]
