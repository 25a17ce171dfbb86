"""jacfwd, jacrev, hessian, hvp and grad: arguments by place and name, trees, aux values, complex numbers, integers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import errors, grad, hessian, hvp, jacfwd, jacobian, jacrev, jit, linear_transpose, value_and_grad, vjp

X = tnp.asarray([0.3, 1.2, -0.6])
BOTH = pytest.mark.parametrize("way", [lambda f: f, jit])
JACOBIANS = pytest.mark.parametrize("jac", [jacfwd, jacrev])


def test_arguments_stand_where_jax_has_them() -> None:
    def f(z: Any, n: Any) -> Any:
        return (z**2).sum(), n

    z, n = tnp.asarray([1.0 + 2.0j]), 3
    gradient, aux = grad(f, 0, True, True)(z, n)
    assert (gradient.tolist(), int(aux)) == ([2.0 + 4.0j], 3)
    (value, _), (by_z, by_n) = value_and_grad(lambda z, n: f(z.real, n), (0, 1), True, False, True, ())(z, n)
    assert (float(value), by_z.tolist(), by_n.dtype) == (1.0, [2.0], tracer.float0)
    assert jacfwd(lambda z: z**2, 0, False, True)(z).tolist() == [[2.0 + 4.0j]]
    assert jacrev(lambda z: z**2, 0, False, True, False)(z).tolist() == [[2.0 + 4.0j]]
    assert hessian(lambda z: (z**3).sum(), 0, False, True)(z).tolist() == [[6.0 + 12.0j]]


@BOTH
@JACOBIANS
def test_trees_of_arguments_and_results(way: Any, jac: Any) -> None:
    def f(p: Any, y: Any) -> Any:
        return {"a": p["x"] ** 2 * y, "b": (p["x"].sum() * p["s"],)}

    p = {"x": X, "s": 2.0}
    found = way(jac(f, argnums=(0, 1)))(p, 3.0)
    by_p, by_y = found["a"]
    np.testing.assert_allclose(by_p["x"], np.diag(6.0 * np.asarray(X)))
    assert by_p["s"].tolist() == [0.0] * 3
    np.testing.assert_allclose(by_y, np.asarray(X) ** 2)
    by_p, by_y = found["b"][0]
    np.testing.assert_allclose(by_p["x"], [2.0] * 3)
    np.testing.assert_allclose([by_p["s"], by_y], [0.9, 0.0])


@BOTH
@JACOBIANS
def test_what_rides_along_and_keywords(way: Any, jac: Any) -> None:
    jacobian_of, aux = way(jac(lambda x, *, k: (k * x, {"sum": x.sum()}), has_aux=True))(X, k=2.0)
    np.testing.assert_array_equal(jacobian_of, 2.0 * np.eye(3))
    assert float(aux["sum"]) == pytest.approx(0.9)
    second, aux = way(hessian(lambda x, k: ((k * x**3).sum(), k), has_aux=True, argnums=0))(X, 2.0)
    np.testing.assert_allclose(second, np.diag(12.0 * np.asarray(X)))
    assert float(aux) == 2.0


@BOTH
def test_blocks_of_a_hessian(way: Any) -> None:
    found = way(hessian(lambda p: (p["x"] ** 3).sum() * p["s"]))({"x": X, "s": 2.0})
    np.testing.assert_allclose(found["x"]["x"], np.diag(12.0 * np.asarray(X)))
    np.testing.assert_allclose(found["x"]["s"], 3.0 * np.asarray(X) ** 2)
    np.testing.assert_allclose(found["s"]["x"], 3.0 * np.asarray(X) ** 2)
    assert float(found["s"]["s"]) == 0.0
    ((aa, ab), (ba, bb)) = way(hessian(lambda a, b: (a * b).sum(), argnums=(0, 1)))(X, X)
    np.testing.assert_array_equal(np.block([[aa, ab], [ba, bb]]), np.kron([[0, 1], [1, 0]], np.eye(3)))


@BOTH
def test_products_with_a_hessian(way: Any) -> None:
    def f(p: Any, s: Any) -> Any:
        return (p["x"] ** 3).sum() * s, p

    v = ({"x": tnp.asarray([1.0, 0.0, 2.0])}, 1.0)
    (by_p, by_s), aux = way(lambda p, s: hvp(f, (p, s), v, has_aux=True))({"x": X}, 2.0)
    np.testing.assert_allclose(by_p["x"], 12.0 * np.asarray(X) * [1, 0, 2] + 3.0 * np.asarray(X) ** 2)
    np.testing.assert_allclose(by_s, 3.0 * np.asarray(X) ** 2 @ [1, 0, 2])
    np.testing.assert_array_equal(aux["x"], X)


def test_jacobian_is_jacrev() -> None:
    assert jacobian(lambda x: x * x)(X).tolist() == jacrev(lambda x: x * x)(X).tolist()


def test_integers_have_float0() -> None:
    by_n, by_x = jacrev(lambda n, x: n * x, argnums=(0, 1), allow_int=True)(3, X)
    assert (by_n.shape, by_n.dtype) == ((3,), tracer.float0)
    np.testing.assert_array_equal(by_x, 3.0 * np.eye(3))


REALS = "\n  help: take real and imaginary parts apart, or say holomorphic=True; jvp and vjp take either"
CAST = "\n  help: pass a float, as 2.0 for 2, or cast with .astype(float)"


@BOTH
@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda x: jacfwd(lambda p: p["z"] * 1j)({"z": x + 0j}),
         "jacfwd of lambda @: arguments are real\n  got c128[3] for argument 0, p['z']" + REALS),
        (jacrev(lambda v: {"a": v, "b": v * 1j}),
         "jacrev of lambda @: results are real\n  got c128[3] for the result at ['b']" + REALS),
        (jacrev(lambda v: v, holomorphic=True),
         ("jacrev of lambda @: argument 0 has no derivative\n  expected a complex dtype, got f64[3]\n"
         "  help: cast with .astype(complex), or leave holomorphic out")),
        (lambda x: jacfwd(lambda z: z.real, holomorphic=True)(x + 0j),
         ("jacfwd of lambda @: results are complex where holomorphic=True\n  got f64[3] for the result\n"
         "  help: cast with .astype(complex), or leave holomorphic out")),
        (lambda x: jacfwd(lambda n: n)(x.astype(int)),
         "jacfwd of lambda @: argument 0 has no derivative\n  expected a floating or complex dtype, got i64[3]" + CAST),
        (lambda x: jacrev(lambda a, b: b, argnums=(0, 1))([x], [x, x > 0]),
         "jacrev of lambda @: argument 1, b[1] has no derivative\n  expected a floating or complex dtype, got bool[3]"
         + CAST + "; allow_int=True gives float0"),
        (hessian(lambda a: a, argnums=2),
         ("hessian @: argnums names argument 2\n  the call has 1 positional argument\n"
         "  help: pass the differentiated arguments by position")),
        (lambda _: grad(lambda a: a, reduce_axes=("i",)),
         ("grad @: reduce_axes must be empty, as in JAX\n  got ('i',)\n"
         "  help: sum over the lanes yourself, by lax.psum")),
        (lambda x: vjp(lambda a: a, x, reduce_axes=("i",)),
         "vjp @: reduce_axes must be empty, as in JAX\n  got ('i',)\n  help: sum over the lanes yourself, by lax.psum"),
        (lambda x: linear_transpose(lambda a: a, x, reduce_axes=("i",)),
         ("linear_transpose @: reduce_axes must be empty, as in JAX\n  got ('i',)\n"
         "  help: sum over the lanes yourself, by lax.psum")),
    ],
)  # fmt: skip
def test_what_has_no_derivative_is_said(way: Any, call: Any, text: str) -> None:
    with pytest.raises(errors.TracerError) as caught:
        way(call)(X)
    first, *rest = str(caught.value).splitlines()
    start, _, end = first.partition(" at ")
    assert "\n".join([f"{start} @: {end.partition(': ')[2]}", *rest]) == text


@pytest.mark.parametrize("way", [lambda f: f, jit], ids=["eager", "jit"])
def test_jacobians_by_columns_of_integers_are_zeros_of_their_dtype(way: Any) -> None:
    """As JAX's; by rows there is nothing to start from, which both say."""
    x = tnp.asarray([0.3, -0.4, 0.9])
    found = way(jacfwd(lambda v, w: {"y": v * w, "n": (v > 0).sum().astype("int32")}, argnums=(0, 1)))(x, 2.0)
    np.testing.assert_array_equal(found["y"][0], 2 * np.eye(3))
    assert [(str(n.dtype), n.shape, n.tolist()) for n in found["n"]] == [("int32", (3,), [0, 0, 0]), ("int32", (), 0)]
    twice = way(jacfwd(jacfwd(tnp.argsort)))(x)
    assert (str(twice.dtype), twice.shape, bool(twice.any())) == ("int64", (3, 3, 3), False)
    for transform, f in ((jacrev, tnp.argmax), (hessian, tnp.argmax), (jacfwd, lambda v: v > 0)):
        with pytest.raises(errors.DTypeError, match="has no derivative"):
            transform(f)(x)


def test_jacrev_of_second_derivatives_of_loops_of_unknown_length_is_batched() -> None:
    def settled(v: Any) -> Any:
        return tracer.lax.while_loop(lambda s: s.sum() < 3.0, lambda s: 1.1 * s + 0.1 * tnp.sin(s[::-1]) * v, v)

    def second(v: Any) -> Any:
        return grad(lambda u: grad(lambda w: settled(w).sum() * w[0])(u) @ u)(v)

    points = tnp.asarray([[0.4, 0.2], [0.13, 0.3], [1.31, 0.1]])
    expected = tracer.lax.map(jacfwd(second), points)
    for run in (lambda f: f, jit):
        np.testing.assert_allclose(run(tracer.vmap(jacrev(second)))(points), expected, rtol=1e-12)
    nested = tracer.vmap(tracer.vmap(jacrev(second)))(points[:, None])  # three batches of one stack
    np.testing.assert_allclose(nested[:, 0], expected, rtol=1e-12)
