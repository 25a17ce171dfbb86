"""What functions with rules of their own close over: constants and what is traced, not what is differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.mistakes.told import fails
from tracer import checkpoint, custom_jvp, custom_vjp, errors, grad, jacfwd, jit, jvp, lax, value_and_grad, vmap
from tracer.custom_batching import custom_vmap

Function = Callable[[Any], Any]


def jvp_that_calls(a: Any) -> Function:
    @custom_jvp
    def h(x: Any) -> Any:
        return x * a

    h.defjvp(lambda primals, tangents: (h(primals[0]), 3.0 * tangents[0]))
    return h


def jvp_that_closes(a: Any) -> Function:
    @custom_jvp
    def h(x: Any) -> Any:
        return x * a

    h.defjvp(lambda primals, tangents: (primals[0] * a, 3.0 * tangents[0]))
    return h


def vjp_that_calls(a: Any) -> Function:
    @custom_vjp
    def h(x: Any) -> Any:
        return x * a

    h.defvjp(lambda x: (h(x), None), lambda _, ct: (3.0 * ct,))
    return h


def vjp_that_keeps(a: Any) -> Function:
    @custom_vjp
    def h(x: Any) -> Any:
        return x * a

    h.defvjp(lambda x: (x * a, a), lambda a, ct: (3.0 * ct + 0.0 * a,))
    return h


def vjp_back(a: Any) -> Function:
    """Only the backward function closes over a."""

    @custom_vjp
    def h(x: Any) -> Any:
        return 1.0 * x

    h.defvjp(lambda x: (x, None), lambda _, ct: (ct * a,))
    return h


READING = [jvp_that_calls, jvp_that_closes, vjp_that_calls, vjp_that_keeps]
EVERY = [*READING, vjp_back]
one = tnp.asarray([8.0])

MODES: dict[str, Callable[[Function], Any]] = {
    "grad": lambda f: grad(f)(8.0),
    "jvp": lambda f: jvp(f, (8.0,), (1.0,)),
    "value_and_grad": lambda f: value_and_grad(f)(8.0),
    "jacfwd": lambda f: jacfwd(f)(8.0),
    "jit of grad": lambda f: jit(grad(f))(8.0),
    "jit of jvp": lambda f: jit(lambda a: jvp(f, (a,), (1.0,)))(8.0),
    "grad of jit": lambda f: grad(jit(f))(8.0),
    "jvp of jit": lambda f: jvp(jit(f), (8.0,), (1.0,)),
    "vmap of grad": lambda f: vmap(grad(f))(one),
    "grad of vmap": lambda f: grad(lambda x: vmap(f)(x).sum())(one),
    "grad of checkpoint": lambda f: grad(checkpoint(f))(8.0),
    "grad of grad": lambda f: grad(grad(f))(8.0),
    "grad of a scan": lambda f: grad(lambda a: lax.scan(lambda c, _: (c + f(a), None), 0.0, None, length=2)[0])(8.0),
    "grad of a while": lambda f: grad(lambda a: lax.fori_loop(0, 2, lambda _, c: c + f(a), 0.0))(8.0),
    "grad of a cond": lambda f: grad(lambda a: lax.cond(a > 0, f, lambda a: a, a))(8.0),
}


@pytest.mark.parametrize("mode", MODES.values(), ids=list(MODES))
@pytest.mark.parametrize("make", READING)
@pytest.mark.parametrize("argument", [lambda a: 2.0, lambda a: 2.0 * a], ids=["constant", "moving"])
def test_what_is_differentiated_cannot_be_closed_over(make: Any, mode: Any, argument: Any) -> None:
    with pytest.raises(errors.ClosureError) as raised:
        mode(lambda a: make(a)(argument(a)) * a)
    first, held, why, remedy = str(raised.value).splitlines()
    assert first.startswith(f"custom_{make.__name__[:3]} h at test_custom_closures.py:")
    assert first.endswith(" closes over an array that is differentiated")
    assert held.startswith("  an array f64")
    assert "made at" in held or "an argument of" in held
    assert why == "  its rule covers its arguments only"
    assert remedy == (
        "  help: pass the array as an argument, by hand or by tracer.closure_convert, or close over "
        "lax.stop_gradient of it"
    )


@pytest.mark.parametrize("mode", MODES.values(), ids=list(MODES))
def test_what_a_backward_function_closes_over_matters_if_it_runs(mode: Any) -> None:
    with pytest.raises(errors.ClosureError, match="custom_vjp h at test_custom_closures"):
        mode(lambda a: vjp_back(a)(a) * a)
    found = mode(lambda a: vjp_back(a)(2.0) * a)  # nothing that it is called with is differentiated
    expected = mode(lambda a: 2.0 * a)
    for y, z in zip(tracer.tree.leaves(found), tracer.tree.leaves(expected), strict=True):
        np.testing.assert_array_equal(y, z)


@pytest.mark.parametrize("run", [lambda f: grad(jit(f)), lambda f: jit(grad(f))])
def test_the_message_tells_where_the_array_was_made(run: Any) -> None:
    def loss(a: Any) -> Any:
        scale = 2.0 * a  # made

        @custom_jvp
        def scaled(x: Any) -> Any:
            return x * scale

        scaled.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
        return scaled(3.0)  # here

    fails(
        errors.ClosureError,
        lambda: run(loss)(3.0),
        "custom_jvp scaled at @here closes over an array that is differentiated\n"
        "  an array f64*[], `scale` made at @made while `loss` was traced\n"
        "  its rule covers its arguments only\n"
        "  help: pass the array as an argument, by hand or by tracer.closure_convert, or close over "
        "lax.stop_gradient of it",
    )


def test_with_values_the_message_tells_where_the_array_is_used() -> None:
    def loss(a: Any) -> Any:
        scale = 2.0 * a  # made

        @custom_jvp
        def scaled(x: Any) -> Any:
            return x * scale  # here

        scaled.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
        return scaled(3.0)

    fails(
        errors.ClosureError,
        lambda: grad(loss)(3.0),
        "custom_jvp scaled at @here closes over an array that is differentiated\n"
        "  an array f64*[], `scale` made at @made while `loss` was traced\n"
        "  its rule covers its arguments only\n"
        "  help: pass the array as an argument, by hand or by tracer.closure_convert, or close over "
        "lax.stop_gradient of it",
    )


WAYS: dict[str, Callable[[Function], Function]] = {
    "eager": lambda g: g,
    "jit": jit,
    "vmap": lambda g: lambda a: vmap(g)(tnp.asarray([a, a]))[1],
    "jit of vmap": lambda g: lambda a: jit(vmap(g))(tnp.asarray([a, a]))[1],
    "scan": lambda g: lambda a: lax.scan(lambda c, _: (c, g(c)), tnp.asarray(a), None, length=1)[1][0],
}


@pytest.mark.parametrize("way", WAYS.values(), ids=list(WAYS))
@pytest.mark.parametrize("make", EVERY)
def test_what_is_traced_outside_may_be_closed_over(make: Any, way: Any) -> None:
    slope = 8.0 if make is vjp_back else 3.0
    assert float(way(lambda a: grad(make(a))(2.0))(8.0)) == slope
    assert float(way(lambda a: grad(jit(make(a)))(2.0))(8.0)) == slope
    value = 2.0 if make is vjp_back else 16.0
    assert float(way(lambda a: make(a)(2.0))(8.0)) == value


@pytest.mark.parametrize("run", [grad, lambda f: jit(grad(f)), lambda f: grad(jit(f)),
                                 lambda f: lambda a: vmap(grad(f))(tnp.asarray([a]))[0]])  # fmt: skip
@pytest.mark.parametrize("make", EVERY)
def test_what_is_held_constant_may_be_closed_over(make: Any, run: Any) -> None:
    assert float(run(lambda a: make(lax.stop_gradient(a))(a))(8.0)) == (8.0 if make is vjp_back else 3.0)


@pytest.mark.parametrize("run", [lambda f: grad(f, 1), lambda f: jit(grad(f, 1)), lambda f: grad(jit(f), 1)])
def test_traced_integers_may_be_closed_over(run: Any) -> None:
    def f(n: Any, x: Any) -> Any:
        @custom_vjp
        def power(x: Any) -> Any:
            return x**n

        power.defvjp(lambda x: (power(x), x), lambda x, ct: (ct * n * x ** (n - 1),))
        return power(x)

    assert float(run(f)(3, 2.0)) == 12.0


@pytest.mark.parametrize("run", [grad, lambda f: jit(grad(f)), lambda f: grad(jit(f))])
def test_closure_convert_is_the_remedy(run: Any) -> None:
    """A function with a rule calls another one, which closes over what is differentiated."""

    @custom_jvp
    def apply(x: Any, captured: Any) -> Any:
        return holder[0](x, *captured)

    @apply.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        return jvp(lambda x, captured: holder[0](x, *captured), primals, tangents)

    holder: list[Any] = []

    def f(a: Any) -> Any:
        converted, captured = tracer.closure_convert(lambda x: a * x * x, 1.0)
        holder[:] = [converted]
        return apply(a, captured)

    np.testing.assert_allclose(run(f)(2.0), 3 * 2.0**2)


def vmap_that_reads(a: Any) -> Function:
    @custom_vmap
    def h(x: Any) -> Any:
        return x * a

    h.def_vmap(lambda size, batched, x: (10.0 * x, batched[0]))
    return h


def vmap_that_closes(a: Any) -> Function:
    @custom_vmap
    def h(x: Any) -> Any:
        return 2.0 * x

    h.def_vmap(lambda size, batched, x: (x * a, batched[0]))
    return h


PAIR = tnp.asarray([1.0, 2.0])


@pytest.mark.parametrize("make", [vmap_that_reads, vmap_that_closes])
@pytest.mark.parametrize("run", [vmap, lambda f: jit(vmap(f)), lambda f: vmap(jit(f))])
def test_a_function_with_a_batching_rule_cannot_close_over_what_is_batched(make: Any, run: Any) -> None:
    with pytest.raises(errors.ClosureError) as raised:
        run(lambda a, x: make(a)(x))(PAIR, PAIR)
    first, held, why, remedy = str(raised.value).splitlines()
    assert first.startswith("custom_vmap h at test_custom_closures.py:")
    assert first.endswith(" closes over an array that is batched")
    assert held.startswith("  an array f64[], an argument of `lambda` called at test_custom_closures.py:")
    assert why == "  its rule covers its arguments only"
    assert remedy == "  help: pass the array as an argument, by hand or by tracer.closure_convert"


def test_a_batching_rule_may_close_over_what_is_traced() -> None:
    def f(a: Any, x: Any) -> Any:
        return vmap_that_closes(a)(x)

    expected = [3.0, 6.0]
    assert vmap(jit(f), (None, 0))(3.0, PAIR).tolist() == expected
    assert jit(lambda a: vmap(lambda x: f(a, x))(PAIR))(3.0).tolist() == expected
    assert float(grad(lambda a: vmap(lambda x: f(a, x))(PAIR).sum())(3.0)) == 3.0
    assert float(grad(lambda a: vmap(jit(lambda x: f(a, x)))(PAIR).sum())(3.0)) == 3.0
    assert vmap(lambda a: f(a, 3.0))(PAIR).tolist() == [6.0, 6.0]  # nothing that it is called with is batched


def test_a_pullback_may_be_batched_after_its_rule_was_recorded() -> None:
    plain = lambda x: tnp.sin(x) * x  # noqa: E731
    ruled = tracer.custom_vjp(plain)
    ruled.defvjp(lambda x: (plain(x), x), lambda x, ct: tracer.vjp(plain, x)[1](ct))
    x = np.array([0.5, 1.5])
    for jacobian in (tracer.jacrev(ruled), tracer.jit(tracer.jacrev(ruled))):
        np.testing.assert_allclose(jacobian(x), np.diag(np.sin(x) + x * np.cos(x)))
