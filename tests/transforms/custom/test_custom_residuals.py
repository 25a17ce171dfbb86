"""What the forward function of a custom_vjp hands to the backward function besides arrays."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import grad, jit, lax, vmap

X = np.array([0.3, -0.4, 0.9])


def twice(f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    return lambda a: lax.scan(lambda c, _: (f(c), None), a, None, length=2)[0]


# the derivative at 1.0 of a function whose slope is s, everywhere, as a function of s
WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[float], float]]] = {
    "eager": (lambda f: grad(f)(1.0), lambda s: s),
    "jit of grad": (lambda f: jit(grad(f))(1.0), lambda s: s),
    "grad of jit": (lambda f: grad(jit(f))(1.0), lambda s: s),
    "scan": (lambda f: grad(twice(f))(1.0), lambda s: s * s),
    "jit of scan": (lambda f: jit(grad(twice(f)))(1.0), lambda s: s * s),
    "fori": (lambda f: grad(lambda a: lax.fori_loop(0, 2, lambda _, c: f(c), a))(1.0), lambda s: s * s),
    "while": (
        lambda f: grad(lambda a: lax.while_loop(lambda c: c[0] < 2, lambda c: (c[0] + 1, f(c[1])), (0, a))[1])(1.0),
        lambda s: s * s,
    ),
    "cond": (lambda f: grad(lambda a: lax.cond(a > 0, f, f, a))(1.0), lambda s: s),
    "checkpoint": (lambda f: jit(grad(tracer.checkpoint(jit(f))))(1.0), lambda s: s),
    "vmap of grad": (lambda f: jit(vmap(grad(f)))(X)[0], lambda s: s),
    "grad of vmap": (lambda f: grad(lambda v: vmap(f)(v).sum())(X)[0], lambda s: s),
    "vmap of scan": (lambda f: vmap(grad(twice(f)))(X)[0], lambda s: s * s),
    "grad of grad": (lambda f: grad(lambda a: grad(f)(a) * a)(1.0), lambda s: s),
    "pullback from jit": (lambda f: jit(lambda a: tracer.vjp(f, a)[1])(1.0)(1.0)[0], lambda s: s),
    "jacfwd": (lambda f: tracer.jacfwd(jit(f))(1.0), lambda s: s),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("residual", "slope"),
    [
        (3, lambda n: sum(range(n))),
        (4.0, math.sqrt),
        (True, lambda flag: 1 if flag else 2),
        (2j, lambda z: z.imag),
        (np.int32(3), lambda n: len([0] * int(n))),
        (np.arange(4), lambda a: int(a[3])),
        ({"a": 3, "b": None, "c": ()}, lambda tree: tree["a"] if tree["b"] is None else 0),
    ],
    ids=["int", "float", "bool", "complex", "numpy scalar", "numpy array", "tree"],
)
def test_numbers_reach_the_backward_function_as_they_are(way: str, residual: Any, slope: Callable[..., float]) -> None:
    @tracer.custom_vjp
    def f(a: Any) -> Any:
        return 2.0 * a

    f.defvjp(lambda a: (2.0 * a, residual), lambda kept, ct: (ct * slope(kept),))
    derive, expected = WAYS[way]
    np.testing.assert_allclose(derive(f), expected(slope(residual)))


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("first", [True, False])
def test_whether_an_argument_is_differentiated_can_be_asked_in_the_backward_function(way: str, first: bool) -> None:
    @tracer.custom_vjp
    def product(a: Any, b: Any) -> Any:
        return a * b

    def forward(a: Any, b: Any) -> Any:
        return a.value * b.value, (a.perturbed, b.perturbed)

    def backward(perturbed: Any, ct: Any) -> Any:
        return (5.0 * ct if perturbed[0] else None, 7.0 * ct if perturbed[1] else None)

    product.defvjp(forward, backward, symbolic_zeros=True)
    derive, expected = WAYS[way]
    found = derive(lambda a: product(a, 2.0) if first else product(2.0, a))
    np.testing.assert_allclose(found, expected(5.0 if first else 7.0))


def test_residuals_may_differ_with_what_is_differentiated() -> None:
    """One rule, staged once, whose residuals of one pullback outlive those of the next."""

    @tracer.custom_vjp
    def product(a: Any, b: Any) -> Any:
        return a * b

    def forward(a: Any, b: Any) -> Any:
        kept = (b.value if a.perturbed else None, a.value if b.perturbed else None)
        return a.value * b.value, (kept, 1 + a.perturbed + 2 * b.perturbed)

    def backward(residuals: Any, ct: Any) -> Any:
        (b, a), count = residuals
        times = sum([1.0] * count)
        return (None if b is None else times * b * ct, None if a is None else times * a * ct)

    product.defvjp(forward, backward, symbolic_zeros=True)
    f = jit(product)
    pullbacks = [
        tracer.vjp(lambda a: f(a, 5.0), 3.0)[1],
        tracer.vjp(lambda b: f(3.0, b), 5.0)[1],
        tracer.vjp(f, 3.0, 5.0)[1],
    ]
    found = [tuple(map(float, pullback(1.0))) for pullback in pullbacks]
    assert found == [(10.0,), (9.0,), (20.0, 12.0)]
    assert [tuple(map(float, pullback(1.0))) for pullback in reversed(pullbacks)] == found[::-1]


def test_a_residual_array_of_numpys_stays_as_it_was() -> None:
    weights = np.arange(3.0)

    @tracer.custom_vjp
    def f(v: Any) -> Any:
        return (v * weights).sum()

    f.defvjp(lambda v: (f(v), weights), lambda w, ct: (ct * w,))
    _, pullback = tracer.vjp(f, tnp.ones(3))
    weights[:] = 7.0
    np.testing.assert_array_equal(pullback(1.0)[0], np.arange(3.0))


def test_what_is_neither_array_nor_number_is_refused() -> None:
    @tracer.custom_vjp
    def f(v: Any) -> Any:
        return v

    f.defvjp(lambda v: (v, "text"), lambda _, ct: (ct,))
    with pytest.raises(tracer.errors.ArgumentError, match="returned a value that is not an array\n  got str"):
        grad(f)(1.0)


@pytest.mark.parametrize(
    "backward",
    [
        lambda x, g: pullback_of_sine(x)(g),
        lambda x, g: (tracer.grad(tnp.sin)(2.0) * g,),
        lambda x, g: (2.0,),
    ],
    ids=["vjp within", "grad within", "a number"],
)
def test_weak_gradients_of_a_rule_fit_the_carries_of_loops(backward: Any) -> None:
    @tracer.custom_vjp
    def sine(x: Any) -> Any:
        return tnp.sin(x)

    sine.defvjp(lambda x: (tnp.sin(x), x), backward)
    loops = (
        lambda x: tracer.lax.scan(lambda c, _: (sine(c), None), x, None, length=2)[0],
        lambda x: tracer.lax.fori_loop(0, 2, lambda i, c: sine(c), x),
        lambda x: tracer.lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, sine(s[1])), (0, x))[1],
    )
    first = float(tracer.grad(lambda x: sine(sine(x)))(2.0))
    for loop in loops:
        for found in (grad(loop)(2.0), jit(grad(loop))(2.0), *vmap(grad(loop))(tnp.asarray([2.0, 2.0]))):
            np.testing.assert_allclose(found, first, rtol=1e-12)


def pullback_of_sine(x: Any) -> Any:
    return tracer.vjp(tnp.sin, x)[1]


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_gradients_of_python_numbers_may_have_any_float_dtype(dtype: str) -> None:
    @tracer.custom_vjp
    def scaled(x: Any, factor: Any) -> Any:
        return factor * x

    scaled.defvjp(
        lambda x, factor: (factor * x, (x, factor)), lambda kept, g: (kept[1] * g, (g * kept[0]).astype(dtype).sum())
    )
    x = tnp.asarray([1.0, 2.0], "float32")
    dx, d_factor = jit(grad(lambda x, factor: scaled(x, factor).sum(), (0, 1)))(x, 3.0)
    assert (dx.dtype, d_factor.dtype, float(d_factor), d_factor.weak_type) == (np.float32, np.float64, 3.0, True)
    with pytest.raises(
        tracer.errors.ArgumentError, match=r"the gradient of argument 1 has the wrong type\n *expected f64"
    ):
        grad(lambda factor: scaled(np.ones(2), factor).sum())(np.float64(3.0))
    complex_gradient = tracer.custom_vjp(lambda factor: factor * 2.0)
    complex_gradient.defvjp(lambda factor: (factor * 2.0, None), lambda _, g: (g * 1j,))
    with pytest.raises(tracer.errors.ArgumentError, match="expected f64"):
        grad(complex_gradient)(3.0)
