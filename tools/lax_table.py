"""Write docs/lax.md: every public name of JAX's lax, whether tracer.lax has it, and why not where it has not.

Run:  python -m tools.lax_table   (the names come from tests/lax/jax_names.json, which tools/jax_names.py writes)
"""

from __future__ import annotations

from collections.abc import Iterator

from tools.jax_tables import ROOT, Stored
from tracer import absent, lax

JAX = Stored(lax)
TARGET = ROOT / "docs" / "lax.md"

# JAX's names that are not here, and why.
ABSENT = absent.ABSENT["tracer.lax"]

# Parameters of JAX's that are not taken, and why.
NOT_TAKEN: dict[str, str] = {
    "accuracy": "every function is held to the bounds of docs/math-accuracy.md",
    "allow_negative_indices": "negative indices count from the end, as by JAX's default",
    "out_dtype": "cast the product",
    "out_sharding": "arrays live on one device",
    "sharding": "arrays live on one device",
    "to": "arrays live on one device",
}

# What functions of both mean otherwise here, and why.
DIFFERENT: dict[str, str] = {
    "`max`, `min`, `clamp`, reductions, scans and scatters by them, of complex numbers": "a NaN part wins, the first "
    "of several; with JAX the order of the operands decides. `clamp` compares imaginary parts as well",
    "`atan2` of complex numbers": "refused: the angle is that of a real point",
    "Python numbers of another kind, as in `add(x, 1)` of floats": "taken, as by `tracer.numpy`; JAX with "
    "64 bits refuses them",
    "the derivative of `sign` of complex numbers": "that of z / abs(z); 0 in JAX",
    "the derivative of `abs` at 0": "0, as of `sign`; 1 in JAX",
    "`add` and `mul` of bools, `abs` of unsigned integers": "defined, as in NumPy",
    "`argmax`, `argmin` and gradients of `reduce_window` and `clamp` of complex numbers": "defined, by the same order",
    "`cummax`, `cummin`": "equal elements share the derivative equally, as in `reduce_max`; JAX halves it each step",
    "`dot_general` of operands of two dtypes": "promotes as `tracer.numpy` does; JAX takes one of the two, "
    "i8 for i8 and u8",
    "`reduce_window` from a value that is not neutral": "padding holds it, too, as StableHLO says; XLA leaves padding "
    "out",
    "gradients of `reduce_window` with `max` and `min`": "of a window with NaN, the first NaN; windows may be dilated",
    "`scatter_mul`": "has a gradient without `unique_indices`",
    "`convert_element_type` of complex numbers to bool": "1j is true, as in NumPy",
    "`sort` of complex numbers": "values with a NaN imaginary part come last, as in NumPy",
}

_HEAD = """# tracer.lax and JAX's lax

Written by `tools/lax_table.py`; compared with jax.lax {version}.

`tracer.lax` has {here} of the {total} public names. Its functions take JAX's parameters, with equal names in equal
order, except for these keywords:

| keyword | why it is not taken |
|---|---|
"""


def _lines() -> Iterator[str]:
    names = JAX.names
    here = [name for name in names if name in lax.__all__]
    yield _HEAD.format(version=JAX.version, here=len(here), total=len(names)).rstrip()
    for parameter in sorted(JAX.not_taken()):
        yield f"| `{parameter}` | {NOT_TAKEN[parameter]} |"
    yield "\n## Differences\n\n| subject | here |\n|---|---|"
    for what, meaning in DIFFERENT.items():
        yield f"| {what} | {meaning} |"
    yield "\n## Missing names\n\n| name | why |\n|---|---|"
    for name in sorted(set(names) - set(here)):
        yield f"| `{name}` | {ABSENT[name]} |"
    yield "\n## Names\n\n| name | summary |\n|---|---|"
    for name in here:
        first = (getattr(lax, name).__doc__ or "").strip().split("\n\n")[0].replace("\n", " ").replace("|", "\\|")
        yield f"| `{name}` | {' '.join(first.split())} |"


def text() -> str:
    """The page."""
    return "\n".join(_lines()) + "\n"


if __name__ == "__main__":
    TARGET.write_text(text(), encoding="utf-8")
