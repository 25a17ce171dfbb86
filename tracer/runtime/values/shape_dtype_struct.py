"""Types in place of arrays: `ShapeDtypeStruct`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tracer.errors import DTypeError, message
from tracer.ir import dtypes
from tracer.ir.types import ArrayType, KeyType, Type, array_type, storage_type
from tracer.runtime.system.devices import CPU, SingleDeviceSharding
from tracer.trace.array import KEY_DTYPE
from tracer.trace.convert import as_array
from tracer.trace.integers import integers
from tracer.trace.source import here


class ShapeDtypeStruct:
    """Shape and dtype in place of an array, for `lower`, `eval_shape` and `make_program`.

    weak_type: whether it stands for a Python scalar, which takes on other dtypes. sharding: accepted as in JAX.

    >>> tracer.ShapeDtypeStruct((3, 4), "float32")
    ShapeDtypeStruct(f32[3,4])
    """

    __slots__ = ("type",)

    def __init__(self, shape: Sequence[int], dtype: Any, *, weak_type: bool = False, sharding: object = None) -> None:
        del sharding  # accepted as in JAX; there is one device
        sizes = integers("ShapeDtypeStruct", "a shape", shape)
        self.type: Type
        if dtype is KEY_DTYPE:
            self.type = KeyType(sizes)
            return
        found = np.dtype(dtype)
        if found not in dtypes.SHORT_NAMES:
            raise DTypeError(
                message(f"ShapeDtypeStruct{here()}: a dtype that tracer does not compute with", f"got {found}")
            )
        self.type = array_type(found, sizes, weak_type)

    @classmethod
    def like(cls, x: Any) -> ShapeDtypeStruct:
        """Return the struct of an array, a scalar, or another struct.

        >>> tracer.ShapeDtypeStruct.like(np.ones(3))
        ShapeDtypeStruct(f64[3])
        """
        return abstract(x.type if isinstance(x, ShapeDtypeStruct) else as_array(x, "ShapeDtypeStruct.like").type)

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the axes."""
        return self.type.shape

    @property
    def dtype(self) -> Any:
        """NumPy dtype; random keys have `tracer.dtypes.prng_key`'s."""
        return KEY_DTYPE if isinstance(self.type, KeyType) else storage_type(self.type).dtype

    @property
    def weak_type(self) -> bool:
        """Whether it stands for a Python scalar."""
        return isinstance(self.type, ArrayType) and self.type.weak

    @property
    def sharding(self) -> SingleDeviceSharding:
        """Placement of such arrays: whole, on the one device."""
        return SingleDeviceSharding(CPU)

    @property
    def ndim(self) -> int:
        """Count of the axes."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Count of the elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ShapeDtypeStruct) and self.type == other.type

    def __hash__(self) -> int:
        return hash(self.type)

    def __repr__(self) -> str:
        return f"ShapeDtypeStruct({self.type})"


def abstract(type: Type) -> ShapeDtypeStruct:
    """Return the struct of a type."""
    struct = object.__new__(ShapeDtypeStruct)
    struct.type = type
    return struct
