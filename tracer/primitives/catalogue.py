"""Catalogue of all primitives, family by family. A new primitive is a name in its family's tuple."""

from __future__ import annotations

from typing import Final

from tracer.ir.primitive import Primitive
from tracer.primitives.arrays.dynamic_slice import SLICING
from tracer.primitives.arrays.random import RANDOM
from tracer.primitives.arrays.reductions.pooling import WINDOW_REDUCTIONS
from tracer.primitives.arrays.reductions.reductions import REDUCTIONS
from tracer.primitives.arrays.slice_pad_concatenate import JOINING
from tracer.primitives.arrays.sliding_windows import SLIDING
from tracer.primitives.arrays.sorting import SORTING
from tracer.primitives.base.shapes import SHAPES
from tracer.primitives.control.calls import CALLS
from tracer.primitives.control.collective_permute import EXCHANGES
from tracer.primitives.control.collectives import COLLECTIVES
from tracer.primitives.control.cond import BRANCHES
from tracer.primitives.control.cumulative import SCANS
from tracer.primitives.control.custom.custom_rules import CUSTOM
from tracer.primitives.control.custom.custom_vmap import CUSTOM_BATCHING
from tracer.primitives.control.effects import EFFECTS
from tracer.primitives.control.for_loop import COUNTED
from tracer.primitives.control.linear_solve import LINEAR_SOLVES
from tracer.primitives.control.reverse.bounded_reverse import REVERSAL
from tracer.primitives.control.reverse.remat import CHECKPOINT
from tracer.primitives.control.reverse.residual_stacks import STACKS
from tracer.primitives.control.safe_operands import STAND_INS
from tracer.primitives.control.scan import SCAN
from tracer.primitives.control.scatter_mul import SCATTER_MUL
from tracer.primitives.control.shared_words import PROGRESS
from tracer.primitives.control.while_loop import LOOPS
from tracer.primitives.elementwise.arithmetic import ARITHMETIC
from tracer.primitives.elementwise.bits import BITS
from tracer.primitives.elementwise.comparison import COMPARISON
from tracer.primitives.elementwise.complex import COMPLEX
from tracer.primitives.elementwise.conversion import CONVERSION
from tracer.primitives.elementwise.divisors import DIVISORS
from tracer.primitives.elementwise.exponential import EXPONENTIAL
from tracer.primitives.elementwise.fma import FUSED
from tracer.primitives.elementwise.hyperbolic import HYPERBOLIC
from tracer.primitives.elementwise.powers import POWERS
from tracer.primitives.elementwise.precision import PRECISION
from tracer.primitives.elementwise.rounding import ROUNDING
from tracer.primitives.elementwise.special import SPECIAL
from tracer.primitives.elementwise.stop_gradient import GRADIENTS
from tracer.primitives.elementwise.trigonometric import TRIGONOMETRIC
from tracer.primitives.linalg.convolution import CONVOLUTION
from tracer.primitives.linalg.dot_general import CONTRACTIONS
from tracer.primitives.linalg.factorizations import FACTORIZATIONS
from tracer.primitives.linalg.fourier import FOURIER
from tracer.primitives.linalg.least_squares import LEAST_SQUARES
from tracer.primitives.linalg.orthogonal import ORTHOGONAL
from tracer.primitives.linalg.row_products import SPARSE_PRODUCTS
from tracer.primitives.linalg.similarity import SIMILARITY
from tracer.primitives.linalg.solve import SOLVES
from tracer.primitives.linalg.spectral import SPECTRAL
from tracer.primitives.linalg.triangular import TRIANGULAR
from tracer.primitives.linalg.tridiagonal_solve import TRIDIAGONAL_SOLVES

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
    *DIVISORS,
    *SCATTER_MUL,
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
    *FOURIER,
    *ORTHOGONAL,
    *SPECTRAL,
    *SIMILARITY,
    *TRIDIAGONAL_SOLVES,
    *LEAST_SQUARES,
    *SPARSE_PRODUCTS,
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
    *PROGRESS,
    *GRADIENTS,
    *STAND_INS,
    *COLLECTIVES,
    *EXCHANGES,
)

BY_NAME: Final[dict[str, Primitive]] = {primitive.name: primitive for primitive in CATALOGUE}
