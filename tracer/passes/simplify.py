"""Algebraic simplification: the table of all rewrites, which hold bit for bit but for `turning`, and their pass."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.ir.program import Atom, Equation
from tracer.passes.choices import CHOICES
from tracer.passes.conversions import CONVERSIONS
from tracer.passes.identities import IDENTITIES
from tracer.passes.indexing import INDEXING, check_what_holds
from tracer.passes.layouts import LAYOUTS
from tracer.passes.ranges import RANGES
from tracer.passes.reducing import REDUCING
from tracer.passes.rewriter import Rewriter, rewriting
from tracer.passes.rules import Rules, by_primitive
from tracer.passes.turning import TURNING
from tracer.primitives.effects import check_p

RULES: Final[Rules] = (*IDENTITIES, *CHOICES, *CONVERSIONS, *LAYOUTS, *INDEXING, *REDUCING, *TURNING, *RANGES)

_rewrite = by_primitive(RULES)


def _simplify(equation: Equation, at: Rewriter) -> Sequence[Atom] | None:
    if equation.primitive is check_p:
        return check_what_holds(equation, at)
    return _rewrite(equation, at)


simplify = rewriting(_simplify)
"""Apply the rules everywhere, nested programs included."""
