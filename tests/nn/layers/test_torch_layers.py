"""Layers and losses: values, all gradients and written state are PyTorch's, in float64."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.nn.torch_cases import CASES, DIFFERENTIATED, LOSSES, Case, digest, drawn, operand
from tracer import nn, random

KEY = random.key(0)


def reference() -> dict[str, dict[str, Any]]:
    """What PyTorch computed, by case and name."""
    with np.load(Path(__file__).parents[1] / "torch_layers.npz") as stored:
        parts = np.split(stored["values"], np.cumsum(stored["lengths"])[:-1])
        found: dict[str, dict[str, Any]] = {}
        for name, part in zip(str(stored["names"]).split("\n"), parts, strict=True):
            case, what = name.split("|")
            found.setdefault(case, {})[what] = part
    return found


REFERENCE = reference()


def made(case: Case) -> Any:
    """Our layer of a case."""
    if case.layer in ("SpectralNorm", "WeightNorm"):
        keys = nn.Keys(KEY)
        wrapped = getattr(nn, case.args[0])(*case.args[1:], key=next(keys))
        more = {"key": next(keys)} if case.layer == "SpectralNorm" else {}
        return getattr(nn, case.layer)(wrapped, **case.kwargs, **more)
    key = {"key": KEY} if "Conv" in case.layer else {}
    return getattr(nn, case.layer)(*case.args, **case.kwargs, **key)


def with_parameters(name: str, layer: Any) -> Any:
    """The layer with drawn arrays in float64."""
    leaves = [tnp.asarray(drawn(name, path, array.shape)) for path, array in nn.paths(layer).items()]
    return tracer.tree.unflatten(tracer.tree.structure(layer), leaves)


@pytest.mark.parametrize("name", CASES)
def test_layers_are_pytorchs(name: str) -> None:
    case, expected = CASES[name], REFERENCE[name]
    layer = with_parameters(name, made(case))
    x = tnp.asarray(drawn(name, "x", case.shape))

    def loss(layer: Any, x: Any) -> Any:
        used = layer.training() if case.training else layer
        y = used(x)
        cotangent = drawn(name, "cotangent", y.shape)
        return (y * cotangent).sum(), (y, used.inference())

    step = tracer.jit(tracer.value_and_grad(loss, argnums=(0, 1), has_aux=True))
    (_, (y, written)), (of_layer, of_x) = step(layer, x)
    found = {"y": y, "x": of_x, **nn.paths(of_layer)}
    if case.training:
        found |= {path: value for path, value in nn.paths(written).items() if path not in found}
    assert found.keys() == expected.keys()
    for what, value in found.items():
        np.testing.assert_allclose(digest(value), expected[what], rtol=1e-12, atol=1e-12, err_msg=f"{name} {what}")


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_pytorchs(name: str) -> None:
    case, expected = LOSSES[name], REFERENCE[name]
    operands = [tnp.asarray(operand(name, n, *of)) for n, of in enumerate(case.operands)]
    places = [n for n, (kind, _) in enumerate(case.operands) if kind in DIFFERENTIATED]
    arrays = {key: np.asarray(x) if isinstance(x, list) else x for key, x in case.kwargs.items()}

    def loss(*operands: Any) -> Any:
        losses = getattr(nn, case.loss)(*operands, **arrays)
        return (losses * drawn(name, "cotangent", losses.shape)).sum(), losses

    (_, losses), gradients = tracer.jit(tracer.value_and_grad(loss, argnums=places, has_aux=True))(*operands)
    found = {"loss": losses} | {str(n): gradient for n, gradient in zip(places, gradients, strict=True)}
    assert found.keys() == expected.keys()
    for what, value in found.items():
        np.testing.assert_allclose(digest(value), expected[what], rtol=1e-12, atol=1e-12, err_msg=f"{name} {what}")
