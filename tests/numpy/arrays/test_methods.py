"""The table of Array's operators, methods, properties: complete, and each as NumPy's."""

from __future__ import annotations

import ast
import collections.abc
import copy
import inspect
import math
import pickle
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
import tracer.trace.array
from tests.grids import each
from tools.jax_tables import Stored
from tracer.errors import ArgumentError, DeviceError, ShapeError, TracerFloatError
from tracer.numpy.arrays.absent_members import ABSENT_MEMBERS
from tracer.numpy.arrays.methods import CONTAINER, METHODS, OPERATORS, PROPERTIES, PROTOCOLS

X = np.linspace(-1.5, 1.5, 12).reshape(3, 4)


def test_everything_in_the_table_is_installed() -> None:
    for name, function in {**OPERATORS, **CONTAINER, **METHODS, **PROTOCOLS}.items():
        assert inspect.unwrap(vars(tracer.Array)[name]) is inspect.unwrap(function)
    for name, function in PROPERTIES.items():
        assert inspect.unwrap(vars(tracer.Array)[name].fget) is inspect.unwrap(function)


def test_type_checkers_see_what_is_installed() -> None:
    stub = Path(tracer.trace.array.__file__).with_name("surface.pyi").read_text(encoding="utf-8")
    (surface,) = [node for node in ast.parse(stub).body if isinstance(node, ast.ClassDef)]
    declared = {node.name for node in surface.body if isinstance(node, ast.FunctionDef)}
    declared |= {node.target.id for node in surface.body if isinstance(node, ast.AnnAssign)}  # type: ignore[union-attr]
    assert declared == set(OPERATORS) | set(CONTAINER) | set(METHODS) | set(PROTOCOLS) | set(PROPERTIES)


def test_every_public_name_of_ndarray_and_of_jax_s_array_is_there_or_says_why_not() -> None:
    names = {name for name in dir(np.ndarray) if not name.startswith("_")} | set(Stored(tnp).members)
    assert {name for name in names if not hasattr(tracer.Array, name)} <= set(ABSENT_MEMBERS)
    assert set(ABSENT_MEMBERS) - names == {"itemset", "newbyteorder", "tostring"}  # of older NumPy


@each("name", ABSENT_MEMBERS)
def test_absent_members_say_why(name: str) -> None:
    x = tnp.ones(2)
    reason = re.escape(f"'Array' object has no attribute '{name}' ({ABSENT_MEMBERS[name]})")
    for read in (lambda: getattr(x, name), lambda: setattr(x, name, 1), lambda: getattr(tracer.Array, name)):
        with pytest.raises(AttributeError, match=f"^{reason}$"):
            read()
    with pytest.raises(AttributeError, match=reason):
        tracer.jit(lambda x: getattr(x, name))(x)
    assert not hasattr(x, name)
    assert name not in dir(x)


def test_dir_lists_what_is_there() -> None:
    x = tnp.ones((2, 2))
    assert {"shape", "sum", "at", "T", "__getitem__"} <= set(dir(x))
    assert all(hasattr(x, name) for name in dir(x))


SAME_VALUES: dict[str, Any] = {
    "astype": lambda x: x.astype(float), "tnp.astype": lambda x: tnp.astype(x, tnp.float64), "+": lambda x: +x,
    "clip": tnp.clip, "conj": tnp.conj, "real": lambda x: x.real, "concatenate": lambda x: tnp.concatenate([x]),
    "sum": lambda x: x.sum(axis=()), "max": lambda x: x.max(()), "reshape": lambda x: x.reshape(x.shape),
    "broadcast_to": lambda x: tnp.broadcast_to(x, x.shape), "squeeze": tnp.squeeze, "copy": tnp.copy,
    "flip": lambda x: tnp.flip(x, ()), "moveaxis": lambda x: tnp.moveaxis(x, 0, 0), "ravel": lambda x: x[0].ravel(),
    "swapaxes": lambda x: x.swapaxes(0, 0), "diff": lambda x: tnp.diff(x, 0), "T": lambda x: x[0].T,
    "expand_dims": lambda x: tnp.expand_dims(x, ()), "broadcast_arrays": lambda x: tnp.broadcast_arrays(x, x)[1],
    "rot90": lambda x: tnp.rot90(x, 0), "at": lambda x: x.at[()].set(x), "full": lambda x: tnp.full(x.shape, x),
    "block": tnp.block, "vstack": lambda x: tnp.vstack([x]), "view": lambda x: x.view(float),
    "einsum": lambda x: tnp.einsum("ij->ij", x), "where": lambda x: tnp.where(True, x, x), "[...]": lambda x: x[...],
    "flatten": lambda x: x[0].flatten(), "meshgrid": lambda x: tnp.meshgrid(x[0])[0], "nan_to_num": tnp.nan_to_num,
}  # fmt: skip


@each("call", SAME_VALUES.values(), ids=SAME_VALUES)
def test_writing_to_a_result_leaves_the_argument_as_it_is(call: Any) -> None:
    def function(x: Any) -> Any:
        before = x + 0
        made = call(x)
        made[...] = 7.0
        return x, before

    x = tnp.asarray(np.arange(4.0).reshape(2, 2))
    for found, expected in (function(x), tracer.jit(function)(x), tracer.vmap(function)(x[None])):
        assert found.tolist() == expected.tolist()


def test_rounding_integers_gives_another_array() -> None:
    x = tnp.asarray([1, 2])
    for call in (tnp.round, tnp.floor, tnp.ceil, tnp.trunc, tnp.nan_to_num, tnp.conj):
        made = call(x)
        made[0] = 7
        assert x.tolist() == [1, 2]


OPERANDS = [X, (X + 2.0).astype(np.float32), 2.0, 3, np.float64(1.5), [0.5, 1.0, 1.5, 2.0]]


@pytest.mark.parametrize("other", OPERANDS, ids=lambda o: type(o).__name__)
@pytest.mark.parametrize("operator", ["+", "-", "*", "/", "//", "%", "**", "<", "<=", "==", "!=", ">", ">="])
def test_operators_are_numpys_on_either_side(operator: str, other: Any) -> None:
    ours = tnp.asarray(np.abs(X) + 0.5)
    names: dict[str, Any] = {"x": ours, "n": np.asarray(ours), "o": other}
    for expression in (f"x {operator} o", f"o {operator} x"):
        result = eval(expression, {}, names)
        with np.errstate(invalid="ignore"):
            expected = eval(expression.replace("x", "n"), {}, {**names, "o": np.asarray(other)})
        assert type(result) is tracer.Array
        np.testing.assert_allclose(np.asarray(result), expected, rtol=1e-6)


@pytest.mark.parametrize("operator", ["&", "|", "^", "<<", ">>"])
def test_bit_operators_are_numpys_on_either_side(operator: str) -> None:
    numbers = np.array([1, 2, 3])
    for expression in (f"x {operator} 2", f"2 {operator} x", f"n {operator} x", f"x {operator} n"):
        result = eval(expression, {}, {"x": tnp.asarray(numbers), "n": numbers})
        assert type(result) is tracer.Array
        np.testing.assert_array_equal(np.asarray(result), eval(expression, {}, {"x": numbers, "n": numbers}))


def test_unary_operators_and_divmod() -> None:
    x = tnp.asarray([-1.5, 2.5])
    assert (-x).tolist() == [1.5, -2.5]
    assert (+x).tolist() == [-1.5, 2.5]
    assert abs(x).tolist() == [1.5, 2.5]
    assert round(x).tolist() == [-2.0, 2.0]
    assert (~tnp.asarray([True])).tolist() == [False]
    assert [v.tolist() for v in divmod(x, 2)] == [[-1.0, 1.0], [0.5, 0.5]]
    assert [v.tolist() for v in divmod(7.0, x)] == [[-5.0, 2.0], [-0.5, 2.0]]
    assert (x @ np.ones((2, 3))).shape == (3,)
    assert type(np.ones((3, 2)) @ x) is tracer.Array


def test_comparison_with_what_is_no_array_is_pythons() -> None:
    assert (tnp.ones(2) == "a") is False
    assert (tnp.ones(2) == None) is False  # noqa: E711
    with pytest.raises(TypeError, match="unsupported operand"):
        tnp.ones(2) + "a"


@each(
    "call",
    [
        lambda x: x.reshape(4, 3),
        lambda x: x.reshape((2, -1)),
        lambda x: x.transpose(),
        lambda x: x.transpose(1, 0),
        lambda x: x.T,
        lambda x: x.mT,
        lambda x: x.sum(0),
        lambda x: x.mean(axis=1, keepdims=True),
        lambda x: x.std(ddof=1),
        lambda x: x.astype(np.int32),
        lambda x: x.flatten(),
        lambda x: x.ravel(),
        lambda x: x.dot(x.T),
        lambda x: x.conj(),
        lambda x: x.clip(0.0, 1.0),
        lambda x: x.clip(max=0.5),
        lambda x: x.any(),
        lambda x: x.all(1),
        lambda x: x.argmax(0),
        lambda x: x.round(1),
        lambda x: x.cumsum(),
        lambda x: x.swapaxes(0, 1),
        lambda x: x.take([1, 2]),
        lambda x: x.repeat(2, axis=0),
        lambda x: x.diagonal(),
        lambda x: x.trace(),
        lambda x: x.squeeze(),
        lambda x: x.real,
        lambda x: x.imag,
        lambda x: x.var(0),
        lambda x: x.prod(),
        lambda x: x.ptp() if hasattr(x, "ptp") else np.ptp(x),
        lambda x: x.copy(),
        lambda x: x.view(np.int64),
        lambda x: x.nonzero()[0],
        lambda x: x.searchsorted(0.2) if x.ndim == 1 else x[0].searchsorted(0.2),
    ],
)
def test_methods_are_numpys(call: Any) -> None:
    result = call(tnp.asarray(X))
    assert type(result) is tracer.Array
    np.testing.assert_allclose(np.asarray(result), call(X), rtol=1e-14)


def test_arrays_are_not_hashable() -> None:
    x = tnp.ones(2)
    assert not isinstance(x, collections.abc.Hashable)
    assert isinstance(x, collections.abc.Collection)
    with pytest.raises(TypeError, match="unhashable type: 'Array'"):
        hash(x)
    with pytest.raises(TypeError, match="unhashable type: 'Array'"):
        tracer.jit(lambda x: {x: 1})(x)


def test_properties_say_what_the_array_is() -> None:
    x = tnp.zeros((2, 3), "float32")
    assert (x.itemsize, x.nbytes, x.size, x.ndim, len(x)) == (4, 24, 6, 2, 2)
    assert x.devices() == {x.device}
    assert x.to_device("cpu") is x
    assert x.block_until_ready() is x
    with pytest.raises(DeviceError):
        x.to_device("tpu")


def test_items_and_lists() -> None:
    x = tnp.arange(6).reshape(2, 3)
    assert (x.item(5), x.item(1, 2), x[0, 1].item()) == (5, 5, 1)
    assert x.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert [row.tolist() for row in x] == x.tolist()
    assert 5 in x
    assert 6 not in x
    assert x.tobytes() == np.asarray(x).tobytes()
    with pytest.raises(ArgumentError, match="has no elements"):
        iter(tnp.asarray(1.0))
    assert [float(v) for v in tracer.jit(lambda x: [2 * row for row in x])(np.arange(3.0))] == [0.0, 2.0, 4.0]


def test_formats() -> None:
    assert f"{tnp.asarray(3.14159):.2f} {tnp.asarray(7):03d} {tnp.arange(2)}" == "3.14 007 [0 1]"
    with pytest.raises(TracerFloatError, match=r"tracer\.debug\.print prints when the compiled program runs"):
        tracer.jit(lambda x: f"{x:.2f}")(1.0)


def test_pickles_and_copies_keep_everything() -> None:
    for x in (tnp.arange(3.0), tnp.asarray(1.0), tnp.ones(2, "bfloat16"), tracer.random.split(tracer.random.key(1))):
        for y in (pickle.loads(pickle.dumps(x)), copy.copy(x), copy.deepcopy(x)):
            assert y is not x
            assert y.type == x.type
            assert repr(y) == repr(x)
    with pytest.raises(ArgumentError, match="a traced array cannot leave its function"):
        tracer.jit(pickle.dumps)(1.0)


def test_a_copy_is_written_to_alone() -> None:
    x = tnp.zeros(2)
    y = copy.copy(x)
    y[0] = 1.0
    assert x.tolist() == [0.0, 0.0]


def test_what_is_assigned_to_attributes_says_what_to_write() -> None:
    x = tnp.arange(6)
    with pytest.raises(AttributeError, match=r"'shape' of 'Array' object has no setter .* x = x.reshape\(shape"):
        x.shape = (2, 3)  # type: ignore[misc]
    with pytest.raises(AttributeError, match="which nothing changes in place"):
        x.real = 1.0  # type: ignore[misc]
    assert x.shape == (6,)


@pytest.mark.parametrize("name", ["__add__", "__rsub__", "__matmul__", "__lt__", "__rpow__"])
def test_help_of_operators_names_them_and_has_an_example(name: str) -> None:
    member = getattr(tracer.Array, name)
    assert member.__name__ == name
    assert member.__doc__.startswith("With the operands exchanged. ") == name.startswith("__r")
    assert ">>> " in member.__doc__


def test_sort_gives_another_array_whoever_takes_the_result() -> None:
    """What a caller does with it changes nothing: C code calls methods on behalf of whole statements."""
    x, kept = tnp.asarray([3, 1, 2]), []
    assert x.sort().tolist() == [1, 2, 3]
    kept.extend(map(type(x).sort, [x]))
    x.sort()
    assert x.tolist() == [3, 1, 2]
    assert [y.tolist() for y in kept] == [[1, 2, 3]]
    assert tracer.jit(lambda x: x.sort())(np.asarray([3, 1])).tolist() == [1, 3]


VIEWED = ("?", "u1", "i2", "f4", "f8", "c8", "c16")


@pytest.mark.parametrize("given", VIEWED)
def test_views_as_other_dtypes_are_numpys(given: str) -> None:
    for shape in ((2, 16), (3,), (2, 0), ()):
        x = (np.arange(math.prod(shape)) % 60).reshape(shape).astype(given)
        for wanted in VIEWED:
            for run in (lambda f: f, tracer.jit):
                called = run(lambda x, wanted=wanted: x.view(wanted))
                try:
                    expected = x.view(wanted)
                except ValueError:
                    with pytest.raises(ShapeError, match=r"^view at "):
                        called(tnp.asarray(x))
                    continue
                found = called(tnp.asarray(x))
                assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
                if wanted == "?":  # NumPy's keep bytes above 1
                    expected = expected.view("u1") != 0
                assert found.tobytes() == expected.tobytes()


def test_a_view_of_floats_as_complex_numbers_has_a_derivative() -> None:
    gradient = tracer.grad(lambda x: (x.view(complex) ** 2).real.sum())(tnp.asarray([3.0, 5.0]))
    np.testing.assert_array_equal(gradient, [6.0, -10.0])
