"""Random keys: creation from seeds, splitting, folding in data, conversion to words."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np

from tracer.errors import ArgumentError, ShapeError, message
from tracer.ir import dtypes
from tracer.ir.program import Literal
from tracer.ir.types import ArrayType, KeyType
from tracer.primitives.arrays.random import random_fold_in, random_seed, random_split, random_unwrap, random_wrap
from tracer.primitives.arrays.slice_pad_concatenate import split as split_axis
from tracer.primitives.base.shapes import squeeze
from tracer.random.arguments import Parameter, cast, one_key, operand, shape_of, typed_keys
from tracer.runtime.eager.call_cache import cached
from tracer.trace.array import Array, unplaced
from tracer.trace.source import here
from tracer.trace.state import state
from tracer.trace.trace import Operand

GENERATOR = "threefry2x32"


def _check_generator(name: str, *given: object) -> None:
    for generator in given:
        if generator is not None and getattr(generator, "name", generator) not in (GENERATOR, f"key<{GENERATOR}>"):
            raise ArgumentError(
                message(
                    f"random.{name}{here()}: there is no generator {generator!r}",
                    help=f"the generator is {GENERATOR}; leave the argument out",
                )
            )


def _scalar_integer(name: str, role: str, x: Parameter) -> Operand:
    result = operand(name, x)
    if not isinstance(result.type, ArrayType) or not dtypes.is_integer(result.type.dtype):
        raise ArgumentError(
            message(f"random.{name}{here()}: the {role} is an integer", f"got {result.type}", help="cast it to int")
        )
    if result.type.shape:
        raise ShapeError(
            message(
                f"random.{name}{here()}: the {role} is a single integer",
                f"got {result.type}",
                help=f"use tracer.vmap over random.{name} for several",
            )
        )
    return result


def key(seed: Parameter, *, impl: object = None, dtype: object = None) -> Array:
    """Return a key from an integer seed of up to 64 bits, negative or not; traced integers too.

    Returns key[]. The words are the high and the low half of the seed. Raises ArgumentError for a seed that is not a
    scalar integer, and for a generator (`impl`, or `dtype`) other than "threefry2x32".

    >>> tracer.random.key(42)
    Array(key[], words=[ 0, 42])
    """
    _check_generator("key", impl, dtype)
    keys: Array = _seeded(_apart(_scalar_integer("key", "seed", seed)))
    return keys


def PRNGKey(seed: Parameter, *, impl: object = None) -> Array:  # noqa: N802  # JAX's name
    """Return the words of a key, u32[2], in the old style. New code calls `key`.

    seed: a 64-bit integer; impl: as of `key`. Returns uint32 [2].

    >>> tracer.random.PRNGKey(42)
    Array([ 0, 42], u32)
    """
    _check_generator("PRNGKey", impl)
    words: Array = _words(_apart(_scalar_integer("PRNGKey", "seed", seed)))
    return words


@partial(cached, named=False)
def _seeded(seed: Operand) -> Array:
    return random_seed(seed)


@partial(cached, named=False)
def _words(seed: Operand) -> Array:
    return random_unwrap(random_seed(seed))


def key_data(keys: Parameter) -> Array:
    """Return the words u32[*s, 2] of keys [*s].

    keys: arrays of keys, or words, which are returned. Returns uint32. Raises ArgumentError for anything else.

    >>> tracer.random.key_data(tracer.random.key(1))
    Array([0, 1], u32)
    """
    return random_unwrap(typed_keys("key_data", keys)[0])


def wrap_key_data(key_bits_array: Parameter, *, impl: object = None, dtype: object = None) -> Array:
    """Return keys [*s] from their words, u32[*s, 2].

    key_bits_array: the words; impl: as of `key`; dtype: an alternative to impl. Raises DTypeError for words that are
    not uint32.

    >>> tracer.random.wrap_key_data(tracer.random.key_data(tracer.random.key(1)))
    Array(key[], words=[0, 1])
    """
    _check_generator("wrap_key_data", impl, dtype)
    words = operand("wrap_key_data", key_bits_array)
    return random_wrap(words)


def key_impl(keys: Parameter) -> str:
    """Return the name of the keys' generator.

    keys: of any shape. Returns a str.

    >>> tracer.random.key_impl(tracer.random.key(0))
    'threefry2x32'
    """
    typed_keys("key_impl", keys)
    return GENERATOR


def clone(key: Parameter) -> Array:
    """Return the key itself, for a use that repeats its numbers on purpose.

    key: of any shape [*s]. Returns keys [*s].

    >>> tracer.random.clone(tracer.random.key(1))
    Array(key[], words=[0, 1])
    """
    return typed_keys("clone", key)[0]


def split(key: Parameter, num: int | Iterable[int] = 2) -> Array:
    """Return `num` new keys, independent of each other and of the key, which must not be used again.

    num: how many, or a shape. Returns key[num] or key[*num]; raw words uint32 [*num, 2] for a raw key.

    >>> tracer.random.split(tracer.random.key(0), 3)
    Array(key[3], words=[[1797259609, 2579123966],
     [ 928981903, 3453687069],
     [4146024105, 2718843009]])
    """
    keys = one_key("split", key)
    return _as_given(key, random_split(keys, shape_of("split", num)))


def split_keys(key: Array, num: int) -> list[Array]:
    """Split a typed key into single keys."""
    return [squeeze(one, (0,)) for one in split_axis(random_split(key, (num,)), (1,) * num)]


def fold_in(key: Parameter, data: Parameter) -> Array:
    """Return a new key from a key and a 32-bit integer, such as the index of a step.

    key: one; data: an integer []. Returns a key [].

    Integers of other widths are taken modulo 2³². Python's must be in range. Raw words for a raw key.

    >>> tracer.random.fold_in(tracer.random.key(0), 1)
    Array(key[], words=[ 928981903, 3453687069])
    """
    if type(data) is int and 0 <= data < 2**32 and state.innermost is None and _is_one_key(key):
        return _folded(key, unplaced(np.array(data, dtypes.U32)))  # type: ignore[no-any-return]
    one_key("fold_in", key)
    number = _scalar_integer("fold_in", "data", data)
    if isinstance(number, Literal) and not isinstance(data, np.generic) and not 0 <= int(number.value) < 2**32:
        raise ArgumentError(
            message(
                f"random.fold_in{here()}: data must be from 0 to 2**32 - 1",
                f"got {number.value}",
                help="fold in data % 2**32, or the two halves one after the other",
            )
        )
    keys: Array = _folded(key, _apart(cast(number, dtypes.U32)))
    return keys


def _is_one_key(key: Parameter) -> bool:
    return type(key) is Array and type(key._type) is KeyType and not key.shape


@partial(cached, named=False)
def _folded(key: Array, number: Operand) -> Array:
    return _as_given(key, random_fold_in(typed_keys("fold_in", key)[0], number))


def _apart(number: Operand) -> Operand:
    """Return a literal as an array outside traces, so that calls with different numbers have one signature."""
    if isinstance(number, Literal) and state.innermost is None:
        return unplaced(np.asarray(number.value, number.type.dtype), number.type.weak)
    return number


def _as_given(key: Parameter, keys: Array) -> Array:
    """Return new keys in the style of the given key: raw for raw."""
    return keys if isinstance(key, Array) and isinstance(key.type, KeyType) else random_unwrap(keys)
