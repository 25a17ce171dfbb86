"""A program taken apart for its derivative, or for its transpose: what is computed now, and the linear rest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tracer.ir.program import Atom, Program


@dataclass(frozen=True, slots=True)
class LinearizedProgram:
    """A program split in two.

    forward: inputs -> (outputs..., new residuals...). linear: (residuals..., active tangents...) -> active tangents.
    sources: where each residual comes from: ("input", i), ("output", i), or ("residual", i) of `forward`.
    Of a program that is itself linear in its active inputs, `forward` has zeros for those and for the outputs that
    they reach, and `linear` takes the inputs themselves.
    """

    forward: Program
    linear: Program
    sources: tuple[tuple[str, int], ...]
    active_outputs: tuple[bool, ...]

    @property
    def residual_count(self) -> int:
        return len(self.sources)

    def residual_atoms(self) -> list[Atom]:
        """The residuals as the forward program names them."""
        return self.residuals(self.forward.inputs, self.forward.outputs)

    def residuals(self, inputs: Sequence[Any], results: Sequence[Any]) -> list[Any]:
        """The residuals, from the forward program's inputs and results."""
        outputs = len(self.active_outputs)
        starts = {"output": 0, "residual": outputs}
        return [inputs[i] if kind == "input" else results[starts[kind] + i] for kind, i in self.sources]
