"""Rows of the table of differences in docs/numpy.md, executed: what NumPy gives, and what is given here."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import tracer.numpy as tnp
from tests.grids import each
from tools.numpy_table import DIFFERENT

NAN = float("nan")
U8 = np.uint8([4, 2, 4])

# The beginning of a row, a call, and what it comes to: values, or the names of errors.
ROWS: list[tuple[str, Callable[[Any], Any], str, str]] = [
    ("float to integer", lambda p: p.pad(np.array([1]), 1, constant_values=NAN), "ValueError", "[0, 1, 0]"),
    ("`sign` of complex", lambda p: p.sign(np.complex64(3.4e38 - 3.4e38j)), "-1j", "0j"),
    ("products, powers", lambda p: p.cumprod(np.array([complex(-np.inf, 3)])), "[(-inf+3j)]", "[(-inf+nanj)]"),
    ("`exp2`, `expm1`", lambda p: p.log1p(np.complex128(1e-100)), "0j", "(1e-100+0j)"),
    ("`exp2`, `expm1`", lambda p: p.expm1(np.array(complex(np.inf, 0))), "(inf+nanj)", "(inf+0j)"),
    ("reductions, scans", lambda p: p.cumsum(np.float64(2), axis=0), "[2.0]", "AxisError"),
    ("reductions, scans", lambda p: p.argmax(np.float64(2), axis=-1), "0", "AxisError"),
    ("reductions, scans", lambda p: p.squeeze(np.float64(2), axis=0), "2.0", "AxisError"),
    ("`where=` of more", lambda p: p.prod(np.full((1, 2), 2), where=np.ones((3, 2), bool)), "ValueError", "64"),
    ("weights of no values", lambda p: p.put_along_axis(np.zeros(0), np.zeros(0, int), np.zeros((3, 0)), 0), "None",
     "ShapeError"),
    ("weights of no values", lambda p: p.histogram2d([], [], 1, weights=np.ones((2, 1)))[0], "[[0.0]]", "ShapeError"),
    ("`average` and `cov`", lambda p: p.cov([1.0, 2.0], aweights=[0.0, 0.0]), "ZeroDivisionError", "nan"),
    ("`roots`, `linalg.eig`", lambda p: p.linalg.eigvals(np.eye(1)), "[1.0]", "[(1+0j)]"),
    ("`linalg.eigh`", lambda p: p.linalg.eigvalsh(np.array([[0.0, 0.0], [2.0, 0.0]])).round(9), "[-2.0, 2.0]",
     "[-1.0, 1.0]"),
    ("`linalg.pinv`", lambda p: p.linalg.pinv(np.diag([1.0, 4e-15]))[1, 1] > 0, "True", "False"),
    ("`linalg.lstsq`", lambda p: p.linalg.lstsq(np.ones((3, 2)), np.ones(3))[1].size, "0", "1"),
    ("`roots`", lambda p: p.roots([1.0, NAN]), "LinAlgError", "[(nan+nanj)]"),
    ("`mean`, `var`", lambda p: p.mean(np.array([-1, -2]), dtype="uint8"), "126", "254"),
    ("`mean`, `var`", lambda p: p.std(np.array([1, 5]), dtype="uint8"), "2", "DTypeError"),
    ("`unwrap`", lambda p: p.unwrap(U8, period=2.5), "[4.0, -253.0, -253.5]", "[4.0, 4.5, 4.0]"),
    ("`unwrap`", lambda p: p.unwrap(U8, period=6), "OverflowError", "[4, 2, 4]"),
    ("`spacing`", lambda p: p.spacing(np.float16(-1)) < 0, "False", "True"),
    ("`arange(-3", lambda p: p.arange(-3, 5, 0.3, dtype=int)[:3], "[-3, -2, -1]", "[-3, -3, -3]"),
    ("`nanquantile`", lambda p: p.nanquantile(np.zeros(0), [0.2, 0.5]), "nan", "[nan, nan]"),
    ("`i0` of", lambda p: p.i0(np.array([np.inf])), "[nan]", "[inf]"),
    ("`abs(z", lambda p: p.abs(np.array([3 + 4j]), dtype=float), "[5.0]", "DTypeError"),
    ("`isscalar`", lambda p: p.isscalar(p.asarray(1.0)), "False", "True"),
    ('`order="A"`', lambda p: p.ravel(np.arange(4).reshape(2, 2).T, order="A"), "[0, 1, 2, 3]", "[0, 2, 1, 3]"),
    ("`concatenate`", lambda p: p.concatenate([np.array([1.5])], dtype=int), "TypeError", "[1]"),
    ("`concatenate`", lambda p: p.stack([np.array([1.5])], dtype=int, casting="same_kind"), "TypeError", "TypeError"),
    ("`repeat` by floats", lambda p: p.repeat([7], 1.5), "[7]", "DTypeError"),
    ("`repeat` by floats", lambda p: p.reshape([7, 8], (-2,)), "[7, 8]", "ShapeError"),
    ("`repeat` by floats", lambda p: p.hanning(2.5).size, "2", "ArgumentError"),
    ("`choose` by uint64", lambda p: p.choose(np.uint64([0]), [[5]]), "TypeError", "[5]"),
    ("`choose` by uint64", lambda p: p.clip([5], 7), "TypeError", "[7]"),
    ("`choose` by uint64", lambda p: round(p.asarray([1.25]), 1), "TypeError", "[1.2]"),
    ("`choose` by uint64", lambda p: p.fft.fftshift(np.float64(5)), "ValueError", "5.0"),
    ("places out of range", lambda p: p.partition([1, 2], 2), "ValueError", "IndexError"),
    ("places out of range", lambda p: p.choose([-6], [[5]]), "ValueError", "IndexError"),
    ("places out of range", lambda p: p.ravel_multi_index(([4],), (4,)), "ValueError", "IndexError"),
    ("`split` into 0", lambda p: p.split(np.arange(2), 0), "ZeroDivisionError", "ValueError"),
    ("`split` into 0", lambda p: p.fft.fftfreq(0), "ZeroDivisionError", "ValueError"),
    ("`poly` of complex roots", lambda p: p.iscomplexobj(p.poly([1j, -1j])), "False", "True"),
    ("`put`", lambda p: p.put(np.array([1, 2]), 0, 3), "None", "[3, 2]"),
    ("`trim_zeros`", lambda p: isinstance(p.trim_zeros([0, 1]), list), "True", "False"),
]  # fmt: skip


def outcome(call: Callable[[Any], Any], namespace: Any, expected: str) -> str:
    """What a call comes to, as text; an error is told by the expected name, if it is one of its classes."""
    try:
        with warnings.catch_warnings(), np.errstate(all="ignore"):
            warnings.simplefilter("ignore")
            result = call(namespace)
    except Exception as error:
        names = [kind.__name__ for kind in type(error).__mro__]
        return expected if expected in names else names[0]
    return "None" if result is None else repr(np.asarray(result).tolist())


@each("row", ROWS, ids=[f"{number} {row[0]}" for number, row in enumerate(ROWS)])
def test_rows_of_the_table_are_true(row: tuple[str, Callable[[Any], Any], str, str]) -> None:
    what, call, theirs, ours = row
    assert any(told.startswith(what) for told, _, _ in DIFFERENT)
    assert outcome(call, np, theirs) == theirs
    assert outcome(call, tnp, ours) == ours
