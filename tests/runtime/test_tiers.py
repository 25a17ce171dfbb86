"""Calls outside `jit` run in other ways as they come more often, with the bits of the first call in every way."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax, nn
from tracer.runtime import pieces
from tracer.runtime.transformed import often

CALLS = 8  # by operations, by the backward program, traced, replayed and, see `compiled_soon`, compiled

COMBINED: dict[str, Callable[[Any], Any]] = {
    "sum": tnp.sum,
    "mean": tnp.mean,
    "var": tnp.var,
    "std": tnp.std,
    "prod": lambda x: tnp.prod(1 + x / 64),
    "max": tnp.max,
    "logsumexp": nn.logsumexp,
    "norm": tnp.linalg.norm,
    "dot": lambda x: x @ tnp.sin(x),
    "half": lambda x: tnp.sum(x.astype("float16")).astype("float64"),
}
ALONG: dict[str, Callable[[Any], Any]] = {
    "cumsum": tnp.cumsum,
    "cumsum from the end": lambda x: lax.cumsum(x, reverse=True),
    "cumprod": lambda x: tnp.cumprod(1 + x / 64),
    "cumlogsumexp": lax.cumlogsumexp,
    "cummax": lax.cummax,
    "softmax": nn.softmax,
    "less its mean": lambda x: x - tnp.mean(x),
    "standardize": nn.standardize,
    "square": lambda x: x**2,
    "power": lambda x: (x * x) ** 3.0,
    "exp": tnp.exp,
    "convolved": lambda x: tnp.convolve(x, tnp.asarray([0.3, 0.2, 0.1]), mode="same"),
    "sorted": tnp.sort,
    "by rows": lambda x: (x.reshape(-1, 10) @ tnp.cos(x[:50]).reshape(10, 5)).sum(axis=1).repeat(10),
    "by columns": lambda x: tnp.tile(x.reshape(-1, 10).sum(axis=0), x.shape[0] // 10),
}


@pytest.fixture
def compiled_soon(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(often, "replays", 3)
    yield
    gc.collect()


def same_in_every_call(call: Callable[[], Any], calls: int = CALLS) -> None:
    found = [[np.asarray(leaf).tobytes() for leaf in tracer.tree.leaves(call())] for _ in range(calls)]
    assert [n for n, bits in enumerate(found) if bits != found[0]] == []


def composed(outer: str, inner: str) -> Callable[[Any], Any]:
    combine, along = COMBINED[outer], ALONG[inner]

    def f(x: Any) -> Any:
        return combine(along(x) * x)

    return f


@pytest.mark.usefixtures("compiled_soon")
@pytest.mark.parametrize("inner", ALONG)
@pytest.mark.parametrize("outer", COMBINED)
def test_gradients(outer: str, inner: str) -> None:
    gradient, x = tracer.grad(composed(outer, inner)), drawn(1000)
    same_in_every_call(lambda: gradient(x))


@pytest.mark.parametrize("inner", ALONG)
def test_gradients_of_what_is_never_traced(inner: str) -> None:
    """A function that appends to a list runs anew at every call: its backward program is all that is kept."""
    seen: list[int] = []
    f = composed("sum", inner)

    def noted(x: Any) -> Any:
        seen.append(1)
        return f(x)

    gradient, x = tracer.value_and_grad(noted), drawn(1000)
    same_in_every_call(lambda: gradient(x))
    assert len(seen) == CALLS


@pytest.mark.parametrize("outer", ["sum", "var", "logsumexp"])
@pytest.mark.parametrize("inner", ALONG)
def test_gradients_of_large_arrays(outer: str, inner: str) -> None:
    n = 2 * (often.elements // 10 * 10)
    gradient, x = tracer.grad(composed(outer, inner)), drawn(n)
    assert n > pieces.MOST_SMALL
    same_in_every_call(lambda: gradient(x), 3)


@pytest.mark.parametrize("dtype", ["float32", "complex128"])
@pytest.mark.parametrize("n", [10, 1000, 30_000])
def test_of_other_numbers(n: int, dtype: str) -> None:
    x = (drawn(n) + (1j * drawn(n) if dtype == "complex128" else 0)).astype(dtype)
    gradient = tracer.grad(lambda x: tnp.abs(tnp.cumsum(x) * x / tnp.sum(x * x)).sum())
    same_in_every_call(lambda: gradient(x))


def test_of_layers() -> None:
    w = [tnp.asarray(np.random.default_rng(n).normal(size=(64, 64))) for n in range(3)]
    x = drawn(64 * 300).reshape(300, 64)

    def loss(w: Any, x: Any) -> Any:
        for each in w:
            x = nn.standardize(nn.gelu(x @ each + each[0]), axis=1)
        return tnp.mean(x**2.0) + tnp.var(x[:, 0])

    for rows in (4, 300):
        gradient = tracer.grad(loss)
        same_in_every_call(lambda gradient=gradient, rows=rows: gradient(w, x[:rows]))


@pytest.mark.parametrize("name", ["vjp", "jvp", "hvp", "hessian", "linearize"])
def test_of_other_transforms(name: str) -> None:
    x, v = drawn(300), drawn(300)[::-1]
    f = composed("var", "cumsum")
    calls: dict[str, Callable[[], Any]] = {
        "vjp": lambda: tracer.vjp(f, x)[1](1.0),
        "jvp": lambda: tracer.jvp(f, (x,), (v,)),
        "hvp": lambda: tracer.hvp(f, (x,), (v,)),
        "hessian": lambda: tracer.hessian(f)(x[:30]),
        "linearize": lambda: tracer.linearize(f, x)[1](v),
    }
    same_in_every_call(calls[name])


def drawn(n: int) -> Any:
    return tnp.asarray(np.random.default_rng(0).standard_normal(n))
