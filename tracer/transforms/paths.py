"""Paths: the backward program of a function that ran with values, kept for the next time it takes the same path.

A tape is described by its key: the operations, their parameters and types, and how they are connected. The first time
a path is seen its derivative is computed operation by operation; from the second time on a program of
(residuals..., cotangents...) is staged once, compiled by whoever runs `call`, and found by the key.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from tracer.ir.program import Literal, Var
from tracer.primitives.arrays.zeros import zeros
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.trace.array import Array, concrete
from tracer.trace.stage import stage
from tracer.trace.state import state
from tracer.trace.trace import Operand, eager
from tracer.transforms.context import Tangent
from tracer.transforms.run import Entry, LinearTape, Tape, linear_tape
from tracer.transforms.transpose import pull_back


class _Backward(NamedTuple):
    """run: (residuals that it reads..., cotangents...) -> gradients, compiled. reads: which residuals those are."""

    run: Callable[..., Sequence[Array]]
    reads: tuple[bool, ...]


_MOST_PATHS = 512
# None: seen once, by the key's hash, which keeps nothing alive
_paths: OrderedDict[Any, _Backward | None] = OrderedDict()
_lock = threading.Lock()


def pull(tape: Tape, linear: LinearTape | None, cotangents: Sequence[Operand]) -> list[Tangent]:
    """Gradients of the tape's inputs. `linear` is its linear program, where that was written already."""
    residuals = [r for entry in tape.entries for r in entry.values]
    backward = _find(tape, residuals, cotangents) if linear is None else None
    if backward is not None:
        kept = [_array(r) for r, on in zip(residuals, backward.reads, strict=True) if on]
        return list(backward.run(*kept, *map(_array, cotangents)))
    linear = linear or linear_tape(tape)
    return pull_back(linear.program, linear.linear, linear.residuals, cotangents)


def _find(tape: Tape, residuals: Sequence[Operand], cotangents: Sequence[Operand]) -> _Backward | None:
    """The compiled way, outside every trace and from the second time on."""
    plain = state.staging is None and all(isinstance(r, Literal) or r._trace is None for r in residuals)
    if not plain or not tape.entries or any(isinstance(c, Array) and c._trace is not None for c in cotangents):
        return None
    try:
        key = _key(tape)
        mark = hash(key)
    except TypeError:  # an unhashable parameter
        return None
    with _lock:
        backward = _paths.get(key)
        seen = backward is not None or mark in _paths
        if not seen:
            _keep(mark, None)
            return None
        if backward is not None:
            _paths.move_to_end(key)
            return backward
    backward = _stage(tape, residuals, cotangents)
    with _lock:
        _paths.pop(mark, None)
        _keep(key, backward)
    return backward


def _keep(key: Any, backward: _Backward | None) -> None:
    _paths[key] = backward
    if len(_paths) > _MOST_PATHS:
        _paths.popitem(last=False)


def _key(tape: Tape) -> Any:
    return (
        tuple([v.type for v in tape.inputs]),
        tuple(tape.path),
        tuple([None if v is None else tape.numbers.get(v) for v in tape.output_vars]),
        tuple([y.type for y in tape.outputs]),
    )


def _stage(tape: Tape, residuals: Sequence[Operand], cotangents: Sequence[Operand]) -> _Backward:
    count = len(residuals)

    def run(inputs: list[Any]) -> list[Operand]:
        given = iter(inputs[:count])
        entries: list[Entry] = []
        for entry in tape.entries:
            entries.append(entry._replace(values=[_spread(next(given), r, entry) for r in entry.values]))
        linear = linear_tape(replace(tape, entries=entries))
        gradients = pull_back(linear.program, linear.linear, linear.residuals, inputs[count:])
        return [dense(g) for g in gradients]

    staged = stage(run, [*(r.type for r in residuals), *(c.type for c in cotangents)], name="backward")
    assert not staged.constants, "the backward program reads residuals and cotangents alone"
    program = staged.program
    read = {a for e in program.equations for a in e.inputs if isinstance(a, Var)}
    read.update(a for a in program.outputs if isinstance(a, Var))
    reads = tuple(v in read for v in program.inputs[:count])
    kept = tuple(v for v, on in zip(program.inputs, reads, strict=False) if on)
    program = replace(program, inputs=(*kept, *program.inputs[count:]))
    samples = [_array(r) for r, on in zip(residuals, reads, strict=True) if on]
    return _Backward(eager.prepare_program(program, [*samples, *map(_array, cotangents)]), reads)


def _array(residual: Operand) -> Array:
    """A residual as an operand of the compiled program."""
    if isinstance(residual, Array):
        return residual
    return concrete(np.asarray(residual.value, residual.type.dtype), residual.type.weak)


def _spread(given: Any, residual: Operand, entry: Entry) -> Any:
    """A number as the array that it stood for: of the shape of the operation's result."""
    shape = next(v.type.shape for v in entry.outputs if v is not None)
    return broadcast_in_dim(given, shape, ()) if isinstance(residual, Literal) else given


def dense(tangent: Tangent) -> Operand:
    """A tangent as an operand: a symbolic zero as an array of zeros."""
    return tangent if isinstance(tangent, Array | Literal) else zeros(tangent.type)
