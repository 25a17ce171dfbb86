"""xarray, dask, pandas and Matplotlib with our arrays inside."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.foreign.outcomes import MODES, NUMPY, OURS, PLAIN, REFUSED, WRONG, Case, check, record
from tests.foreign.requirements import installed
from tracer.errors import TracerArrayError

X = np.random.default_rng(5).uniform(0.5, 1.5, (4, 6))


def _labelled(x: Any) -> Any:
    import xarray

    return xarray.DataArray(x, dims=("time", "place"), coords={"time": [0, 0, 1, 1], "place": np.arange(6.0)})


def _x(function: str, call: Any, *operands: Any, **outcomes: Any) -> Case:
    return Case(function, lambda *xs: call(*map(_labelled, xs)).data, operands or (X,), **outcomes)


XARRAY = [
    _x("arithmetic", lambda a, b: (2.0 * a + b) / (a - 3.0) ** 2, X, X[::-1].copy()),
    _x("comparison", lambda a: a > 1.0, grad=None),
    _x("np.sin", np.sin),
    *[
        _x(name, lambda a, name=name: getattr(a, name)("time"))
        for name in ("sum", "mean", "std", "var", "min", "max", "prod", "median")
    ],
    _x("count", lambda a: a.count("time"), grad=None),
    _x("any", lambda a: (a > 1.0).any("time"), grad=None),
    _x("argmax", lambda a: a.argmax("time"), grad=None),
    _x("cumsum", lambda a: a.cumsum("time")),
    *[
        _x(f"groupby.{name}", lambda a, name=name: getattr(a.groupby("time"), name)())
        for name in ("mean", "sum", "max", "std")
    ],
    _x("groupby arithmetic", lambda a: a.groupby("time") - a.groupby("time").mean()),
    _x("resample by coarsen", lambda a: a.coarsen(place=2).mean()),
    _x("isel", lambda a: a.isel(place=[0, 2])),
    _x("sel", lambda a: a.sel(place=[1.0, 3.0])),
    _x("transpose", lambda a: a.transpose("place", "time")),
    _x("stack", lambda a: a.stack(all=("time", "place"))),
    _x("shift", lambda a: a.shift(place=1, fill_value=0.0)),
    _x("diff", lambda a: a.diff("place")),
    _x("where", lambda a: a.where(a > 1.0, 0.0)),
    _x("fillna", lambda a: a.fillna(0.0)),
    _x("clip", lambda a: a.clip(0.8, 1.2)),
    _x("quantile", lambda a: a.quantile(0.3, "place")),
    _x("concat", lambda a, b: __import__("xarray").concat([a, b], "place"), X, X[::-1].copy()),
    _x("dot", lambda a, b: a.dot(b, dim="place"), X, X[::-1].copy()),
    _x("weighted.mean", lambda a: a.weighted(_weights()).mean("place")),
    _x("apply_ufunc", lambda a: __import__("xarray").apply_ufunc(lambda v: v * v, a)),
    _x("Dataset.mean", lambda a: a.to_dataset(name="a").mean("time")["a"]),
    _x("rolling.mean", lambda a: a.rolling(place=2, min_periods=1).mean()),
    _x("sortby", lambda a: a.sortby("place", ascending=False)),
    _x("isel of points", lambda a: a.isel(place=_points(), time=_points()), eager=REFUSED, jit=None, grad=None),
    _x("sel nearest", lambda a: a.sel(place=2.2, method="nearest")),
    _x("reindex", lambda a: a.reindex(place=[0.0, 9.0], fill_value=0.0)),
    _x("pad", lambda a: a.pad(place=1, constant_values=0.0)),
    _x("roll", lambda a: a.roll(place=1)),
    _x("differentiate", lambda a: a.differentiate("place")),
    _x("integrate", lambda a: a.integrate("place")),
    _x("polyfit", lambda a: a.polyfit("place", 1).polyfit_coefficients, jit=REFUSED),
    _x("cumprod", lambda a: a.cumprod("place")),
    _x("where drop", lambda a: a.where(a.place > 2, drop=True)),
    _x("groupby_bins.mean", lambda a: a.groupby_bins("place", [-1, 2, 6]).mean()),
    _x("groupby.map", lambda a: a.groupby("time").map(lambda g: g - g.mean())),
    _x("a[0] = v", lambda a: _written(a.copy(), 0, 1.0)),
    _x("stack and unstack", lambda a: a.assign_coords(time=range(4)).stack(all=("time", "place")).unstack("all")),
    _x("corr", lambda a, b: __import__("xarray").corr(a, b, "place"), X, X[::-1].copy()),
    _x("dropna", lambda a: a.dropna("place"), jit=REFUSED),
    _x("chunk", lambda a: a.chunk(place=2).mean().compute(scheduler="synchronous")),
    _x(
        "apply_ufunc over a dimension",
        lambda a: __import__("xarray").apply_ufunc(lambda v: v.mean(-1), a, input_core_dims=[["place"]]),
    ),
    _x("interp", lambda a: a.isel(time=slice(1, 3)).interp(place=[0.5]), eager=NUMPY, jit=REFUSED, grad=REFUSED),
]
X_RUNS = [(case, mode) for case in XARRAY for mode in MODES if case.expected(mode) is not None]


def _weights() -> Any:
    import xarray

    return xarray.DataArray(np.arange(1.0, 7.0), dims="place")


@installed("xarray", "pandas")
@pytest.mark.parametrize(("case", "mode"), X_RUNS, ids=[f"{case.function} {mode}" for case, mode in X_RUNS])
def test_xarray(case: Case, mode: str) -> None:
    check("xarray", case, mode)


@installed("xarray", "pandas")
def test_xarrays_labels_go_through() -> None:
    found = _labelled(tnp.asarray(X)).groupby("time").mean()
    assert found.dims == ("time", "place")
    assert found.time.values.tolist() == [0, 1]
    assert "Array(" in repr(found)


def _points() -> Any:
    import xarray

    return xarray.DataArray([0, 1], dims="point")


def _written(a: Any, place: Any, value: Any) -> Any:
    a[place] = value
    return a


def _blocks(x: Any) -> Any:
    import dask.array

    return dask.array.from_array(x, chunks=(2, 3), asarray=False)


def _d(function: str, call: Any, **outcomes: Any) -> Case:
    return Case(
        function, lambda x: call(_blocks(x)).compute(scheduler="synchronous"), (X,), **{"jit": OURS, **outcomes}
    )


def _dask() -> Any:
    import dask.array

    return dask.array


def _wave(block: Any) -> Any:
    return np.sin(block) ** 2


DASK = [
    _d("map_blocks", lambda d: d.map_blocks(_wave, dtype=float)),
    _d("map_blocks of a compiled function", lambda d: d.map_blocks(tracer.jit(_wave), dtype=float)),
    _d("map_overlap", lambda d: d.map_overlap(lambda b: b + np.roll(b, 1), depth=1, dtype=float)),
    _d("arithmetic", lambda d: (d + 1.0) * d),
    _d("sum", lambda d: d.sum()),
    _d("mean", lambda d: d.mean(axis=0)),
    _d("matmul", lambda d: d @ d.T),
    _d("np.sin", np.sin),
    _d("transpose", lambda d: d.T),
    _d("max", lambda d: d.max(axis=1)),
    _d("std", lambda d: d.std(axis=0)),
    _d("cumsum", lambda d: d.cumsum(axis=1)),
    _d("reshape", lambda d: d.reshape(-1)),
    _d("indexing", lambda d: d[1:3, ::2]),
    _d("d[0, 0] = v", lambda d: _written(d, (0, 0), 5.0)),
    _d("rechunk", lambda d: d.rechunk((4, 1))),
    _d("median", lambda d: _dask().median(d.rechunk((2, 6)), axis=1)),
    _d("nanmean", lambda d: _dask().nanmean(d)),
    _d("where", lambda d: _dask().where(d > 1, d, 0.0)),
    _d("concatenate", lambda d: _dask().concatenate([d, d])),
    _d("stack", lambda d: _dask().stack([d, d])),
    _d("pad", lambda d: _dask().pad(d, 1, mode="constant")),
    _d("roll", lambda d: _dask().roll(d, 1, 1)),
    _d("tensordot", lambda d: _dask().tensordot(d, d.T, 1)),
    _d("einsum", lambda d: _dask().einsum("ij,kj->ik", d, d)),
    _d("linalg.norm", lambda d: _dask().linalg.norm(d + 0.0)),
    _d("histogram", lambda d: _dask().histogram(d, bins=4, range=(0, 2))[0], grad=None),
    _d("percentile", lambda d: _dask().percentile(d[0], 50), eager=REFUSED, jit=None, grad=None),
    _d("map_blocks of a gradient", lambda d: d.map_blocks(tracer.grad(lambda b: tnp.sin(b).sum()), dtype=float)),
]
D_RUNS = [(case, mode) for case in DASK for mode in MODES if case.expected(mode) is not None]


@installed("dask")
@pytest.mark.parametrize(("case", "mode"), D_RUNS, ids=[f"{case.function} {mode}" for case, mode in D_RUNS])
def test_dask(case: Case, mode: str) -> None:
    check("dask", case, mode)


@installed("dask")
def test_dasks_threads_compute_with_compiled_functions() -> None:
    import dask.array

    blocks = dask.array.from_array(X, chunks=(1, 2))
    found = blocks.map_blocks(tracer.jit(_wave), dtype=float).compute(scheduler="threads")
    np.testing.assert_allclose(found, np.sin(X) ** 2, rtol=1e-14)
    record("dask", "map_blocks of a compiled function, in threads", "eager", OURS)
    assert isinstance(found, tracer.Array)


def _p(function: str, call: Any, eager: str = PLAIN, jit: str | None = REFUSED) -> Case:
    return Case(function, call, (X,), eager, jit, None)


def _series(x: Any) -> Any:
    import pandas

    return pandas.Series(x)


def _frame(x: Any, **options: Any) -> Any:
    import pandas

    return pandas.DataFrame(x, **options)


def _groups(x: Any) -> Any:
    return _frame(x).groupby(["a", "b", "a", "b"])


def _energy(group: Any) -> float:
    return float(tracer.jit(lambda v: (v**2).sum())(group.to_numpy()))


PANDAS = [
    _p("Series", lambda x: _series(x[0]).tolist()),
    _p("DataFrame", lambda x: _frame(x).to_numpy().tolist()),
    _p("DataFrame of a dict", lambda x: _frame({"a": x[0], "b": x[1]}).sum().tolist()),
    _p("Index", lambda x: __import__("pandas").Index(x[0]).tolist()),
    _p("DataFrame.assign", lambda x: _frame({"a": [1, 2, 3, 4]}).assign(b=x[:, 0])["b"].tolist()),
    _p("Series + x", lambda x: (_series([1.0] * 6) + x[0]).tolist()),
    _p("x * Series", lambda x: (x[0] * _series([2.0] * 6)).tolist()),
    _p("Series.isin", lambda x: _series([float(X[0, 0])] * 6).isin(x[0]).tolist(), jit=WRONG),
    _p("DataFrame.groupby.mean", lambda x: _groups(x).mean().to_numpy().tolist()),
    _p("DataFrame.groupby.sum into ours", lambda x: tnp.asarray(_groups(x).sum()) + 0.0, OURS),
    _p("DataFrame.groupby.apply of a compiled function", lambda x: _groups(x).apply(_energy).tolist()),
    _p("DataFrame.apply(tracer.numpy.sin)", lambda x: _frame(x).apply(tnp.sin).to_numpy().tolist()),
    _p("tracer.numpy.sin(DataFrame)", lambda x: tnp.sin(_frame(x)) + 0.0, OURS),
    _p("tracer.numpy.mean(Series)", lambda x: tnp.mean(_series(x[0])), OURS),
    _p("Series.to_numpy into ours", lambda x: tnp.asarray(_series(x[0]).to_numpy()) * 2.0, OURS),
    _p("Series.rolling.mean", lambda x: _series(x[0]).rolling(2, min_periods=1).mean().tolist()),
    _p("Series.where", lambda x: _series(X[0]).where(x[0] > 1, 0.0).tolist()),
    _p("DataFrame @ x", lambda x: (_frame(X) @ x.T).to_numpy().tolist()),
    _p("DataFrame + x", lambda x: (_frame(X) + x).to_numpy().tolist(), REFUSED, None),
    _p("x + DataFrame", lambda x: (x + _frame(X)).to_numpy().tolist(), REFUSED, None),
    _p("DataFrame[mask]", lambda x: _frame(X)[x[:, 0] > 1].to_numpy().tolist(), REFUSED),
    _p("unique", lambda x: __import__("pandas").unique(x[0]).tolist(), REFUSED, None),
    _p("merge", lambda x: _frame(x).merge(_frame(x), on=0).to_numpy().tolist()),
    _p("concat", lambda x: __import__("pandas").concat([_frame(x), _frame(x)]).to_numpy().tolist()),
    _p("DataFrame.corr", lambda x: _frame(x).corr().to_numpy().tolist()),
    _p("cut", lambda x: __import__("pandas").cut(x[0], 2).codes.tolist()),
    _p(
        "numpy.asarray(Series)",
        lambda x: tnp.asarray(_series(np.ones(3))) + x[0, :3] if type(x) is not np.ndarray else 1.0 + x[0, :3],
        OURS,
        OURS,
    ),
]
P_RUNS = [(case, mode) for case in PANDAS for mode in MODES if case.expected(mode) is not None]


@installed("pandas")
@pytest.mark.parametrize(("case", "mode"), P_RUNS, ids=[f"{case.function} {mode}" for case, mode in P_RUNS])
def test_pandas(case: Case, mode: str) -> None:
    check("pandas", case, mode)


@installed("pandas")
def test_pandas_does_not_write_to_our_arrays() -> None:
    x = tnp.arange(3.0)
    taken = _series(x)
    with pytest.raises(ValueError, match="read-only"):
        taken[0] = 9.0
    assert x.tolist() == [0.0, 1.0, 2.0]


PLOTS: dict[str, Any] = {
    "plot": lambda ax, x: ax.plot(x[0], x[1]),
    "scatter": lambda ax, x: ax.scatter(x[0], x[1], c=x[2], s=10 * x[3]),
    "imshow": lambda ax, x: ax.imshow(x),
    "hist": lambda ax, x: ax.hist(x[0]),
    "contourf": lambda ax, x: ax.contourf(x),
    "bar": lambda ax, x: ax.bar(x[0], x[1]),
    "errorbar": lambda ax, x: ax.errorbar(x[0], x[1], yerr=x[2]),
    "fill_between": lambda ax, x: ax.fill_between(x[0], x[1], x[2]),
    "pcolormesh": lambda ax, x: ax.pcolormesh(x),
    "quiver": lambda ax, x: ax.quiver(x, x),
    "axhline": lambda ax, x: ax.axhline(x[0, 1]),
    "set_xlim": lambda ax, x: ax.set_xlim(x[0, 0], x[0, 1] + 1),
    "boxplot": lambda ax, x: ax.boxplot(x),
    "stem": lambda ax, x: ax.stem(x[0]),
    "text": lambda ax, x: ax.text(x[0, 0], x[0, 1], "here"),
    "semilogy": lambda ax, x: ax.semilogy(x[0]),
    "hist2d": lambda ax, x: ax.hist2d(x[0], x[1]),
    "step": lambda ax, x: ax.step(x[0], x[1]),
    "stackplot": lambda ax, x: ax.stackplot(x[0], x[1:]),
}


@installed("matplotlib")
@pytest.mark.parametrize("plot", PLOTS.values(), ids=PLOTS)
def test_matplotlib_draws_our_arrays_as_numpys(plot: Any, request: pytest.FixtureRequest) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    def drawn(x: Any) -> Any:
        figure = Figure(figsize=(2, 2), dpi=40)
        canvas = FigureCanvasAgg(figure)
        axes = figure.add_subplot()
        plot(axes, x)
        axes.set_axis_off()  # texts of ticks take most of the time
        canvas.draw()
        return np.asarray(canvas.buffer_rgba())

    x = np.sort(X, axis=1)
    np.testing.assert_array_equal(drawn(tnp.asarray(x)), drawn(x))
    name = request.node.callspec.id
    record("Matplotlib", name, "eager", PLAIN)
    with pytest.raises((TracerArrayError, TypeError)):
        tracer.jit(drawn)(x)
    record("Matplotlib", name, "jit", REFUSED)
