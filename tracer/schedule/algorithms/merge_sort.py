"""sort: rows of simple keys by a library routine, all other keys as loop IR, by a stable bottom-up merge sort.

Keys move as scalars, together with the original index where further operands follow the keys. Blocks of a few elements
are sorted without branches: an element's index is the count of elements before it in order. Then runs are merged in
pairs from one half of the scratch memory to the other. Two full runs are merged from both ends at once. This needs no
test for their ends, since neither can run out before half of the steps are done.

Order: NaN last, -0 equal to +0, complex numbers by real and imaginary part. Complex numbers with a NaN imaginary part
follow, then numbers with a NaN real part. This is NumPy's order.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tracer.ir import dtypes
from tracer.ir.dtypes import DType, short_name
from tracer.ir.layout import components
from tracer.ir.loop import Carry, LoopKind, Operand, Register, index_constant
from tracer.ir.loop.build import Builder, address, constant
from tracer.ir.primitive import Generate
from tracer.ir.program import Atom, Equation, Var
from tracer.ir.scalar import ScalarOp
from tracer.ir.types import ArrayType, array_type, size
from tracer.schedule.elements.maps import permuted_array
from tracer.schedule.terms.affine import Affine, flatten, of_operand, plus, scaled, shifted
from tracer.schedule.terms.schedules import Values
from tracer.schedule.terms.value_locations import Element, Memory
from tracer.schedule.write.function_writer import FunctionWriter
from tracer.schedule.write.program_writer import BlockWriter

_BLOCK, _SMALL_BLOCK = 8, 4  # elements put in order at once; fewer where a comparison takes several steps
_NARROW = 2**31 - 1
_LONG = 32  # elements of a row from which on a call of the library pays
_FEW = 4  # shorter rows for which a call is quicker than loops are compiled
_MIN_RADIX, _MAX_RADIX = 2048, 2**32 - 1  # elements of a row whose positions a radix sort finds sooner
_LIBRARY_DTYPES = (
    dtypes.I8, dtypes.I16, dtypes.I32, dtypes.I64, dtypes.U8, dtypes.U16, dtypes.U32, dtypes.U64, dtypes.F32,
    dtypes.F64,
)  # fmt: skip

Items = tuple[Operand, ...]  # scalars that move: the keys', and the index if further operands need it


@dataclass(frozen=True, slots=True)
class Moving:
    """Scratch of two halves, one array for each scalar that moves. keys: how many scalars each key has."""

    arrays: tuple[Memory, ...]
    keys: tuple[int, ...]
    n: int


def write_sort(writer: BlockWriter, equation: Equation) -> None:
    """Write a sort of every row along the dimension. Operands after the keys follow them."""
    shape, axis = equation.inputs[0].type.shape, equation.params["dimension"]
    if size(equation.inputs[0].type) and _by_library(equation):
        _write_library_sort(writer, equation)
        return
    targets = [writer.target_of(variable) for variable in equation.outputs]
    if size(equation.inputs[0].type) == 0:
        return
    f = FunctionWriter(writer)
    scalars = scalar_dtypes(equation)
    scratch = [writer.allocate(array_type(dtype, (2 * shape[axis],))) for dtype in scalars]
    keys = tuple(components(atom.type)[1] for atom in equation.inputs[: equation.params["num_keys"]])
    moving = Moving(tuple(f.memory(memory, written=True) for memory in scratch), keys, shape[axis])
    results = [f.memory(target, written=True) for target in targets]
    rows = tuple(1 if a == axis else n for a, n in enumerate(shape))
    with f.loops(rows, LoopKind.SERIAL) as row:
        width = _sort_blocks(f, equation, moving, row)
        half = _merge_runs(f.builder, moving, width)
        _store_row(f, equation, moving, half, row, results)
    f.invoke()


# -- rows of simple keys, by a library ---------------------------------------------------------------------------


def _by_library(equation: Equation) -> bool:
    """Whether rows lie in memory as they are sorted, long enough or few, with one key that the library knows."""
    key, axis = equation.inputs[0], equation.params["dimension"]
    behind = key.type.shape[axis + 1 :]
    known = isinstance(key.type, ArrayType) and key.type.dtype in _LIBRARY_DTYPES
    pays = key.type.shape[axis] >= _LONG or size(key.type) <= _FEW * key.type.shape[axis]
    return known and equation.params["num_keys"] == 1 and all(n == 1 for n in behind) and pays


def _write_library_sort(writer: BlockWriter, equation: Equation) -> None:
    """Write one call for all rows.

    Where further operands follow the key, the routine returns indices, and a loop gathers the operands.
    """
    key, axis = equation.inputs[0], equation.params["dimension"]
    source, shape = writer.memory_of(key), key.type.shape
    n, rows = shape[axis], size(key.type) // shape[axis]
    assert isinstance(key.type, ArrayType)
    name = short_name(key.type.dtype)
    if len(equation.inputs) == 1:
        writer.builder.library(f"sort_{name}", source.view, writer.target_of(equation.outputs[0]).view, rows, n)
        return
    wanted = [
        (atom, writer.target_of(variable))
        for atom, variable in zip(equation.inputs, equation.outputs, strict=True)
        if variable in writer.plan.last_read
    ]
    counted = [target for atom, target in wanted if _counts(writer, atom, axis)]
    positions = counted[0] if counted else writer.allocate(array_type(dtypes.I64, shape))
    if _MIN_RADIX <= n <= _MAX_RADIX:
        spare = writer.allocate(array_type(dtypes.I64, shape))
        writer.builder.library(f"radix_{name}", source.view, positions.view, spare.view, rows, n)
    else:
        writer.builder.library(f"argsort_{name}", source.view, positions.view, rows, n)
    fetched = [(atom, target) for atom, target in wanted if target is not positions]
    if not fetched:
        return
    f = FunctionWriter(writer)
    places = f.memory(positions)
    results = [(atom, f.memory(target, written=True)) for atom, target in fetched]
    with f.loops(shape, LoopKind.PARALLEL) as index:
        position = f.builder.load(places.buffer, plus(places.start, flatten(index, shape)))
        origin = tuple(of_operand(position) if a == axis else i for a, i in enumerate(index))
        for atom, result in results:
            f.store(result, index, f.element(atom, origin))
    f.invoke()


def _counts(writer: BlockWriter, atom: Atom, axis: int) -> bool:
    """Whether an operand is the positions along the axis, as the library gives them."""
    made = writer.plan.inline.get(atom) if isinstance(atom, Var) else None
    return (
        made is not None
        and isinstance(made.primitive.lower, Generate)
        and made.params["dimension"] == axis
        and (made.params["dtype"] == dtypes.I64)
    )


def scalar_dtypes(equation: Equation) -> list[DType]:
    """Return the dtypes of the scalars that move: keys, then the index."""
    keys = equation.inputs[: equation.params["num_keys"]]
    found = [dtype for atom in keys for dtype, count in [components(atom.type)] for _ in range(count)]
    if len(equation.inputs) > len(keys):
        n = keys[0].type.shape[equation.params["dimension"]]
        found.append(dtypes.I32 if n <= _NARROW else dtypes.I64)
    return found


# -- order -------------------------------------------------------------------------------------------------------


def less(b: Builder, keys: Sequence[int], x: Items, y: Items) -> Operand:
    """Whether x comes before y: by the first key that tells them apart. keys: how many scalars each key has."""
    terms: list[tuple[Operand, Operand]] = []  # (x before y, y before x), most significant first
    start = 0
    for count in keys:
        terms += _terms(b, x[start : start + count], y[start : start + count])
        start += count
    result, _ = terms.pop()
    while terms:
        before, after = terms.pop()
        tie = b.apply(ScalarOp.AND, b.apply(ScalarOp.NOT, after), result)
        result = b.apply(ScalarOp.OR, before, tie)
    return result


def _terms(b: Builder, x: Element, y: Element) -> list[tuple[Operand, Operand]]:
    if len(x) == 1:
        (p,), (q,) = x, y
        if not dtypes.is_float(p.dtype):
            return [(b.apply(ScalarOp.LT, p, q), b.apply(ScalarOp.GT, p, q))]
        return [(_before(b, p, q), _before(b, q, p))]
    classes = [[b.apply(ScalarOp.NE, part, part) for part in element] for element in (x, y)]
    ordered = list(zip(classes[0], classes[1], strict=True)) + list(zip(x, y, strict=True))
    return [(b.apply(ScalarOp.LT, p, q), b.apply(ScalarOp.GT, p, q)) for p, q in ordered]


def _before(b: Builder, p: Operand, q: Operand) -> Operand:
    """Return p < q with NaN above all: p is not NaN, and p >= q does not hold."""
    number = b.apply(ScalarOp.EQ, p, p)
    return b.apply(ScalarOp.AND, b.apply(ScalarOp.NOT, b.apply(ScalarOp.GE, p, q)), number)


# -- blocks ------------------------------------------------------------------------------------------------------


def _sort_blocks(f: FunctionWriter, equation: Equation, moving: Moving, row: Sequence[Affine]) -> int:
    """Write sorted runs from the operands into the first half of the scratch. Return their length."""
    b = f.builder
    simple = len(moving.keys) == 1 and moving.keys[0] == 1
    width = min(_BLOCK if simple else _SMALL_BLOCK, moving.n)
    full, rest = divmod(moving.n, width)
    loop = b.for_("block", 0, full, kind=LoopKind.PARALLEL)
    with loop:
        _sort_block(f, equation, moving, row, scaled(address(loop.index), width), width)
    if rest:
        _sort_block(f, equation, moving, row, Affine(full * width), rest)
    return width


def _sort_block(
    f: FunctionWriter, equation: Equation, moving: Moving, row: Sequence[Affine], start: Affine, count: int
) -> None:
    """Store `count` elements, each at the count of its comparisons with the other ones."""
    b = f.builder
    items = [_load(f, equation, moving, row, shifted(start, k)) for k in range(count)]
    places: list[Operand] = [index_constant(0)] * count
    for late in range(count):
        for early in range(late):
            overtakes = b.convert(less(b, moving.keys, items[late], items[early]), dtypes.I64)
            places[early] = b.compute(ScalarOp.ADD, places[early], overtakes)
            places[late] = b.compute(ScalarOp.ADD, places[late], b.compute(ScalarOp.SUB, 1, overtakes))
    for item, place in zip(items, places, strict=True):
        _put(b, moving, plus(start, of_operand(place)), item)


def _load(f: FunctionWriter, equation: Equation, moving: Moving, row: Sequence[Affine], at: Affine) -> Items:
    """Return an element's keys, from the operands, and its position."""
    axis, count = equation.params["dimension"], equation.params["num_keys"]
    index = tuple(at if a == axis else i for a, i in enumerate(row))
    puller = f.puller()
    scalars = [scalar for key in equation.inputs[:count] for scalar in puller.element(key, index)]
    if len(moving.arrays) > len(scalars):
        position: Operand = index_constant(at.constant)
        for register, factor in at.terms:
            part = f.builder.compute(ScalarOp.MUL, register, factor)
            position = f.builder.compute(ScalarOp.ADD, part, position)
        dtype = moving.arrays[-1].buffer.dtype
        known = not at.terms
        scalars.append(constant(at.constant, dtype) if known else f.builder.convert(position, dtype))
    return tuple(scalars)


def _put(b: Builder, moving: Moving, at: Affine, item: Items) -> None:
    for memory, value in zip(moving.arrays, item, strict=True):
        b.store(memory.buffer, plus(memory.start, at), value)


def _get(b: Builder, moving: Moving, at: Affine) -> Items:
    return tuple(b.load(memory.buffer, plus(memory.start, at)) for memory in moving.arrays)


# -- merging -----------------------------------------------------------------------------------------------------


def _merge_runs(b: Builder, moving: Moving, width: int) -> int:
    """Merge runs, twice as long in every pass, until there is one. Return the half of the scratch that holds it."""
    passes, length = 0, width
    while length < moving.n:
        passes, length = passes + 1, 2 * length
    if not passes:
        return 0
    carries = [Carry(Register(dtypes.I64, name), index_constant(v)) for name, v in
               (("width", width), ("source", 0), ("target", moving.n))]  # fmt: skip
    loop = b.for_("pass", 0, passes, carries=carries)
    with loop:
        length_now, source, target = loop.carries
        twice = b.compute(ScalarOp.ADD, length_now, length_now)
        pairs = b.compute(ScalarOp.IDIV, moving.n, twice)
        pair = b.for_("pair", 0, pairs)
        with pair:
            low = b.compute(ScalarOp.MUL, pair.index, twice)
            _merge_full(b, moving, low, length_now, source, target)
        done = b.compute(ScalarOp.MUL, pairs, twice)
        _merge_rest(b, moving, done, length_now, source, target)
        loop.yields(twice, target, source)
    return passes % 2


def _merge_full(b: Builder, moving: Moving, low: Operand, width: Operand, source: Operand, target: Operand) -> None:
    """Merge two runs of `width` from `low` on.

    Each step moves the smallest element to the front, the largest to the back.
    """
    last = b.compute(ScalarOp.SUB, width, 1)
    first_left = b.compute(ScalarOp.ADD, source, low)
    first_right = b.compute(ScalarOp.ADD, first_left, width)
    starts = {
        "i": first_left, "j": first_right,
        "p": b.compute(ScalarOp.ADD, first_left, last), "q": b.compute(ScalarOp.ADD, first_right, last),
    }  # fmt: skip
    front = b.compute(ScalarOp.ADD, target, low)
    back = b.compute(ScalarOp.ADD, b.compute(ScalarOp.ADD, front, width), last)
    loop = b.for_("k", 0, width, carries=[Carry(Register(dtypes.I64, name), v) for name, v in starts.items()])
    with loop:
        i, j, p, q = loop.carries
        left, right = _get(b, moving, of_operand(i)), _get(b, moving, of_operand(j))
        from_right = less(b, moving.keys, right, left)
        _put(b, moving, address(front, loop.index), b.choose(from_right, right, left))
        ahead = b.convert(from_right, dtypes.I64)
        left, right = _get(b, moving, of_operand(p)), _get(b, moving, of_operand(q))
        from_left = less(b, moving.keys, right, left)
        _put(b, moving, address(back, (loop.index, -1)), b.choose(from_left, left, right))
        behind = b.convert(from_left, dtypes.I64)
        loop.yields(
            b.compute(ScalarOp.ADD, i, b.compute(ScalarOp.SUB, 1, ahead)),
            b.compute(ScalarOp.ADD, j, ahead),
            b.compute(ScalarOp.SUB, p, behind),
            b.compute(ScalarOp.SUB, q, b.compute(ScalarOp.SUB, 1, behind)),
        )


def _merge_rest(b: Builder, moving: Moving, low: Operand, width: Operand, source: Operand, target: Operand) -> None:
    """Merge the remainder after the last full pair: a run and a shorter one, or less than a run."""
    n = moving.n
    middle = b.compute(ScalarOp.MIN, b.compute(ScalarOp.ADD, low, width), n)
    carries = [Carry(Register(dtypes.I64, "i"), low), Carry(Register(dtypes.I64, "j"), middle)]
    loop = b.for_("k", low, n, carries=carries)
    with loop:
        i, j = loop.carries
        at_left, at_right = b.compute(ScalarOp.MIN, i, n - 1), b.compute(ScalarOp.MIN, j, n - 1)
        left, right = _get(b, moving, address(source, at_left)), _get(b, moving, address(source, at_right))
        open_left = b.compute(ScalarOp.LT, i, middle)
        open_right = b.compute(ScalarOp.LT, j, n)
        overtakes = b.apply(ScalarOp.OR, b.apply(ScalarOp.NOT, open_left), less(b, moving.keys, right, left))
        from_right = b.apply(ScalarOp.AND, open_right, overtakes)
        _put(b, moving, address(target, loop.index), b.choose(from_right, right, left))
        step = b.convert(from_right, dtypes.I64)
        loop.yields(b.compute(ScalarOp.ADD, i, b.compute(ScalarOp.SUB, 1, step)), b.compute(ScalarOp.ADD, j, step))


# -- results -----------------------------------------------------------------------------------------------------


def _store_row(
    f: FunctionWriter, equation: Equation, moving: Moving, half: int, row: Sequence[Affine], results: Sequence[Memory]
) -> None:
    """Store the keys as they have moved, and fetch the other operands' elements that follow them."""
    b, axis = f.builder, equation.params["dimension"]
    loop = b.for_("k", 0, moving.n, kind=LoopKind.PARALLEL)
    with loop:
        item = _get(b, moving, address(half * moving.n, loop.index))
        place = tuple(address(loop.index) if a == axis else i for a, i in enumerate(row))
        start = 0
        for result, count in zip(results, moving.keys, strict=False):
            f.store(result, place, item[start : start + count])
            start += count
        if len(results) > len(moving.keys):
            position = b.convert(item[-1], dtypes.I64)
            origin = tuple(of_operand(position) if a == axis else i for a, i in enumerate(row))
            for atom, result in zip(equation.inputs[len(moving.keys) :], results[len(moving.keys) :], strict=True):
                f.store(result, place, f.element(atom, origin))


# -- operands ----------------------------------------------------------------------------------------------------


def operands_in_memory(equation: Equation, values: Values) -> list[Atom]:
    """Return the keys, and other operands unless they are the indices along an axis."""
    keys = equation.params["num_keys"]
    return [atom for number, atom in enumerate(equation.inputs) if number < keys or not _is_iota(atom, values)]


def _is_iota(atom: Atom, values: Values) -> bool:
    made = values.definitions.get(array) if isinstance(array := permuted_array(atom, values), Var) else None
    return made is not None and isinstance(made.primitive.lower, Generate)
