"""Products of bf16 matrices by AMX, in tiles of 16 x 16 sums.

    void tracer_product_bf16(...)    as in `bf16_dot`, on machines with tiles

A block of the result is 32 x 32 sums in four tiles. They multiply two tiles of a by two of b. Blocks at the edges are
smaller, and so are their tiles: no memory outside a matrix is read or written. Both operands are copied, `DEPTH` deep,
with zeros up to a multiple of 32. Pairs of b's rows are interleaved (Intel calls the layout VNNI), in panels of 32
columns. Rows of a are copied in blocks of 32 rows by 32 elements. So tiles are read sequentially however far apart rows
are. A panel of b stays in the first cache while `ROWS` rows of a pass by. These stay in the second. Sums accumulate in
the result from depth to depth. Subnormals count as zeros. Each call configures and releases the tiles, which belong to
a thread.

Instructions and layout: Intel 64 and IA-32 Architectures Software Developer's Manual, volume 1, chapter 18. The
routines are in `kernels/ll/amx/`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tracer.codegen.llvm.toolchain.native_text import expanded, routines

DEPTH: Final = 512  # elements of k, 32 KB of a panel
COLUMNS: Final = 256  # copied before any is multiplied
ROWS: Final = 128
_ROUTINES: Final = (
    "declarations", "configure", "pairs", "turned", "rows", "block11", "block12", "block21", "block22", "product",
)  # fmt: skip


def tile_products_text() -> str:
    """Return the module."""
    values = {
        "Amx.depth": DEPTH, "Amx.columns": COLUMNS, "Amx.rows": ROWS,
        "Amx.packed_pairs": DEPTH // 2 * COLUMNS, "Amx.packed_rows": ROWS * DEPTH,
    }  # fmt: skip
    return expanded(routines(Path(__file__).parents[1] / "ll" / "amx", _ROUTINES), values)
