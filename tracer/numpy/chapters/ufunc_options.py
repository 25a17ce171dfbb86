"""NumPy's keywords beside operands: `out=` of all functions, `where=`, `dtype=` and `casting=` of ufuncs.

An Array as `out=` is rebound to the result, as by `x[...] = v`; a NumPy array is written to.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DTypeError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.dtypes import DType, is_inexact, is_integer
from tracer.numpy.chapters.put import written
from tracer.numpy.core import ufunc_keywords
from tracer.numpy.core.conversion import array_of, cast, dtype_of_argument, native
from tracer.numpy.core.dtypes import can_cast, check_cast, result_type
from tracer.numpy.core.promotion import literal
from tracer.numpy.shapes.manipulation import broadcast_to
from tracer.numpy.shapes.where import where as where_
from tracer.trace.array import Array
from tracer.trace.source import here


def called(name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call a function with the options of NumPy's function of that name. Unknown options are left for it to refuse."""
    theirs, options = getattr(np, name, None), dict(kwargs)
    place = ufunc_keywords.place_of_out(name)
    if len(args) > place and (outs := _outs(theirs, args[place:])) and "out" not in options:
        options["out"] = outs if isinstance(theirs, np.ufunc) else outs[0]
        rest = args[place + len(outs) :]
        args = (*args[:place], None, *rest) if rest else args[:place]
    if isinstance(theirs, np.ufunc):
        return _ufunc(theirs, function, args, options)
    for keyword, allowed in _CHOICES.items():
        if keyword in options and keyword in ufunc_keywords.taken(name):
            _check_choice(name, keyword, options.pop(keyword), allowed)
    if name in ufunc_keywords.JOINING and "casting" in options:
        casting, dtype = options.pop("casting"), options.get("dtype")
        arrays = [array_of(name, x) for x in args[0]] if args else []
        wanted = result_type(*arrays) if dtype is None else dtype_of_argument(name, dtype)
        for x in arrays:
            check_cast(name, x, wanted, casting)
    if "out" not in options or not _has_out(theirs):
        return handed_on(function, args, options)
    out = options.pop("out")
    result = handed_on(function, args, options)
    return result if out is None else put(name, result, out, True, "same_kind", grows=False)


_CHOICES = {
    "order": (None, "C", "F", "A", "K"), "subok": (True, False), "kind": (None, "introselect", "sort", "table"),
}  # fmt: skip


def _outs(theirs: Any, given: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the arguments at the position of `out` that are outputs: arrays, or None where nothing else follows."""
    outs = given[: theirs.nout if isinstance(theirs, np.ufunc) else 1]
    meant = all(x is None or isinstance(x, Array | np.ndarray) for x in outs)
    return outs if meant and (len(given) == len(outs) or outs[0] is not None) else ()


def _check_choice(name: str, keyword: str, given: Any, allowed: tuple[Any, ...]) -> None:
    if given not in allowed:
        shown = ", ".join(map(repr, allowed))
        raise ArgumentError(message(f"{name}{here()}: {keyword}= is one of {shown}", f"got {given!r}"))


def handed_on(function: Callable[..., Any], args: Any, options: Mapping[str, Any]) -> Any:
    """Call the user's function. Errors whose traceback ends in this line are about its arguments."""
    return function(*args, **options)


def _has_out(theirs: Any) -> bool:
    try:
        return "out" in inspect.signature(theirs).parameters
    except (TypeError, ValueError):
        return False


def _ufunc(theirs: np.ufunc, function: Callable[..., Any], args: tuple[Any, ...], options: dict[str, Any]) -> Any:
    name = theirs.__name__
    outs = options.pop("out", None)
    where, casting = options.pop("where", True), options.pop("casting", None)
    dtype = options.pop("dtype", None)
    for layout in ufunc_keywords.LAYOUT & options.keys():
        _check_choice(name, layout, options.pop(layout), _CHOICES[layout])
    operands = masked(theirs, cast_operands(theirs, args, dtype, casting), where)
    found = handed_on(function, operands, options)
    results = found if isinstance(found, tuple) else (found,)
    targets = outs if isinstance(outs, tuple) else (outs,)
    targets += (None,) * (len(results) - len(targets))
    if all(target is None for target in targets) and where is True:
        return found
    grows = theirs.signature is None
    new = tuple(put(name, r, t, where, casting, grows=grows) for r, t in zip(results, targets, strict=True))
    return new if isinstance(found, tuple) else new[0]


def cast_operands(ufunc: np.ufunc, operands: tuple[Any, ...], dtype: Any, casting: str | None) -> tuple[Any, ...]:
    """Return the operands cast to the requested dtype. Raises DTypeError if `casting` forbids a cast."""
    if (dtype is None and casting is None) or (dtype is not None and _is_predicate(ufunc, dtype)):
        return operands
    name = ufunc.__name__
    arrays = [array_of(name, x) for x in operands]
    wanted = result_type(*arrays) if dtype is None else dtype_of_argument(name, dtype)
    for x, given in zip(arrays, operands, strict=True):
        if not (x.weak_type and (dtype is None or (type(given) is int and is_integer(wanted)))):
            check_cast(name, x, wanted, casting or "same_kind")
    return operands if dtype is None else tuple(map(partial(_cast_operand, name, wanted), operands, arrays))


def _cast_operand(name: str, wanted: DType, given: Any, x: Array) -> Array:
    """Cast an operand. Raises DTypeError for a Python integer out of range."""
    if type(given) is int and is_integer(wanted):
        return array_of(name, literal(name, given, wanted).value)
    return cast(x, wanted)


def _is_predicate(ufunc: np.ufunc, dtype: Any) -> bool:
    """Return whether `dtype` is bool and only the ufunc's result has that dtype."""
    kinds = [types for types in ufunc.types if "O" not in types]
    return all(types.endswith("->?") for types in kinds) and dtype_of_argument(ufunc.__name__, dtype) == dtypes.BOOL


def masked(ufunc: np.ufunc, operands: tuple[Any, ...], where: Any) -> tuple[Any, ...]:
    """Replace operands where `where` is False by a value at which every ufunc and its derivative are finite.

    Results there are not used, but their derivative would be 0 times infinity, NaN, as for divisions by zero.
    """
    if where is True:
        return operands
    safe = 2.0 if ufunc.__name__ == "arccosh" else 0.5
    return tuple(where_(where, x, safe) if isinstance(x, Array) and is_inexact(x.dtype) else x for x in operands)


def put(name: str, result: Any, target: Any, where: Any, casting: str | None = None, *, grows: bool = True) -> Any:
    """Write the result to `target`, which keeps its values where `where` is False. Returns the target.

    Without a target, the result is 0 where `where` is False. grows: whether the result may broadcast to a larger
    target.
    """
    value = array_of(name, result)
    if target is None:
        return value if where is True else where_(where, value, cast(array_of(name, 0), value.dtype))
    if not isinstance(target, Array | np.ndarray):
        raise DTypeError(
            message(f"{name}{here()}: out= must be an array", f"got {type(target).__name__}", help="x = f(y)")
        )
    if not value.weak_type and not can_cast(value.dtype, native(target.dtype), casting or "same_kind"):
        raise DTypeError(
            message(
                f"{name}{here()}: the result cannot be cast to out=",
                f"got {value.type} for an array of {target.dtype}",
                help="give out= another dtype, or leave it out and cast the result",
            )
        )
    if where is not True:  # in the target's dtype, which may be wider than the result's
        held = array_of(name, target)
        value = where_(where, cast(value, held.dtype), held)
    if grows and value.shape != target.shape and _spreads(value.shape, target.shape):
        value = broadcast_to(value, target.shape)
    if value.shape != target.shape:
        raise ShapeError(
            message(f"{name}{here()}: out= must have the result's shape", f"got {target.shape}, expected {value.shape}")
        )
    written(name, target, value, True)
    return target


def _spreads(shape: tuple[int, ...], over: tuple[int, ...]) -> bool:
    trailing = over[len(over) - len(shape) :]
    return len(shape) <= len(over) and all(n in (1, m) for n, m in zip(shape, trailing, strict=True))
