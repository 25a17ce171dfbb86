"""Meshes of devices and placements of arrays on them, with JAX's names. There is one device, so each holds it all.

Programs written for meshes run as they are on a mesh of one device. Axes, specs and ranks are checked as for more.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import Enum
from typing import Any

import numpy as np
import optree

from tracer.errors import ArgumentError, DeviceError, ShapeError, message
from tracer.runtime.system.devices import CPU, CpuDevice, Sharding, SingleDeviceSharding, placed
from tracer.trace import trees
from tracer.trace.integers import integer
from tracer.trace.source import here
from tracer.trace.tracebacks import call_user, wrapping
from tracer.transforms.vectorize import vmap


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
    def are_all_axes_auto(self) -> bool:
        """Whether the compiler splits arrays along every axis."""
        return not self.empty and set(self.axis_types) == {AxisType.Auto}

    @property
    def are_all_axes_explicit(self) -> bool:
        """Whether types say along which axes arrays are split."""
        return not self.empty and set(self.axis_types) == {AxisType.Explicit}

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
            raise _too_many("Mesh", grid.size, f"got devices of shape {grid.shape}")
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

    def __enter__(self) -> Mesh:
        self._entered.append(_current.set(self))
        return self

    def __exit__(self, *_: object) -> None:
        _current.reset(self._entered.pop())


def _too_many(what: str, count: int, got: str) -> DeviceError:
    return DeviceError(
        message(f"{what}{here()}: there is one device", got, help="axes of size 1, Mesh(tracer.devices(), ('batch',))")
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
        raise _too_many("make_mesh", math.prod(sizes), f"got axis_shapes {sizes}")
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


class NamedSharding(Sharding):
    """Placement of an array on a mesh by a spec: `device_put` and `jit` take one.

    mesh: a mesh; spec: a `PartitionSpec`. memory_kind, logical_device_ids: accepted as in JAX. Raises ArgumentError for
    an axis that the mesh does not have, and for one that comes twice.

    >>> mesh = tracer.make_mesh((1,), ("batch",))
    >>> tracer.sharding.NamedSharding(mesh, tracer.P("batch")).shard_shape((4, 3))
    (4, 3)
    """

    def __init__(
        self,
        mesh: AbstractMesh,
        spec: Any,
        *,
        memory_kind: str | None = None,
        _logical_device_ids: Any = None,
    ) -> None:
        del _logical_device_ids
        if not isinstance(spec, PartitionSpec):
            text = f"NamedSharding{here()} takes a mesh and a PartitionSpec"
            raise ArgumentError(message(text, f"got {type(spec).__name__}", help="tracer.P('batch', None)"))
        names = [name for entry in spec for name in _names(entry)]
        wrong = next((n for n in names if n not in mesh.axis_names or names.count(n) > 1), None)
        if wrong is not None:
            text = f"NamedSharding{here()}: {spec} names axes of the mesh, each once"
            raise ArgumentError(
                message(text, f"got {wrong!r} for axes {mesh.axis_names}", help="None leaves an axis whole")
            )
        self.mesh, self.spec, self.memory_kind = mesh, spec, memory_kind

    @property
    def is_fully_replicated(self) -> bool:
        """Whether every device holds the whole array."""
        return all(self.mesh.shape[name] == 1 for entry in self.spec for name in _names(entry))

    def shard_shape(self, global_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of one device's part. Raises ShapeError where axes do not divide."""
        splits = [math.prod(self.mesh.shape[name] for name in _names(entry)) for entry in self.spec]
        if len(splits) > len(global_shape) or any(n % by for n, by in zip(global_shape, splits, strict=False)):
            text = f"NamedSharding{here()}: {self.spec} does not divide an array of shape {tuple(global_shape)}"
            raise ShapeError(
                message(text, f"axes of {self.mesh}", help="give one entry an axis, of sizes that divide it")
            )
        return tuple(n // by for n, by in zip(global_shape, splits + [1] * len(global_shape), strict=False))

    def with_spec(self, spec: Any) -> NamedSharding:
        """Return the sharding with another spec."""
        return NamedSharding(self.mesh, spec if isinstance(spec, PartitionSpec) else PartitionSpec(*spec))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, NamedSharding) and (self.mesh, self.spec) == (other.mesh, other.spec)

    def __hash__(self) -> int:
        return hash((self.mesh, self.spec))

    def __repr__(self) -> str:
        return f"NamedSharding(mesh={self.mesh}, spec={self.spec})"


def _names(entry: Any) -> tuple[Any, ...]:
    if entry is None or entry is PartitionSpec.UNCONSTRAINED:
        return ()
    return tuple(entry) if isinstance(entry, tuple) else (entry,)


def make_single_device_sharding(device: Any, *, memory_kind: str | None = None) -> SingleDeviceSharding:
    """Return the placement of whole arrays on a device.

    device: one of `tracer.devices()`; memory_kind: accepted as in JAX.

    >>> tracer.sharding.make_single_device_sharding(tracer.devices()[0])
    SingleDeviceSharding(device=CpuDevice(0))
    """
    del memory_kind
    return SingleDeviceSharding(device)


def reshard(xs: Any, out_shardings: Any) -> Any:
    """Return a tree of arrays placed by shardings: the arrays themselves, on one device.

    xs: a tree of arrays [*s]; out_shardings: a sharding or a `PartitionSpec`, or a tree of them that is a prefix.
    Raises ShapeError for one of another rank, ArgumentError for axes that the current mesh does not have.

    >>> mesh = tracer.make_mesh((1,), ("batch",))
    >>> tracer.reshard(tnp.ones(2), tracer.NamedSharding(mesh, tracer.P("batch")))
    Array([1., 1.], f64)
    """
    return placed(xs, on_mesh(out_shardings), "reshard")


def with_sharding_constraint(x: Any, shardings: Any) -> Any:
    """Return a tree of arrays that the compiler places by shardings: the arrays themselves, as of `reshard`.

    x: a tree of arrays [*s]; shardings: as of `reshard`.

    >>> tracer.lax.with_sharding_constraint(tnp.ones(2), tracer.P("batch"))
    Array([1., 1.], f64)
    """
    return placed(x, on_mesh(shardings), "with_sharding_constraint")


def on_mesh(shardings: Any) -> Any:
    """Return a tree of shardings for a tree of specs and shardings.

    A spec becomes a sharding of the current mesh, or None where there is no mesh.
    """
    mesh = get_mesh()

    def named(entry: Any) -> Any:
        if not isinstance(entry, PartitionSpec):
            return entry
        return None if mesh.empty else NamedSharding(mesh, entry)

    return optree.tree_map(named, shardings, namespace=trees.NAMESPACE)


def auto_axes(f: Callable[..., Any] | None = None, /, *, axes: Any = None, out_sharding: Any = None) -> Any:
    """Return the function. On one device, axes that the compiler splits and axes that the user splits are equal.

    f: a function, or None for a decorator; axes, out_sharding: accepted as in JAX, the latter in calls, too.

    >>> tracer.sharding.auto_axes(lambda x: 2 * x)(3.0)
    6.0
    """
    del axes, out_sharding
    return _without("out_sharding") if f is None else _without("out_sharding")(f)


def explicit_axes(f: Callable[..., Any] | None = None, /, *, axes: Any = None, in_sharding: Any = None) -> Any:
    """Return the function, as `auto_axes` does.

    f, axes: as of `auto_axes`; in_sharding: accepted as in JAX, in calls, too.

    >>> tracer.sharding.explicit_axes(lambda x: 2 * x)(3.0)
    6.0
    """
    del axes, in_sharding
    return _without("in_sharding") if f is None else _without("in_sharding")(f)


def _without(keyword: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    def decorate(f: Callable[..., Any]) -> Callable[..., Any]:
        @wrapping(f)
        def called(*args: Any, **kwargs: Any) -> Any:
            kwargs.pop(keyword, None)
            return call_user(f, args, kwargs)

        return called

    return decorate


def shard_map(
    f: Callable[..., Any] | None = None, /, *, out_specs: Any, in_specs: Any = None, mesh: Any = None,
    axis_names: Any = frozenset(), check_vma: bool = True,
) -> Any:  # fmt: skip
    """Run a function on every device's part of its arguments: on one device, on the arguments themselves.

    f: a function of trees of arrays [*s], or None for a decorator. Within it the names of the mesh's axes have size 1,
    for the collectives of `tracer.lax`. mesh: by default the current one; axis_names: the names that f uses, by default
    all. in_specs, out_specs: prefixes of `PartitionSpec`s for the arguments and results, whose ranks are checked.
    check_vma: accepted as in JAX. Raises ShapeError for specs of another rank, DeviceError for a mesh of more devices.

    >>> mesh = tracer.make_mesh((1,), ("batch",))
    >>> total = lambda x: tracer.lax.psum(x.sum(), "batch")
    >>> tracer.shard_map(total, mesh=mesh, in_specs=tracer.P("batch"), out_specs=tracer.P())(tnp.ones(3))
    Array(3., f64)
    """
    del check_vma
    if f is None:
        return lambda g: shard_map(g, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names)

    @wrapping(f)
    def mapped(*args: Any) -> Any:
        grid = get_mesh() if mesh is None else mesh
        if grid.size != 1:
            raise _too_many("shard_map", grid.size, f"got {grid}")
        with use_abstract_mesh(grid):
            given = args if in_specs is None else placed(args, on_mesh(in_specs), "shard_map")
            inner: Callable[..., Any] = lambda: call_user(f, given, {})  # noqa: E731  # wrapped once an axis
            for name in axis_names or grid.axis_names:
                inner = _along(inner, name)
            return placed(inner(), on_mesh(out_specs), "shard_map")

    return mapped


def _along(f: Callable[..., Any], name: Any) -> Callable[..., Any]:
    return lambda: trees.tree_map(lambda y: y[0], vmap(f, axis_name=name, axis_size=1)())
