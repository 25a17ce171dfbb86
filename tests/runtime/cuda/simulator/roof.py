"""Programs that memory bounds, and what their kernels move beside the least possible. Run as a module for the table."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

import numpy as np

import tracer
import tracer.numpy as tnp
from tests.runtime.cuda.simulator.running import traffic_of
from tracer import lax, nn
from tracer.ir.loop import Constant, For, LoopKind, Module
from tracer.ir.loop.walk import accesses_of, statements_of
from tracer.ir.program import Program
from tracer.ir.target import CUDA
from tracer.ir.types import array_type
from tracer.passes.pipeline import optimize
from tracer.schedule.pipeline import gpu_schedule
from tracer.trace.stage import stage

MULTIPROCESSORS: Final = 132
LARGE: Final = 8 << 20  # bytes from which there are blocks for all of them
DTYPES: Final = ("float32", "float16", "float64")
COLUMNS: Final = (33, 64, 100, 257, 1000, 1024, 4096, 5000, 16384)

Kernel = Callable[..., Any]


def _layernorm(x: Any) -> Any:
    mean = tnp.mean(x, axis=1, keepdims=True)
    return (x - mean) / tnp.sqrt(tnp.mean((x - mean) ** 2, axis=1, keepdims=True) + 1e-5)


def _rmsnorm(x: Any) -> Any:
    return x / tnp.sqrt(tnp.mean(x * x, axis=1, keepdims=True) + 1e-5)


def _cross_entropy(x: Any, y: Any) -> Any:
    return -tnp.sum(nn.log_softmax(x, axis=1) * y, axis=1)


def _gradient(f: Kernel) -> Kernel:
    return lambda x, y: tracer.grad(lambda x: tnp.sum(f(x) * y))(x)


FORWARD: Final[Mapping[str, tuple[Kernel, int]]] = {
    "chain": (lambda x, y: tnp.exp(x) * y + 1, 2),
    "softmax": (lambda x: nn.softmax(x, axis=1), 1),
    "log_softmax": (lambda x: nn.log_softmax(x, axis=1), 1),
    "layernorm": (_layernorm, 1),
    "rmsnorm": (_rmsnorm, 1),
    "cross_entropy": (_cross_entropy, 2),
    "argmax": (lambda x: tnp.argmax(x, axis=1), 1),
    "row_sum": (lambda x: tnp.sum(x, axis=1), 1),
    "column_sum": (lambda x: tnp.sum(x, axis=0), 1),
    "column_std": (lambda x: tnp.std(x, axis=0), 1),
    "total": (tnp.sum, 1),
    "transpose": (lambda x: x.T + 1, 1),
    "plus_transpose": (lambda x, y: x + tnp.reshape(y, y.shape[::-1]).T, 2),
    "swap_batches": (lambda x: tnp.swapaxes(tnp.reshape(x, (2, -1, x.shape[1])), 1, 2), 1),
    "moveaxis": (lambda x: tnp.moveaxis(tnp.reshape(x, (x.shape[0], 2, -1)), 0, -1), 1),
    "concatenate": (lambda x, y: tnp.concatenate([x, y], axis=1), 2),
    "pad": (lambda x: lax.pad(x, x.dtype.type(0), ((1, 1, 0), (1, 1, 0))), 1),
    "concatenate_rows": (lambda x, y: tnp.concatenate([x, y * 2, x]), 2),
    "stack": (lambda x, y: tnp.stack([x, y], axis=1), 2),
    "pad_sectors": (lambda x: lax.pad(x, x.dtype.type(0), ((8, 16, 0), (16, 32, 0))), 1),
    "roll": (lambda x: tnp.roll(x, 16, axis=1), 1),
    "roll_rows": (lambda x: tnp.roll(x, -3, axis=0) + x, 1),
    "flip": (lambda x: x[:, ::-1] + 1, 1),
    "flip_rows": (lambda x: x[::-1] + x, 1),
    "cumsum_rows": (lambda x: tnp.cumsum(x, axis=1), 1),
    "cumsum_columns": (lambda x: tnp.cumsum(x, axis=0), 1),
}
"""Programs by name, with the number of their operands, all of one shape (rows, columns)."""
GRADIENTS: Final[Mapping[str, tuple[Kernel, int]]] = {
    f"grad_{name}": (_gradient(FORWARD[name][0]), 2) for name in ("softmax", "log_softmax", "layernorm", "rmsnorm")
}
ALL: Final = {**FORWARD, **GRADIENTS}


@dataclass(frozen=True, slots=True)
class Traffic:
    """Kernels of a program, bytes that they move beside the least, sectors beside the least, the fewest blocks."""

    kernels: int
    bytes: float
    sectors: float
    blocks: int


def program_of(name: str, dtype: str, shape: tuple[int, int]) -> Program:
    """Return a program on arrays of a shape, optimised for a GPU."""
    function, count = ALL[name]
    return optimize(stage(lambda xs: [function(*xs)], [array_type(np.dtype(dtype), shape)] * count).program, CUDA)


@cache
def _module(name: str, dtype: str, shape: tuple[int, int]) -> Module:
    schedule = gpu_schedule(program_of(name, dtype, shape), CUDA)[1]
    assert schedule.left == ()
    return schedule.module


def measured(name: str, dtype: str, columns: int, rows: int = 0) -> Traffic:
    """Return the traffic of a program on a few rows, and the blocks of its kernels on 8 MB. rows: 0 for 6 to 70."""
    rows = rows or (max(6, min(70, 1 << 14 // columns)) if columns < 1024 else 6)
    shape, program = (rows, columns), program_of(name, dtype, (rows, columns))
    rng = np.random.default_rng(0)
    inputs = [(rng.random(shape) + 0.5).astype(dtype) for _ in program.inputs]
    counts = list(traffic_of(_module(name, dtype, shape), inputs).values())
    types = (*program.input_types, *program.output_types)
    ideal = sum(t.dtype.itemsize * int(np.prod(t.shape)) for t in types)
    moved, sectors = sum(c.distinct for c in counts), sum(c.sectors for c in counts)
    large = (max(2, -(-LARGE // (columns * np.dtype(dtype).itemsize)) // 2 * 2), columns)
    return Traffic(
        len(counts),
        moved / ideal,
        sectors / max(1, sum(c.least for c in counts)),
        min(_blocks(_module(name, dtype, large))),
    )


def _blocks(module: Module) -> Iterator[int]:
    """Yield the blocks of the kernels that read or write a large array."""
    for function in module.functions:
        statements = list(statements_of(function.body))
        touched = [b.size * b.dtype.itemsize for s in statements for b, _, _ in accesses_of(s)]
        loops = [s for s in statements if isinstance(s, For) and s.kind is LoopKind.BLOCK]
        if loops and max(touched, default=0) >= LARGE // 2:
            yield from (int(s.stop.value) for s in loops if isinstance(s.stop, Constant))


def rows_of_table(names: tuple[str, ...] = tuple(ALL), columns: tuple[int, ...] = COLUMNS) -> Iterator[str]:
    for name, dtype, count in itertools.product(names, DTYPES, columns):
        try:
            t = measured(name, dtype, count)
        except Exception as error:
            yield f"{name:15} {dtype:8} {count:6} {type(error).__name__} {str(error)[:90]}"
            continue
        yield f"{name:15} {dtype:8} {count:6} {t.kernels:3} {t.bytes:7.2f} {t.sectors:7.2f} {t.blocks:7}"


if __name__ == "__main__":
    import sys

    for row in rows_of_table(tuple(sys.argv[1:]) or tuple(ALL), (33, 1000, 1024, 16384)):
        print(row, flush=True)
