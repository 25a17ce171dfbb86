"""Weights from PyTorch: a transformer read from PyTorch's file by name computes PyTorch's results.

Files hold arrays by name, as `safetensors.torch.save_file(model.state_dict(), path)` writes them. A table renames
layers that are called differently here, and packed arrays are cut. Where PyTorch is missing, a file of random weights
stands in, and its formulas in NumPy for PyTorch. `python -m tracer.examples.from_torch` runs it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tracer import io, jit, nn, random
from tracer.io import safetensors

TOKENS, DIM, HEADS, HIDDEN, DEPTH, CLASSES = 50, 32, 4, 64, 2, 10
Compute = Callable[[NDArray[np.int64]], NDArray[np.float64]]


class Reader(nn.Module):
    """Blocks as in Vaswani et al. 2017, arXiv:1706.03762: tokens, integers [b, t], to logits of classes [b, 10]."""

    def __init__(self, *, key: Any) -> None:
        keys = nn.Keys(key)
        self.embed = nn.Embedding(TOKENS, DIM, key=next(keys))
        self.layers = [
            nn.TransformerBlock(DIM, HEADS, hidden=HIDDEN, activation=nn.relu, norm_first=False, key=next(keys))
            for _ in range(DEPTH)
        ]
        self.head = nn.Linear(DIM, CLASSES, key=next(keys))

    def __call__(self, tokens: Any) -> Any:
        x = self.embed(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(x.mean(axis=1))


def load(file: Path, model: Reader) -> Reader:
    """Return the model with the weights of PyTorch's file, in the model's dtypes."""
    loaded: Reader = io.load_weights(model, file)
    return loaded


def written_by_torch(file: Path, seed: int) -> Compute:
    """Write the file of a model of PyTorch, and return a function that computes its results, in float64."""
    torch: Any = import_module("torch")
    torch.manual_seed(seed)
    model = torch.nn.ModuleDict({
        "embed": torch.nn.Embedding(TOKENS, DIM),
        "layers": torch.nn.Sequential(*(
            torch.nn.TransformerEncoderLayer(DIM, HEADS, HIDDEN, dropout=0.0, batch_first=True) for _ in range(DEPTH)
        )),
        "head": torch.nn.Linear(DIM, CLASSES),
    }).double()  # fmt: skip
    safetensors.write(file, {name: array.numpy() for name, array in model.state_dict().items()}, {})

    def compute(tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        states = model["layers"](model["embed"](torch.from_numpy(tokens)))
        logits: NDArray[np.float64] = model["head"](states.mean(dim=1)).detach().numpy()
        return logits

    return compute


def written_by_numpy(file: Path, seed: int) -> Compute:
    """Write a file of random weights by PyTorch's names, and return PyTorch's formulas as a function, in float64."""
    rng = np.random.default_rng(seed)
    square = {"self_attn.in_proj": (3 * DIM, DIM), "self_attn.out_proj": (DIM, DIM)}
    maps = {**square, "linear1": (HIDDEN, DIM), "linear2": (DIM, HIDDEN), "norm1": (DIM,), "norm2": (DIM,)}
    shapes = {f"layers.{n}.{name}": shape for n in range(DEPTH) for name, shape in maps.items()}
    w = {"embed.weight": rng.standard_normal((TOKENS, DIM))}
    for name, shape in {**shapes, "head": (CLASSES, DIM)}.items():
        joint = "_" if name.endswith("in_proj") else "."
        w[f"{name}{joint}weight"] = rng.uniform(-1, 1, shape) * shape[-1] ** -0.5
        w[f"{name}{joint}bias"] = rng.uniform(-1, 1, shape[0]) * shape[-1] ** -0.5
    safetensors.write(file, w, {})

    def linear(x: Any, name: str) -> Any:
        return x @ w[f"{name}weight"].T + w[f"{name}bias"]

    def norm(x: Any, name: str) -> Any:
        centred = x - x.mean(-1, keepdims=True)
        return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + 1e-5) * w[f"{name}.weight"] + w[f"{name}.bias"]

    def compute(tokens: NDArray[np.int64]) -> NDArray[np.float64]:
        x = w["embed.weight"][tokens]
        for layer in (f"layers.{n}." for n in range(DEPTH)):
            q, k, v = (
                part.reshape(*tokens.shape, HEADS, -1).swapaxes(1, 2)
                for part in np.split(linear(x, f"{layer}self_attn.in_proj_"), 3, axis=-1)
            )
            weights = np.exp(q @ k.swapaxes(2, 3) * (DIM // HEADS) ** -0.5)
            seen = (weights / weights.sum(-1, keepdims=True) @ v).swapaxes(1, 2).reshape(x.shape)
            x = norm(x + linear(seen, f"{layer}self_attn.out_proj."), f"{layer}norm1")
            inside = np.maximum(linear(x, f"{layer}linear1."), 0)
            x = norm(x + linear(inside, f"{layer}linear2."), f"{layer}norm2")
        logits: NDArray[np.float64] = linear(x.mean(axis=1), "head.")
        return logits

    return compute


def main(*, seed: int = 0) -> dict[str, float]:
    """Write a file, load it, print and return the largest difference of logits in float64 and float32."""
    writer, write = ("PyTorch", written_by_torch) if find_spec("torch") else ("NumPy", written_by_numpy)
    tokens = np.random.default_rng(seed + 1).integers(0, TOKENS, (8, 16))
    reached = {}
    with TemporaryDirectory() as folder:
        file = Path(folder) / "model.safetensors"
        theirs = write(file, seed)(tokens)
        for dtype in ("float64", "float32"):
            model = load(file, nn.cast(Reader(key=random.key(0)), dtype))
            reached[dtype] = float(np.abs(jit(model)(tokens) - theirs).max())
            print(f"{nn.count(model):,} weights of {writer}, {dtype}: logits differ by {reached[dtype]:.1e} at most")
    return reached


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=0)
    main(**vars(parser.parse_args()))
