"""Index-set splitting: the domain of a nest that reads joins is cut into boxes, each within a single operand.

So a stencil reads its neighbours in place, borders and periods included: results of `roll` and `pad` are never stored.
The cuts are where an index, followed from the domain to the join, passes from one operand to the next.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise, product

from tracer.ir import dtypes
from tracer.ir.loop import Register
from tracer.ir.primitive import Gather, Generate, IndexMap, Join
from tracer.ir.program import Atom, Equation, Literal, Var
from tracer.ir.types import ArrayType, size
from tracer.schedule.elements.index_maps import INDEX_MAPS
from tracer.schedule.terms.affine import ZERO, Affine, of_register, shifted

Box = tuple[tuple[int, int], ...]
"""An interval of each axis: its first index, and the one after its last."""

Axes = tuple[Affine, ...]

_MAX_OPERANDS = 4
_MAX_BOXES = 27
_MAX_OPERATIONS = 1600  # over all boxes


def is_parted(equation: Equation, least: int) -> bool:
    """Whether the equation is a join of at least `least` elements whose readers may read its operands."""
    type = equation.outputs[0].type if equation.outputs else None
    if not isinstance(type, ArrayType) or size(type) < least:
        return False
    match equation.primitive.lower:
        case Join("pad"):
            return all(interior == 0 for _, _, interior in equation.params["padding_config"])
        case Join():
            return len(equation.inputs) <= _MAX_OPERANDS
        case _:
            return False


def parts_of(equation: Equation) -> Iterator[tuple[Atom, Box | None]]:
    """Yield the operands of a join with their boxes in its result. The padding value comes last, with no box."""
    if equation.primitive.lower == Join("pad"):
        operand, value = equation.inputs
        places = zip(operand.type.shape, equation.params["padding_config"], strict=True)
        yield operand, tuple((low, low + n) for n, (low, _, _) in places)
        yield value, None
        return
    axis, start = equation.params["dimension"], 0
    whole = [(0, n) for n in equation.outputs[0].type.shape]
    for atom in equation.inputs:
        stop = start + atom.type.shape[axis]
        yield atom, (*whole[:axis], (start, stop), *whole[axis + 1 :])
        start = stop


def within(index: Axes, box: Box) -> Axes:
    """Return the index of an element within the operand of a box."""
    return tuple(shifted(i, -start) for i, (start, _) in zip(index, box, strict=True))


def boxes_of(
    domain: Sequence[int],
    roots: Sequence[Equation],
    inline: Mapping[Var, Equation],
    operations: int,
    *,
    whole: bool,
) -> tuple[Box, ...] | set[Var]:
    """Return the boxes of a nest, none if it reads no join; or the joins that it reads, if it cannot be cut in boxes.

    whole: whether it reduces, so that one loop must go over all elements.
    """
    walk = _Walk(domain, inline)
    fits = True
    for root in roots:
        fits = walk.equation(root, walk.whole) and fits
    if not walk.joins:
        return ()
    axes = [sorted({0, n, *cuts}) for n, cuts in zip(domain, walk.cuts, strict=True)]
    boxes = tuple(product(*(tuple(pairwise(places)) for places in axes)))
    few = len(boxes) <= _MAX_BOXES and len(boxes) * operations <= _MAX_OPERATIONS
    return boxes if fits and few and not whole and _has_long_rows(domain, axes[-1]) else walk.joins


def _has_long_rows(domain: Sequence[int], places: Sequence[int]) -> bool:
    """Whether most of the last axis, which vectors go along, is in one box."""
    longest = max(stop - start for start, stop in pairwise(places))
    return 4 * longest >= 3 * domain[-1]


class _Walk:
    """Walk from a nest's elements through inline equations to the joins, following the index."""

    def __init__(self, domain: Sequence[int], inline: Mapping[Var, Equation]) -> None:
        self.inline = inline
        registers = [Register(dtypes.I64, f"i{axis}") for axis in range(len(domain))]
        self.axis = {register: axis for axis, register in enumerate(registers)}
        self.domain = domain
        self.whole: Axes = tuple(ZERO if n == 1 else of_register(r) for r, n in zip(registers, domain, strict=True))
        self.cuts: list[set[int]] = [set() for _ in domain]
        self.joins: set[Var] = set()
        self._seen: set[tuple[Atom, Axes]] = set()

    def equation(self, root: Equation, index: Axes) -> bool:
        """Note all cuts; whether every join is read at an index that one cut decides for each of its axes."""
        fits, waiting = True, self._next(root, index)
        while waiting:
            atom, at = waiting.pop()
            if (atom, at) in self._seen or isinstance(atom, Literal) or atom not in self.inline:
                continue
            self._seen.add((atom, at))
            made = self.inline[atom]
            if isinstance(made.primitive.lower, Join):
                self.joins.add(atom)
                fits = fits and at is not _LOST and self._cut(made, at)
            waiting += self._next(made, at)
        return fits

    def _next(self, equation: Equation, index: Axes) -> list[tuple[Atom, Axes]]:
        """Return the operands that an element of the equation reads, with their indices."""
        match equation.primitive.lower:
            case Join():
                at = [(atom, () if box is None else box) for atom, box in parts_of(equation)]
                return [(atom, within(index, box) if box and index is not _LOST else _LOST) for atom, box in at]
            case IndexMap(kind):
                operand = equation.inputs[0]
                mapped = INDEX_MAPS.get(kind)
                if mapped is None or index is _LOST:
                    return [(operand, _LOST)]
                return [(operand, mapped(index, operand.type.shape, equation.params))]
            case Gather():
                return _read_by_gather(equation, index)
            case Generate():
                return []
            case _:
                shape = equation.outputs[0].type.shape  # words of keys have an axis more, or one less
                arrays = [(a, index if a.type.shape == shape else _LOST) for a in equation.inputs if a.type.shape]
                return arrays + [(a, ()) for a in equation.inputs if not a.type.shape]

    def _cut(self, join: Equation, index: Axes) -> bool:
        for _, box in parts_of(join):
            for place, i, n in zip(box or (), index, join.outputs[0].type.shape, strict=False):
                for border in place:
                    if 0 < border < n and not self._cut_axis(i, border):
                        return False
        return True

    def _cut_axis(self, index: Affine, border: int) -> bool:
        """Cut where the index comes to the border. False where it does not go by ones along one axis."""
        if not index.terms:
            return True
        (register, step), *others = index.terms
        if others or step not in (1, -1):
            return False
        place = border - index.constant if step == 1 else index.constant - border + 1
        axis = self.axis[register]
        if 0 < place < self.domain[axis]:
            self.cuts[axis].add(place)
        return True


_LOST: Axes = (Affine(-1),)  # an unknown index


def _read_by_gather(equation: Equation, index: Axes) -> list[tuple[Atom, Axes]]:
    """Return the operands that a gather reads, with their indices: every component of one index vector."""
    if index is _LOST or equation.primitive.lower != Gather("windows"):
        return [(atom, _LOST) for atom in equation.inputs]
    operand, indices, predicate = equation.inputs
    windows = set(equation.params["dimension_numbers"].offset_dims)
    batch = tuple(i for axis, i in enumerate(index) if axis not in windows)
    vector = [(indices, (*batch, Affine(component))) for component in range(indices.type.shape[-1])]
    return [(operand, _LOST), *vector, (predicate, batch if predicate.type.shape else ())]


def is_index_vector(join: Equation, readers: Sequence[Equation]) -> bool:
    """Whether a concatenate puts the components of index vectors side by side, and only gathers read it.

    They are read one by one at constant indices, so no nest is cut for them.
    """
    return (
        join.primitive.lower == Join("concatenate")
        and join.params["dimension"] == len(join.outputs[0].type.shape) - 1
        and all(
            r.primitive.lower == Gather("windows") and join.outputs[0] not in (r.inputs[0], r.inputs[2])
            for r in readers
        )
    )


def chosen(equation: Equation, index: Axes, extents: Mapping[Register, int]) -> tuple[Atom, Axes] | None:
    """Return the operand and index that hold the elements at an index, for any values of its registers.

    Return None if several operands do.
    """
    for atom, box in parts_of(equation):
        if box is None:
            return atom, ()
        spans = [_span(i, extents) for i in index]
        if all(start <= low and high < stop for (low, high), (start, stop) in zip(spans, box, strict=True)):
            return atom, within(index, box)
        if all(low < stop and start <= high for (low, high), (start, stop) in zip(spans, box, strict=True)):
            return None
    return None


def _span(index: Affine, extents: Mapping[Register, int]) -> tuple[int, int]:
    """Return the min and max of an affine form."""
    low = high = index.constant
    for register, step in index.terms:
        reach = step * (extents[register] - 1)
        low, high = low + min(reach, 0), high + max(reach, 0)
    return low, high
