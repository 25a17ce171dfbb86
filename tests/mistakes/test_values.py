"""Mistakes with the values of traced arrays: branches, numbers, NumPy."""

from __future__ import annotations

import linecache
import math
import operator as operators
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tests.mistakes.told import X, fails
from tracer import errors, grad, jit, lax, ops, vmap

KNOWN = "its value is known only when the compiled program runs"
BRANCH = "help: lax.cond(x > 0, lambda: a, lambda: b), tnp.where(x > 0, a, b), or lax.while_loop"
STATIC = "help: mark the argument static, jit(f, static_argnums=...), or keep to array operations (lax.fori_loop, x[i])"
NUMBER = "help: keep it an array: tracer.numpy's functions in place of math's, x.astype(float) in place of float(x)"


def test_if_under_jit() -> None:
    def f(x: Any) -> Any:
        if x > 0:  # here
            return x
        return -x

    fails(
        errors.TracerBoolError,
        lambda: jit(f)(1.0),
        f"`if` on a traced value at @here\n  x > 0 is bool[], made at @here: {KNOWN}\n"
        "  help: lax.cond(x > 0, lambda: x, lambda: -x), or tnp.where(x > 0, x, -x)",
    )


def test_if_under_vmap() -> None:
    def f(x: Any) -> Any:
        return x if x > 0 else -x  # here

    fails(
        errors.TracerBoolError,
        lambda: vmap(f)(X),
        f"`if` on a traced value at @here\n  x > 0 is bool[], made at @here: {KNOWN}\n"
        "  help: lax.cond(x > 0, lambda: x, lambda: -x), or tnp.where(x > 0, x, -x)",
    )


@pytest.mark.parametrize("transform", [jit, vmap])
def test_while_under_a_transform(transform: Any) -> None:
    def f(x: Any) -> Any:
        while x < 10.0:  # here
            x = 2.0 * x
        return x

    fails(
        errors.TracerBoolError,
        lambda: transform(f)(X),
        f"`while` on a traced value at @here\n"
        f"  x < 10.0 is bool[{'3' if transform is jit else ''}], made at @here: {KNOWN}\n"
        "  help: lax.while_loop(cond, body, carry), where cond returns `x < 10.0` of the carry",
    )


def test_and_under_jit() -> None:
    def f(x: Any) -> Any:
        y = x > 0  # made
        return y and x < 1  # here

    fails(
        errors.TracerBoolError,
        lambda: jit(f)(1.0),
        f"`and` on a traced value at @here\n  bool of bool[], made at @made: {KNOWN}\n"
        "  help: tnp.logical_and(y, x < 1), on arrays of any shape",
    )


def test_or_in_an_if_under_jit() -> None:
    def f(x: Any) -> Any:
        if x < 0 or x > 1:  # here
            x = 2 * x
        return x

    fails(
        errors.TracerBoolError,
        lambda: jit(f)(1.0),
        f"`or` on a traced value at @here\n  x < 0 is bool[], made at @here: {KNOWN}\n"
        "  help: tnp.logical_or(x < 0, x > 1), on arrays of any shape",
    )


def test_not_under_jit() -> None:
    def f(x: Any) -> Any:
        return not x > 0  # here

    fails(
        errors.TracerBoolError,
        lambda: jit(f)(1.0),
        f"`not` on a traced value at @here\n  x > 0 is bool[], made at @here: {KNOWN}\n  help: tnp.logical_not(x > 0)",
    )


def test_a_chain_of_comparisons_under_jit() -> None:
    def f(x: Any) -> Any:
        return 0 < x < 1  # here

    fails(
        errors.TracerBoolError,
        lambda: jit(f)(1.0),
        f"a chain of comparisons on a traced value at @here\n  bool of bool[], made at @here: {KNOWN}\n"
        "  help: tnp.logical_and(0 < x, x < 1)",
    )


def test_an_if_in_a_comprehension_under_jit() -> None:
    def f(x: Any) -> Any:
        return [v for v in range(3) if v < x]  # here

    fails(
        errors.TracerBoolError,
        lambda: jit(f)(1.0),
        f"`if` on a traced value at @here\n  v < x is bool[], made at @here: {KNOWN}\n"
        "  help: tnp.where(v < x, a, b) on whole arrays",
    )


def test_a_branch_whose_ways_are_more_than_one_return() -> None:
    def f(x: Any) -> Any:
        if x > 0:  # here
            x = 2 * x
        return x

    fails(
        errors.TracerBoolError,
        lambda: jit(f)(1.0),
        f"`if` on a traced value at @here\n  x > 0 is bool[], made at @here: {KNOWN}\n"
        "  help: lax.cond(x > 0, lambda: a, lambda: b), or tnp.where(x > 0, a, b)",
    )


def test_max_of_python_under_jit() -> None:
    def f(x: Any) -> Any:
        return max(x, 1.0)  # here

    fails(
        errors.TracerBoolError,
        lambda: jit(f)(1.0),
        f"`if`, `while`, `and`, `not` or `assert` on a traced value at @here\n"
        f"  bool of bool[], made at @here: {KNOWN}\n  {BRANCH}",
    )


def test_assert_under_jit() -> None:
    source = "def f(x):\n    assert x >= 0\n    return x\n"  # pytest writes the asserts of this file anew
    scope: dict[str, Any] = {}
    linecache.cache["checked.py"] = (len(source), None, source.splitlines(keepends=True), "checked.py")
    exec(compile(source, "checked.py", "exec"), scope)
    with pytest.raises(errors.TracerBoolError) as caught:
        jit(scope["f"])(1.0)
    assert str(caught.value) == (
        f"`assert` on a traced value at checked.py:2\n  x >= 0 is bool[], made at checked.py:2: {KNOWN}\n"
        "  help: tracer.check(x >= 0, message) raises when it runs"
    )


def test_branching_on_an_argument_that_should_be_static() -> None:
    def f(x: Any, flag: Any) -> Any:
        return x if flag else -x  # here

    def call() -> Any:
        return jit(f)(1.0, True)  # made

    fails(
        errors.TracerBoolError,
        call,
        f"`if` on a traced value at @here\n  flag is bool[], an argument of `f` called at @made: {KNOWN}\n"
        "  help: lax.cond(flag, lambda: x, lambda: -x), or tnp.where(flag, x, -x); "
        "jit(f, static_argnums=...) makes an argument a Python value",
    )


def test_branching_on_many_elements() -> None:
    fails(
        errors.ArgumentError,
        lambda: bool(X > 0),  # here
        "bool at @here: one element is wanted\n  got bool[3]\n"
        "  help: reduce it first, as x.any(), x.all() or x.sum(), or index one element",
    )


@pytest.mark.parametrize("use", [float, math.sin])
def test_float_and_math_under_jit(use: Any) -> None:
    def f(x: Any) -> Any:
        y = x + 1.0  # made
        return use(y)  # here

    fails(
        errors.TracerFloatError,
        lambda: jit(f)(1.0),
        f"a Python number from a traced value at @here\n  float of f64*[], made at @made: {KNOWN}\n  {NUMBER}",
    )


def test_math_under_grad() -> None:
    def f(x: Any) -> Any:
        y = x + 1.0  # made
        return math.sin(y)  # here

    fails(
        errors.TracerFloatError,
        lambda: grad(f)(1.0),
        "a Python number from a traced value at @here\n"
        f"  float of f64*[], made at @made: reading its value would lose its derivative\n  {NUMBER}",
    )


def test_int_under_jit() -> None:
    def f(x: Any) -> Any:
        y = x + 1  # made
        return tnp.zeros(int(y))  # here

    fails(
        errors.TracerIntegerError,
        lambda: jit(f)(1),
        f"a Python integer from a traced value at @here\n  int of i64*[], made at @made: {KNOWN}\n  {STATIC}",
    )


def test_range_under_jit() -> None:
    def f(n: Any) -> Any:
        m = n + 1  # made
        return sum(i for i in range(m))  # here

    fails(
        errors.TracerIntegerError,
        lambda: jit(f)(3),
        f"a Python integer from a traced value at @here\n  an index of i64*[], made at @made: {KNOWN}\n  {STATIC}",
    )


def test_a_shape_from_a_traced_value() -> None:
    fails(
        errors.TracerIntegerError,
        lambda: jit(tnp.zeros)(3),  # here
        "zeros at @here: a shape must be known while tracing\n  got Array(traced, i64*[])\n"
        "  help: take it from x.shape, or mark the argument static: jit(f, static_argnums=...)",
    )


def test_numpy_array_of_a_traced_value() -> None:
    def f(x: Any) -> Any:
        y = x + 1.0  # made
        return np.asarray(y)  # here

    text = "a NumPy array from a traced value at @here\n  a NumPy array of f64[3], made at @made: "
    remedy = "  help: use tracer.numpy's function of the same name; NumPy's would lose the trace"
    fails(errors.TracerArrayError, lambda: jit(f)(X), f"{text}{KNOWN}\n{remedy}")
    fails(errors.TracerArrayError, lambda: grad(f)(X), f"{text}reading its value would lose its derivative\n{remedy}")


@pytest.mark.parametrize("kind", ["float", "int", "complex"])
@pytest.mark.parametrize("way", [jit, grad, lambda f: lambda x: lax.cond(True, f, f, x)])
def test_a_numpy_array_filled_with_traced_values(kind: str, way: Any) -> None:
    """NumPy hides the error of an element behind one of its own; the user sees ours."""

    if way is grad and kind == "int":
        return  # an integer has no derivative to lose

    def f(x: Any) -> Any:
        if kind == "float":
            y = np.zeros(3)
        else:
            y = np.ones((3,), dtype=kind)
        y[0] = tnp.sum(x)  # here
        return y

    remedy = "y = np.ones((3,), dtype=kind)".replace("np", "tnp")
    known = "reading its value would lose its derivative" if way is grad else KNOWN
    number = "Integer" if kind == "int" else "Float"
    fails(
        getattr(errors, f"Tracer{number}Error"),
        lambda: way(f)(X),
        f"a traced value is written to y[0], in a NumPy array at @here\n  the value is f64[], made at @here: {known}\n"
        f"  help: make it an array of tracer.numpy: {remedy}",
    )


def test_a_slice_of_a_numpy_array_filled_with_traced_values() -> None:
    def f(x: Any) -> Any:
        kept = np.zeros(3)[::-1]
        kept[:2] = x[:2]  # here
        return kept

    fails(
        errors.TracerArrayError,
        lambda: jit(f)(X),
        f"a traced value is written to kept[:2], in a NumPy array at @here\n"
        f"  the value is f64[2], made at @here: {KNOWN}\n"
        "  help: make it an array of tracer.numpy: kept = tnp.asarray(kept)",
    )


def test_a_value_read_on_the_right_of_a_write_is_no_write() -> None:
    def f(x: Any) -> Any:
        y = np.zeros(3)
        y[0] = float(x[0])
        return y

    with pytest.raises(errors.TracerFloatError, match="a Python number from a traced value"):
        jit(f)(X)


def test_an_if_in_a_function_that_calls_itself() -> None:
    def factorial(n: Any) -> Any:
        if n <= 1:  # here
            return 1
        return n * factorial(n - 1)

    fails(
        errors.TracerBoolError,
        lambda: jit(factorial)(5),
        f"`if` on a traced value at @here\n  n <= 1 is bool[], made at @here: {KNOWN}\n"
        "  help: lax.while_loop(cond, body, carry) in place of the calls of `factorial` in itself, which tracing would "
        "follow for ever",
    )


@pytest.mark.parametrize(
    ("write", "operator", "method"),
    [
        (lambda x: operators.setitem(x.at, 0, 5.0), "=", "set"),
        (lambda x: operators.iadd(x.at[0], 5.0), "+=", "add"),
        (lambda x: operators.imul(x.at[0], 5.0), "*=", "multiply"),
        (lambda x: operators.itruediv(x.at[0], 5.0), "/=", "divide"),
    ],
)
def test_writing_to_at(write: Any, operator: str, method: str) -> None:
    with pytest.raises(errors.MutationError) as caught:
        write(X)
    assert str(caught.value).startswith(f"x.at[i] {operator} v at test_values.py:")
    assert str(caught.value).endswith(
        f": arrays are values, and x.at makes updated copies\n  help: x = x.at[i].{method}(v), or x[i] {operator} v"
    )


def test_a_boolean_mask_under_jit() -> None:
    fails(
        errors.TracerArrayError,
        lambda: jit(lambda x: x[x > 0])(X),  # here
        "indexing with a mask at @here: the shape of the result depends on the mask's values\n"
        "  got a mask bool[3], known only when the compiled program runs\n"
        "  help: tnp.where(mask, x, 0) keeps the shape; x.at[mask].set(value) writes",
    )


def test_values_one_by_one_for_a_mask_under_jit() -> None:
    def f(x: Any) -> Any:
        x = x.copy()
        x[x > 0] = tnp.ones(2)  # here
        return x

    fails(
        errors.TracerArrayError,
        lambda: jit(f)(X),
        "x[i] = v at @here: one value for each true place of a mask needs the mask's values\n"
        "  got f64[2] for a mask bool[3], known only when the compiled program runs\n"
        "  help: tnp.where(mask, values, x), with values of x's shape; or write one value to all places",
    )


WRITES: dict[str, Any] = {
    "x[i] = v": lambda x, v: x.__setitem__(slice(1, None), v),
    **{
        f"x.at[i].{name}": lambda x, v, name=name: getattr(x.at[1:], name)(v)
        for name in ("set", "add", "subtract", "multiply", "divide", "power", "min", "max")
    },
}


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize("way", [lambda f: f, jit])
def test_errors_of_writes_speak_of_what_the_user_typed(name: str, way: Any) -> None:
    def write(x: Any, v: Any) -> Any:
        x = x.copy()
        return WRITES[name](x, v)

    for value, kind in ((np.ones(3), errors.ShapeError), (np.ones(2) * 1j, errors.DTypeError)):
        with pytest.raises(kind) as caught:
            way(write)(X, value)
        assert str(caught.value).startswith(f"{name} at test_values.py:")
        assert "x.at[i]" not in str(caught.value).removeprefix(name)


def test_errors_of_functions_that_write_speak_of_these() -> None:
    places = np.asarray([0, 1])
    for name, call in {
        "segment_sum": lambda: ops.segment_sum(np.ones((3, 2)), places),
        "put_along_axis": lambda: tnp.put_along_axis(tnp.zeros(3), places, np.ones(3), 0, inplace=False),
    }.items():
        with pytest.raises(errors.ShapeError, match=f"^{name} at test_values.py:"):
            call()
