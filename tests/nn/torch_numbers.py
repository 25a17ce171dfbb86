"""Numbers that `tools/torch_recurrent.py` and the tests put into weights and inputs, both the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

STORED = Path(__file__).parent / "torch_recurrent.npz"


def numbers(name: str, shape: tuple[int, ...], scale: float = 0.8) -> np.ndarray[Any, Any]:
    """Float64 numbers within `scale`, another sequence for each name."""
    count = int(np.prod(shape))
    steps = (crc32(name.encode()) % 997 + 1) * np.arange(1, count + 1)
    return (scale * np.cos(0.618 * steps + 0.1 * steps % 7)).reshape(shape)


class Stored:
    """What PyTorch gave: configurations by group, and results and gradients by name."""

    def __init__(self) -> None:
        with np.load(STORED) as file:
            text, flat = json.loads(str(file["text"])), file["numbers"]
        self.cases: dict[str, list[dict[str, Any]]] = text["cases"]
        sizes = [int(np.prod(shape)) for shape in text["index"].values()]
        pieces = np.split(flat, np.cumsum(sizes)[:-1])
        self._arrays = {
            name: piece.reshape(shape) for (name, shape), piece in zip(text["index"].items(), pieces, strict=True)
        }

    def results(self, group: str, n: int) -> dict[str, np.ndarray[Any, Any]]:
        """Return outputs and gradients of the n-th configuration of a group."""
        start = f"{group} {n} "
        return {name.removeprefix(start): x for name, x in self._arrays.items() if name.startswith(start)}
