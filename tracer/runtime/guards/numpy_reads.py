"""Reads that NumPy makes while a function is traced: values of arrays under names, and numbers drawn by `np.random`.

`float(w)`, `w[0]` and `np.sqrt(w)` of a NumPy array compute at once, unseen by the trace, and their results become
constants. So the bytes of small arrays under names that the function reads are guarded. They are not if every
instruction that loads the name hands the array to an operation of the program. Larger ones are told in `explain()`.
"""

from __future__ import annotations

import dis
import pickle
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise
from types import CodeType, FunctionType
from typing import Any, Final

import numpy as np

from tracer.errors import message
from tracer.runtime.guards.guards import NOTHING, Guard
from tracer.trace.captured_values import Outside, Places, Seen, same_bits

_COMPARED: Final = 1 << 16
"""Bytes of an array that is compared at every call: some 3 µs."""
_NUMBERS: Final = "biufc"

Value = np.ndarray[Any, Any]


@dataclass(frozen=True, slots=True)
class NumpyReads:
    """State before a trace: the arrays under names, each with its value, and the generators of random numbers."""

    arrays: Sequence[tuple[Guard, Value, Value | None]]
    generators: Sequence[tuple[Any, bytes]]
    functions: Sequence[FunctionType]

    @classmethod
    def before(cls, guards: Iterable[Guard]) -> NumpyReads:
        """Note all that a function could read through the names under guard."""
        found = list(guards)
        arrays = [(g, g.value, _copy(g.value)) for g in found if _may_change(g.value)]
        functions = dict.fromkeys(g.holder for g in found if isinstance(g.holder, FunctionType))
        generators = [g.value for g in found if _is_generator(g.value)]
        return cls(arrays, [(each, _state(each)) for each in (*_of_numpy(), *generators)], tuple(functions))

    def seen(self, outside: Outside) -> Iterator[Seen]:
        """Yield the arrays whose bytes must stay, after the trace: NumPy may have read them."""
        for guard, array, before in self.arrays:
            if before is not None and same_bits(array, before) and not self._are_operands(guard, outside.places(array)):
                yield Seen(array, before)

    def notes(self, outside: Outside) -> tuple[str, ...]:
        """Return texts that name the arrays that are too large to compare."""
        return tuple(
            f"'{guard.name}', {array.dtype}[{','.join(map(str, array.shape))}], "
            f"is {'an operand' if outside.places(array) else 'not an input'} of the program: "
            "elements that NumPy read while tracing are constants"
            for guard, array, before in self.arrays
            if before is None and not self._are_operands(guard, outside.places(array))
        )

    def _are_operands(self, guard: Guard, places: Places) -> bool:
        """Whether each load of a name is an operand of an operation, or of its shape or dtype alone.

        places: the instructions whose operations took the array. NumPy or the user's Python may read at other loads.
        """
        if not places:
            return False
        operations = [(code, _extent(positions)) for code, positions in map(_instruction, places.items())]
        for code in {id(code): code for f in self.functions for code in _codes_with(f, guard)}.values():
            loads = list(map(_extent, _loads(code, guard.name)))
            for load in loads:
                around = [extent for where, extent in operations if where is code and _holds(extent, load)]
                if not any(sum(_holds(extent, other) for other in loads) == 1 for extent in around):
                    return False
        return True

    def warn_of_random(self, name: str) -> None:
        """Warn once a line if random numbers were drawn, which every call will get again."""
        is_new = not self.generators and bool(_of_numpy())  # imported meanwhile, and so surely used
        if not is_new and all(_state(each) == before for each, before in self.generators):
            return
        place = next(_draws(self.functions), None)
        if is_new and place is None:
            return
        where = "" if place is None else f" at {place[0].rpartition('/')[2]}:{place[1]}"
        text = message(
            f"jit of {name}: NumPy drew random numbers while it was traced{where}",
            "every call gets these numbers, as constants",
            help="pass them as an argument, or draw them by tracer.random with a key",
        )
        if place is None:
            warnings.warn(text, UserWarning, stacklevel=2)
        else:
            warnings.warn_explicit(text, UserWarning, *place, registry=_REGISTRY)


_REGISTRY: dict[Any, Any] = {}
"""Warnings shown: Python's record, by text and line."""


def _may_change(value: Any) -> bool:
    """Whether a value is an array of numbers that someone may write to."""
    is_array = isinstance(value, np.ndarray) and value.dtype.kind in _NUMBERS
    return is_array and (value.flags.writeable or value.base is not None)


def _copy(array: Value) -> Value | None:
    """Return the array's values in native byte order; None if it is too large to compare."""
    return np.array(array, array.dtype.newbyteorder("="), order="C", subok=False) if array.nbytes <= _COMPARED else None


def _of_numpy() -> list[Any]:
    """Return the generator behind `np.random`'s functions, if that module is loaded."""
    module = sys.modules.get("numpy.random.mtrand")
    return [] if module is None else [module._rand]


def _is_generator(value: Any) -> bool:
    module = sys.modules.get("numpy.random")
    return module is not None and isinstance(value, module.Generator | module.RandomState)


def _state(generator: Any) -> bytes:
    legacy = getattr(generator, "get_state", None)
    return pickle.dumps(generator.bit_generator.state if legacy is None else legacy(legacy=False))


def _draws(functions: Iterable[FunctionType]) -> Iterator[tuple[str, int]]:
    """Yield the lines of functions that name NumPy's random numbers."""
    for function in functions:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        names = {**function.__globals__, **{name: _contents(cell) for name, cell in cells}}
        for code in _nested(function.__code__):
            for read, then in _pairs(code):
                if _is_random(names.get(read.argval, NOTHING), then.argval):
                    yield code.co_filename, (read.positions and read.positions.lineno) or code.co_firstlineno


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # not assigned
        return NOTHING


def _nested(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _nested(constant)


_Extent = tuple[tuple[int, int], tuple[int, int]]
_NOWHERE: Final[_Extent] = ((0, 0), (0, 0))
_STRUCTURE: Final = ("dtype", "itemsize", "nbytes", "ndim", "shape", "size")
"""Attributes of an array that are no values of its elements."""


def _codes_with(function: FunctionType, guard: Guard) -> Iterator[CodeType]:
    """Yield the codes of a function in which a guarded global or closure variable has its name."""
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    holders = (function.__globals__, function.__kwdefaults__, cells.get(guard.name))
    if any(holder is guard.holder for holder in holders):
        yield from _nested(function.__code__)


def _loads(code: CodeType, name: str) -> Iterator[dis.Positions | None]:
    """Yield the positions at which code loads a name, except to read the structure of an array under it."""
    for read, then in pairwise(dis.get_instructions(code)):
        is_load = read.opname.startswith("LOAD_") and read.opname != "LOAD_CLOSURE"
        if is_load and name in (read.argval if type(read.argval) is tuple else (read.argval,)):
            if then.opname == "LOAD_ATTR" and then.argval in _STRUCTURE:
                continue
            yield read.positions


def _instruction(place: tuple[tuple[int, int], CodeType]) -> tuple[CodeType, dis.Positions]:
    (_, offset), code = place
    return code, dis.Positions(*next(islice(code.co_positions(), offset // 2, None), (None,) * 4))


def _extent(positions: dis.Positions | None) -> _Extent:
    """Return the start and end of an instruction in the source; nowhere if Python runs without positions."""
    if positions is None or positions.col_offset is None or positions.end_col_offset is None:
        return _NOWHERE
    start, end = (positions.lineno or 0, positions.col_offset), (positions.end_lineno or 0, positions.end_col_offset)
    return start, end


def _holds(outer: _Extent, inner: _Extent) -> bool:
    return inner is not _NOWHERE and outer[0] <= inner[0] and inner[1] <= outer[1]


def _pairs(code: CodeType) -> Iterator[tuple[dis.Instruction, dis.Instruction]]:
    """Yield instructions that load a name, each with the one after it."""
    for read, then in pairwise(dis.get_instructions(code)):
        if read.opname in ("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"):
            yield read, then


def _is_random(value: Any, attribute: Any) -> bool:
    """Whether a name's value, with the attribute read from it, leads to NumPy's random numbers."""
    if value is np:
        return bool(attribute == "random")
    owner = getattr(value, "__self__", None) if callable(value) else value
    return value is sys.modules.get("numpy.random", NOTHING) or _is_generator(owner)
