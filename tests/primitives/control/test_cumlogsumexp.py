"""`cumlogsumexp` of rows by running sums: special values, exactness, and work in proportion to the length."""

from __future__ import annotations

import numpy as np
import pytest

from tests.grids import covering
from tests.schedule.running import staged
from tracer import grad, hessian, jit, jvp, lax, vjp
from tracer import numpy as tnp
from tracer.passes.pipeline import optimize
from tracer.primitives.control import cumulative

INF, NAN = np.inf, np.nan
RNG = np.random.default_rng(5)
ROWS = {
    "nothing, then numbers that fall and rise": [-INF] * 3 + [1.0, 2.0, -INF, 0.5, -800.0, 900.0, -1e5, 3.0, 1000.0],
    "infinity": [-5.0, -1000.0, 3.0, INF, 0.0, -INF, 5.0, INF, 1.0, 2.0],
    "no number": [-INF, 1.0, 2.0, NAN, INF, 3.0, -INF, 0.0, 1.0, 1e300],
    "nothing": [-INF] * 12,
    "the same": [5.0] * 20,
    "large": [1e300, -1e300] * 6,
    "far apart": list(RNG.normal(0, 300, 200)),
    "near": list(RNG.normal(0, 1, 500)),
}


@pytest.mark.parametrize(("name", "dtype"), covering(ROWS, ["f4", "f8"], least=8))
def test_rows_are_those_of_logaddexp(name: str, dtype: str) -> None:
    with np.errstate(all="ignore"):
        x = np.array(ROWS[name]).astype(dtype)
        rows = np.stack([x, x[::-1], x / 2])
        expected = np.logaddexp.accumulate(rows.astype("f8"), axis=1).astype(dtype)
    near = {"rtol": 4 * np.finfo(dtype).eps, "atol": 8 * np.finfo(dtype).eps}
    for got, row in (
        (jit(lambda x: lax.cumlogsumexp(x, axis=1))(rows), expected),
        (jit(lambda x: lax.cumlogsumexp(x, axis=0))(rows.T), expected.T),
        (jit(lambda x: lax.cumlogsumexp(x, axis=1, reverse=True))(rows[:, ::-1]), expected[:, ::-1]),
    ):
        np.testing.assert_allclose(np.asarray(got), row, **near)


def test_one_complex_number_has_the_principal_value_that_more_have() -> None:
    x = np.array([[0.75 + 4j, 1 + 5j]])
    for call in (lax.cumlogsumexp, jit(lax.cumlogsumexp, static_argnames="axis")):
        alone, first = call(x[:, :1], axis=1), call(x, axis=1)[:, :1]
        np.testing.assert_allclose(alone, np.log(np.exp(x[:, :1])))
        np.testing.assert_allclose(alone, first)


def test_long_rows_of_f32_are_as_exact_as_short_ones() -> None:
    x = RNG.normal(0, 3, 100_000).astype("f4")
    expected = np.logaddexp.accumulate(x.astype("f8"))
    got = np.asarray(jit(lax.cumlogsumexp)(x)).astype("f8")
    assert np.abs(got - expected).max() <= 2 * np.spacing(np.float32(16))


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("height", [0.5, 1, 10, 100])
def test_the_error_of_a_slow_rise_does_not_add_up(dtype: str, height: float) -> None:
    """Every element is the greatest so far, and a little larger than the one before."""
    x = np.linspace(-height, height, 50_000).astype(dtype)
    expected = np.logaddexp.accumulate(x.astype(np.longdouble))
    for got, wanted in (
        (jit(lax.cumlogsumexp)(x), expected),
        (jit(lambda x: lax.cumlogsumexp(x, reverse=True))(x[::-1]), expected[::-1]),
    ):
        error = np.abs(np.asarray(got).astype(np.longdouble) - wanted)
        scale = np.maximum(np.abs(wanted), np.maximum(np.abs(x if wanted is expected else x[::-1]), 1))
        assert (error / scale).max() <= 4 * np.finfo(dtype).eps


def test_outside_jit_errors_of_f32_do_not_add_up() -> None:
    x = np.linspace(-1, 1, 50_000).astype("f4")
    expected = np.logaddexp.accumulate(x.astype("f8"))
    np.testing.assert_allclose(lax.cumlogsumexp(tnp.asarray(x)), expected, rtol=1e-6, atol=1e-6)


def test_work_is_in_proportion_to_the_length() -> None:
    lengths = [len(optimize(staged(lambda x: [lax.cumlogsumexp(x)], [np.zeros(n)])).equations) for n in (100, 10_000)]
    assert lengths[0] == lengths[1]


@pytest.mark.parametrize(("name", "reverse"), covering(ROWS, [False, True], least=8))
def test_slopes_are_those_of_short_rows(name: str, reverse: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of eight elements or less they are made in doubling steps, where infinities count as well."""
    x, dx = np.array(ROWS[name]), RNG.normal(size=len(ROWS[name]))

    def slopes() -> list[np.ndarray]:
        f = lambda x: lax.cumlogsumexp(x, reverse=reverse)  # noqa: E731
        return [np.asarray(jvp(f, (x,), (dx,))[1]), np.asarray(jit(lambda x, y: vjp(f, x)[1](y)[0])(x, dx))]

    with np.errstate(all="ignore"):
        found = slopes()
        monkeypatch.setattr(cumulative, "_FEW", 1000)
        expected = slopes()
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-10, atol=1e-12)


def test_second_derivatives_are_those_of_softmax() -> None:
    x = RNG.normal(0, 3, 30)
    p = np.exp(x[:20] - np.logaddexp.reduce(x[:20]))
    expected = np.zeros((30, 30))
    expected[:20, :20] = np.diag(p) - np.outer(p, p)
    for f in (hessian(lambda x: lax.cumlogsumexp(x)[19]), jit(hessian(lambda x: lax.cumlogsumexp(x)[19]))):
        np.testing.assert_allclose(f(x), expected, rtol=1e-12, atol=1e-15)


def test_slopes_of_a_slow_rise_are_exact() -> None:
    x = np.linspace(-10, 10, 50_000)
    wide = x.astype(np.longdouble)
    y = np.logaddexp.accumulate(wide)
    backwards = np.logaddexp.accumulate(-y[::-1])[::-1]  # of e^-y, from each on
    np.testing.assert_allclose(grad(lambda x: lax.cumlogsumexp(x).sum())(x), np.exp(wide + backwards), rtol=1e-11)
