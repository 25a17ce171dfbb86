"""The catalogue: every primitive there is, family by family. A new one is a line in its family's tuple."""

from __future__ import annotations

from typing import Final

from tracer.ir.primitive import Primitive
from tracer.primitives.arithmetic import ARITHMETIC
from tracer.primitives.bits import BITS
from tracer.primitives.branches import BRANCHES
from tracer.primitives.calls import CALLS
from tracer.primitives.checkpoint import CHECKPOINT
from tracer.primitives.collectives import COLLECTIVES
from tracer.primitives.comparison import COMPARISON
from tracer.primitives.complex import COMPLEX
from tracer.primitives.contractions import CONTRACTIONS
from tracer.primitives.conversion import CONVERSION
from tracer.primitives.convolution import CONVOLUTION
from tracer.primitives.counted import COUNTED
from tracer.primitives.custom import CUSTOM
from tracer.primitives.custom_batching import CUSTOM_BATCHING
from tracer.primitives.effects import EFFECTS
from tracer.primitives.exchanges import EXCHANGES
from tracer.primitives.exponential import EXPONENTIAL
from tracer.primitives.factorizations import FACTORIZATIONS
from tracer.primitives.fused import FUSED
from tracer.primitives.gradients import GRADIENTS
from tracer.primitives.hyperbolic import HYPERBOLIC
from tracer.primitives.joining import JOINING
from tracer.primitives.linear_solves import LINEAR_SOLVES
from tracer.primitives.loops import LOOPS
from tracer.primitives.powers import POWERS
from tracer.primitives.precision import PRECISION
from tracer.primitives.random import RANDOM
from tracer.primitives.reductions import REDUCTIONS
from tracer.primitives.reversal import REVERSAL
from tracer.primitives.rounding import ROUNDING
from tracer.primitives.scan import SCAN
from tracer.primitives.scans import SCANS
from tracer.primitives.shapes import SHAPES
from tracer.primitives.slicing import SLICING
from tracer.primitives.sliding import SLIDING
from tracer.primitives.solves import SOLVES
from tracer.primitives.sorting import SORTING
from tracer.primitives.special import SPECIAL
from tracer.primitives.stacks import STACKS
from tracer.primitives.stand_ins import STAND_INS
from tracer.primitives.triangular import TRIANGULAR
from tracer.primitives.trigonometric import TRIGONOMETRIC
from tracer.primitives.window_reductions import WINDOW_REDUCTIONS

ELEMENTWISE: Final[tuple[Primitive, ...]] = (
    *ARITHMETIC,
    *FUSED,
    *POWERS,
    *EXPONENTIAL,
    *TRIGONOMETRIC,
    *HYPERBOLIC,
    *SPECIAL,
    *ROUNDING,
    *COMPARISON,
    *BITS,
    *CONVERSION,
    *PRECISION,
    *COMPLEX,
)

CATALOGUE: Final[tuple[Primitive, ...]] = (
    *ELEMENTWISE,
    *SHAPES,
    *JOINING,
    *SLICING,
    *SLIDING,
    *REDUCTIONS,
    *WINDOW_REDUCTIONS,
    *SCANS,
    *SORTING,
    *CONTRACTIONS,
    *CONVOLUTION,
    *TRIANGULAR,
    *FACTORIZATIONS,
    *SOLVES,
    *LINEAR_SOLVES,
    *RANDOM,
    *CALLS,
    *CHECKPOINT,
    *BRANCHES,
    *LOOPS,
    *COUNTED,
    *REVERSAL,
    *SCAN,
    *STACKS,
    *CUSTOM,
    *CUSTOM_BATCHING,
    *EFFECTS,
    *GRADIENTS,
    *STAND_INS,
    *COLLECTIVES,
    *EXCHANGES,
)

BY_NAME: Final[dict[str, Primitive]] = {primitive.name: primitive for primitive in CATALOGUE}
