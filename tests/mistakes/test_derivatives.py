"""Mistakes with derivatives and custom rules."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.mistakes.told import X, fails
from tracer import errors, grad, jit, jvp, lax, linear_transpose, vjp, vmap


def tangent_like(x: Any) -> Any:
    return 1.0 if isinstance(x, float) else np.zeros((), tracer.dtypes.float0)


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


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("value_and_grad", lambda f, p: tracer.value_and_grad(f)(p)),
        ("hvp", lambda f, p: tracer.hvp(f, (p,), (tracer.tree.map(tangent_like, p),))),
        ("hessian", lambda f, p: tracer.hessian(f)(p)),
    ],
)
def test_every_transform_that_differentiates_names_itself(name: str, use: Any) -> None:
    gradient = "gradient" if "grad" in name else "derivative"
    remedy = "pass a float, as 2.0 for 2, or cast with .astype(float)"
    with pytest.raises(errors.DTypeError) as caught:
        use(lambda p: p["w"] * p["n"], {"w": 2.0, "n": 3})
    first, *rest = str(caught.value).splitlines()
    assert re.fullmatch(rf"{name} of lambda at .*: argument 0, p\['n'\] has no {gradient}", first)
    also = "; allow_int=True gives float0" * (name == "value_and_grad")
    assert rest == ["  expected a floating or complex dtype, got i64*[]", f"  help: {remedy}{also}"]
    with pytest.raises(errors.TracerError, match=rf"^{name} of lambda at test_derivatives.py:\d+: "):
        use(lambda x: x * 1j, 2.0)


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
        "vjp of lambda at @here: cotangents must have the structure of outputs\n"
        "  expected (*, *)\n  got *\n"
        "  help: one leaf for each array, in the same containers",
    )


def test_tangents_of_another_type() -> None:
    fails(
        errors.ArgumentError,
        lambda: jvp(tnp.sin, (X,), (tnp.ones(3, "float32"),)),  # here
        "jvp of sin at @here: tangents[0], the tangent of argument 0, has the wrong type\n"
        "  expected f64[3], got f32[3]\n"
        "  help: tangents and cotangents have the shape and dtype of the values they belong to",
    )


def test_tangents_of_another_structure_inside_a_tree() -> None:
    fails(
        errors.ArgumentError,
        lambda: jvp(lambda p: p["w"][0], ({"w": [X], "b": X},), ({"w": X, "b": X},)),  # here
        "jvp of lambda at @here: tangents must have the structure of primals\n"
        "  expected [*] for tangents[0]['w']\n  got *\n  help: one leaf for each array, in the same containers",
    )


def test_a_tangent_that_is_no_array() -> None:
    fails(
        errors.ArgumentError,
        lambda: jvp(lambda p: p["w"][0], ({"w": [X]},), ({"w": ["one"]},)),  # here
        "jvp of lambda at @here: tangents[0]['w'][0], the tangent of argument 0, p['w'][0], is not an array\n"
        "  got str: 'one'\n"
        "  help: pass an array, a number or a list of them",
    )


@pytest.mark.parametrize("tangent", [1, 1.0, np.zeros(2, tracer.dtypes.float0)])
def test_tangents_of_integers(tangent: Any) -> None:
    got = {int: "i64*[]", float: "f64*[]", np.ndarray: "float0[2]"}[type(tangent)]
    fails(
        errors.ArgumentError,
        lambda: jvp(lambda p, n: p * n, (2.0, 3), (1.0, tangent)),  # here
        "jvp of lambda at @here: tangents[1], the tangent of argument 1, has the wrong type\n"
        f"  expected float0[], got {got}\n"
        "  help: i64*[] has no derivative: pass numpy.zeros((), tracer.dtypes.float0), or make it a float",
    )


@pytest.mark.parametrize("name", ["jvp", "hvp", "linearize"])
def test_a_tangent_of_an_integer_inside_a_tree(name: str) -> None:
    def loss(params: Any) -> Any:
        return params["w"][0] ** 2

    params = {"w": [2.0, 3.0, 4]}
    calls: dict[str, Any] = {
        "jvp": lambda: jvp(loss, (params,), (params,)),
        "hvp": lambda: tracer.hvp(loss, (params,), (params,)),
        "linearize": lambda: tracer.linearize(loss, params)[1](params),
    }
    with pytest.raises(errors.ArgumentError) as caught:
        calls[name]()
    first, *rest = str(caught.value).splitlines()
    assert first.startswith(f"{name} of loss at test_derivatives.py:")
    assert first.endswith(": tangents[0]['w'][2], the tangent of argument 0, params['w'][2], has the wrong type")
    assert rest == [
        "  expected float0[], got i64*[]",
        "  help: i64*[] has no derivative: pass numpy.zeros((), tracer.dtypes.float0), or make it a float",
    ]


def test_cotangents_of_integers() -> None:
    _, pullback = vjp(lambda x: {"n": tnp.argmax(x), "y": x}, X)
    fails(
        errors.ArgumentError,
        lambda: pullback({"n": np.zeros(2), "y": X}),  # here
        "vjp of lambda at @here: cotangents['n'] has the wrong type\n  expected float0[], got f64[2]\n"
        "  help: i64[] has no derivative: pass numpy.zeros((), tracer.dtypes.float0), or make it a float",
    )


@pytest.mark.parametrize("transform", [jvp, tracer.hvp])
def test_jvp_without_tuples(transform: Any) -> None:
    fails(
        errors.ArgumentError,
        lambda: transform(tnp.sin, X, X),  # here
        f"{transform.__name__} at @here takes tuples of primals and tangents\n  got Array and Array\n"
        f"  help: {transform.__name__}(f, (x,), (dx,)) for a function of one argument",
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

    f.defvjp(lambda x: (x, None), lambda _, g: (tnp.clip(g, -1.0, 1.0),))
    fails(
        errors.NoRuleError,
        lambda: jvp(f, (1.0,), (1.0,)),  # here
        "forward derivative of custom_vjp f at @here: its backward function is not linear\n"
        "  transpose of min at @here: min is not linear\n"
        "  help: use grad, vjp or jacrev, or give it a rule with custom_jvp",
    )


def test_transposing_what_is_not_linear() -> None:
    fails(
        errors.NoRuleError,
        lambda: linear_transpose(lambda x: x * x, X)(X),  # here
        "transpose of mul at @here: it is linear in each operand, but not in both together\n"
        "  help: vjp differentiates functions that are not linear",
    )


@pytest.mark.parametrize(
    ("name", "product"),
    [
        ("dot_general", lambda x: x @ x),
        ("conv", lambda x: tnp.convolve(x, x)),
        ("scatter_mul", lambda x: x.at[tnp.asarray([1, 0])].multiply(x[:2])),
    ],
)
def test_transposing_products_of_what_is_transposed(name: str, product: Any) -> None:
    for wrap in (lambda f: f, tracer.jit):
        with pytest.raises(
            errors.NoRuleError, match=f"transpose of {name} at .*: it is linear in each operand, but not"
        ):
            linear_transpose(wrap(product), X)(product(X))


def test_transposing_a_choice_by_what_is_transposed() -> None:
    for name, result, user, function in (
        ("gt", "bool[3]", "select", lambda x: tnp.where(x > 0, x, 0.0)),
        ("gt", "bool[]", "convert_element_type", lambda x: lax.cond(x[0] > 0, lambda: x, lambda: 2.0 * x)),
        ("convert_element_type", "i64[3]", "lt", lambda x: X[x.astype(int)]),
    ):
        with pytest.raises(errors.NoRuleError) as caught:
            linear_transpose(function, X)(X)
        first, *rest = str(caught.value).split("\n")
        assert re.fullmatch(rf"transpose of {name} at test_derivatives.py:\d+: {name} is not linear", first)
        remedy = "  help: vjp differentiates functions that are not linear"
        assert rest == [f"  its result {result} is used by {user}", remedy]


def test_transposing_what_gives_integers() -> None:
    fails(
        errors.DTypeError,
        lambda: linear_transpose(lambda x: x.astype(int), X),  # here
        "linear_transpose of lambda at @here: its result is neither floating nor complex\n"
        "  expected a floating or complex dtype, got i64[3]\n"
        "  help: linear functions take and return floating or complex values: cast with .astype(float)",
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


def test_transposing_at_what_is_no_array() -> None:
    fails(
        errors.ArgumentError,
        lambda: linear_transpose(lambda p: p["w"], {"w": "three"}),  # here
        "linear_transpose of lambda at @here: argument 0, p['w'] is not an array\n"
        "  got str: 'three'\n  help: leave it out of the traced arguments: let f capture it",
    )


@pytest.mark.parametrize("transform", [grad, tracer.value_and_grad, tracer.jacfwd, tracer.jacrev, tracer.hessian])
def test_an_argument_named_twice(transform: Any) -> None:
    name = transform.__name__
    fails(
        errors.ArgumentError,
        lambda: transform(lambda x, y: x * y, argnums=(0, 1, -2))(1.0, 2.0),  # here
        f"{name} at @here: argnums names argument 0 twice\n  got 3 numbers\n  help: name each argument once",
    )


def test_a_pullback_of_two_cotangents() -> None:
    text = "its pullback takes one argument, a tree like the result of lambda\n  got 2 arguments\n"
    remedy = "  help: pass a tuple for a function that returns one: pullback((a, b))"
    _, pullback = vjp(lambda x: (x, x), X)
    fails(errors.ArgumentError, lambda: pullback(X, X), f"vjp of lambda at @here: {text}{remedy}")  # here
    transposed = linear_transpose(lambda x: 2.0 * x, X)
    with pytest.raises(errors.ArgumentError, match=r"linear_transpose of lambda at .* takes one argument"):
        transposed(X, X)


def test_what_is_no_array_rides_along_with_derivatives() -> None:
    def f(x: Any) -> Any:
        return x * x, {"name": "square", "y": x, "n": 3}

    gradient, aux = grad(f, has_aux=True)(2.0)
    assert (float(gradient), aux["name"], float(aux["y"]), int(aux["n"])) == (4.0, "square", 2.0, 3)
    assert tracer.value_and_grad(f, has_aux=True)(2.0)[0][1]["name"] == "square"
    assert jvp(f, (2.0,), (1.0,), has_aux=True)[2]["name"] == "square"
    assert vjp(f, 2.0, has_aux=True)[2]["name"] == "square"
    assert tracer.hessian(f, has_aux=True)(2.0)[1]["name"] == "square"


def test_numbers_beside_what_is_differentiated_stay_numbers_outside_jit() -> None:
    def f(x: Any) -> Any:
        return (x * x).sum(), {"steps": 3, "done": True, "rate": 0.5, "x": x}

    def kinds(aux: Any) -> list[type]:
        return [type(leaf) for leaf in tracer.tree.leaves(aux)]

    expected = [bool, float, int, tracer.Array]
    for _ in range(2):  # prepared, then run prepared
        assert kinds(grad(f, has_aux=True)(X)[1]) == expected
    assert kinds(vjp(f, X, has_aux=True)[2]) == kinds(jvp(f, (X,), (X,), has_aux=True)[2]) == expected
    assert kinds(tracer.hessian(f, has_aux=True)(X)[1]) == kinds(tracer.linearize(f, X, has_aux=True)[2]) == expected
    assert kinds(tracer.jit(grad(f, has_aux=True))(X)[1]) == [tracer.Array] * 4
    assert kinds(tracer.vmap(grad(f, has_aux=True))(tnp.ones((2, 3)))[1]) == [tracer.Array] * 4


def test_a_jacobian_of_integers() -> None:
    fails(
        errors.DTypeError,
        lambda: tracer.jacrev(lambda x: {"n": (x > 0).sum(), "y": x})(X),  # here
        "jacrev of lambda at @here: the result at ['n'] has no derivative\n"
        "  expected a floating or complex dtype, got i64[]\n"
        "  help: cast it with .astype(float), or return it beside the result: has_aux=True",
    )


def test_a_complex_cotangent_of_a_real_result() -> None:
    _, pullback = vjp(lambda x: x.sum(), X)
    fails(
        errors.ArgumentError,
        lambda: pullback(1j),  # here
        "vjp of lambda at @here: cotangents has the wrong type\n  expected f64[], got c128*[]\n"
        "  help: tangents and cotangents have the shape and dtype of the values they belong to",
    )


def test_the_item_of_what_is_differentiated() -> None:
    fails(
        errors.TracerFloatError,
        lambda: grad(lambda x: x.item() ** 2)(tnp.asarray(2.0)),  # here
        "a Python number from a traced value at @here\n"
        "  item of f64*[], an argument of `lambda` called at @here: reading its value would lose its derivative\n"
        "  help: keep it an array: tracer.numpy's functions in place of math's, "
        "x.astype(float) in place of float(x)",
    )
    assert float(grad(lambda x: x * (x > 1.0).item())(2.0)) == 1.0  # truth values and integers have none


def test_numpy_functions_that_read_values_are_named_by_the_line_that_calls_them() -> None:
    fails(
        errors.TracerArrayError,
        lambda: grad(lambda x: np.sum([x, x]))(2.0),  # here
        "a NumPy array from a traced value at @here\n"
        "  a NumPy array of f64*[], an argument of `lambda` called at @here: reading its value would lose its "
        "derivative\n  help: use tracer.numpy's function of the same name; NumPy's would lose the trace",
    )
