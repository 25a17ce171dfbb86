"""The rows of `compare.py` on the sciences, in six minutes: Fourier transforms, decompositions, solvers, sparse arrays.

python benchmarks/science.py [arguments of compare.py]     scripts/bench --keep science
"""

from __future__ import annotations

import sys

import compare

FAMILIES = (
    "Fourier transforms", "decompositions", "linear algebra", "special functions", "signals", "minima and equations",
    "images and interpolation", "sparse and clusters",
)  # fmt: skip

if __name__ == "__main__":
    sys.argv[1:] = [
        "--peers", "numpy", "jax", "torch", "--rounds", "5", "--seconds", "0.04", "--rows", *FAMILIES, *sys.argv[1:]
    ]  # fmt: skip
    sys.exit(compare.main())
