"""The primitives of random bits: the published vectors, lowerings, batches, missing derivatives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.grids import each
from tracer.errors import DTypeError, ShapeError
from tracer.ir import dtypes
from tracer.ir.primitive import Composite, Zero
from tracer.ir.types import Float0Type, KeyType, Type, array_type
from tracer.primitives.arrays import random as bits
from tracer.primitives.arrays.random import RANDOM, random_bits, random_fold_in, random_seed, random_split, random_wrap
from tracer.primitives.base.reference import run_reference
from tracer.primitives.base.shapes import moveaxis
from tracer.trace.stage import stage
from tracer.transforms.batch import batch_forward, batch_program
from tracer.transforms.jvp import jvp_equation, push_forward

KEYS = np.array([[0, 0], [7, 2**32 - 1], [123456789, 42]], np.uint32)

# key words, counter words, results: Random123 1.14, examples/kat_vectors, threefry2x32 with 20 rounds
VECTORS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((0xFFFFFFFF, 0xFFFFFFFF), (0xFFFFFFFF, 0xFFFFFFFF), (0x1CB996FC, 0xBB002BE7)),
    ((0x13198A2E, 0x03707344), (0x243F6A88, 0x85A308D3), (0xC4923A9C, 0x483DF7A0)),
]

CALLS: dict[str, tuple[Any, Type, Any]] = {
    **{f"bits of {w}": (lambda k, w=w: random_bits(k, w, (2, 3)), KeyType(()), KEYS) for w in (8, 16, 32, 64)},
    "no bits": (lambda k: random_bits(k, 32, (0, 3)), KeyType(()), KEYS),
    "bits without axes": (lambda k: random_bits(k, 32, ()), KeyType(()), KEYS),
    "split": (lambda k: random_split(k, (4,)), KeyType(()), KEYS),
    "split to a shape": (lambda k: random_split(k, (2, 2)), KeyType(()), KEYS),
    "fold in": (lambda k: random_fold_in(k, np.uint32(9)), KeyType(()), KEYS),
    "seed of 64 bits": (random_seed, array_type(dtypes.I64, ()), np.array([-1, 5, 2**40 + 1])),
    "seed of 8 bits": (random_seed, array_type(dtypes.I8, ()), np.array([-1, 5, 3], np.int8)),
    "wrap": (random_wrap, array_type(dtypes.U32, (2,)), KEYS),
}


def value_of(function: Any, type: Type, value: Any) -> Any:
    return run_reference(stage(lambda xs: [function(*xs)], [type]).program, [value])[0]


@pytest.mark.parametrize(("key", "counter", "result"), VECTORS)
def test_threefry_gives_the_published_vectors(key: Any, counter: Any, result: Any) -> None:
    words = [np.array(word, np.uint32) for word in (*key, *counter)]
    word = array_type(dtypes.U32, ())
    for function in (bits.threefry2x32, expanded(bits.threefry2x32_p)):
        program = stage(lambda xs, f=function: f(*xs), [word] * 4).program
        assert tuple(map(int, run_reference(program, words))) == result


def expanded(primitive: Any) -> Any:
    assert isinstance(primitive.lower, Composite)
    return primitive.lower.expand


@each("name", CALLS)
def test_the_lowering_gives_the_bits_of_the_reference(name: str) -> None:
    function, type, values = CALLS[name]
    (equation,) = stage(lambda xs: [function(*xs)], [type]).program.equations
    if not isinstance(equation.primitive.lower, Composite):
        return
    lowered = lambda x: expanded(equation.primitive)(x, *equation.inputs[1:], **equation.params)  # noqa: E731
    for value in values:
        got, wanted = value_of(lowered, type, value), value_of(function, type, value)
        assert got.dtype == wanted.dtype
        np.testing.assert_array_equal(got, wanted)


@each("name", CALLS)
def test_vmap_is_the_stack_of_the_calls(name: str) -> None:
    function, type, values = CALLS[name]
    program = stage(lambda xs: [function(*xs)], [type]).program
    batch = batch_program(program, (True,), len(values)).program
    (got,) = run_reference(batch, [values])
    np.testing.assert_array_equal(got, np.stack([run_reference(program, [value])[0] for value in values]))


def test_folding_batches_on_either_side() -> None:
    types: list[Type] = [KeyType(()), array_type(dtypes.U32, ())]
    program = stage(lambda xs: [random_fold_in(*xs)], types).program
    data = np.array([3, 4, 5], np.uint32)
    for batched in ((True, False), (False, True), (True, True)):
        values = [a if on else a[0] for a, on in zip((KEYS, data), batched, strict=True)]
        (got,) = run_reference(batch_program(program, batched, 3).program, values)
        for lane in range(3):
            inputs = [v[lane] if on else v for v, on in zip(values, batched, strict=True)]
            np.testing.assert_array_equal(got[lane], run_reference(program, inputs)[0])


def test_long_draws_do_not_depend_on_the_block_that_hashes_them() -> None:
    size = 2 * bits.BLOCK + 5
    for found, whole in zip(
        bits._hash_counters(KEYS, (size,), block=1000), bits._hash_counters(KEYS, (size,)), strict=True
    ):
        np.testing.assert_array_equal(found, whole)


def test_draws_beyond_32_bits_of_counter_have_their_shape() -> None:
    program = stage(lambda xs: [expanded(bits.random_bits_p)(xs[0], bit_width=32, shape=(2**33,))], [KeyType(())])
    assert program.program.output_types == (array_type(dtypes.U32, (2**33,)),)


def test_keys_and_bits_have_no_tangents() -> None:
    def run(keys: list[Any]) -> list[Any]:
        program = stage(lambda xs: [random_split(xs[0], (2,)), random_bits(xs[0], 32, (3,))], [KeyType(())]).program
        outputs, tangents = push_forward(program, keys, [Zero(Float0Type(()))], jvp_equation)
        assert tangents == [Zero(Float0Type((2,))), Zero(Float0Type((3,)))]
        return list(outputs)

    stage(run, [KeyType(())])


def test_what_is_no_key_is_told() -> None:
    with pytest.raises(DTypeError, match=r"random_bits.* takes random keys"):
        stage(lambda xs: [random_bits(xs[0], 32, ())], [array_type(dtypes.U32, (2,))])
    with pytest.raises(DTypeError, match="takes u32 words"):
        stage(lambda xs: [random_wrap(xs[0])], [array_type(dtypes.I32, (2,))])
    with pytest.raises(ShapeError, match="the last axis must have size 2"):
        stage(lambda xs: [random_wrap(xs[0])], [array_type(dtypes.U32, (3,))])


def test_only_the_bits_run_compiled() -> None:
    assert [p.name for p in RANDOM if p.eager.value == "compiled"] == ["random_bits"]


@pytest.mark.parametrize("axis", [0, 1, 2])
def test_words_wrap_whichever_axis_is_the_batch(axis: int) -> None:
    words = np.stack([KEYS, KEYS[::-1]])  # a batch of two arrays of three keys
    program = stage(lambda xs: [random_wrap(*xs)], [array_type(dtypes.U32, (3, 2))]).program

    def run(xs: list[Any]) -> list[Any]:
        (output,), (found,) = batch_forward(program, xs, [axis], 2, None)
        return [moveaxis(output, found, 0)]

    moved = np.ascontiguousarray(np.moveaxis(words, 0, axis))
    batch = stage(run, [array_type(dtypes.U32, moved.shape)]).program
    np.testing.assert_array_equal(run_reference(batch, [moved])[0], words)
