"""Sparse Jacobians and Hessians by compression: pattern, colouring, one product for each colour, entries read back.

Curtis, Powell & Reid 1974, IMA J. Appl. Math. 13(1); for Hessians, Coleman & More 1984, Math. Programming 28(3).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.ir.types import ArrayType, size, tangent_type
from tracer.primitives.arrays.slice_pad_concatenate import concatenate
from tracer.primitives.base.broadcasting import broadcast_in_dim
from tracer.primitives.base.shapes import broadcasted_iota, reshape
from tracer.primitives.elementwise.comparison import eq
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace import trees
from tracer.trace.array import Array, concrete
from tracer.trace.evaluate import evaluate
from tracer.trace.source import here
from tracer.trace.stage import Staged, stage
from tracer.trace.trace import Operand
from tracer.transforms.functions import result_names
from tracer.transforms.gradient_arguments import Chosen, argument_numbers, chosen_arguments
from tracer.transforms.jacobians import check_complex, check_real, pull_batch, push_batch
from tracer.transforms.jvp import jvp_program
from tracer.transforms.recording import Flattened, Recorded
from tracer.transforms.run import run_reverse
from tracer.transforms.sparsity.coloring import Integers, across, color_columns, color_symmetric
from tracer.transforms.sparsity.index_sets import TooDenseError, distinct, identity
from tracer.transforms.sparsity.loops import PROGRAMS
from tracer.transforms.sparsity.propagation import Propagation, Value, constant
from tracer.transforms.sparsity.rules import RULES


class Pattern(NamedTuple):
    """Places of a matrix that may be other than 0, ordered by row, then by column."""

    rows: Integers
    columns: Integers
    shape: tuple[int, int]

    @property
    def across(self) -> Pattern:
        """The union with the transpose."""
        keys = distinct(
            np.concatenate([self.rows * self.shape[1] + self.columns, self.columns * self.shape[1] + self.rows])
        )
        rows, columns = np.divmod(keys, max(self.shape[1], 1))
        return Pattern(rows, columns, self.shape)


class Traced(NamedTuple):
    """User's function of its differentiated arguments, as a program; its Jacobian is by all leaves of these."""

    staged: Staged
    holder: Flattened
    chosen: Chosen
    caller: str

    @property
    def outputs(self) -> list[ArrayType]:
        """Types of the results, without aux."""
        found = self.staged.program.output_types[: self.holder.count]
        return [t for t in found if isinstance(t, ArrayType)]

    @property
    def inputs(self) -> list[ArrayType]:
        """Types of the differentiated arguments."""
        return [x.type for x in self.chosen.leaves if isinstance(x.type, ArrayType)]


def traced(
    fun: Callable[..., Any], caller: str, argnums: int | Sequence[int], args: Sequence[Any], kwargs: dict[str, Any], *,
    has_aux: bool, holomorphic: bool, of: Callable[..., Any] | None = None,
) -> Traced:  # fmt: skip
    """Trace a function. of: the user's function, if `fun` is its gradient.

    Raises DTypeError for arguments without a derivative, and for complex ones unless `holomorphic`.
    """
    numbers = argument_numbers(argnums, caller)
    chosen = chosen_arguments(of or fun, caller, numbers, args, kwargs, holomorphic=holomorphic, allow_int=False)
    if of is not None:
        call = chosen_arguments(fun, caller, numbers, args, kwargs, holomorphic=holomorphic, allow_int=False).call
        chosen = chosen._replace(call=call)
    where = f"{caller} of {chosen.name}"
    if not holomorphic:
        check_real([x.type for x in chosen.leaves], chosen.names, where, "arguments")
    holder = Flattened(has_aux, where)
    staged = stage(
        holder.flat(chosen.call, chosen.structure), [x.type for x in chosen.leaves], name=chosen.name, protected=True
    )
    found = staged.program.output_types[: holder.count]
    names = partial(result_names, trees.unflatten(holder.structure, [0] * holder.count))
    (check_complex if holomorphic else check_real)(list(found), names, where, "results")
    return Traced(staged, holder, chosen, caller)


def pattern_of(t: Traced) -> Pattern:
    """Return where the Jacobian may be other than 0, for any values of the arguments.

    Raises ArgumentError for a pattern of more entries than memory should hold.
    """
    program, count = t.staged.program, len(t.staged.constants)
    active = (False,) * count + (True,) * len(t.chosen.leaves)
    derived = jvp_program(program, active, True)
    columns = sum(map(size, t.inputs))
    start, tangents = 0, []
    for type in t.inputs:
        tangents.append(Value(tangent_type(type), identity(start, size(type), columns)))
        start += size(type)
    values = [*map(constant, t.staged.constants), *(Value(x.type) for x in t.chosen.leaves), *tangents]
    try:
        found = iter(Propagation(RULES, PROGRAMS).run(derived.program, values)[len(program.outputs) :])
        rows, places, start = [], [], 0
        for position, type in enumerate(t.outputs):
            value = next(found) if derived.active_outputs[position] else None
            if value is not None and value.sets is not None:
                own, inputs = value.sets.entries()
                rows.append(own + start)
                places.append(inputs)
            start += size(type)
    except TooDenseError:
        raise ArgumentError(
            message(
                f"{t.caller} of {t.chosen.name}{here()}: the pattern has too many entries to be sparse",
                "an intermediate result depends on too many inputs, as a norm or a solution of a system does",
                help="give pattern=..., or use jacfwd, jacrev or products with the Jacobian: jvp, vjp, hvp",
            )
        ) from None
    nothing = np.zeros(0, np.int64)
    return Pattern(np.concatenate([nothing, *rows]), np.concatenate([nothing, *places]), (start, columns))


def recorded(t: Traced) -> Recorded:
    """Run the function at its arguments, with its derivative there."""
    program, constants = t.staged

    def run(leaves: list[Any]) -> list[Operand]:
        return evaluate(program, [*constants, *leaves])

    tape = run_reverse(run, t.chosen.leaves, [True] * len(t.chosen.leaves), t.chosen.name)
    outputs = list(tape.outputs)
    del tape.outputs[t.holder.count :], tape.output_vars[t.holder.count :]
    return Recorded(t.chosen.leaves, t.holder, outputs, tape)


class Compressed(NamedTuple):
    """Products with a matrix, [colours, n], and where each entry of its pattern is to be read among them, [nse]."""

    products: Array | None  # None for a pattern without entries
    lanes: Integers
    places: Integers


def jacobian_products(run: Recorded, pattern: Pattern, mode: str) -> Compressed:
    """Multiply the Jacobian by one vector for each colour. mode: "forward", "reverse", or "auto" for fewer products."""
    rows, columns, (height, width) = pattern
    if not len(rows):
        return Compressed(None, rows, columns)
    forward = color_columns(rows, columns, (height, width)) if mode != "reverse" else None
    if mode == "auto" and forward is not None and _fewer_rows(pattern, forward):
        by_row = color_columns(columns, rows, (width, height))
        if by_row.max() < forward.max():
            return _pulled(run, pattern, by_row)
    if forward is not None:
        return _pushed(run, forward, forward[columns], rows)
    return _pulled(run, pattern, color_columns(columns, rows, (width, height)))


def _fewer_rows(pattern: Pattern, forward: Integers) -> bool:
    """Whether colours of rows may be fewer: not if some column has more entries than there are colours."""
    return int(np.bincount(pattern.columns).max()) <= int(forward.max())


def hessian_products(run: Recorded, pattern: Pattern) -> Compressed:
    """Multiply the Hessian, of a symmetric pattern, by one vector for each colour of a star colouring."""
    rows, columns, (count, _) = pattern
    if not len(rows):
        return Compressed(None, rows, columns)
    colors = color_symmetric(rows, columns, count)
    swapped = across(rows, columns, colors)
    lanes = np.where(swapped, colors[rows], colors[columns])
    return _pushed(run, colors, lanes, np.where(swapped, columns, rows))


def _pushed(run: Recorded, colors: Integers, lanes: Integers, places: Integers) -> Compressed:
    count = int(colors.max()) + 1
    seeds = _seeds(colors, [x.type for x in run.inputs], count)
    found = iter(push_batch(run, seeds, count))
    parts = []
    for y, on in zip(run.outputs, run.moving, strict=True):
        shape = (count, size(y.type))
        # an integer result has a row of places, too, which no entry reads
        parts.append(reshape(next(found), shape) if on else _nothing(shape))
    return Compressed(_side_by_side(parts), lanes, places)


def _pulled(run: Recorded, pattern: Pattern, colors: Integers) -> Compressed:
    count = int(colors.max()) + 1
    moving = np.concatenate([np.full(size(y.type), on) for y, on in zip(run.outputs, run.moving, strict=True)])
    types = [tangent_type(y.type) for y, on in zip(run.outputs, run.moving, strict=True) if on]
    seeds = _seeds(colors[moving], types, count)
    parts = [reshape(r, (count, size(x.type))) for r, x in zip(pull_batch(run, seeds, count), run.inputs, strict=True)]
    return Compressed(_side_by_side(parts), colors[pattern.rows], pattern.columns)


def _nothing(shape: tuple[int, int]) -> Any:
    return broadcast_in_dim(concrete(np.zeros((), np.float32)), shape, ())


def _side_by_side(parts: Sequence[Any]) -> Array:
    if len(parts) == 1:
        only: Array = parts[0]
        return only
    wide = parts[0].type.dtype
    for part in parts[1:]:
        promoted = dtypes.promote((wide, False), (part.type.dtype, False))
        assert promoted is not None
        wide = promoted[0]
    joined: Array = concatenate([convert_element_type(part, wide) for part in parts], 1)
    return joined


def _seeds(colors: Integers, types: Sequence[Any], count: int) -> list[Array]:
    """Return [count, *shape] for each type: 1 in row k at elements of colour k."""
    seeds, start = [], 0
    for type in types:
        own = colors[start : start + size(type)].astype(np.int32)
        start += size(type)
        table = broadcast_in_dim(concrete(own), (count, len(own)), (1,))
        ones = eq(table, broadcasted_iota(dtypes.I32, (count, len(own)), 0))
        seeds.append(reshape(convert_element_type(ones, type.dtype), (count, *type.shape)))
    return seeds
