"""Values that NumPy reads unseen while a function is traced: guarded where the array is small, told where it is not."""

from __future__ import annotations

import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer import grad, jit, vmap

READS: dict[str, Callable[[Any, Any], Any]] = {
    "float": lambda x, w: x * float(w[0]), "item": lambda x, w: x * w[0], "method": lambda x, w: x * w.sum(),
    "ufunc": lambda x, w: x * np.sqrt(w)[1], "iteration": lambda x, w: sum(v * x for v in w),
    "tolist": lambda x, w: x + sum(w.tolist()), "branch": lambda x, w: x if w[0] > 2 else -x,
    "int": lambda x, w: x ** int(w[0]), "view": lambda x, w: x * w[1:][0], "copy": lambda x, w: x * w.copy(),
    "dot": lambda x, w: x * np.dot(w, w), "max": lambda x, w: x * max(w), "format": lambda x, w: x * float(f"{w[0]}"),
    "operator": lambda x, w: x * (w + 1)[0], "bytes": lambda x, w: x * w.tobytes()[0],
}  # fmt: skip


@pytest.mark.parametrize(("read", "dtype"), covering(READS, ["float64", "int32", "complex64", "bool", ">f8"], least=20))
def test_values_that_numpy_read_compile_anew(read: str, dtype: str) -> None:
    if dtype == "complex64" and read in ("float", "branch", "int", "max", "format", "iteration", "tolist"):
        pytest.skip("complex numbers have no order, and no float")
    if dtype == "bool" and read == "format":
        pytest.skip("a truth value is no number's text")
    w = np.array([1, 0, 1], dtype)
    f = jit(lambda x: READS[read](x, w))
    for values in ([1, 0, 1], [3, 5, 4], [3, 5, 4], [0, 1, 0], [1, 0, 1]):
        w[...] = values
        for _ in range(2):
            np.testing.assert_array_equal(f(2.0), READS[read](2.0, w))


def test_arrays_without_axes_and_views_are_guarded() -> None:
    base, scalar = np.arange(10.0), np.array(2.0)
    view = base[::3]
    view.flags.writeable = False
    f = jit(lambda x: x * float(scalar) + view.sum())
    assert float(f(1.0)) == 20.0
    scalar[...] = 3.0
    assert float(f(1.0)) == 21.0
    base[9] = 0.0
    assert float(f(1.0)) == 12.0


def test_helpers_and_transforms_read_too() -> None:
    table = np.array([1.0, 2.0])

    def helper(x: Any) -> Any:
        return x * table[1]

    f = jit(vmap(grad(lambda x: helper(x) ** 2)))
    x = np.ones(2)
    np.testing.assert_array_equal(f(x), [8.0, 8.0])
    table[1] = 3.0
    np.testing.assert_array_equal(f(x), [18.0, 18.0])
    np.testing.assert_array_equal(jit(f)(x), [18.0, 18.0])


def test_an_operand_of_the_program_compiles_once() -> None:
    w = np.ones(3)
    f = jit(lambda x: x + w)
    for n in range(4):
        w[:] = n
        np.testing.assert_array_equal(f(1.0), np.full(3, n + 1.0))
    assert f.explain().startswith("lambda compiled once")


@pytest.mark.parametrize(("read", "order"), covering(READS, ["before", "behind", "within", "helper"], least=20))
def test_values_that_numpy_read_of_an_operand_compile_anew(read: str, order: str) -> None:
    w = np.array([1.0, 0.0, 1.0])
    value = READS[read]

    def helper(x: Any, v: Any) -> Any:
        return v * value(x, v)

    ways: dict[str, Callable[[Any], Any]] = {
        "before": lambda x: x * w + value(x, w), "behind": lambda x: value(x, w) + x * w,
        "within": lambda x: tnp.add(w * x, value(x, w)), "helper": lambda x: helper(x, w),
    }  # fmt: skip
    f = jit(ways[order])
    for values in ([1, 0, 1], [3, 5, 4], [3, 5, 4], [1, 0, 1]):
        w[...] = values
        np.testing.assert_array_equal(f(2.0), ways[order](2.0))


shared = np.ones(3)


def test_operands_compile_once_however_they_are_read() -> None:
    w = np.ones(3)
    inner = jit(lambda x: x + w)
    ways: list[Callable[[Any], Any]] = [
        lambda x: tnp.sin(w) + x, lambda x: w * x + x * w, lambda x: x + inner(x), lambda x: x + shared,
        lambda x: sum((x * w for _ in range(3)), w * x), lambda x: x * w.shape[0] + w.ndim * (w - x),
        lambda x: tracer.lax.scan(lambda c, _: (c * w, None), x, None, length=2)[0],
        lambda x: vmap(lambda v: v + w)(tnp.stack([x, x]))[0], vmap(lambda x: x * w), lambda x: tnp.dot(x, w) + x,
        grad(lambda v: (v * w).sum()), lambda x: tnp.where(x > 0, w, x),
    ]  # fmt: skip
    functions = [jit(way) for way in ways]
    x = np.arange(3.0)
    for n in range(3):
        w[:] = shared[:] = n
        for way, f in zip(ways, functions, strict=True):
            np.testing.assert_array_equal(f(x), way(x))
    assert [f.explain().split()[:3] for f in functions] == [["lambda", "compiled", "once"]] * len(ways)


def test_a_large_array_is_told() -> None:
    large = np.zeros(9000)
    f = jit(lambda x: x + large[0])
    f(1.0)
    assert f.explain().splitlines()[-1] == (
        "  note: 'large', float64[9000], is not an input of the program: elements that NumPy read while tracing are "
        "constants"
    )


def test_arrays_that_hold_no_numbers_are_left_alone() -> None:
    names = np.array(["a", "b"])
    things = np.array([object()])
    f = jit(lambda x: x + len(names) + len(things))
    assert float(f(1.0)) == 4.0
    assert "note" not in f.explain()


def draw(x: Any) -> Any:
    return x + np.random.normal()  # noqa: NPY002  # as users write it


def test_random_numbers_warn_once_with_their_line() -> None:
    generator = np.random.default_rng(0)

    def nested(x: Any) -> Any:
        def inner(y: Any) -> Any:
            return y + generator.normal()

        return inner(x)

    for function in (draw, nested):
        with warnings.catch_warnings(record=True) as shown:
            warnings.simplefilter("default")
            for _ in range(2):
                jit(function)(1.0)
        assert len(shown) == 1
        assert re.fullmatch(
            rf"jit of {function.__name__}: NumPy drew random numbers while it was traced at test_numpy_reads.py:\d+\n"
            r"  every call gets these numbers, as constants\n"
            r"  help: pass them as an argument, or draw them by tracer.random with a key",
            str(shown[0].message),
        )
        assert shown[0].filename == __file__
        assert "normal()" in Path(__file__).read_text().splitlines()[shown[0].lineno - 1]


def test_functions_without_random_numbers_do_not_warn() -> None:
    generator = np.random.default_rng(0)
    jit(lambda x: x + generator.bit_generator.state["bit_generator"].count("P"))(1.0)
    jit(lambda x: x + tracer.random.normal(tracer.random.key(0)))(1.0)


FIRST = """
import numpy as np, tracer
tracer.jit(lambda x: x + np.random.normal())(1.0)
"""


def test_the_first_numbers_of_a_process_warn() -> None:
    """NumPy imports its generators when they are first named."""
    root = str(Path(tracer.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", FIRST], capture_output=True, text=True, check=True, env={"PYTHONPATH": root, "PATH": ""}
    )
    assert "NumPy drew random numbers while it was traced at <string>:3" in done.stderr
