"""What random calls of every function found beside NumPy: values, shapes and what is refused, one line for each."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tracer.errors import ArgumentError, AxisError, DTypeError, IndexingError, MatrixError, ShapeError, TracerError

Z = np.array([1 + 2j, 3 - 1j, 2j])
NAN = float("nan")

# Calls of a namespace whose results are NumPy's: values, dtypes and shapes.
ALIKE: dict[str, Callable[[Any], Any]] = {
    "transforms of complex numbers in the other order of bytes": lambda p: p.fft.fft(Z.astype(">c16")),
    "singular values of them": lambda p: p.linalg.svdvals(Z.astype(">c16").reshape(1, 3)),
    "a range of bins for short floats": lambda p: p.histogram_bin_edges(np.float32([1, 2]), 3, range=(0, 3)),
    "rollaxis to before the last axis": lambda p: p.rollaxis(np.arange(24).reshape(3, 2, 4), 0, -1),
    "rollaxis to the end": lambda p: p.rollaxis(np.arange(24).reshape(3, 2, 4), 0, 3),
    "r_ along the last axis": lambda p: p.r_["-1", np.ones((1, 2)), np.zeros((1, 2))],
    "r_ of two axes at least": lambda p: p.r_["0,2", [1, 2], [3, 4]],
    "r_ with the axes in front": lambda p: p.r_["0,3,0", np.arange(2), np.arange(2)],
    "r_ with the axes in the middle": lambda p: p.r_["1,3,1", np.arange(2), np.arange(2)],
    "r_ of slices": lambda p: p.r_["0,2,0", 0:3, 4:6],
    "c_ of numbers": lambda p: p.c_[np.int64(1), np.int64(2)],
    "c_ of vectors and a matrix": lambda p: p.c_[np.arange(2), 3:5, np.ones((2, 2))],
    "digitize with NaN above": lambda p: p.digitize([0.5, NAN, 1.0], [0.0, 1.0, NAN]),
    "digitize with NaN first": lambda p: p.digitize([0.5, NAN, 1.0], [NAN, 1.0, 0.0]),
    "sum of truths": lambda p: p.sum([[1.5, 0], [0, 0]], axis=1, dtype=bool),
    "sum of truths with a further one": lambda p: p.sum([0.0, 0.0], dtype=bool, initial=True),
    "product of truths": lambda p: p.prod([[1.5, 2], [3, 0]], axis=1, dtype=bool),
    "running sum of truths": lambda p: p.cumsum([0, 2, 0], dtype=bool),
    "running product of truths": lambda p: p.cumprod([[2, 0], [0, 1]], axis=0, dtype=bool),
    "trace of truths": lambda p: p.trace(np.diag([0.0, 2.0]), dtype=bool),
    "greatest truth beside a number": lambda p: p.max([False], initial=-2),
    "least truth beside nothing": lambda p: p.min(np.zeros(0, bool), initial=0),
    "where= that holds": lambda p: p.nanmax([3, 4], where=True),
    "variance as complex numbers": lambda p: p.var(Z, dtype="complex64"),
    "standard deviation as complex numbers": lambda p: p.std([1.0, 3.0], dtype=complex),
    "one column of covariances": lambda p: p.cov(np.ones((1, 3)), rowvar=False),
    "linspace of one value": lambda p: p.linspace(np.ones(2), 2, 1, retstep=True),
    "arange downwards": lambda p: 1 / p.arange(0, -2, -0.7),
    "interp of short values at long places": lambda p: p.interp([0.5, 0.1], [0.0, 1.0], np.float32([0.1, 0.7])),
    "order of complex numbers with NaN": lambda p: p.less([complex(-1, NAN), 1j], [0, complex(1, NAN)]),
    "order or equality of them": lambda p: p.greater_equal([complex(1, NAN), 1j], [complex(0, NAN), 1j]),
    "edges for both axes": lambda p: p.histogram2d([1.0, 2.0, 2.5], [1.0, 1.5, 2.0], bins=[0, 1, 3, 4]),
    "full of one": lambda p: p.full((), [3]),
    "full with axes in front": lambda p: p.full((2,), [[3, 4]]),
    "insert of nothing with axes in front": lambda p: p.insert(np.array([2, 1]), [], np.zeros((1, 0))),
    "insert of one with axes in front": lambda p: p.insert(np.array([2, 1]), 1, np.full((1, 1, 1), 7)),
    "roll by nothing": lambda p: p.roll(np.arange(3), ()),
    "roll along no axes": lambda p: p.roll(np.arange(3), (1,), ()),
    "bytes of empty rows as narrower ones": lambda p: p.zeros((0, 3), "uint16").view(bool),
    "bytes of empty rows as wider ones": lambda p: p.zeros((0, 4), "uint16").view("complex64"),
    "halves of empty rows": lambda p: p.zeros((0, 4), "complex64").view("uint16"),
    "the mean of a number and infinity": lambda p: p.nanmedian([[1.0, np.inf], [NAN, 2.0]], axis=1),
    "spread of integers of which none is left": lambda p: p.nanvar([1, 0], ddof=5),
    "one shift for several axes": lambda p: p.roll(np.arange(6).reshape(2, 3), (1,), (0, 1)),
    "what is beyond bytes among them": lambda p: p.isin(np.uint8([1, 255]), -1),
    "a place beyond bytes": lambda p: (p.searchsorted(np.uint8([1, 255]), 300), p.digitize(-1, np.uint8([1, 255]))),
    "a grid that meets 0": lambda p: p.linspace(-4, 1, 11) == 0,
    "bins that meet 0": lambda p: p.histogram(np.int32([-4, 0, 1]), 10)[0],
    "edges, whatever the range": lambda p: p.histogram([0.5, 1.5], [0.0, 1.0, 2.0], range=(0, np.inf))[0],
    "i0 beyond what exp takes": lambda p: p.i0(np.array([1e5, -1.7e308])),
    "windows of lengths that were computed": lambda p: (p.hanning(4.0), p.kaiser(np.float64(3), 2.0), p.kaiser(-1, 2)),
}  # fmt: skip


def same(ours: Any, theirs: Any) -> None:
    if isinstance(theirs, tuple):
        for a, b in zip(ours, theirs, strict=True):
            same(a, b)
        return
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=3e-15, atol=1e-15, strict=True)


@each("name", ALIKE)
def test_results_are_numpys(name: str) -> None:
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        same(ALIKE[name](tnp), ALIKE[name](np))


@pytest.mark.parametrize("make", [np.array, tnp.array], ids=["NumPy's", "ours"])
def test_results_are_merged_in_the_dtype_of_out(make: Any) -> None:
    for name, dtype in (("maximum", "complex128"), ("add", "float64")):
        kept, x = np.array([0.5, -1.5, 2.5], dtype) * (1 + 1j if dtype[0] == "c" else 1), np.array([1, 7, 3])
        where = np.array([False, True, False])
        out = make(kept)
        getattr(tnp, name)(x, 2 * x, out=out, where=where)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # NumPy reads `out` in the dtype of the result, too
            expected = getattr(np, name)(x, 2 * x, out=kept.copy(), where=where)
        np.testing.assert_array_equal(out, expected, strict=True)


@pytest.mark.parametrize("name", ["put", "putmask", "place"])
def test_places_and_values_are_numpys(name: str) -> None:
    calls: dict[str, list[tuple[Any, ...]]] = {
        "put": [([-14, 29, -1], [1, 2, 3], "clip")],
        "putmask": [([True, False, True, False, False, True], []), (np.eye(2, 3) > 0, [7, 8])],
        "place": [([False] * 6, [])],
    }
    for args in calls[name]:
        ours, theirs, made = np.arange(6), np.arange(6), tnp.arange(6)
        getattr(tnp, name)(ours, *args)
        getattr(tnp, name)(made, *args)
        getattr(np, name)(theirs, *args)
        np.testing.assert_array_equal(ours, theirs)
        np.testing.assert_array_equal(made, theirs)


def test_numbers_are_read_and_formatted_as_numpys() -> None:
    for number in (np.float32(1.1), np.complex64(1.1 + 2j), np.float64(0.1), np.True_, np.int8(3)):
        assert f"{tnp.asarray(number)}" == f"{np.asarray(number)}"
    assert tnp.asarray(3.0).item(0) == 3.0


REFUSED: dict[str, tuple[Callable[[], Any], type[TracerError], str]] = {
    "int of complex": (lambda: int(tnp.asarray(4 + 4j)), DTypeError, "int at .*: complex numbers do not become real"),
    "float of complex": (lambda: float(tnp.asarray(4j)), DTypeError, "float at .*: complex numbers do not become real"),
    "float of a vector": (lambda: float(tnp.ones(1)), ArgumentError, "float at .*: an array without axes is wanted"),
    "int of a matrix": (lambda: int(tnp.ones((1, 1), int)), ArgumentError, "int at .*: an array without axes"),
    "fft of a number": (lambda: tnp.fft.fft(np.float64(3)), AxisError, "fft at .*: axis -1 is out"),
    "fft beyond the axes": (lambda: tnp.fft.rfft(np.ones((2, 2)), 5, axis=3), AxisError, "rfft at .*: axis 3 is out"),
    "fft of no samples": (lambda: tnp.fft.fft(np.ones(3), n=0), ArgumentError, "fft at .*: a transform has"),
    "fft of a norm": (lambda: tnp.fft.fft(np.ones(3), norm="x"), ArgumentError, "fft at .*: norm is one of"),
    "rfft of complex": (lambda: tnp.fft.rfft(Z), DTypeError, "rfft at .* takes real numbers\n  got c128"),
    "svd of f16": (lambda: tnp.linalg.svd(np.ones((2, 2), "f2")), DTypeError, "svd at .* computes in f32, f64"),
    "svd of NaN": (lambda: tnp.linalg.svdvals(np.full((2, 2), NAN)), MatrixError, "svdvals at .*: SVD did not"),
    "eig of NaN": (lambda: tnp.linalg.eigvals(np.full((2, 2), NAN)), MatrixError, "eigvals at .*: Array must not"),
    "bins of a rule for weights": (
        lambda: tnp.histogram([1.0, 2.0], "auto", weights=[1.0, 2.0]), ArgumentError,
        "histogram at .*: 'auto' takes no weights\n  got weights\n  help: give the number of bins",
    ),
    "a range that descends": (lambda: tnp.histogram([1], 1, range=(2, 1)), ArgumentError, "histogram at .*: a range"),
    "a rule and such a range": (
        lambda: tnp.histogram_bin_edges([1], "auto", range=(2, 1)), ArgumentError, "histogram_bin_edges at .*: a range",
    ),
    "distinct along no axis": (lambda: tnp.unique(np.uint16(0), axis=0), AxisError, "unique at .*: axis 0 is out"),
    "blocks of none": (lambda: tnp.block([]), ShapeError, "block at .*: an empty list of blocks has no shape"),
    "ratios from a zero": (lambda: tnp.geomspace([1.0, 0.0], 2), ArgumentError, "geomspace at .*: no ratio leads"),
    "fewer than no powers": (lambda: tnp.vander([1, 2], -1), ShapeError, "vander at .*: the number of powers"),
    "too few bits": (lambda: tnp.unpackbits(np.uint8([1]), count=-9), ShapeError, "unpackbits at .*: the axis has"),
    "too few coordinates": (lambda: tnp.gradient(np.ones((2, 2)), [0.0, 1.0]), ArgumentError, "gradient at .* takes"),
    "spacing without axes": (lambda: tnp.gradient(1.0, 2.0, [1.0]), ArgumentError, "gradient at .* takes one spacing"),
    "linalg.cross of two": (
        lambda: tnp.linalg.cross(np.ones(2), np.ones(2)), ShapeError, "cross at .* takes vectors of 3 components",
    ),
    "common_type of bools": (lambda: tnp.common_type(np.ones(2, bool)), DTypeError, "common_type at .*: bools"),
    "half a value": (lambda: tnp.hanning(2.5), ArgumentError, "hanning at .* takes an integral .*\n  got 2.5"),
    "r_ of no direction": (lambda: tnp.r_["x", [1]], ArgumentError, "r_ at .*: directions are up to three integers"),
    "r_ of late directions": (lambda: tnp.r_[[1], "r"], ArgumentError, "r_ at .*: directions as text come first"),
    "insert of what does not fit": (
        lambda: tnp.insert(np.uint8([1]), 0, -1), DTypeError, "insert at .*: the integer -1 does not fit in u8",
    ),
    "append of what does not fit": (
        lambda: tnp.append(np.uint8([1]), 300), DTypeError, "append at .*: the integer 300 does not fit in u8",
    ),
    "union with what does not fit": (
        lambda: tnp.union1d(np.uint8([1]), -1), DTypeError, "union1d at .*: the integer -1 does not fit in u8",
    ),
    "put of what does not fit": (
        lambda: tnp.put(np.zeros(1, "i1"), 0, 128), DTypeError, "put at .*: the integer 128 does not fit in i8",
    ),
    "sum from NaN": (lambda: tnp.sum([1, 2], initial=NAN), DTypeError, "sum at .*: nan does not fit in i64"),
    "sum from complex": (lambda: tnp.sum([1.0], initial=1j), DTypeError, "sum at .*: complex numbers do not"),
    "a range without end": (
        lambda: tnp.histogram([1.0], "sqrt", range=(0, np.inf)), ArgumentError, "histogram at .*: a range must be",
    ),
    "a number that does not fit in another's dtype": (
        lambda: tnp.power(-2, np.uint32(2)), DTypeError, "power at .*: the integer -2 does not fit in u32",
    ),
    "bins of NaN": (lambda: tnp.histogram([NAN, 1.0], "sqrt"), ArgumentError, "histogram at .*: autodetected range"),
    "bins by no rule": (lambda: tnp.histogram([1.0], "x"), ArgumentError, "histogram at .*: 'x' is not a valid esti"),
    "a slice by a fraction": (lambda: tnp.arange(3)[0:1.5], IndexingError, "slicing at .*: the bounds"),
    "a mask of another size": (
        lambda: tnp.putmask(tnp.ones((2, 1)), [True, False, True], 0), ShapeError,
        r"putmask at .*: the mask must have as many elements as the array\n  got bool\[3\] for f64\[2,1\]",
    ),
    "a mask that would be repeated": (
        lambda: tnp.putmask(np.ones((2, 3)), [True, False, True], 0), ShapeError, "putmask at .*: the mask must have",
    ),
    "a mask of one": (lambda: tnp.place(tnp.ones(3), [True], [1]), ShapeError, "place at .*: the mask must have"),
    "a choice alone": (lambda: tnp.choose(np.array(1), np.array(3)), ArgumentError, "choose at .*: the choices are"),
    "values of more axes": (
        lambda: tnp.insert(np.zeros(0), slice(2), np.zeros((3, 0))), ShapeError, "insert at .*: the values must broad",
    ),
    "a percentile beyond": (
        lambda: tnp.percentile([1.0], [5, 200]), ArgumentError, r"percentile at .* up to 100\n  got 200\n",
    ),
    "a spacing of text": (lambda: tnp.trapezoid([1.0], dx="a"), ArgumentError, "trapezoid at .*: an argument is"),
    "an iterator that ends": (lambda: tnp.fromiter([1, 2], float, 3), ArgumentError, "fromiter at .*: iterator too sh"),
    "half an element": (lambda: tnp.frombuffer(b"abc", "int16"), ArgumentError, "frombuffer at .*: buffer size"),
    "place of nothing": (lambda: tnp.place(np.ones(1), [True], []), ShapeError, "place at .* takes at least one value"),
}  # fmt: skip


@each("name", REFUSED)
def test_what_numpy_refuses_is_refused(name: str) -> None:
    call, error, text = REFUSED[name]
    with pytest.raises(error, match=rf"^{text}"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda x: tnp.cumsum(x, dtype=bool), lambda x: tnp.prod(x, dtype=bool), lambda x: tnp.var(x, dtype="complex64"),
        lambda x: tnp.put(x, [-14, 29], [1.0, 2.0], "clip", inplace=False), lambda x: tnp.less(x + 1j, x - 1j * x),
        lambda x: tnp.repeat(x[:0], x[:0].astype(int)), lambda x: tnp.nanmedian(x / 0), lambda x: tnp.r_["1,2,0", x, x],
        lambda x: tnp.interp(x, [0.0, 2.0], x[:2].astype("float32")),
    ],
)  # fmt: skip
def test_compiled_calls_give_the_same(call: Any) -> None:
    x = np.array([0.0, 2.0, NAN, 1.0])
    np.testing.assert_array_equal(tracer.jit(call)(x), call(tnp.asarray(x)), strict=True)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("endpoint", [True, False])
def test_spaced_values_are_numpys_bit_by_bit(dtype: str, endpoint: bool, rng: np.random.Generator) -> None:
    for num in (1, 2, 7, 50):
        start, stop = rng.normal(size=(2, 3)).astype(dtype)
        expected = np.linspace(start, stop, num, endpoint=endpoint)
        np.testing.assert_array_equal(tnp.linspace(start, stop, num, endpoint=endpoint), expected, strict=True)


def test_results_are_written_in_the_order_of_bytes_of_out() -> None:
    out = np.zeros(2, ">f8")
    tnp.add([1.0, 2.0], 3.0, out=out)
    np.testing.assert_array_equal(out, [4.0, 5.0])
