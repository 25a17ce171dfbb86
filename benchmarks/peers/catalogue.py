"""All rows, in the order in which they are reported."""

from __future__ import annotations

from peers import rows_arrays, rows_elementwise, rows_programs
from peers.row import Row

ROWS: list[Row] = [*rows_elementwise.ROWS, *rows_arrays.ROWS, *rows_programs.ROWS]
