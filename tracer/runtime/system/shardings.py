"""Placements of arrays on meshes, with JAX's names. There is one device, so each holds it all.

Programs written for meshes run as they are on a mesh of one device. Axes, specs and ranks are checked as for more.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import optree

from tracer.errors import ArgumentError, ShapeError, message
from tracer.runtime.system.devices import Sharding, SingleDeviceSharding, placed
from tracer.runtime.system.meshes import AbstractMesh, PartitionSpec, get_mesh, too_many_devices, use_abstract_mesh
from tracer.trace import trees
from tracer.trace.source import here
from tracer.trace.tracebacks import call_user, wrapping
from tracer.transforms.vectorize import vmap


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

    def check_compatible_aval(self, aval_shape: tuple[int, ...]) -> None:
        """Raise ShapeError for a shape that has too few axes, or axes that do not divide."""
        self.shard_shape(aval_shape)

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
            raise too_many_devices("shard_map", f"got {grid}")
        with use_abstract_mesh(grid):
            given = args if in_specs is None else placed(args, on_mesh(in_specs), "shard_map")
            inner: Callable[..., Any] = lambda: call_user(f, given, {})  # noqa: E731  # wrapped once an axis
            for name in axis_names or grid.axis_names:
                inner = _along(inner, name)
            return placed(inner(), on_mesh(out_specs), "shard_map")

    return mapped


def _along(f: Callable[..., Any], name: Any) -> Callable[..., Any]:
    return lambda: trees.tree_map(lambda y: y[0], vmap(f, axis_name=name, axis_size=1)())
