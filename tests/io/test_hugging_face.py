"""Files of Hugging Face's safetensors are read, and ours are read by it: by a recorded file, and by it where it is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import data, io, nn, random

# Written by safetensors 0.8.0: save({"h.weight": float32 [2, 3], "n": int64 [], "mask": bool [2]}, {"format": "np"})
HEADER = (
    b'{"__metadata__":{"format":"np"},"n":{"dtype":"I64","shape":[],"data_offsets":[0,8]},"h.weight":{"dtype":"F32",'
    b'"shape":[2,3],"data_offsets":[8,32]},"mask":{"dtype":"BOOL","shape":[2],"data_offsets":[32,34]}}  '
)
DATA = np.int64(-7).tobytes() + np.arange(6, dtype="<f4").tobytes() + b"\x01\x00"
RECORDED = len(HEADER).to_bytes(8, "little") + HEADER + DATA


def test_a_recorded_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.safetensors").write_bytes(RECORDED)
    found = io.load(tmp_path / "x.safetensors")
    assert found["h"]["weight"].tolist() == [[0, 1, 2], [3, 4, 5]]
    assert (int(found["n"]), found["mask"].tolist()) == (-7, [True, False])
    assert io.header(tmp_path / "x.safetensors").meta == {"format": "np"}
    mapped = data.load_safetensors(tmp_path / "x.safetensors")
    assert isinstance(mapped["h.weight"], np.memmap)
    assert mapped["h.weight"][1].tolist() == [3, 4, 5]


def test_files_go_both_ways(tmp_path: Path) -> None:
    theirs: Any = pytest.importorskip("safetensors.numpy")
    model = nn.Sequential(nn.Conv2d(3, 4, 3, key=random.key(0)), nn.BatchNorm(4))
    tree = {"model": model, "half": tnp.ones((0, 3), "float16"), "step": 7, "flags": tnp.asarray([True])}
    io.save(tmp_path / "ours", tree)
    read = theirs.load_file(tmp_path / "ours")
    assert read["half"].shape == (0, 3)
    np.testing.assert_array_equal(read["model.layers.0.weight"], model[0].weight)
    np.testing.assert_array_equal(read["flags"], [True])
    renamed = {name.removeprefix("model.layers."): x for name, x in read.items() if name.startswith("model.")}
    theirs.save_file(renamed, tmp_path / "theirs")
    loaded = io.load_weights(nn.Sequential(nn.Conv2d(3, 4, 3, key=random.key(9)), nn.BatchNorm(4)), tmp_path / "theirs")
    np.testing.assert_array_equal(loaded[0].weight, model[0].weight)
    np.testing.assert_array_equal(loaded[1].running_var, model[1].running_var)
