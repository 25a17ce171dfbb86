"""The table of tracer.numpy's names: every chapter has what it promises, and users see the names alone."""

from __future__ import annotations

import doctest
import importlib
import inspect
import pickle
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tools.numpy_table import (
    CONSTANTS,
    DTYPES,
    JAX,
    NOT_TAKEN,
    NOT_TAKEN_OF_NUMPY,
    TARGET,
    not_taken_of_jax,
    not_taken_of_numpy,
    text,
)
from tracer.errors import DTypeError, ShapeError
from tracer.numpy import _CACHED, __all__
from tracer.numpy.arrays.absent import ABSENT
from tracer.scipy import stats


def test_every_name_is_there_and_dir_lists_them() -> None:
    assert len(set(__all__)) == len(__all__)
    assert dir(tnp) == sorted(__all__)
    assert not [name for name in __all__ if not hasattr(tnp, name)]
    assert set(__all__) >= _CACHED


def test_functions_are_those_of_the_namespace() -> None:
    for name in __all__:
        function = getattr(tnp, name)
        if inspect.isfunction(function):
            assert function.__module__ == "tracer.numpy", name
            assert pickle.loads(pickle.dumps(function)) is function, name


def test_other_names_of_a_function_are_that_function() -> None:
    assert tnp.abs is tnp.absolute
    assert tnp.concat is tnp.concatenate
    assert tnp.acos is tnp.arccos


def test_unknown_names_are_errors() -> None:
    with pytest.raises(AttributeError, match=r"module 'tracer\.numpy' has no attribute 'no_such_name'"):
        tnp.no_such_name  # noqa: B018


def test_first_uses_in_several_threads_give_one_function() -> None:
    program = """if True:
        import sys, threading
        import tracer.numpy as tnp
        sys.setswitchinterval(1e-6)
        found, gate = [], threading.Barrier(8)
        def read():
            gate.wait()
            found.append(tnp.polyval)
        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(found) == 8 and len(set(found)) == 1, found
    """
    subprocess.run([sys.executable, "-c", program], check=True)


# Beside JAX and NumPy


def test_every_name_of_jax_is_here_or_excused() -> None:
    missing = set(JAX.names) - set(__all__)
    assert missing <= set(ABSENT), "add it to tracer.numpy, or say in tracer/numpy/arrays/absent.py why not"


def test_every_name_of_numpy_is_here_or_says_why_not() -> None:
    for name in dir(np):
        if not name.startswith("_") and name != "core" and name not in __all__:
            with pytest.raises(AttributeError, match=rf"has no attribute '{name}' \(.+\)$"):
                getattr(tnp, name)


def test_the_version_is_the_projects() -> None:
    assert tnp.__version__ == tracer.__version__


def test_nothing_is_both_here_and_excused() -> None:
    assert not set(ABSENT).intersection(__all__)
    removed = {name for name, why in ABSENT.items() if why.startswith("NumPy has removed it; use ")}
    assert not removed.intersection(dir(np)) - {"in1d", "trapz"}  # which early releases of NumPy 2 have
    assert set(ABSENT) - set(JAX.names) - set(dir(np)) - removed <= {
        "complex192", "float96", "complex256", "float128", "row_stack",
    }  # of other platforms, and of older NumPy  # fmt: skip


def test_every_parameter_of_jax_is_taken_or_excused() -> None:
    assert set(not_taken_of_jax()) == set(NOT_TAKEN)


@each("expression", [expression for expression, _ in DTYPES])
def test_dtypes_in_the_table_differ_from_numpys(expression: str) -> None:
    call = dict(DTYPES)[expression]
    assert call(tnp).dtype != call(np).dtype


def test_the_page_is_current() -> None:
    assert TARGET.read_text(encoding="utf-8") == text(), "run python tools/numpy_table.py"


TAKING_OUT = [
    n for n in __all__ if inspect.isfunction(f := getattr(tnp, n)) and "out" in inspect.signature(f).parameters
]
ARGUMENTS = {
    "choose": ([0, 1], [[1, 2], [3, 4]]), "compress": ([True, False], [1, 2]), "take": ([1, 2], [0]),
    "einsum": ("i->i", [1.0]), "outer": ([1], [1]),
    "percentile": ([1.0], 50), "quantile": ([1.0], 0.5), "nanpercentile": ([1.0], 50), "nanquantile": ([1.0], 0.5),
    "concatenate": ([[1], [2]],), "stack": ([[1], [2]],), "dot": ([1], [1]), "matmul": ([1], [1]), "clip": ([1], 0, 1),
}  # fmt: skip


@each("name", TAKING_OUT)
def test_out_is_written_to_or_refused_and_never_ignored(name: str) -> None:
    function, arguments = getattr(tnp, name), ARGUMENTS.get(name, ([[1.0, 2.0], [3.0, 4.0]],))
    expected = function(*arguments, out=None)
    if "out" not in signature_of(getattr(np, name, None)):
        with pytest.raises(DTypeError, match=rf"^{function.__name__} at .* takes no out="):
            function(*arguments, out=np.zeros(2))
        return
    for out in (tnp.zeros_like(expected), np.zeros_like(np.asarray(expected))):
        assert function(*arguments, out=out) is out
        np.testing.assert_array_equal(out, expected)
    with pytest.raises(ShapeError, match=rf"^{function.__name__} at .*: out= must have the result's shape"):
        function(*arguments, out=tnp.zeros((7, 7), expected.dtype))


def signature_of(function: Any) -> Any:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return ("out",) if isinstance(function, np.ufunc) else ()


def test_every_parameter_of_numpy_is_taken_or_excused() -> None:
    assert set(not_taken_of_numpy()) == set(NOT_TAKEN_OF_NUMPY)


# Docstrings

PUBLIC = [
    *((tnp, name) for name in __all__ if name not in (*CONSTANTS, "fft", "lib", "linalg", "ndarray")),
    *((module, name) for module in (tnp.linalg, tnp.fft) for name in module.__all__ if name != "LinAlgError"),
]


@each(("module", "name"), PUBLIC, ids=[f"{module.__name__}.{name}" for module, name in PUBLIC])
def test_every_name_has_an_example_that_runs(module: Any, name: str) -> None:
    documented = doctest.DocTestParser().get_doctest(
        getattr(module, name).__doc__ or "", {"np": np, "tnp": tnp, "tracer": tracer}, name, None, None
    )
    assert documented.examples, "an example in its docstring, or a line of tools.numpy_table.CONSTANTS"
    assert doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE).run(documented).failed == 0


@each("name", CONSTANTS)
def test_constants_have_a_line_in_the_docs(name: str) -> None:
    assert f"\n| `{name}` | `" in TARGET.read_text(encoding="utf-8")
    assert doctest.DocTestParser().get_examples(getattr(tnp, name).__doc__ or "") == []


DISTRIBUTIONS = [name for name in stats.__all__ if inspect.ismodule(getattr(stats, name))]
MODULES = (
    "", "ad_checkpoint", "custom_batching", "custom_derivatives", "debug", "dtypes", "experimental", "flatten_util",
    "lax", "lax.linalg", "nn", "nn.initializers", "numpy.fft", "numpy.lib.stride_tricks", "numpy.linalg", "ops",
    "random", "scipy", "scipy.integrate", "scipy.linalg", "scipy.ndimage", "scipy.signal", "scipy.sparse",
    "scipy.sparse.linalg", "scipy.special", "scipy.stats", *(f"scipy.stats.{name}" for name in DISTRIBUTIONS),
    "sharding", "test_util", "tree", "tree_util", "typing",
)  # fmt: skip


@each("name", MODULES)
def test_dir_of_a_public_module_has_its_public_names_alone(name: str) -> None:
    module = importlib.import_module(f"tracer.{name}".rstrip("."))
    names = dir(module)
    assert names == sorted(set(names))
    assert [n for n in names if n.startswith("_") or not hasattr(module, n)] == []
    assert not {"Any", "annotations", "message", "np", "here", "set_boundaries"}.intersection(names)
    assert set(getattr(module, "__all__", names)) == set(names)
    assert names


def test_functions_of_elements_are_ufuncs_and_say_what_they_take() -> None:
    assert isinstance(tnp.add, tnp.ufunc)
    assert isinstance(tnp.frompyfunc(lambda x: x, 1, 1), tnp.ufunc)
    assert not isinstance(tnp.sum, tnp.ufunc)
    assert not isinstance(np.add, tnp.ufunc)
    assert (tnp.sin.types, tnp.sin.ntypes) == (["e->e", "f->f", "d->d", "F->F", "D->D"], 5)
    text = inspect.getdoc(tnp.add) or ""
    for part in (
        "x1 + x2",
        "shapes broadcast to [*s]",
        "dtype: the promoted dtype",
        "out (an Array",
        "where (the other",
        "casting",
    ):
        assert part in text
    assert "dtype: bool" in (tnp.isnan.__doc__ or "")
    assert "Integers are cast" in (tnp.divide.__doc__ or "")
    assert "(n?,k),(k,m?)->(n?,m?)" in (tnp.matmul.__doc__ or "")
    assert (tnp.abs.__doc__ or "").count("Keywords as in NumPy") == 1


MEMBERS = [name for name in dir(tnp.zeros(2)) if not name.startswith("_") and name not in ("real", "imag")]


@each("name", MEMBERS)
def test_every_member_of_arrays_has_an_example(name: str) -> None:
    member = inspect.getattr_static(tracer.Array, name)
    documented = inspect.getdoc(member) or ""
    assert doctest.DocTestParser().get_examples(documented), f"Array.{name} has no example in its docstring"


def test_functions_of_elements_say_how_many_arguments_they_have() -> None:
    for name in __all__:
        if isinstance(theirs := getattr(np, name, None), np.ufunc):
            for field in ("nin", "nout", "nargs", "identity", "signature"):
                assert getattr(getattr(tnp, name), field) == getattr(theirs, field)
