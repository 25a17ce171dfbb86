"""Random bits from keys: Threefry-2x32 with 20 rounds, in the counter layout of JAX's default generator.

    key words (k0, k1), counter words (x0, x1)  --threefry2x32-->  (y0, y1)      all u32

Salmon, Moraes, Dror & Shaw 2011, "Parallel random numbers: as easy as 1, 2, 3". Element i of a draw, in row-major
order, has the 64-bit counter i, its high word in x0. 32 bits are y0 ^ y1. 64 bits are y0 << 32 | y1. 8 and 16 bits are
the low bits of y0 ^ y1. `random_split` keeps both words as a key; `random_fold_in` hashes the counter (0, data). An
array of keys [*s] makes one draw per key: results are [*s, *shape].
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import DTypeError, ShapeError, message
from tracer.ir import dtypes, shape
from tracer.ir.dtypes import U32
from tracer.ir.primitive import Alias, Composite, Eager, NoRule, Primitive
from tracer.ir.program import Literal
from tracer.ir.types import ArrayType, KeyType, Shape, Type, array_type
from tracer.primitives.arrays.slice_pad_concatenate import concatenate, split
from tracer.primitives.base.broadcasting import broadcast_in_dim, expand_dims
from tracer.primitives.base.rules import Value, coerce, operand_of, pointwise_batch, zero_jvp
from tracer.primitives.base.shapes import iota, moveaxis, reshape, squeeze
from tracer.primitives.elementwise.arithmetic import add
from tracer.primitives.elementwise.bits import or_, shift_left, shift_right_logical, xor
from tracer.primitives.elementwise.conversion import convert_element_type
from tracer.trace.array import Array
from tracer.trace.source import here
from tracer.trace.trace import Operand, as_literal, bind, bind_all

ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))  # by round, repeating; Salmon et al., table 2
PARITY = 0x1BD11BDA  # the key schedule's third word is k0 ^ k1 ^ PARITY
BLOCK = 1 << 14  # counters per block of the reference, so that its temporaries stay in cache
UINT_DTYPES = {8: dtypes.U8, 16: dtypes.U16, 32: dtypes.U32, 64: dtypes.U64}

_NOT_LINEAR = NoRule("random bits are not a linear function of their key")


# Types


def _check_words(operation: str, types: Sequence[Type]) -> None:
    for type in types:
        if not isinstance(type, ArrayType) or type.dtype != U32:
            raise DTypeError(
                message(f"{operation}{here()} takes u32 words", f"got {type}", help='cast it, x.astype("uint32")')
            )


def check_keys(operation: str, type: Type) -> Shape:
    """Return the shape of an array of keys. Raises DTypeError for anything else."""
    if not isinstance(type, KeyType):
        raise DTypeError(
            message(
                f"{operation}{here()} takes random keys",
                f"got {type}",
                help="make one with tracer.random.key(seed), or from u32[...,2] with tracer.random.wrap_key_data",
            )
        )
    return type.shape


def _threefry_infer(*words: Type) -> tuple[Type, Type]:
    _check_words("threefry2x32", words)
    if len({word.shape for word in words}) != 1:
        raise ShapeError(
            message(
                f"threefry2x32{here()}: operands must have equal shapes",
                f"got {', '.join(map(str, words))}",
                help="broadcast them to one shape",
            )
        )
    result = array_type(U32, words[0].shape)
    return result, result


def _wrap_infer(words: Type) -> Type:
    _check_words("random_wrap", (words,))
    if words.shape[-1:] != (2,):
        raise ShapeError(
            message(
                f"random_wrap{here()}: keys are made of two words each, on the last axis",
                f"got {words}",
                help="the last axis must have size 2",
            )
        )
    return KeyType(words.shape[:-1])


def _unwrap_infer(keys: Type) -> Type:
    return array_type(U32, (*check_keys("random_unwrap", keys), 2))


def _seed_infer(seeds: Type) -> Type:
    if not isinstance(seeds, ArrayType) or not dtypes.is_integer(seeds.dtype):
        raise DTypeError(
            message(f"random.key{here()}: the seed is an integer", f"got {seeds}", help="cast it with .astype(int)")
        )
    return KeyType(seeds.shape)


def _split_infer(keys: Type, *, shape: Shape) -> Type:
    return KeyType((*check_keys("random_split", keys), *shape))


def _fold_in_infer(keys: Type, data: Type) -> Type:
    _check_words("random_fold_in", (data,))
    if check_keys("random_fold_in", keys) != data.shape:
        raise ShapeError(
            message(
                f"random_fold_in{here()}: keys and data must have equal shapes",
                f"got {keys} and {data}",
                help="use vmap to fold several numbers into one key",
            )
        )
    return keys


def _bits_infer(keys: Type, *, bit_width: int, shape: Shape) -> Type:
    return array_type(UINT_DTYPES[bit_width], (*check_keys("random_bits", keys), *shape))


# References: keys are arrays of their words


def _hash(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    """Run twenty Threefry rounds per element: after every four, inject words of the key and the injection's number."""
    keys = (k0, k1, k0 ^ k1 ^ U32.type(PARITY))
    x0, x1 = x0 + k0, x1 + k1
    for injection in range(1, 6):
        for rotation in ROTATIONS[(injection - 1) % 2]:
            x0 = x0 + x1
            x1 = ((x1 << U32.type(rotation)) | (x1 >> U32.type(32 - rotation))) ^ x0
        x0 = x0 + keys[injection % 3]
        x1 = x1 + (keys[(injection + 1) % 3] + U32.type(injection))
    return x0, x1


def _threefry_reference(k0: Any, k1: Any, x0: Any, x1: Any) -> tuple[Any, Any]:
    with np.errstate(over="ignore"):
        return _hash(*(np.asarray(word) for word in (k0, k1, x0, x1)))


def _hash_counters(keys: Any, shape_: Shape, block: int = BLOCK) -> tuple[Any, Any]:
    """Return both words for the counters 0, 1, ... of every key: two arrays [*key shape, *shape]."""
    size, flat = shape.size(shape_), keys.reshape(-1, 2)
    out = np.empty((2, len(flat), size), U32)
    rows = max(1, block // max(size, 1))  # short draws are hashed for several keys at once
    with np.errstate(over="ignore"):
        for start in range(0, size, block):
            counters = np.arange(start, min(start + block, size), dtype=np.uint64)
            high, low = (counters >> np.uint64(32)).astype(U32), counters.astype(U32)
            for row in range(0, len(flat), rows):
                k0, k1 = flat[row : row + rows, 0, None], flat[row : row + rows, 1, None]
                words = out[:, row : row + rows, start : start + block]
                words[0], words[1] = _hash(k0, k1, high, low)
    first, second = out.reshape(2, *keys.shape[:-1], *shape_)
    return first, second


def _bits_reference(keys: Any, *, bit_width: int, shape: Shape) -> Any:
    first, second = _hash_counters(keys, shape)
    if bit_width == 64:
        return (first.astype(np.uint64) << np.uint64(32)) | second
    return (first ^ second).astype(UINT_DTYPES[bit_width], copy=False)


def _split_reference(keys: Any, *, shape: Shape) -> Any:
    return np.stack(_hash_counters(keys, shape), axis=-1)


def _fold_in_reference(keys: Any, data: Any) -> Any:
    words = np.asarray(data)
    return np.stack(_threefry_reference(keys[..., 0], keys[..., 1], np.zeros_like(words), words), axis=-1)


def _seed_reference(seeds: Any) -> Any:
    if seeds.dtype.itemsize < 8:
        return np.stack([np.zeros(seeds.shape, U32), seeds.astype(U32)], axis=-1)
    words = seeds.astype(np.uint64)
    return np.stack([(words >> np.uint64(32)).astype(U32), words.astype(U32)], axis=-1)


# Lowerings, in other primitives


def _threefry_expand(k0: Value, k1: Value, x0: Value, x1: Value) -> tuple[Any, Any]:
    keys = (k0, k1, xor(xor(k0, k1), PARITY))
    y0, y1 = add(x0, k0), add(x1, k1)
    for injection in range(1, 6):
        for rotation in ROTATIONS[(injection - 1) % 2]:
            y0 = add(y0, y1)
            rotated = or_(shift_left(y1, rotation), shift_right_logical(y1, 32 - rotation))
            y1 = xor(rotated, y0)
        y0 = add(y0, keys[injection % 3])
        y1 = add(y1, add(keys[(injection + 1) % 3], injection))
    return y0, y1


def _key_words(keys: Operand) -> tuple[Any, Any]:
    """Return the two words of every key, each u32 of the keys' shape."""
    words = random_unwrap(keys)
    axis = len(words.shape) - 1
    first, second = (squeeze(word, (axis,)) for word in split(words, (1, 1), axis))
    return first, second


def _as_keys(first: Any, second: Any) -> Any:
    axis = len(first.type.shape)
    return random_wrap(concatenate([expand_dims(first, (axis,)), expand_dims(second, (axis,))], axis))


def _hash_counters_expand(keys: Operand, shape_: Shape) -> tuple[Any, Any]:
    """Expand `_hash_counters`. The counter's high word is a literal unless the draw has more than 2³² elements."""
    lead, size = keys.type.shape, shape.size(shape_)
    result = (*lead, *shape_)
    along = tuple(range(len(lead), len(result)))
    if size > 2**32:
        counters = iota(dtypes.U64, size)
        low = convert_element_type(counters, U32)
        high = convert_element_type(shift_right_logical(counters, 32), U32)
        x0 = broadcast_in_dim(reshape(high, shape_), result, along)
    else:
        low, x0 = iota(U32, size), as_literal(0, U32)
    x1 = broadcast_in_dim(reshape(low, shape_), result, along)
    k0, k1 = (broadcast_in_dim(word, result, tuple(range(len(lead)))) for word in _key_words(keys))
    return threefry2x32(k0, k1, x0, x1)


def _bits_expand(keys: Operand, *, bit_width: int, shape: Shape) -> Any:
    first, second = _hash_counters_expand(keys, shape)
    if bit_width == 64:
        high, low = (convert_element_type(word, dtypes.U64) for word in (first, second))
        return or_(shift_left(high, 32), low)
    word = xor(first, second)
    return word if bit_width == 32 else convert_element_type(word, UINT_DTYPES[bit_width])


def _split_expand(keys: Operand, *, shape: Shape) -> Any:
    return _as_keys(*_hash_counters_expand(keys, shape))


def _fold_in_expand(keys: Operand, data: Operand) -> Any:
    return _as_keys(*threefry2x32(*_key_words(keys), as_literal(0, U32), data))


def _seed_expand(seeds: Operand) -> Any:
    if isinstance(seeds, Literal):
        seeds = broadcast_in_dim(seeds, (), ())
    low = convert_element_type(seeds, U32)
    if seeds.type.dtype.itemsize < 8:  # type: ignore[union-attr]  # an integer array
        return _as_keys(broadcast_in_dim(as_literal(0, U32), low.type.shape, ()), low)
    return _as_keys(convert_element_type(shift_right_logical(seeds, 32), U32), low)


# Batching: the axes of the keys lead, so a batch axis among them keeps its place


def _lead_batch(ctx: Any, xs: Any, axes: Any, **params: Any) -> tuple[list[Any], list[int | None]]:
    return list(ctx.bind_all(ctx.primitive, xs, params)), [axes[0]]


def _wrap_batch(ctx: Any, xs: Any, axes: Any) -> tuple[list[Any], list[int | None]]:
    """Batch `random_wrap`. The words stay on the last axis."""
    (words,), (axis,) = xs, axes
    if axis == len(words.type.shape) - 1:
        words, axis = moveaxis(words, axis, 0), 0
    return [random_wrap(words)], [axis]


threefry2x32_p = Primitive(
    name="threefry2x32", infer=_threefry_infer, reference=_threefry_reference,
    jvp=zero_jvp, transpose=_NOT_LINEAR,
    batch=pointwise_batch, lower=Composite(_threefry_expand), multiple=True, splat=True,
)  # fmt: skip

random_wrap_p = Primitive(
    name="random_wrap", infer=_wrap_infer, reference=lambda words: words,
    jvp=zero_jvp, transpose=_NOT_LINEAR,
    batch=_wrap_batch, lower=Alias("wrap"),
)  # fmt: skip

random_unwrap_p = Primitive(
    name="random_unwrap", infer=_unwrap_infer, reference=lambda keys: keys,
    jvp=zero_jvp, transpose=_NOT_LINEAR,
    batch=_lead_batch, lower=Alias("unwrap"),
)  # fmt: skip

random_seed_p = Primitive(
    name="random_seed", infer=_seed_infer, reference=_seed_reference,
    jvp=zero_jvp, transpose=_NOT_LINEAR,
    batch=_lead_batch, lower=Composite(_seed_expand),
)  # fmt: skip

random_split_p = Primitive(
    name="random_split", infer=_split_infer, reference=_split_reference,
    jvp=zero_jvp, transpose=_NOT_LINEAR,
    batch=_lead_batch, lower=Composite(_split_expand),
)  # fmt: skip

random_fold_in_p = Primitive(
    name="random_fold_in", infer=_fold_in_infer, reference=_fold_in_reference,
    jvp=zero_jvp, transpose=_NOT_LINEAR,
    batch=pointwise_batch, lower=Composite(_fold_in_expand), splat=True,
)  # fmt: skip

random_bits_p = Primitive(
    name="random_bits", infer=_bits_infer, reference=_bits_reference,
    jvp=zero_jvp, transpose=_NOT_LINEAR,
    batch=_lead_batch, lower=Composite(_bits_expand), eager=Eager.COMPILED,
)  # fmt: skip

RANDOM = (
    threefry2x32_p, random_wrap_p, random_unwrap_p, random_seed_p, random_split_p, random_fold_in_p, random_bits_p,
)  # fmt: skip


# Public twins


def threefry2x32(k0: Value, k1: Value, x0: Value, x1: Value) -> tuple[Array, Array]:
    """Hash the counter (x0, x1) under the key (k0, k1) by Threefry-2x32, 20 rounds: u32 at every element.

    >>> [hex(int(word)) for word in threefry2x32(*(np.uint32(0),) * 4)]
    ['0x6b200159', '0x99ba4efe']
    """
    first, second = bind_all(threefry2x32_p, coerce("threefry2x32", (k0, k1, x0, x1)), {})
    return first, second


def random_wrap(words: Operand) -> Array:
    """Make keys [*s] from their words, u32[*s, 2]."""
    return bind(random_wrap_p, words)


def random_unwrap(keys: Operand) -> Array:
    """Return the words u32[*s, 2] of keys [*s]."""
    return bind(random_unwrap_p, keys)


def random_seed(seeds: Value) -> Array:
    """Make keys from integers, each as a 64-bit word: (high, low). Narrower integers have the high word 0."""
    return bind(random_seed_p, operand_of("random_seed", seeds))


def random_split(keys: Operand, shape: Shape) -> Array:
    """Derive new keys [*s, *shape] from keys [*s]."""
    return bind(random_split_p, keys, shape=tuple(shape))


def random_fold_in(keys: Operand, data: Value) -> Array:
    """Derive new keys from keys and u32 data of the same shape."""
    return bind(random_fold_in_p, keys, operand_of("random_fold_in", data, U32))


def random_bits(keys: Operand, bit_width: int, shape: Shape) -> Array:
    """Draw random bits as unsigned integers of 8, 16, 32 or 64 bits: [*s, *shape] from keys [*s]."""
    return bind(random_bits_p, keys, bit_width=bit_width, shape=tuple(shape))
