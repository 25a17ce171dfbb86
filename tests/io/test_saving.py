"""Files of trees: they come back as they were, and damaged, foreign or unfitting ones are told by name."""

from __future__ import annotations

import json
import os
import random as pyrandom
import struct
from collections import namedtuple
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import errors, io, jit, nn, random, tree
from tracer.io import safetensors
from tracer.io.name_errors import folded

Pair = namedtuple("Pair", "x y")
KEY = random.key(3)


def a_tree() -> Any:
    return {
        "model": nn.MLP([3, 4, 2], key=KEY),
        "pair": Pair(tnp.arange(3), (tnp.asarray(2.5), [np.full((2, 0), True), None])),
        "key": KEY,
        "step": 7,
        "rate": 0.1,
        "z": 1 - 2j,
        "name": "run",
        "done": False,
    }


def same(one: Any, other: Any) -> None:
    assert tree.structure(one) == tree.structure(other)
    for a, b in zip(tree.leaves(one), tree.leaves(other), strict=True):
        if hasattr(a, "dtype"):
            assert str(a.dtype) == str(b.dtype)
            if str(a.dtype).startswith("key"):
                a, b = random.key_data(a), random.key_data(b)
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
        else:
            assert (type(a), a) == (type(b), b)


def test_trees_come_back_as_they_were(tmp_path: Path) -> None:
    file = tmp_path / "a.safetensors"
    io.save(file, a_tree(), meta={"run": [1, 2]})
    same(io.load(file, a_tree()), a_tree())
    abstract = tracer.eval_shape(lambda: {"model": nn.MLP([3, 4, 2], key=KEY)})
    same(io.load(file, abstract, strict=False), {"model": a_tree()["model"]})
    assert io.header(file).meta == {"run": [1, 2]}
    assert io.header(file).types["model.layers.0.weight"] == ("float32", (4, 3))
    assert io.header(file).scalars == {"step": 7, "rate": 0.1, "z": 1 - 2j, "name": "run", "done": False}
    plain = io.load(file)
    assert plain["pair"]["y"][1][1] is None
    assert isinstance(plain["pair"]["y"], tuple)
    assert plain["model"]["layers"][0]["bias"].shape == (4,)
    assert [name for name in os.listdir(tmp_path) if "tmp" in name] == []


@pytest.mark.parametrize(
    "dtype",
    ["?", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8", "c8", "c16", "bfloat16", "float8_e5m2"],
)
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 1, 3)])
def test_every_dtype_keeps_its_bits(dtype: str, shape: tuple[int, ...], tmp_path: Path) -> None:
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    array = np.random.default_rng(0).integers(0, 2, (*shape, kind.itemsize), np.uint8).view(kind)[..., 0]
    io.save(tmp_path / "x", {"x": array, "y": np.asarray(array, order="F").T})
    found = io.load(tmp_path / "x")
    assert found["x"].dtype == kind
    assert np.asarray(found["x"]).tobytes() == array.tobytes()
    assert found["y"].shape == shape[::-1]
    mapped = io.load(tmp_path / "x", mmap=True)["x"]
    assert mapped.shape == shape
    assert not mapped.flags.writeable or not mapped.size


def test_big_endian_and_weak_arrays(tmp_path: Path) -> None:
    io.save(tmp_path / "x", [np.arange(3, dtype=">i4"), tnp.asarray(1.0), tnp.ones(1)])
    big, weak, strong = io.load(tmp_path / "x")
    np.testing.assert_array_equal(big, np.arange(3))
    assert (weak.weak_type, strong.weak_type) == (True, False)


def test_loaded_arrays_can_be_donated(tmp_path: Path) -> None:
    io.save(tmp_path / "x", {"w": tnp.ones(1000)})
    tree_of = io.load(tmp_path / "x")
    step = jit(lambda t: {"w": t["w"] + 1}, donate_argnums=0)
    np.testing.assert_array_equal(step(tree_of)["w"], np.full(1000, 2.0))


def written(path: Path) -> bytes:
    io.save(path, {"w": tnp.arange(6.0), "b": tnp.asarray([1, 2], "int32"), "rate": 0.5})
    return path.read_bytes()


def test_mutated_files_are_refused_or_hold_the_same(tmp_path: Path) -> None:
    """Flipped bits, cuts, growth and swaps of bytes; `scripts/hunt` has no such budget, 100,000 take two minutes."""
    whole = written(tmp_path / "good")
    right = io.load(tmp_path / "good")
    rng = pyrandom.Random(0)
    file = tmp_path / "bad"
    refused = 0
    for _ in range(int(os.environ.get("TRACER_MUTATIONS", "600"))):
        data = bytearray(whole)
        for _ in range(rng.choice((1, 1, 2, 8))):
            place = rng.randrange(len(data))
            match rng.randrange(6):
                case 0:
                    data[place] ^= 1 << rng.randrange(8)
                case 1:
                    del data[place:]
                case 2:
                    data[place:place] = bytes(rng.randrange(9))
                case 3:
                    data[:8] = struct.pack("<Q", rng.choice((0, 1, len(data), 2**31, 2**63, 2**64 - 1)))
                case 4:
                    data[place:] = data[place:][::-1]
                case _:
                    data[place] = rng.choice(b'0123456789{}[]",:- ')
            if not data:
                break
        file.write_bytes(data)
        try:
            found = io.load(file)
        except errors.CheckpointError:
            refused += 1
        else:
            assert bytes(data) == whole or tree.structure(found) == tree.structure(right)
            same(found, right)
    assert refused > 300


@pytest.mark.parametrize(
    ("header", "text"),
    [
        ('{"a": 1}', "array a is not described"),
        ("[]", "not a JSON object"),
        ("{", "not JSON"),
        ("[" * 200, "nested 200 deep"),
        ('{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}, "a": 1}', "the name 'a' twice"),
        ('{"a": {"dtype": "F99", "shape": [1], "data_offsets": [0, 4]}}', "array a is not described"),
        ('{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [0, 4]}}', "other numbers than integers"),
        ('{"a": {"dtype": "F32", "shape": [true], "data_offsets": [0, 4]}}', "other numbers than integers"),
        ('{"a": {"dtype": "F32", "shape": [1.0], "data_offsets": [0, 4]}}', "other numbers than integers"),
        ('{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 4]}}', "has 4 bytes"),
        ('{"a": {"dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 4]}}', "has 4 bytes"),
        ('{"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 8]}}', "starts at byte 4, expected 0"),
        ('{"a": {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}}', "expected"),
        ('{"__metadata__": {"x": 1}}', "__metadata__ holds other values than text"),
        ('{"\\ud800": 1}', "is damaged"),
    ],
)
def test_hostile_headers_are_refused(header: str, text: str, tmp_path: Path) -> None:
    data = header.encode()
    (tmp_path / "x").write_bytes(struct.pack("<Q", len(data)) + data + bytes(4))
    with pytest.raises(errors.CheckpointError) as error:
        io.load(tmp_path / "x")
    assert text in str(error.value)


def test_files_of_others_are_read_by_the_dots_of_their_names(tmp_path: Path) -> None:
    arrays = {"h.0.w": np.ones(2, "f4"), "h.1.w": np.zeros(3, "f4")}
    safetensors.write(tmp_path / "x", arrays, {"format": "pt"})
    found = io.load(tmp_path / "x")
    assert found["h"]["1"]["w"].shape == (3,)
    assert io.header(tmp_path / "x").meta == {"format": "pt"}


def test_other_trees_are_told_by_name(tmp_path: Path) -> None:
    io.save(tmp_path / "x", {"block": {"ln1": tnp.ones(2), "w": tnp.ones(3)}})
    with pytest.raises(errors.CheckpointError) as error:
        io.load(tmp_path / "x", {"block": {"norm1": tnp.ones(2), "w": tnp.ones(3)}})
    lines = str(error.value).splitlines()
    assert lines[1:] == [
        "  missing there: block.norm1",
        "  only there: block.ln1",
        "  help: did you mean norm1 for ln1? io.load_weights takes rename={'ln1': 'norm1'}",
    ]
    for like, text in (
        ({"block": {"ln1": tnp.ones(3), "w": tnp.ones(3)}}, "block.ln1 of"),
        ({"block": {"ln1": tnp.ones(2, "float32"), "w": tnp.ones(3)}}, "expected float32[2], got float64[2]"),
    ):
        with pytest.raises(errors.CheckpointError) as error:
            io.load(tmp_path / "x", like)
        assert text in str(error.value)
    kept = io.load(tmp_path / "x", {"block": {"w": tnp.zeros(3), "new": 5}}, strict=False)
    assert kept["block"]["new"] == 5
    np.testing.assert_array_equal(kept["block"]["w"], np.ones(3))


@pytest.mark.parametrize(
    ("tree_of", "text"),
    [({"a": object()}, "a is no array, number or text"), ({"a.b": 1, "a": {"b": 2}}, "two leaves have the name 'a.b'")],
)
def test_leaves_that_cannot_be_saved(tree_of: Any, text: str, tmp_path: Path) -> None:
    with pytest.raises(errors.ArgumentError) as error:
        io.save(tmp_path / "x", tree_of)
    assert text in str(error.value)
    with pytest.raises(errors.CheckpointError, match="cannot read"):
        io.load(tmp_path / "none")
    with pytest.raises(errors.CheckpointError, match="cannot write"):
        io.save(tmp_path / "no" / "such", {"a": 1})


def test_a_write_that_fails_leaves_the_file_before_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "x"
    before = written(file)
    for name in ("fsync", "replace"):
        with monkeypatch.context() as context:
            context.setattr(os, name, lambda *_: (_ for _ in ()).throw(OSError("no space left")))
            with pytest.raises(errors.CheckpointError, match="no space left"):
                io.save(file, {"w": tnp.zeros(9)})
        assert file.read_bytes() == before
        assert os.listdir(tmp_path) == ["x"]


def test_weights_of_others_are_loaded_by_name(tmp_path: Path) -> None:
    model = nn.MLP([3, 4, 2], key=KEY)
    weights = {
        f"net.{2 * n}.{name}": np.full(shape, n + 1.0)
        for n, shapes in enumerate(({"weight": (4, 3), "bias": (4,)}, {"weight": (2, 4), "bias": (2,)}))
        for name, shape in shapes.items()
    }
    rename = {"net.0": "layers.0", "net.2": "layers.1"}
    loaded = io.load_weights(model, weights, rename=rename)
    assert loaded.layers[1].bias.tolist() == [2.0, 2.0]
    assert loaded.layers[1].bias.dtype == np.float32
    safetensors.write(tmp_path / "part1", {name: a for name, a in weights.items() if "0" in name}, {})
    safetensors.write(tmp_path / "part2", {name: a for name, a in weights.items() if "2" in name}, {})
    index = tmp_path / "m.index.json"
    index.write_text(json.dumps({"weight_map": {name: f"part{1 + ('2' in name)}" for name in weights}}))
    same(io.load_weights(model, index, rename=rename), loaded)
    half = io.load_weights(model, weights, rename=rename, where="layers[1]")
    assert half.layers[0].weight is model.layers[0].weight
    assert half.layers[1].bias.tolist() == [2.0, 2.0]
    with pytest.raises(errors.CheckpointError, match=r"missing there: layers\.0…1\.weight"):
        io.load_weights(model, weights)
    with pytest.raises(errors.CheckpointError, match=r"expected \[4, 3\], got \[3, 4\]"):
        io.load_weights(model, {**weights, "net.0.weight": np.ones((3, 4))}, rename=rename)


def test_names_that_differ_by_the_index_of_a_list_are_one() -> None:
    names = [f"opt.0.mu.blocks.{n}.{m}.weight" for n in range(12) for m in range(2)]
    assert folded([*names, "head", "a.3.b", "a.5.b"]) == ["opt.0.mu.blocks.0…11.0…1.weight", "head", "a.3.b", "a.5.b"]


def test_lists_of_layers_are_compared_by_one_name(tmp_path: Path) -> None:
    def layers(kind: str, count: int) -> dict[str, Any]:
        return {"h": [{kind: tnp.ones(2), "mlp": tnp.ones(2)} for _ in range(count)], "f": tnp.ones(2)}

    io.save(tmp_path / "a.safetensors", layers("ln_1", 12))
    with pytest.raises(errors.CheckpointError) as raised:
        io.load(tmp_path / "a.safetensors", layers("norm_1", 12))
    assert str(raised.value).splitlines()[1:] == [
        "  missing there: h.0…11.norm_1",
        "  only there: h.0…11.ln_1",
        "  help: did you mean norm_1 for ln_1? io.load_weights takes rename={'ln_1': 'norm_1'}",
    ]
    with pytest.raises(errors.CheckpointError) as raised:
        io.load_weights(layers("ln_1", 14), tmp_path / "a.safetensors")
    assert str(raised.value).startswith("load_weights at test_saving.py")
    assert str(raised.value).splitlines()[1:] == [
        "  missing there: h.12…13.ln_1, h.12…13.mlp",
        "  help: strict=False takes what is there",
    ]
    stack = nn.Stack(lambda key: nn.Linear(2, 2, key=key), 3, key=random.key(0))
    singly = [nn.Linear(2, 2, key=random.key(n)) for n in range(3)]
    io.save(tmp_path / "b.safetensors", singly)
    with pytest.raises(errors.CheckpointError, match=r"help: io\.load_weights puts a list of layers into a Stack"):
        io.load(tmp_path / "b.safetensors", stack)
    assert io.load_weights(stack, tmp_path / "b.safetensors").layers.weight.shape == (3, 2, 2)
    io.save(tmp_path / "b.safetensors", {"h": stack})
    with pytest.raises(errors.CheckpointError, match=r"help: io\.load_weights puts a Stack into a list of layers"):
        io.load(tmp_path / "b.safetensors", {"h": singly})


def test_weights_go_between_stacks_lists_and_sequences_of_layers(tmp_path: Path) -> None:
    singly = [nn.Linear(2, 2, key=random.key(n)) for n in range(3)]
    models: list[Any] = [
        {"h": nn.Stack(lambda key: nn.Linear(2, 2, key=key), 3, key=random.key(9))},
        {"h": nn.Sequential(*singly)},
        {"h": singly},
    ]
    file = tmp_path / "weights.safetensors"
    for n, saved in enumerate(models):
        io.save(file, tree.map(lambda x, n=n: tnp.full_like(x, n) + tnp.arange(2), saved))
        for model in models[: 3 if n != 1 else 2]:
            for x in tree.leaves(io.load_weights(model, file)):
                assert (x == n + tnp.arange(2)).all()
    io.save(file, models[0])
    with pytest.raises(errors.CheckpointError, match=r"missing there: h\.3\.weight, h\.3\.bias\n  help"):
        io.load_weights({"h": [*singly, nn.Linear(2, 2, key=random.key(3))]}, file)
    stack = models[0]["h"]
    io.save(file, stack)
    np.testing.assert_array_equal(io.load_weights(singly, file)[2].weight, stack.layers.weight[2])
