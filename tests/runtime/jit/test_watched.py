"""`debug.watch`: the ranges of the values of every line, in loops and gradients."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import debug, grad, jit, lax, vmap
from tracer.errors import ArgumentError


def powers(x: Any) -> Any:
    y = x * 300
    return (y * y).sum()


def test_saturated_lines_are_found_and_marked() -> None:
    found = debug.watch(powers)(tnp.asarray([1.0, 0.0, -0.5, 1e-7], "float16"))
    x, y, square, total = found.lines
    assert (x.operation, x.subnormals, x.zeros, x.smallest) == ("argument 0 'x'", 1, 1, pytest.approx(1e-7, rel=0.2))
    assert (y.min, y.max, y.zeros, y.saturated) == (-150.0, 300.0, 1, 0)
    assert (square.saturated, square.max, total.saturated) == (1, 22496.0, 1)
    assert found.result == np.inf
    assert [text.endswith("<") for text in str(found).splitlines()] == [False, True, True, True, True]
    assert str(square.source).startswith("test_watched.py:")
    html = found._repr_html_()
    assert html.count("<tr") == 5
    assert "saturated" in html


def test_a_loop_counts_all_its_iterations() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, _: (c * 0.5, None), x, None, length=4)[0]

    for call in (f, jit(f), vmap(f)):
        line = debug.watch(call)(tnp.asarray([8.0, 16.0])).lines[-1]
        assert (line.runs, line.elements, line.min, line.max, line.mean) == (4, 8, 0.5, 8.0, 2.8125)


def test_lines_of_a_gradient_are_told_from_those_of_the_function() -> None:
    found = debug.watch(grad(powers))(tnp.asarray([1.0, 2.0]))
    assert any(line.source is not None and line.source.derivative for line in found.lines)
    assert "gradient of test_watched.py:" in str(found)
    np.testing.assert_allclose(found.result, [180000.0, 360000.0])


def test_a_branch_that_does_not_run_is_left_out() -> None:
    def f(x: Any) -> Any:
        return lax.cond(x > 0, tnp.sin, tnp.cos, x)

    found = debug.watch(f)(1.0)
    assert [(line.operation, line.runs) for line in found.lines if line.operation in ("sin", "cos")] == [
        ("cos", 0),
        ("sin", 1),
    ]
    assert "cos  " not in str(found)


def test_later_calls_start_anew() -> None:
    f = debug.watch(powers)
    f(tnp.asarray([1.0]))
    assert f(tnp.asarray([2.0])).lines[1].runs == 1


@pytest.mark.parametrize("dtype", ["bfloat16", "float32", "complex64", "float8_e4m3fn"])
def test_statistics_are_those_of_numpy(dtype: str) -> None:
    x = np.linspace(-3.0, 3.0, 7).astype("float32")
    found = debug.watch(lambda x: x.astype(dtype).astype("complex64" if dtype == "complex64" else "float32"))(x)
    line = found.lines[-1]
    size = np.abs(x) if dtype == "complex64" else x
    assert (line.min, line.max, line.zeros) == (size.min(), size.max(), 1)
    assert line.mean == pytest.approx(size.mean(), abs=1e-6)


@pytest.mark.parametrize("transform", [jit, vmap])
def test_traced_arguments_are_refused(transform: Any) -> None:
    with pytest.raises(ArgumentError, match=r"^debug.watch at test_watched.py:\d+: an argument is traced"):
        transform(lambda x: debug.watch(tnp.sin)(x).result)(tnp.ones(3))
