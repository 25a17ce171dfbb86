"""Meshes and shardings of one device."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer import P, lax
from tracer.errors import ArgumentError, DeviceError, ShapeError
from tracer.sharding import AbstractMesh, AxisType, Mesh, NamedSharding, PartitionSpec, SingleDeviceSharding

X = tnp.arange(6.0).reshape(2, 3)
MESH = tracer.make_mesh((1, 1), ("batch", "model"), (AxisType.Auto, AxisType.Explicit))


def test_a_mesh_says_what_it_is_made_of() -> None:
    assert (MESH.axis_names, MESH.axis_sizes, dict(MESH.shape)) == (
        ("batch", "model"),
        (1, 1),
        {"batch": 1, "model": 1},
    )
    assert (MESH.size, MESH.empty, MESH.devices.shape, MESH.local_mesh) == (1, False, (1, 1), MESH)
    assert Mesh(tracer.devices(), "batch") == Mesh(np.array(tracer.devices()), ("batch",)) != MESH
    assert hash(MESH) == hash(tracer.make_mesh((1, 1), ("batch", "model"), (AxisType.Auto, AxisType.Explicit)))
    assert MESH.abstract_mesh == AbstractMesh((1, 1), ("batch", "model"), MESH.axis_types)


def test_axes_of_a_mesh_by_their_type() -> None:
    mesh = AbstractMesh((2, 1), ("a", "b"), (AxisType.Explicit, AxisType.Auto))
    assert (mesh.shape_tuple, mesh.auto_axes, mesh.explicit_axes) == ((("a", 2), ("b", 1)), ("b",), ("a",))
    assert [mesh.manual_axes, mesh.are_all_axes_auto, mesh.are_all_axes_manual] == [(), False, False]
    mine = Mesh(tracer.devices(), "a", AxisType.Manual)
    assert (mine.are_all_axes_manual, mine.local_devices, mine.is_multi_process) == (True, tracer.devices(), False)


def test_the_current_mesh() -> None:
    assert tracer.sharding.get_mesh().empty
    with MESH, MESH:
        assert tracer.sharding.get_mesh() is MESH
    with tracer.set_mesh(MESH) as entered:
        assert entered is tracer.sharding.get_mesh() is MESH
        assert tracer.sharding.get_abstract_mesh() == MESH.abstract_mesh
    assert tracer.sharding.get_mesh().empty


def test_specs_are_leaves_that_compare_and_pickle() -> None:
    spec = P("batch", ("model",), None)
    assert spec == PartitionSpec("batch", ("model",), None) == pickle.loads(pickle.dumps(spec))
    assert (spec.partitions, spec.update(partitions=("batch",)), spec + P("model")) == (
        tuple(spec), P("batch"), P("batch", ("model",), None, "model")
    )  # fmt: skip
    assert type(spec + P("model")) is PartitionSpec
    assert repr(spec) == "PartitionSpec('batch', ('model',), None)"
    assert tracer.tree.leaves([spec, P()]) == [spec, P()]
    assert tracer.tree.leaves(NamedSharding(MESH, spec)) == [NamedSharding(MESH, spec)]


@pytest.mark.parametrize("where", [NamedSharding(MESH, P("batch")), SingleDeviceSharding(tracer.devices()[0]), None])
def test_arrays_go_to_their_placement(where: Any) -> None:
    tree = {"a": X, "b": [np.ones(2)]}
    for placed in (
        tracer.device_put(tree, where),
        tracer.reshard(tree, where),
        tracer.device_put(tree, {"a": where, "b": None}),
    ):
        assert placed["a"] is X
        assert isinstance(placed["b"][0], tracer.Array)
    f = tracer.jit(lambda x: lax.with_sharding_constraint(2 * x, where), in_shardings=where, out_shardings=(where,))
    assert f(X).tolist() == (2 * X).tolist()
    assert float(tracer.grad(lambda x: tracer.reshard(x, where) ** 2)(3.0)) == 6.0 if where is None else True


def test_shardings_agree_with_jaxs_on_one_device() -> None:
    sharding = NamedSharding(MESH, P(("batch", "model"), None))
    assert sharding.is_fully_replicated
    assert sharding.shard_shape((4, 3)) == (4, 3)
    assert sharding.is_equivalent_to(X.sharding, 2)
    assert sharding.device_set == X.sharding.device_set
    assert sharding.devices_indices_map((4, 3)) == {tracer.devices()[0]: (slice(None), slice(None))}
    assert sharding.addressable_devices_indices_map((4, 3)) == X.sharding.addressable_devices_indices_map((4, 3))
    assert sharding.has_addressable_devices
    assert sharding.with_memory_kind("device") is sharding
    with pytest.raises(ShapeError, match="does not divide an array of shape"):
        sharding.check_compatible_aval(())
    wide = NamedSharding(AbstractMesh((2, 4), ("batch", "model")), P("model", None, "batch"))
    assert (wide.shard_shape((8, 3, 4)), wide.is_fully_replicated) == ((2, 3, 2), False)
    assert wide.with_spec(("batch",)).shard_shape((8,)) == (4,)


def test_shard_map_runs_on_the_whole_of_its_arguments() -> None:
    def step(w: Any, x: Any) -> Any:
        return {"loss": lax.pmean((w * x).sum(), "batch"), "rows": x + lax.axis_index("batch")}

    mapped = tracer.shard_map(
        step, mesh=MESH, in_specs=(P(), P("batch")), out_specs={"loss": P(), "rows": P("batch", None)}
    )
    for f in (mapped, tracer.jit(mapped)):
        found = f(2.0, X)
        assert float(found["loss"]) == 30.0
        assert found["rows"].tolist() == X.tolist()
    assert float(tracer.grad(lambda w: mapped(w, X)["loss"])(2.0)) == 15.0
    with tracer.set_mesh(MESH):
        assert tracer.shard_map(lambda x: lax.psum(x, ("batch", "model")), out_specs=P())(X).tolist() == X.tolist()


def test_functions_of_explicit_axes_are_themselves() -> None:
    f = tracer.sharding.auto_axes(lambda x: 2 * x, out_sharding=P())
    assert f(3.0, out_sharding=P("batch")) == 6.0
    assert tracer.sharding.explicit_axes(axes="batch")(lambda x: 2 * x)(3.0, in_sharding=P()) == 6.0


@each(
    ("use", "error", "text"),
    [
        (lambda: tracer.make_mesh((2,), ("batch",)), DeviceError, "make_mesh at .*: there is one device\n  got"),
        (lambda: Mesh([*tracer.devices(), *tracer.devices()], ("a",)), DeviceError, "Mesh at .*: there is one device"),
        (lambda: tracer.make_mesh((1,), ("a", "b")), ArgumentError, "mesh at .*: one name for each axis\n  got"),
        (lambda: AbstractMesh((1, 1), ("a", "a")), ArgumentError, "one name for each axis"),
        (lambda: NamedSharding(MESH, P("rows")), ArgumentError, "NamedSharding at .*\n  got 'rows' for axes"),
        (lambda: NamedSharding(MESH, P("batch", "batch")), ArgumentError, "names axes of the mesh, each once"),
        (lambda: NamedSharding(MESH, "batch"), ArgumentError, "takes a mesh and a PartitionSpec\n  got str"),  # type: ignore[arg-type]
        (lambda: tracer.device_put(1.0, NamedSharding(MESH, P("batch"))), ShapeError, "does not divide an"),
        (lambda: tracer.device_put([X], [None, None]), ArgumentError, "prefix of the tree"),
        (lambda: tracer.jit(lambda x: x, in_shardings="tpu"), DeviceError, "jit at .*: no device 'tpu'"),
        (lambda: tracer.shard_map(lambda x: x, mesh=AbstractMesh((2,), ("a",)), out_specs=P())(X), DeviceError,
         "shard_map at .*: there is one device"),
        (lambda: tracer.shard_map(lambda x: x, mesh=MESH, in_specs=P(), out_specs=P(None, None, None))(X), ShapeError,
         "does not divide an array"),
    ],
)  # fmt: skip
def test_mistakes_name_what_was_expected(use: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        use()
