"""Meshes: devices in grids with named axes, as in JAX. With one device, all sizes are 1."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np

from tracer.errors import ArgumentError, DeviceError, message
from tracer.runtime.system.devices import CPU, CpuDevice
from tracer.trace.integers import integer
from tracer.trace.source import here


class AxisType(Enum):
    """Way in which an axis of a mesh is used; on one device all are equal.

    >>> tracer.sharding.AxisType.Auto.name
    'Auto'
    """

    Auto = 1
    Explicit = 2
    Manual = 3


class PartitionSpec(tuple[Any, ...]):
    """Axes of a mesh for each axis of an array: a name, several, or None for an axis that is not split.

    unreduced, reduced: accepted as in JAX; results of one device are whole.

    >>> tracer.sharding.PartitionSpec("batch", None)
    PartitionSpec('batch', None)
    """

    UNCONSTRAINED = type("UnconstrainedSingleton", (), {"__repr__": lambda self: "UNCONSTRAINED"})()

    def __new__(cls, *partitions: Any, unreduced: object = None, reduced: object = None) -> PartitionSpec:
        del unreduced, reduced
        return super().__new__(cls, partitions)

    @property
    def partitions(self) -> tuple[Any, ...]:
        """Entries of the spec, one for each axis of an array."""
        return tuple(self)

    def update(self, *, partitions: Any) -> PartitionSpec:
        """Return a spec of other entries."""
        return PartitionSpec(*partitions)

    def __add__(self, other: Any) -> PartitionSpec:
        return PartitionSpec(*self, *other)

    def __repr__(self) -> str:
        return f"PartitionSpec({', '.join(map(repr, self))})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


@dataclass(frozen=True)
class AbstractDevice:
    """Kind of device, for meshes without devices.

    >>> tracer.sharding.AbstractDevice("cpu", None)
    AbstractDevice(device_kind='cpu', num_cores=None, platform=None)
    """

    device_kind: str
    num_cores: int | None
    platform: str | None = None


class AbstractMesh:
    """Names and sizes of a mesh's axes, without devices.

    axis_sizes, axis_names: one for each axis; axis_types: an `AxisType` or one for each; abstract_device: accepted.
    Raises ArgumentError for other numbers of sizes and names, and for a name that comes twice.

    >>> tracer.sharding.AbstractMesh((2, 4), ("batch", "model")).shape["model"]
    4
    """

    def __init__(
        self, axis_sizes: Sequence[int], axis_names: Any, axis_types: Any = None, *, abstract_device: object = None
    ) -> None:
        names = (axis_names,) if isinstance(axis_names, str) else tuple(axis_names)
        sizes = tuple(integer("mesh", "axis_sizes", n) for n in axis_sizes)
        if len(names) != len(sizes) or len(set(names)) != len(names):
            text = f"mesh{here()}: one name for each axis"
            raise ArgumentError(
                message(text, f"got {names} for sizes {sizes}", help="names of their own, as in 'batch'")
            )
        given = axis_types if isinstance(axis_types, Sequence) else (axis_types or AxisType.Auto,) * len(names)
        self.axis_names, self.axis_sizes, self.axis_types = names, sizes, tuple(given)
        self.abstract_device = abstract_device

    @property
    def shape(self) -> OrderedDict[Any, int]:
        """Sizes of the axes by name."""
        return OrderedDict(zip(self.axis_names, self.axis_sizes, strict=True))

    @property
    def size(self) -> int:
        """Number of devices."""
        return math.prod(self.axis_sizes)

    @property
    def empty(self) -> bool:
        """Whether the mesh has no axes."""
        return not self.axis_names

    @property
    def shape_tuple(self) -> tuple[tuple[Any, int], ...]:
        """Names and sizes of the axes."""
        return tuple(self.shape.items())

    @property
    def auto_axes(self) -> tuple[Any, ...]:
        """Names of the axes along which the compiler splits arrays."""
        return self._of_type(AxisType.Auto)

    @property
    def explicit_axes(self) -> tuple[Any, ...]:
        """Names of the axes along which types say that arrays are split."""
        return self._of_type(AxisType.Explicit)

    @property
    def manual_axes(self) -> tuple[Any, ...]:
        """Names of the axes along which the user splits arrays."""
        return self._of_type(AxisType.Manual)

    @property
    def are_all_axes_auto(self) -> bool:
        """Whether the compiler splits arrays along every axis."""
        return not self.empty and self.auto_axes == self.axis_names

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether types say along which axes arrays are split."""
        return not self.empty and self.explicit_axes == self.axis_names

    @property
    def are_all_axes_manual(self) -> bool:
        """Whether the user splits arrays along every axis."""
        return not self.empty and self.manual_axes == self.axis_names

    def _of_type(self, wanted: AxisType) -> tuple[Any, ...]:
        return tuple(name for name, of in zip(self.axis_names, self.axis_types, strict=True) if of is wanted)

    @property
    def abstract_mesh(self) -> AbstractMesh:
        """Mesh without devices."""
        return AbstractMesh(self.axis_sizes, self.axis_names, self.axis_types)

    def _key(self) -> tuple[Any, ...]:
        return type(self), self.axis_names, self.axis_sizes, self.axis_types

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        axes = ", ".join(f"{name!r}: {size}" for name, size in self.shape.items())
        return f"{type(self).__name__}({axes})"


class Mesh(AbstractMesh):
    """Devices in a grid with named axes: with one device, all sizes are 1. A context manager, as `set_mesh`.

    devices: an array of devices, of as many axes as there are names; axis_names, axis_types: as of `AbstractMesh`.
    Raises DeviceError for more devices than there are, ArgumentError for other numbers of axes and names.

    >>> mesh = tracer.sharding.Mesh(tracer.devices(), ("batch",))
    >>> mesh.shape["batch"]
    1
    """

    def __init__(self, devices: Any, axis_names: Any, axis_types: Any = None) -> None:
        grid = np.empty(np.shape(devices), object)
        grid[...] = np.asarray(devices, object)
        if grid.size > 1 or not all(isinstance(d, CpuDevice) for d in grid.flat):
            raise too_many_devices("Mesh", f"got devices of shape {grid.shape}")
        self.devices = grid
        self._entered: list[Any] = []
        super().__init__(grid.shape, axis_names, axis_types)

    @property
    def device_ids(self) -> np.ndarray[Any, Any]:
        """Numbers of the devices, in the grid."""
        return np.array([d.id for d in self.devices.flat]).reshape(self.devices.shape)

    @property
    def local_mesh(self) -> Mesh:
        """Part of the mesh in this process: all of it."""
        return self

    @property
    def local_devices(self) -> list[Any]:
        """Devices of this process: all of them."""
        return list(self.devices.flat)

    @property
    def is_multi_process(self) -> bool:
        """Whether devices belong to several processes: they do not."""
        return False

    def __enter__(self) -> Mesh:
        self._entered.append(_current.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._entered.pop())


def too_many_devices(operation: str, got: str) -> DeviceError:
    """Return the error of a mesh of more devices than one."""
    return DeviceError(
        message(
            f"{operation}{here()}: there is one device", got, help="axes of size 1, Mesh(tracer.devices(), ('batch',))"
        )
    )


def make_mesh(
    axis_shapes: Sequence[int], axis_names: Sequence[Any], axis_types: Any = None, *, devices: Any = None
) -> Mesh:
    """Return a mesh of the devices, of these sizes and names.

    axis_shapes: sizes, of product 1; axis_names, axis_types: as of `Mesh`; devices: by default all. Raises DeviceError
    for more devices than there are.

    >>> tracer.make_mesh((1, 1), ("batch", "model"))
    Mesh('batch': 1, 'model': 1)
    """
    sizes = tuple(integer("make_mesh", "axis_shapes", n) for n in axis_shapes)
    if math.prod(sizes) != 1:
        raise too_many_devices("make_mesh", f"got axis_shapes {sizes}")
    return Mesh(np.array([CPU] if devices is None else list(devices), object).reshape(sizes), axis_names, axis_types)


_NO_MESH = AbstractMesh((), ())


_current: ContextVar[AbstractMesh] = ContextVar("mesh", default=_NO_MESH)


@contextmanager
def use_abstract_mesh(mesh: AbstractMesh) -> Iterator[AbstractMesh]:
    """Take this mesh as the current one until the block ends.

    mesh: a `Mesh` or an `AbstractMesh`.

    >>> with tracer.sharding.use_abstract_mesh(tracer.sharding.AbstractMesh((2,), ("batch",))):
    ...     tracer.sharding.get_abstract_mesh().size
    2
    """
    token = _current.set(mesh)
    try:
        yield mesh
    finally:
        _current.reset(token)


class set_mesh:  # noqa: N801  # called like a function, for good or for a block
    """Take a mesh as the current one, from now on or until a `with` block ends.

    mesh: a `Mesh`.

    >>> with tracer.set_mesh(tracer.make_mesh((1,), ("batch",))):
    ...     tracer.sharding.get_mesh()
    Mesh('batch': 1)
    """

    def __init__(self, mesh: AbstractMesh) -> None:
        self._token = _current.set(mesh)
        self._mesh = mesh

    def __enter__(self) -> AbstractMesh:
        return self._mesh

    def __exit__(self, *_: object) -> None:
        _current.reset(self._token)


def get_mesh() -> AbstractMesh:
    """Return the current mesh, one without axes by default.

    >>> tracer.sharding.get_mesh().empty
    True
    """
    return _current.get()


def get_abstract_mesh() -> AbstractMesh:
    """Return names and sizes of the current mesh.

    >>> tracer.sharding.get_abstract_mesh().axis_names
    ()
    """
    return _current.get().abstract_mesh
