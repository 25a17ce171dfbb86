"""Types of values, as the printed IR writes them after a colon.

Type = ArrayType   f32[3,4], i64[] (weak types print with a star: f64*[])
     | KeyType     key[8]: random keys, each two hidden u32 words
     | Float0Type  float0[3]: tangents of values without derivatives (integers, booleans, keys)
     | StackType   stack[f32[3]]: a run-time number of equal items, pushed and popped
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tracer.ir import dtypes
from tracer.ir.dtypes import DType

Shape = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class ArrayType:
    """Dense array. `weak` marks the type of a Python scalar, which gives way in promotion."""

    dtype: DType
    shape: Shape
    weak: bool = False
    _hash: int = field(init=False, repr=False, compare=False)  # types are keys everywhere

    def __post_init__(self) -> None:
        object.__setattr__(self, "_hash", hash((self.dtype, self.shape, self.weak)))

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return array_type, (self.dtype, self.shape, self.weak)  # hashes differ between processes

    def __str__(self) -> str:
        star = "*" if self.weak else ""
        return f"{dtypes.short_name(self.dtype)}{star}[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class KeyType:
    """Random keys of a logical shape, stored as u32[*shape, 2]."""

    shape: Shape

    def __str__(self) -> str:
        return f"key[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class Float0Type:
    """Tangent type of values without derivatives. It holds no bytes."""

    shape: Shape

    def __str__(self) -> str:
        return f"float0[{','.join(map(str, self.shape))}]"


@dataclass(frozen=True, slots=True)
class StackType:
    """Stack of equal items whose length is known only at run time."""

    item: ArrayType | KeyType

    def __str__(self) -> str:
        return f"stack[{self.item}]"

    @property
    def shape(self) -> Shape:
        return ()


Type = ArrayType | KeyType | Float0Type | StackType


@lru_cache(maxsize=8192)
def array_type(dtype: DType, shape: Shape, weak: bool = False) -> ArrayType:
    """Return the ArrayType, usually the same object for equal arguments."""
    return ArrayType(dtypes.ONE_OBJECT.get(dtype, dtype), shape, weak)


@lru_cache(maxsize=8192)
def type_text(type: Type) -> str:
    """Return the text of a type: `str` of it, remembered."""
    return str(type)


def storage_type(type: Type) -> ArrayType:
    """Return the type of the array that holds such a value in memory. Raises TypeError for stacks."""
    match type:
        case ArrayType():
            return type
        case KeyType(shape):
            return array_type(dtypes.U32, (*shape, 2))
        case Float0Type(shape):
            return array_type(dtypes.BOOL, shape)
        case StackType():
            raise TypeError(f"{type} has no storage of fixed size")


def size(type: Type) -> int:
    """Count the elements; a key is one."""
    return math.prod(type.shape)


def is_differentiable(type: Type) -> bool:
    """Whether values of the type have tangents other than float0."""
    if type.__class__ is StackType:
        type = type.item
    return type.__class__ is ArrayType and dtypes.is_inexact(type.dtype)


def tangent_type(type: Type) -> Type:
    """Return the type of a value's tangent: its own type, never weak, if differentiable, else float0."""
    if isinstance(type, ArrayType) and is_differentiable(type):
        return array_type(type.dtype, type.shape) if type.weak else type
    if isinstance(type, StackType) and is_differentiable(type):
        inner = tangent_type(type.item)
        assert isinstance(inner, ArrayType)
        return type if inner is type.item else StackType(inner)
    return Float0Type(type.shape)


def strong(type: Type) -> Type:
    """Return the type without its weak flag."""
    if isinstance(type, ArrayType) and type.weak:
        return array_type(type.dtype, type.shape)
    return type


def with_shape(type: Type, shape: Shape) -> Type:
    """Return the type of the same element in another shape."""
    match type:
        case ArrayType(dtype, _, weak):
            return array_type(dtype, shape, weak)
        case KeyType():
            return KeyType(shape)
        case Float0Type():
            return Float0Type(shape)
        case StackType(item):
            inner = with_shape(item, shape)
            assert isinstance(inner, ArrayType | KeyType)
            return StackType(inner)


def same_up_to_weakness(a: Type, b: Type) -> bool:
    return a is b or strong(a) == strong(b)
