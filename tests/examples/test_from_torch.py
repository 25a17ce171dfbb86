"""Files by PyTorch's names compute what PyTorch's formulas do, and PyTorch itself where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from tracer import io, nn, random
from tracer.errors import CheckpointError
from tracer.examples import from_torch
from tracer.io import safetensors

WRITERS = [from_torch.written_by_numpy] + [from_torch.written_by_torch] * (find_spec("torch") is not None)


@pytest.mark.parametrize("write", WRITERS)
@pytest.mark.parametrize(("dtype", "bound"), [("float64", 1e-12), ("float32", 1e-5)])
def test_a_loaded_model_computes_what_the_writer_did(
    tmp_path: Path, write: object, dtype: str, bound: float, rng: np.random.Generator, seed: int
) -> None:
    tokens = rng.integers(0, from_torch.TOKENS, (3, 7))
    wanted = write(tmp_path / "model.safetensors", seed)(tokens)
    model = from_torch.load(tmp_path / "model.safetensors", nn.cast(from_torch.Reader(key=random.key(0)), dtype))
    np.testing.assert_allclose(model(tokens), wanted, atol=bound)
    assert np.ptp(wanted) > 0.1


def test_packed_maps_are_cut_and_other_names_refused(tmp_path: Path) -> None:
    from_torch.written_by_numpy(tmp_path / "model.safetensors", 0)
    weights = {name.replace("linear1", "up"): array for name, array in flat(tmp_path / "model.safetensors").items()}
    model = nn.cast(from_torch.Reader(key=random.key(0)), "float64")
    loaded = io.load_weights(model, weights, rename={"up": "linear1"})
    keys = weights["layers.1.self_attn.in_proj_weight"][from_torch.DIM : 2 * from_torch.DIM]
    np.testing.assert_array_equal(loaded.layers[1].attention.k.weight, keys)
    with pytest.raises(CheckpointError, match=r"missing there: .*mlp\.up\.weight(.|\n)*only there: .*\.up\.weight"):
        io.load_weights(model, weights)


def flat(file: Path) -> dict[str, np.ndarray]:
    contents = safetensors.contents(file)
    return {name: safetensors.read(file, contents, name, mmap=True) for name in contents.entries}
