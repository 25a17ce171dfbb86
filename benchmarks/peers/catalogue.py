"""All rows, in the order in which they are reported, with what every peer makes of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from peers import (
    in_numba,
    in_torch,
    rows_arrays,
    rows_calls,
    rows_decompositions,
    rows_elementwise,
    rows_linalg,
    rows_programs,
    rows_science,
    rows_transforms,
)
from peers.row import Maker, Row

_PEERS: Mapping[str, Mapping[str, Maker]] = {"numba": in_numba.BY_BEGINNING, "torch": in_torch.BY_BEGINNING}


def _of(row: str, makers: Mapping[str, Maker]) -> Maker | None:
    """The maker whose name the row begins with; the longest counts."""
    found = [name for name in makers if row.startswith(name) and row[len(name) : len(name) + 1] in ("", " ", ",")]
    return makers[max(found, key=len)] if found else None


def _with_peers(row: Row) -> Row:
    found = {peer: maker for peer, makers in _PEERS.items() if (maker := _of(row.name, makers)) is not None}
    return replace(row, others={**found, **row.others})


_ALL = (
    *rows_calls.ROWS, *rows_elementwise.ROWS, *rows_arrays.ROWS, *rows_linalg.ROWS, *rows_decompositions.ROWS,
    *rows_transforms.ROWS, *rows_programs.ROWS, *rows_science.ROWS,
)  # fmt: skip
ROWS: list[Row] = [_with_peers(row) for row in _ALL]
