"""The mistakes that newcomers make, and what they are told: whole messages, with the line of the mistake.

`# here` marks the line that a message names, `# made` the line where the array in question was made.
"""

from __future__ import annotations

import functools
import importlib.util
import inspect
import linecache
import math
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import errors, grad, jit, jvp, lax, linear_transpose, random, vjp, vmap

PACKAGE = str(Path(tracer.__file__).parent)
X = tnp.arange(3.0)


def fails(kind: type[Exception], mistake: Callable[[], Any], expected: str) -> None:
    """The mistake raises this very error, and the innermost frame outside the package is in this file."""
    with pytest.raises(kind) as caught:
        mistake()
    assert type(caught.value) is kind
    lines, first = inspect.getsourcelines(sys._getframe(1).f_code)
    for mark in ("here", "made"):
        found = [number for number, text in enumerate(lines, first) if text.rstrip().endswith(f"# {mark}")]
        if found:
            expected = expected.replace(f"@{mark}", f"test_mistakes.py:{found[0]}")
    assert str(caught.value) == expected
    theirs = [frame.filename for frame in traceback.extract_tb(caught.tb) if not frame.filename.startswith(PACKAGE)]
    assert theirs[-1] == __file__


KNOWN = "its value is known only when the compiled program runs"
BRANCH = "help: lax.cond(x > 0, lambda: a, lambda: b), tnp.where(x > 0, a, b), or lax.while_loop"
STATIC = "help: mark the argument static, jit(f, static_argnums=...), or keep to array operations (lax.fori_loop, x[i])"
NUMBER = "help: keep it an array: tracer.numpy's functions in place of math's, x.astype(float) in place of float(x)"
DTYPES = (
    "help: the dtypes are bool, int8 to int64, uint8 to uint64, float16, bfloat16, float32, float64, "
    "float8_e4m3fn, float8_e5m2, complex64 and complex128"
)

# Values of traced arrays


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
        "  help: lax.while_loop(cond, body, carry), with `x < 10.0` as what cond returns of the carry",
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


def test_a_numpy_array_filled_with_traced_values() -> None:
    """NumPy hides the error of an element behind one of its own; ours is its cause."""

    def f(x: Any) -> Any:
        out = np.zeros(3)
        out[0] = x
        return out

    with pytest.raises(ValueError, match="setting an array element with a sequence") as caught:
        jit(f)(1.0)
    assert type(caught.value.__cause__) is errors.TracerFloatError


def test_a_boolean_mask_under_jit() -> None:
    fails(
        errors.TracerArrayError,
        lambda: jit(lambda x: x[x > 0])(X),  # here
        "indexing with a mask at @here: the shape of the result depends on the mask's values\n"
        "  got a mask bool[3], known only when the compiled program runs\n"
        "  help: tnp.where(mask, x, 0) keeps the shape; x.at[mask].set(value) writes",
    )


# Leaks and mutation


@pytest.mark.parametrize(
    "use",
    [lambda y: y + 1, float, bool, np.asarray, jit(tnp.sin), lambda y: y.sum(), lambda y: y.copy(), tnp.max],
)
def test_a_traced_array_kept_in_a_global(use: Any) -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        y = x * 2  # made
        kept.append(y)
        return y

    def reuse() -> Any:
        jit(f)(1.0)
        return use(kept[0])

    with pytest.raises(errors.LeakedTracerError) as caught:
        reuse()
    lines, first = inspect.getsourcelines(f)
    assert str(caught.value).partition("\n")[2] == (
        f"  an array f64*[], `y` made at test_mistakes.py:{first + 1} while `f` was traced, outlived its trace\n"
        "  help: return it from the function instead of storing it in a global, a closure or an object"
    )
    assert lines[1].endswith("# made\n")


@pytest.mark.parametrize("run", [lambda f: grad(f)(1.0), lambda f: jvp(f, (1.0,), (1.0,))])
def test_a_differentiated_array_kept_in_a_global(run: Any) -> None:
    kept: list[Any] = []

    def f(x: Any) -> Any:
        y = x * 2  # made
        kept.append(y)
        return y * y

    run(f)
    fails(
        errors.LeakedTracerError,
        lambda: kept[0] + 1,  # here
        "leaked traced array at @here\n"
        "  an array f64*[], `y` made at @made while `f` was traced, outlived its trace\n"
        "  help: return it from the function instead of storing it in a global, a closure or an object",
    )


@pytest.mark.parametrize("run", [jit, vmap, grad])
def test_writing_to_an_argument(run: Any) -> None:
    def f(x: Any) -> Any:
        x[...] = 1.0  # here
        return x.sum()

    fails(
        errors.MutationError,
        lambda: run(f)(tnp.arange(3.0)),
        "x[i] = v at @here: the current trace does not own this array (an argument of the traced function)\n"
        f"  got f64[{'' if run is vmap else '3'}]\n"
        "  help: write to a copy, x = x.copy(), or use x = x.at[i].set(v)",
    )


def test_writing_to_a_captured_array() -> None:
    x = tnp.arange(3.0)

    def f(v: Any) -> Any:
        x[0] = v  # here
        return x

    fails(
        errors.MutationError,
        lambda: jit(f)(1.0),
        "x[i] = v at @here: the current trace does not own this array (made outside it)\n  got f64[3]\n"
        "  help: write to a copy, x = x.copy(), or use x = x.at[i].set(v)",
    )


def test_deleting_an_element() -> None:
    def delete() -> None:
        x = tnp.arange(3.0)
        del x[0]  # here

    fails(
        errors.MutationError,
        delete,
        "del x[i] at @here: arrays keep their size\n  got f64[3]\n  help: x = tracer.numpy.delete(x, i)",
    )


# Indices and shapes


@pytest.mark.parametrize("run", [lambda f: f, jit])
def test_an_index_out_of_bounds(run: Any) -> None:
    fails(
        errors.OutOfBoundsError,
        lambda: run(lambda x, i: x[i])(X, 10),  # here
        "index 10 is out of bounds for axis 0 with size 3, at @here\n"
        '  help: index within bounds, or say what to do beyond them, x.at[i].get(mode="clip") or mode="fill"',
    )


def test_indices_that_are_none() -> None:
    fails(
        errors.ArgumentError,
        lambda: X[1.0],  # here
        "indexing at @here: an index is an integer, a slice, an array of integers or bools, None or ...\n"
        "  got float: 1.0\n  help: cast it with int(...)",
    )


def test_too_many_indices() -> None:
    fails(
        errors.OutOfBoundsError,
        lambda: X[0, 1],  # here
        "indexing at @here: too many indices\n  got 2 for an array of shape [3]\n"
        "  help: one index an axis; None and ... do not count",
    )


def test_matrices_that_do_not_fit() -> None:
    w = tnp.ones((4, 2))
    fails(
        errors.ShapeError,
        lambda: X @ w,  # here
        "matmul at @here: the last axis of the first and the last but one of the second must have equal sizes\n"
        "  got f64[3] and f64[4,2]\n  help: transpose one of them, or see tensordot and einsum for other axes",
    )


def test_shapes_that_do_not_broadcast() -> None:
    fails(
        errors.ShapeError,
        lambda: X + np.ones(4),  # here
        "add at @here: shapes [3], [4] do not broadcast together\n  axis -1 has sizes 3 and 4\n"
        "  help: sizes must be equal, or one of them 1; reshape or slice the operands",
    )


def test_concatenating_different_shapes() -> None:
    fails(
        errors.ShapeError,
        lambda: tnp.concatenate([X, tnp.ones((2, 2))]),  # here
        "concatenate at @here: shapes must agree but for axis 0\n  got f64[3], f64[2,2]\n"
        "  help: reshape, pad or slice the operands",
    )


def test_concatenating_without_a_list() -> None:
    fails(
        errors.ShapeError,
        lambda: tnp.concatenate(X, X),  # here
        "concatenate at @here: an array without axes cannot be joined\n  got f64[], f64[], f64[]\n"
        "  help: the arrays go together in a list, concatenate([a, b]); stack joins along a new axis",
    )


def test_reshaping_to_another_size() -> None:
    fails(
        errors.ShapeError,
        lambda: X.reshape(2, 2),  # here
        "reshape at @here: a reshape keeps the number of elements\n  got f64[3], 3 elements, to [2,2], 4\n"
        "  help: pad or slice the operand, or correct the sizes",
    )


def test_an_axis_that_is_not_there() -> None:
    fails(
        errors.AxisError,
        lambda: X.sum(axis=1),  # here
        "sum at @here: axis 1 is out of range for 1 axes\n  help: axes run from -1 to 0",
    )


def test_an_axis_that_is_no_integer() -> None:
    fails(
        errors.ArgumentError,
        lambda: X.sum(axis=0.0),  # here
        "sum at @here: an axis is an integer\n  got 0.0",
    )


def test_sizes_that_are_not_in_a_tuple() -> None:
    fails(
        errors.DTypeError,
        lambda: tnp.zeros(2, 3),  # here
        "zeros at @here: an integer stands where the dtype belongs\n  got 3\n"
        "  help: several sizes or elements go together, as in zeros((2, 3))",
    )


# Derivatives


@pytest.mark.parametrize("run", [lambda f: f, jit])
def test_grad_of_a_function_of_many_results(run: Any) -> None:
    def f(x: Any) -> Any:
        return 2.0 * x

    fails(
        errors.ShapeError,
        lambda: run(grad(f))(X),  # here
        "grad of f at @here: the function must return a scalar\n  got f64[3]\n"
        "  help: reduce it, as with .sum() or .mean(); jacrev and jacfwd differentiate arrays",
    )


def test_grad_of_an_integer() -> None:
    fails(
        errors.DTypeError,
        lambda: grad(lambda x: x * x)(2),  # here
        "grad of lambda at @here: argument 0 has no gradient\n  expected a floating or complex dtype, got i64*[]\n"
        "  help: pass a float, as 2.0 for 2, or cast with .astype(float); allow_int=True gives float0",
    )


def test_grad_of_a_function_that_returns_an_integer() -> None:
    fails(
        errors.DTypeError,
        lambda: grad(lambda x: (x > 0).sum())(X),  # here
        "grad of lambda at @here: the function must return a real float\n  got i64[]\n"
        "  help: cast it with .astype(float)",
    )


def test_grad_of_a_function_that_returns_a_tuple() -> None:
    fails(
        errors.ArgumentError,
        lambda: grad(lambda x: (x, x))(1.0),  # here
        "grad of lambda at @here: the function must return one scalar\n  got (*, *)\n"
        "  help: return the loss alone; has_aux=True takes (loss, aux), and jacrev takes trees",
    )


def test_grad_of_a_function_that_forgot_to_return() -> None:
    fails(
        errors.ArgumentError,
        lambda: grad(lambda x: None)(1.0),  # here
        "grad of lambda at @here: the function must return one scalar\n  got None\n"
        "  help: return the loss: is there a `return`?",
    )


def test_argnums_out_of_range() -> None:
    fails(
        errors.ArgumentError,
        lambda: grad(lambda x: x * x, argnums=1)(1.0),  # here
        "grad at @here: argnums names argument 1\n  the call has 1 positional argument\n"
        "  help: pass the differentiated arguments by position",
    )


def test_the_argument_given_to_grad() -> None:
    fails(
        errors.ArgumentError,
        lambda: grad(tnp.sin, 2.0),  # here
        "grad at @here: argnums takes integers\n  got 2.0\n"
        "  help: count the arguments from 0; they go to the result: grad(f)(x)",
    )


@pytest.mark.parametrize("transform", [grad, jit, vmap])
def test_transforming_a_result(transform: Any) -> None:
    name = transform.__name__
    fails(
        errors.ArgumentError,
        lambda: transform(tnp.sin(1.0)),  # here
        f"{name} at @here takes a function\n  got Array\n"
        f"  help: pass the function itself, as in {name}(f), and call the result: {name}(f)(x)",
    )


def test_cotangents_of_another_structure() -> None:
    _, pullback = vjp(lambda x: (x, x), X)
    fails(
        errors.ArgumentError,
        lambda: pullback(X),  # here
        "cotangents of lambda at @here must have the structure of what they belong to\n  expected (*, *)\n  got *\n"
        "  help: one leaf for each array, in the same containers",
    )


def test_tangents_of_another_type() -> None:
    fails(
        errors.ArgumentError,
        lambda: jvp(tnp.sin, (X,), (tnp.ones(3, "float32"),)),  # here
        "tangents of sin at @here: tangents[0] has the wrong type\n  expected f64[3], got f32[3]\n"
        "  help: tangents and cotangents have the shape and dtype of the values they belong to",
    )


def test_jvp_without_tuples() -> None:
    fails(
        errors.ArgumentError,
        lambda: jvp(tnp.sin, X, X),  # here
        "jvp at @here takes tuples of primals and tangents\n  got Array and Array\n"
        "  help: jvp(f, (x,), (dx,)) for a function of one argument",
    )


def test_custom_jvp_whose_rule_returns_no_pair() -> None:
    @tracer.custom_jvp
    def f(x: Any) -> Any:
        return x

    f.defjvp(lambda primals, tangents: primals[0])
    fails(
        errors.ArgumentError,
        lambda: tracer.grad(f)(1.0),  # here
        "custom_jvp f at @here: the rule returns a pair (outputs, tangents)\n"
        "  got *\n"
        "  help: rule(primals, tangents): return f(*primals), the tangents of its outputs",
    )


def test_custom_vjp_without_a_rule() -> None:
    @tracer.custom_vjp
    def f(x: Any) -> Any:
        return x

    fails(
        errors.ArgumentError,
        lambda: f(1.0),  # here
        "custom_vjp f at @here has no rule yet\n  help: define it with f.defvjp(...)",
    )


def test_a_backward_function_that_returns_too_few() -> None:
    @tracer.custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x * y

    f.defvjp(lambda x, y: (x * y, None), lambda _, g: (g,))
    fails(
        errors.ArgumentError,
        lambda: grad(f)(1.0, 2.0),  # here
        "custom_vjp f at @here: the backward function must return a tuple, one entry an argument\n"
        "  expected 2, got tuple of 1\n"
        "  help: a function of one argument returns (gradient,); None stands for no gradient",
    )


def test_a_backward_function_that_takes_too_few() -> None:
    @tracer.custom_vjp
    def f(x: Any) -> Any:
        return x

    backward: Any = lambda g: (g,)  # noqa: E731
    f.defvjp(lambda x: (x, None), backward)
    fails(
        errors.ArgumentError,
        lambda: grad(f)(1.0),  # here
        "the backward function of custom_vjp f at @here is called with 2 arguments\n"
        f"  {backward.__qualname__}() takes 1 positional argument but 2 were given\n"
        "  help: give the function these parameters",
    )


def test_jvp_of_a_custom_vjp() -> None:
    @tracer.custom_vjp
    def f(x: Any) -> Any:
        return x

    f.defvjp(lambda x: (x, None), lambda _, g: (g,))
    fails(
        errors.NoRuleError,
        lambda: jvp(f, (1.0,), (1.0,)),  # here
        "derivative of custom_vjp at @here: a custom_vjp function has a reverse rule only; "
        "use custom_jvp, or grad and vjp",
    )


# vmap


def test_vmap_over_different_sizes() -> None:
    fails(
        errors.ArgumentError,
        lambda: vmap(lambda p: p["w"] * p["b"])({"w": X, "b": tnp.ones(4)}),  # here
        "vmap of lambda at @here: the mapped axes have different sizes\n"
        "  argument 0, p['b'] has size 4\n  argument 0, p['w'] has size 3\n"
        "  help: sizes must agree; an argument that is the same for every example takes in_axes=None",
    )


def test_in_axes_of_the_wrong_length() -> None:
    fails(
        errors.ArgumentError,
        lambda: vmap(lambda a, b: a * b, in_axes=(0,))(X, X),  # here
        "vmap of lambda at @here: in_axes has one entry an argument\n  got 1 for 2 positional arguments\n"
        "  help: give one entry for each positional argument, or a single one for all",
    )


def test_in_axes_out_of_range() -> None:
    fails(
        errors.AxisError,
        lambda: vmap(lambda a, b: a * b)(X, 2.0),  # here
        "vmap of lambda at @here: in_axes names an axis that is not there\n  axis 0 of argument 1, f64*[]\n"
        "  help: an argument that is the same for every example takes in_axes=None",
    )


def test_in_axes_of_another_structure() -> None:
    fails(
        errors.ArgumentError,
        lambda: vmap(lambda a, b: a * b, in_axes={"a": 0})(X, X),  # here
        "in_axes of vmap of lambda at @here must be a prefix of the tree that it describes\n"
        "  got {'a': 0} for (*, *)\n"
        "  help: give one integer or None for the whole tree, or a tree of them with the same outer structure",
    )


def test_in_axes_that_are_no_integers() -> None:
    fails(
        errors.ArgumentError,
        lambda: vmap(lambda a, b: a * b, in_axes="01")(X, X),  # here
        "vmap of lambda at @here: in_axes takes integers and None\n  got '01' for argument 0",
    )


def test_out_axes_out_of_range() -> None:
    fails(
        errors.AxisError,
        lambda: vmap(lambda a: a, out_axes=3)(X),  # here
        "vmap of lambda at @here: out_axes names an axis that is not there\n  axis 3 of an output f64[3]\n"
        "  help: out_axes runs from -1 to 0 here",
    )


# Arguments of jit


def test_a_static_argument_without_a_hash() -> None:
    fails(
        errors.ArgumentError,
        lambda: jit(lambda x, n: x * n[0], static_argnums=1)(X, [3]),  # here
        "jit of lambda at @here: the static argument 1 'n' cannot be hashed\n  got list: [3]\n"
        "  help: static arguments are compared by == and hash: pass a tuple, a string or a frozen dataclass, "
        "or leave it out of static_argnums to have it traced",
    )


def test_a_static_name_that_is_no_parameter() -> None:
    fails(
        errors.ArgumentError,
        lambda: jit(lambda x, n: x * n, static_argnames="m"),  # here
        "jit of lambda at @here: static_argnames names 'm'\n  the function has x, n\n"
        "  help: name a parameter of the function",
    )


def test_a_string_argument() -> None:
    fails(
        errors.ArgumentError,
        lambda: jit(lambda p: p["w"])({"w": X, "name": "layer"}),  # here
        "jit of lambda at @here: argument 0, p['name'] is no array\n  got str: 'layer'\n"
        "  help: leave it out of the traced arguments: mark it static (static_argnums, static_argnames)",
    )


def test_a_string_result() -> None:
    fails(
        errors.ArgumentError,
        lambda: jit(lambda x: (x, "done"))(X),  # here
        "jit of lambda at @here returned what is no array\n  got str\n"
        "  help: return arrays and numbers, or trees of them",
    )


# Loops and branches


def test_a_scan_that_changes_the_type_of_its_carry() -> None:
    def step(u: Any, x: Any) -> Any:
        return u.astype("float64") + x, None

    fails(
        errors.CarryTypeError,
        lambda: lax.scan(step, tnp.zeros(2, "float32"), tnp.ones((3, 2))),  # here
        "scan at @here\n  carry 'u' enters as f32[2] but the body returns f64[2]\n"
        '  help: cast the result, u.astype("float32"), or start from a float64 carry',
    )


def test_a_while_loop_that_changes_the_type_of_its_carry() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.while_loop(lambda u: u.sum() < 3, lambda u: u.astype("float64"), tnp.ones(64, "float32")),  # here
        "while_loop at @here\n  carry 'u' enters as f32[64] but the body returns f64[64]\n"
        '  help: cast the result, u.astype("float32"), or start from a float64 carry',
    )


def test_a_fori_loop_that_changes_the_type_of_its_carry() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.fori_loop(0, 5, lambda i, u: (u[0] + 1, u[1] * 0.5), (0, tnp.arange(3))),  # here
        "fori_loop at @here\n  carry 'u[1]' enters as i64[3] but the body returns f64*[3]\n"
        '  help: cast the result, u[1].astype("int64"), or start from a float64 carry',
    )


def test_a_body_that_changes_the_structure_of_its_carry() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.while_loop(lambda s: s[0] < 3, lambda s: s[0] + 1, (0, 1.0)),  # here
        "while_loop at @here\n  carry 's' enters as (*, *) but the body returns *\n"
        "  help: return the structure that the body takes",
    )


def test_a_body_that_forgot_to_return() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.fori_loop(0, 5, lambda i, t: None, 0.0),  # here
        "fori_loop at @here\n  carry 't' enters as * but the body returns None\n"
        "  help: return the new carry: is there a `return`?",
    )


def test_a_body_with_too_few_parameters() -> None:
    body: Any = lambda t: t  # noqa: E731
    fails(
        errors.ArgumentError,
        lambda: lax.fori_loop(0, 5, body, 0.0),  # here
        "the body of fori_loop at @here is called with 2 arguments\n"
        f"  {body.__qualname__}() takes 1 positional argument but 2 were given\n"
        "  help: give the function these parameters",
    )


def test_a_scan_body_that_returns_no_pair() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.scan(lambda c, v: c + v, 0.0, X),  # here
        "scan at @here: the body must return a pair (carry, y)\n  got *\n"
        "  help: return (carry, None) where there is nothing to stack",
    )


def test_a_condition_of_many_elements() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.while_loop(lambda u: u < 3, lambda u: u + 1, X),  # here
        "while_loop at @here: the condition must return one bool[]\n  got bool[3]\n"
        "  help: compare, or reduce with .any() or .all()",
    )


def test_branches_of_different_shapes() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.cond(X.sum() > 0, lambda v: v, lambda v: v[0], X),  # here
        "cond at @here\n  true_fun returns f64[3] but false_fun returns f64[]\n"
        "  help: cast or reshape the results of one, so that all agree",
    )


def test_branches_of_different_structures() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.cond(X.sum() > 0, lambda v: (v, v), lambda v: v, X),  # here
        "cond at @here\n  true_fun returns (*, *) but false_fun returns *\n"
        "  help: return the same structure from every branch",
    )


def test_branches_that_are_values() -> None:
    fails(
        errors.ArgumentError,
        lambda: lax.cond(X.sum() > 0, X, -X),  # here
        "cond at @here takes a function\n  got Array\n  help: pass the function itself, not the result of a call",
    )


def test_trees_of_different_structures() -> None:
    fails(
        errors.ArgumentError,
        lambda: tracer.tree.map(lambda a, b: a + b, {"w": X}, {"v": X}),  # here
        "tree.map at @here: the trees have different structures\n  got {'w': *} and {'v': *}\n"
        "  help: every tree must have the structure of the first",
    )


# Values that are no arrays


def test_a_dtype_that_does_not_exist() -> None:
    fails(
        errors.DTypeError,
        lambda: tnp.zeros(3, "float33"),  # here
        f"zeros at @here: no such dtype\n  got 'float33'\n  {DTYPES}",
    )


@pytest.mark.parametrize(("value", "dtype"), [(["a", "b"], "<U1"), (np.array([1, "a"], object), "object")])
def test_strings_and_objects(value: Any, dtype: str) -> None:
    fails(
        errors.DTypeError,
        lambda: tnp.asarray(value),  # here
        f"asarray at @here: an argument has a dtype that tracer does not compute with\n  got {dtype}\n"
        "  help: cast it to a bool, integer, float or complex dtype first",
    )


def test_none_among_numbers() -> None:
    fails(
        errors.ArgumentError,
        lambda: tnp.asarray([1.0, None]),  # here
        "asarray at @here: the list holds what is no number\n  got NoneType: None\n"
        "  help: lists hold numbers and arrays, nested to one depth; NaN may stand for what is missing",
    )


def test_ragged_lists() -> None:
    fails(
        errors.ShapeError,
        lambda: tnp.asarray([[1.0, 2.0], [3.0]]),  # here
        "asarray at @here: the elements of a list must have equal shapes\n  got a list of 2, a list of 1\n"
        "  help: pad them, or keep a list of arrays",
    )


def test_an_argument_that_is_no_array() -> None:
    fails(
        errors.ArgumentError,
        lambda: tnp.sin("a"),  # here
        "sin at @here: an argument is no array\n  got str: 'a'\n  help: pass an array, a number or a list of them",
    )


def test_a_missing_key() -> None:
    fails(
        errors.ArgumentError,
        lambda: random.normal((3,)),  # here
        "random.normal at @here takes a key first\n  got tuple\n  help: make one with tracer.random.key(seed)",
    )


def test_a_seed_that_is_no_integer() -> None:
    fails(
        errors.ArgumentError,
        lambda: random.key(0.5),  # here
        "random.key at @here: the seed is an integer\n  got f64*[]\n  help: cast it to int",
    )


def test_a_key_used_as_a_number() -> None:
    key = random.key(0)
    fails(
        errors.DTypeError,
        lambda: key + 1,  # here
        "add at @here: random keys are no numbers\n  help: tracer.random's functions take keys",
    )
    with pytest.raises(errors.ArgumentError, match=r"float at .*: a random key is no number"):
        float(key)


def test_calling_an_array() -> None:
    fails(TypeError, lambda: X(1), "'Array' object is not callable")


@pytest.mark.parametrize("use", [lambda x: {x: 1}, functools.lru_cache(lambda x: x)])
def test_hashing_an_array(use: Any) -> None:
    with pytest.raises(errors.ArgumentError, match=r"hash at test_mistakes.py:.*: arrays are not hashable") as caught:
        use(X)
    assert str(caught.value).endswith("\n  help: hash x.tobytes(), or use id(x)")


def test_a_method_that_does_not_exist(capsys: pytest.CaptureFixture[str]) -> None:
    """Python itself adds the near name when it shows the error: `Array` has no `__getattr__` to slow it down."""
    with pytest.raises(AttributeError) as caught:
        _ = X.reshap
    sys.__excepthook__(caught.type, caught.value, None)
    shown = capsys.readouterr().err.splitlines()[-1]
    assert shown == "AttributeError: 'Array' object has no attribute 'reshap'. Did you mean: 'reshape'?"


# Devices and settings


def test_a_gpu_that_is_not_there() -> None:
    missing = "whole programs do not run on GPUs yet"
    if importlib.util.find_spec("cupy") is None:
        missing = f"CuPy is not installed (the extra tracer[cuda]); and {missing}"
    fails(
        errors.DeviceError,
        lambda: tracer.device_put(X, "cuda:0"),  # here
        f"device_put at @here: no device 'cuda:0'\n  {missing}\n"
        "  help: jit(f).lower(x).cuda() shows the kernels that a program would have",
    )


def test_cuda_of_an_architecture_that_does_not_exist() -> None:
    fails(
        errors.DeviceError,
        lambda: jit(tnp.sin).lower(X).cuda(arch="ampere"),
        'cuda: no architecture \'ampere\'\n  help: name one such as "sm_80" or "sm_90"',
    )


@pytest.mark.parametrize(
    "change", [lambda: setattr(tracer.config, "x64", True), lambda: tracer.config.update("x64", True)]
)
def test_a_setting_that_does_not_exist(change: Any) -> None:
    fails(
        errors.SettingError,
        change,
        "config has no setting 'x64'\n"
        "  help: there are default_float, threads, deterministic, default_device, cache_dir, cache_size, loop_memory",
    )


def test_turning_off_64_bits() -> None:
    fails(
        errors.SettingError,
        lambda: tracer.config.update("jax_enable_x64", False),
        "config: jax_enable_x64 cannot be turned off\n"
        "  float64 and int64 are always there, and nothing is narrowed silently\n"
        '  help: for float32 models, config.default_float = "float32"',
    )


def test_an_associative_scan_whose_function_changes_types() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.associative_scan(lambda a, b: {"m": a["m"] > b["m"]}, {"m": X}),  # here
        "associative_scan at @here\n  \"elems['m']\" goes in as f64[1] but fn returns bool[1]\n"
        "  help: fn works on many pairs at once, along the axis, and keeps shapes and dtypes",
    )


def test_an_associative_scan_whose_function_changes_the_structure() -> None:
    fails(
        errors.CarryTypeError,
        lambda: lax.associative_scan(lambda a, b: (a, b), X),  # here
        "associative_scan at @here: fn must return what it takes\n  expected *, got (*, *)",
    )


def test_an_associative_scan_of_different_lengths() -> None:
    fails(
        errors.ShapeError,
        lambda: lax.associative_scan(lambda a, b: a, (X, tnp.ones(4))),  # here
        "associative_scan at @here: the axes differ in size\n  elems[0] has size 3\n  elems[1] has size 4\n"
        "  help: slice or pad them",
    )


def test_a_bound_of_a_loop_that_is_an_array() -> None:
    fails(
        errors.ArgumentError,
        lambda: lax.fori_loop(0, X, lambda i, c: c, 0),  # here
        "fori_loop at @here: the bounds are integers without axes\n  got i64*[] and f64[3]\n"
        "  help: see while_loop for other conditions",
    )


def test_a_batch_size_that_is_none_of_a_batch() -> None:
    fails(
        errors.ArgumentError,
        lambda: lax.map(lambda v: v, X, batch_size=0),  # here
        "map at @here: batch_size is a positive integer\n  got 0\n  help: None takes one at once",
    )


def test_transposing_what_is_not_linear() -> None:
    fails(
        errors.NoRuleError,
        lambda: linear_transpose(lambda x: x * x, X)(X),  # here
        "transpose of mul at @here: it is linear in each operand, but not in both together\n"
        "  help: vjp differentiates what is not linear",
    )


def test_a_gradient_of_another_shape() -> None:
    f = tracer.custom_vjp(lambda p: p["w"][0].sum() * p["b"])
    f.defvjp(lambda p: (f(p), p), lambda p, g: ({"w": (g * p["w"][0][:2],), "b": g},))
    fails(
        errors.ArgumentError,
        lambda: grad(f)({"w": (X,), "b": 2.0}),  # here
        "custom_vjp lambda at @here: the gradient of argument 0, at ['w'][0] has the wrong type\n"
        "  expected f64[3], got f64[2]\n  help: it has the shape and dtype of the value that it belongs to",
    )


def test_a_gradient_of_another_structure() -> None:
    f = tracer.custom_vjp(lambda p: p["w"] * p["b"])
    f.defvjp(lambda p: (f(p), p), lambda p, g: ({"w": g, "bias": g},))
    fails(
        errors.ArgumentError,
        lambda: grad(f)({"w": 1.0, "b": 2.0}),  # here
        "custom_vjp lambda at @here: a gradient must have the structure of its argument\n"
        "  expected {'b': *, 'w': *}\n  got {'bias': *, 'w': *}\n"
        "  help: None stands for the gradient of a whole argument, or of a part of it",
    )


def test_a_tangent_of_another_dtype() -> None:
    f = tracer.custom_jvp(lambda x: {"y": x})
    f.defjvp(lambda primals, tangents: (f(*primals), {"y": tangents[0].astype("float32")}))
    fails(
        errors.ArgumentError,
        lambda: jvp(f, (X,), (X,)),  # here
        "custom_jvp lambda at @here: the tangent of ['y'] has the wrong type\n  expected f64[3], got f32[3]\n"
        "  help: it has the shape and dtype of the value that it belongs to",
    )
