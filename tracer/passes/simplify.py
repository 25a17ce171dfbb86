"""Algebraic simplification: the table of all rewrite rules, and their pass.

The rules hold bit for bit, except `transpose_folding`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from tracer.ir.program import Atom, Equation
from tracer.passes.algebra.conversions import CONVERSIONS
from tracer.passes.algebra.identities import IDENTITIES
from tracer.passes.algebra.indexing import INDEXING, without_true_checks
from tracer.passes.algebra.layouts import LAYOUTS
from tracer.passes.algebra.loop_ranges import rewriting_with_ranges
from tracer.passes.algebra.ranges import RANGES
from tracer.passes.algebra.select_rules import SELECT_RULES
from tracer.passes.algebra.transpose_folding import TRANSPOSE_FOLDING
from tracer.passes.algebra.trivial_reductions import TRIVIAL_REDUCTIONS
from tracer.passes.base.rewriter import Rewriter
from tracer.passes.base.rules import Rules, by_primitive
from tracer.primitives.control.effects import check_p

RULES: Final[Rules] = (
    *IDENTITIES,
    *SELECT_RULES,
    *CONVERSIONS,
    *LAYOUTS,
    *INDEXING,
    *TRIVIAL_REDUCTIONS,
    *TRANSPOSE_FOLDING,
    *RANGES,
)

_rewrite = by_primitive(RULES)


def _simplify(equation: Equation, at: Rewriter) -> Sequence[Atom] | None:
    if equation.primitive is check_p:
        return without_true_checks(equation, at)
    return _rewrite(equation, at)


simplify = rewriting_with_ranges(_simplify)
"""Apply the rules everywhere, nested programs included."""
