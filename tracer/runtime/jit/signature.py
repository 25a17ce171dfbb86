"""Signature of a call of a jitted function: static and donated arguments, leaves, and the key of its program."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from tracer.errors import ArgumentError, message
from tracer.ir import dtypes
from tracer.ir.types import Type, array_type
from tracer.runtime.values.shape_dtype_struct import ShapeDtypeStruct
from tracer.settings import config
from tracer.trace import trees
from tracer.trace.array import Array
from tracer.trace.convert import as_array, scalar_dtype, short_text
from tracer.trace.integers import argument_numbers
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.transforms.functions import argument_names, check_positions, positional_parameters

_KNOWN = dtypes.SHORT_NAMES
Positions = int | Sequence[int] | None
Names = str | Sequence[str] | None


class Static(NamedTuple):
    """Static argument. place: index or keyword. kind: type of the value, since 1 == True == 1.0."""

    place: int | str
    kind: type
    value: Any


class Key(NamedTuple):
    """Key of a compiled program: all that it depends on."""

    structure: trees.Structure
    types: tuple[Type, ...]
    statics: tuple[Static, ...]
    settings: tuple[Any, ...]
    axes: tuple[Any, ...]


class Call(NamedTuple):
    """Arguments of one call. args, kwargs: the traced arguments alone."""

    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    leaves: list[Any]
    key: Key


@dataclass(frozen=True, slots=True)
class Signature:
    """Options of `jit`, or of another transform that traces, on a function's arguments."""

    caller: str  # the transform
    name: str
    static_numbers: frozenset[int]
    static_names: frozenset[str]
    donated_numbers: frozenset[int]
    donated_names: frozenset[str]
    count: int | None  # of positional parameters, None where there may be any number
    parameters: tuple[str, ...]  # names of the positional ones

    def sort(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Separate the static arguments, and make the key. Raises ArgumentError for a leaf that is not an array."""
        statics: tuple[Static, ...] = ()
        if self.static_numbers or self.static_names:
            args, kwargs, statics = self._separate(args, kwargs)
        leaves, structure = trees.flatten_values((args, kwargs))
        found = [*map(leaf_type, leaves)]
        if None in found:
            args = tuple(map(trees.with_fixed, args))
            kwargs = {name: trees.with_fixed(value) for name, value in kwargs.items()}
            leaves, structure = trees.flatten_values((args, kwargs))
            found = [*map(leaf_type, leaves)]
        types = [
            self._refuse(args, kwargs, statics, position) if type is None else type
            for position, type in enumerate(found)
        ]
        key = Key(structure, tuple(types), statics, config.key(), tuple(state.axes.items()))
        return Call(args, kwargs, leaves, key)

    def _separate(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any], tuple[Static, ...]]:
        numbers = {n % len(args) if n < 0 and args else n for n in self.static_numbers}
        statics = [Static(i, type(x), x) for i, x in enumerate(args) if i in numbers]
        statics += [Static(k, type(kwargs[k]), kwargs[k]) for k in sorted(kwargs) if k in self.static_names]
        for static in statics:
            self._check_hashable(static)
        return (
            tuple([x for i, x in enumerate(args) if i not in numbers]),
            {k: v for k, v in kwargs.items() if k not in self.static_names},
            tuple(statics),
        )

    def _check_hashable(self, static: Static) -> None:
        try:
            hash(static.value)
        except TypeError:
            raise ArgumentError(
                message(
                    f"{self.caller} of {self.name}{here()}: the static {self.argument(static.place)} cannot be hashed",
                    f"got {static.kind.__name__}: {short_text(static.value)}",
                    help="static arguments are compared by == and hash: pass a tuple, a string or a frozen dataclass, "
                    "or leave it out of static_argnums to have it traced",
                )
            ) from None

    def argument(self, place: int | str) -> str:
        """Return an argument's name in errors, `argument 1 'n'`, by its index or keyword."""
        if isinstance(place, int) and place < len(self.parameters):
            return f"argument {place} {self.parameters[place]!r}"
        return f"argument {place!r}"

    def _refuse(self, args: Any, kwargs: Any, statics: tuple[Static, ...], position: int) -> Type:
        """Return the type of a leaf that can be converted. Raises ArgumentError, with its name, for any other."""
        leaf = trees.flatten((args, kwargs))[0][position]
        name = self.leaf_names(args, kwargs, statics)[position]
        return as_array(leaf, f"{self.caller} of {self.name}: {name}").type

    def leaf_names(self, args: Sequence[Any], kwargs: Mapping[str, Any], statics: tuple[Static, ...]) -> list[str]:
        """Return a name for every leaf, as `argument 0 'x'` or `argument 1, w['hidden']`."""
        left = [i for i in range(len(args) + len(statics)) if i not in {s.place for s in statics}][: len(args)]
        whole = {f"argument {place}": self.argument(place) for place in left}
        names = argument_names(args, kwargs, of=self.parameters, positions=left)
        return [whole.get(name, name) for name in names]

    def donated(self, call: Call) -> list[int]:
        """Return the indices of the leaves that the call donates."""
        if not (self.donated_numbers or self.donated_names):
            return []
        skipped = {s.place for s in call.key.statics}
        total = len(call.args) + sum(isinstance(place, int) for place in skipped)
        places = [i for i in range(total) if i not in skipped]
        numbers = {n % total if n < 0 and total else n for n in self.donated_numbers}
        given = [(x, i in numbers) for i, x in zip(places, call.args, strict=True)]
        given += [(call.kwargs[k], k in self.donated_names) for k in sorted(call.kwargs)]
        marks = [on for value, on in given for _ in trees.flatten(value)[0]]
        return [n for n, on in enumerate(marks) if on]


def signature(
    function: Callable[..., Any], name: str, static: tuple[Positions, Names], donated: tuple[Positions, Names],
    caller: str = "jit",
) -> Signature:  # fmt: skip
    """Return the record of `jit`'s options. Indices and names of parameters are inferred from each other.

    caller: names the transform in errors.
    """
    parameters, count = positional_parameters(function)
    where = f"{caller} of {name}"

    def chosen(kind: str, given: tuple[Positions, Names]) -> tuple[frozenset[int], frozenset[str]]:
        numbers = _integers(given[0], f"{kind}_argnums", where)
        names = _strings(given[1], f"{kind}_argnames", where)
        _check_names(names, function, f"{kind}_argnames", where)
        check_positions(numbers, function, f"{kind}_argnums", where)
        total = len(parameters)
        names |= {parameters[n] for n in numbers if -total <= n < total}
        numbers |= {i for i, p in enumerate(parameters) if p in names}
        return frozenset(numbers), frozenset(names)

    return Signature(caller, name, *chosen("static", static), *chosen("donate", donated), count, parameters)


def _integers(given: Positions, option: str, where: str) -> set[int]:
    return set() if given is None else set(argument_numbers(where, option, given))


def _strings(given: Names, option: str, where: str) -> set[str]:
    values: tuple[Any, ...] = () if given is None else (given,) if isinstance(given, str) else tuple(given)
    for value in values:
        if not isinstance(value, str):
            raise ArgumentError(message(f"{where}{here()}: {option} takes names of parameters", f"got {value!r}"))
    return set(values)


def _check_names(names: set[str], function: Callable[..., Any], option: str, where: str) -> None:
    try:
        parameters = inspect.signature(function).parameters
    except (ValueError, TypeError):
        return
    unknown = sorted(names - set(parameters))
    if unknown and not any(p.kind is inspect.Parameter.VAR_KEYWORD for p in parameters.values()):
        raise ArgumentError(
            message(
                f"{where}{here()}: {option} names {unknown[0]!r}",
                f"the function has {', '.join(parameters) or 'no parameters'}",
                help="name a parameter of the function",
            )
        )


def leaf_type(leaf: Any) -> Type | None:
    """Return the type with which a leaf is traced; None if it is no array, or has an unsupported dtype."""
    kind = type(leaf)
    if kind is Array:
        return leaf.type  # type: ignore[no-any-return]
    if kind is float or kind is int or kind is complex:
        return array_type(scalar_dtype(leaf), (), True) if kind is not int or _fits(leaf) else None
    if kind is bool:
        return array_type(scalar_dtype(leaf), ())
    if isinstance(leaf, ShapeDtypeStruct):
        return leaf.type
    if isinstance(leaf, np.ndarray | np.generic) and leaf.dtype.isnative and leaf.dtype in _KNOWN:
        return array_type(leaf.dtype, leaf.shape)
    return None


def _fits(value: int) -> bool:
    return -(2**63) <= value < 2**64
