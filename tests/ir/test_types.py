"""Types: how they print, and what becomes of them."""

from __future__ import annotations

import pytest
from hypothesis import given

from tests.grids import each
from tests.ir.strategies import SHAPES, TYPES
from tests.ir.toys import f32
from tracer.ir import types
from tracer.ir.dtypes import BF16, BOOL, C64, F32, F64, I32, U32
from tracer.ir.types import ArrayType, Float0Type, KeyType, StackType, Type, array_type

PRINTED: list[tuple[Type, str]] = [
    (array_type(F32, (3, 4)), "f32[3,4]"),
    (array_type(BF16, ()), "bf16[]"),
    (array_type(F64, (), True), "f64*[]"),
    (KeyType((8,)), "key[8]"),
    (Float0Type((3,)), "float0[3]"),
    (StackType(array_type(F32, (3,))), "stack[f32[3]]"),
    (StackType(KeyType(())), "stack[key[]]"),
]


@each(("type", "text"), PRINTED, ids=[text for _, text in PRINTED])
def test_types_print_as_the_ir_shows_them(type: Type, text: str) -> None:
    assert str(type) == text


def test_array_type_gives_equal_types_for_equal_arguments() -> None:
    assert array_type(F32, (3,)) == ArrayType(F32, (3,))
    assert array_type(F32, (3,)) != array_type(F32, (3,), True)
    assert array_type(F32, (3,)) != array_type(F64, (3,))


def test_storage_of_keys_is_two_words_each() -> None:
    assert types.storage_type(KeyType((8,))) == array_type(U32, (8, 2))
    assert types.storage_type(Float0Type((8,))) == array_type(BOOL, (8,))
    assert types.storage_type(f32(3)) == f32(3)
    with pytest.raises(TypeError, match=r"stack\[f32\[3\]\] has no storage of fixed size"):
        types.storage_type(StackType(f32(3)))


def test_floats_and_complex_numbers_and_stacks_of_them_have_tangents() -> None:
    assert types.tangent_type(f32(3)) == f32(3)
    assert types.tangent_type(array_type(C64, ())) == array_type(C64, ())
    assert types.tangent_type(StackType(f32(3))) == StackType(f32(3))
    for type in (array_type(I32, (3,)), array_type(BOOL, (3,)), KeyType((3,)), Float0Type((3,))):
        assert types.tangent_type(type) == Float0Type((3,))
    assert types.tangent_type(StackType(KeyType((2,)))) == Float0Type(())


def test_a_tangent_is_never_weak() -> None:
    assert types.tangent_type(array_type(F64, (), True)) == array_type(F64, ())


@given(TYPES)
def test_the_tangent_of_a_tangent_is_itself(type: Type) -> None:
    tangent = types.tangent_type(type)
    if not isinstance(tangent, StackType):
        assert types.tangent_type(tangent) == tangent


@given(TYPES)
def test_strong_types_are_the_same_up_to_weakness(type: Type) -> None:
    assert types.same_up_to_weakness(type, types.strong(type))
    assert types.strong(types.strong(type)) is types.strong(type)


@given(TYPES, SHAPES)
def test_with_shape_changes_the_shape_and_nothing_else(type: Type, shape: tuple[int, ...]) -> None:
    other = types.with_shape(type, shape)
    inner = other.item if isinstance(other, StackType) else other
    assert inner.shape == shape
    before = type.item if isinstance(type, StackType) else type
    assert types.with_shape(other, before.shape) == type


def test_size_counts_elements_and_keys() -> None:
    assert [types.size(t) for t in (f32(2, 3), f32(), f32(0, 3), KeyType((4,)))] == [6, 1, 0, 4]
