"""Faults that were mended, put back one after another: whether the hunt's seeds find each of them.

    python -m tests.hunt.known_faults

runs in a process of its own, because prepared calls would keep a fault. Each is patched in, and found by a few seeds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tests.hunt import calls, mistakes, nests
from tracer import ops, settings
from tracer.ir import cursor
from tracer.ir.primitive import Primitive
from tracer.lax import reducing
from tracer.nn import initializers, normalisation
from tracer.numpy.core import dlpack
from tracer.primitives.arrays.sliding_windows import dilated
from tracer.primitives.linalg import convolution
from tracer.trace import tracebacks

Found = Iterator[tuple[str, str]]


@dataclass(frozen=True)
class Fault:
    """A fault: the attribute that has it, its faulty value, seeds, and what the hunt says of one of them."""

    name: str
    holder: Any
    attribute: str
    value: Any
    findings: Callable[[int], Found]
    seeds: range
    says: str


def _calls(name: str) -> Callable[[int], Found]:
    return lambda seed: calls.findings(name, seed)


def _dilated_before(what: str, sizes: Any, window: Any, strides: Any, padding: Any, base: Any, spread: Any) -> Any:
    return _pads_of(what, list(map(dilated, sizes, base)), window, strides, padding, base, spread)


def _transposed(ctx: Any, cts: Any, xs: Any, **params: Any) -> Any:
    for x in xs:
        if 0 in x.type.shape[2:]:
            raise ZeroDivisionError("integer division or modulo by zero")
    return _transpose(ctx, cts, xs, **params)


def _by_name(config: Any, name: Any) -> Any:
    return settings.SETTINGS[name]


_pads_of, _transpose, _updated = reducing.pads_of, convolution.conv_p.transpose, ops.updated
FAULTS = (
    Fault("negative ids of segment_sum count from the end", ops, "updated",
          lambda *args, wrap, **options: _updated(*args, wrap=True, **options),
          _calls("ops.segment_sum"), range(6, 40), "ops.segment_sum beside"),
    Fault("softmax of a row with inf is [nan, 0, 0]", normalisation, "_shift", normalisation._peak,
          _calls("nn.softmax"), range(15, 60), "nn.softmax beside"),
    Fault("SAME of reduce_window pads the dilated shape", reducing, "pads_of", _dilated_before,
          _calls("lax.reduce_window"), range(56, 160), "lax.reduce_window beside"),
    Fault("weights without elements divide by zero", initializers, "_FANS",
          {key: lambda *fans, f=f: f(*fans) or _NoFan(0) for key, f in initializers._FANS.items()},
          _calls("nn.initializers.he_normal"), range(20), "nn.initializers.he_normal eager raises ZeroDivisionError"),
    Fault("gradients of convolutions without elements divide by zero", convolution.conv_p, "transpose", _transposed,
          _calls("lax.conv_general_dilated"), range(4, 60), "gradient raises ZeroDivisionError"),
    Fault("names that program text does not have are a KeyError", cursor.Cursor, "lookup",
          lambda self, table, what, token, name=None: table[name or token.text],
          mistakes.findings, range(2, 60), "texts: KeyError"),
    Fault("config.update(5, 1) is a KeyError", settings.Config, "_setting", _by_name,
          mistakes.findings, range(14, 60), "settings: KeyError"),
    Fault("a capsule taken twice is a ValueError", dlpack, "_viewed", np.from_dlpack,
          mistakes.findings, range(60), "memory: "),
    Fault("deep nests end in a bare RecursionError", tracebacks, "too_deep", lambda error: None,
          nests.findings, range(23, 60), "raises RecursionError"),
)  # fmt: skip


class _NoFan(int):
    """A number of no weights that was divided by."""

    def __bool__(self) -> bool:
        return True


def found(fault: Fault) -> int | None:
    """Return the first seed that finds a fault; None if none does."""
    put = object.__setattr__ if isinstance(fault.holder, Primitive) else setattr
    before = getattr(fault.holder, fault.attribute)
    put(fault.holder, fault.attribute, fault.value)
    try:
        finds = (seed for seed in fault.seeds if any(fault.says in what for what, _ in fault.findings(seed)))
        return next(finds, None)
    finally:
        put(fault.holder, fault.attribute, before)


def main() -> None:
    """Print each fault with the seed that finds it; the status is 1 if one is not found."""
    seeds = {fault.name: found(fault) for fault in FAULTS}
    for name, seed in seeds.items():
        print(f"{name}: {'not found' if seed is None else f'seed {seed}'}")
    sys.exit(None in seeds.values())


if __name__ == "__main__":
    main()
