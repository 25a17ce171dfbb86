"""Programs that users type, as they type them: the contract of the public face."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import tracer
import tracer as jax
import tracer.numpy as jnp
import tracer.numpy as tnp
from tracer import grad, hessian, jit, jvp, lax, random, value_and_grad, vjp, vmap

RNG = np.random.default_rng(0)
WEIGHTS = {"hidden": RNG.normal(size=(3, 4)), "bias": RNG.normal(size=4), "out": RNG.normal(size=(4, 2))}
INPUTS, TARGETS = RNG.normal(size=(5, 3)), RNG.normal(size=(5, 2))


def loss(w: Any, x: Any, y: Any) -> Any:
    p = tnp.tanh(x @ w["hidden"] + w["bias"]) @ w["out"]
    return tnp.mean((p - y) ** 2)


def numpy_loss(w: Any, x: Any, y: Any) -> Any:
    return np.mean((np.tanh(x @ w["hidden"] + w["bias"]) @ w["out"] - y) ** 2)


def difference(f: Any, x: Any, step: float = 1e-6) -> Any:
    """The derivative of a function of one number."""
    return (f(x + step) - f(x - step)) / (2 * step)


def test_decorate_a_function() -> None:
    compiled = jit(loss)
    step = jit(lambda w, x, y: tracer.tree.map(lambda p, g: p - 0.1 * g, w, grad(loss)(w, x, y)))
    assert np.isclose(compiled(WEIGHTS, INPUTS, TARGETS), numpy_loss(WEIGHTS, INPUTS, TARGETS), rtol=1e-14)
    stepped = step(WEIGHTS, INPUTS, TARGETS)
    assert list(stepped) == list(WEIGHTS)
    for name, place in (("hidden", (1, 2)), ("bias", (3,)), ("out", (0, 1))):

        def moved(v: float, name: str = name, place: Any = place) -> Any:
            weights = {key: value.copy() for key, value in WEIGHTS.items()}
            weights[name][place] = v
            return numpy_loss(weights, INPUTS, TARGETS)

        slope = difference(moved, WEIGHTS[name][place])
        assert np.isclose(stepped[name][place], WEIGHTS[name][place] - 0.1 * slope, rtol=1e-8)
    assert compiled(stepped, INPUTS, TARGETS) < compiled(WEIGHTS, INPUTS, TARGETS)


def test_gradients_follow_the_path_that_python_took() -> None:
    def f(x: Any) -> Any:
        while x < 100.0:
            x = x * x + 1.0
        return x if x > 500.0 else 2.0 * x

    assert float(f(2.0)) == 677.0
    assert float(grad(f)(2.0)) == 2 * 2 * 2 * 5 * 2 * 26  # of x -> 5 -> 26 -> 677
    assert np.isclose(grad(grad(tnp.sin))(1.0), -np.sin(1.0), rtol=1e-15)


def test_explore() -> None:
    x = tnp.linspace(0, 1, 5)
    assert repr(x) == "Array([0.  , 0.25, 0.5 , 0.75, 1.  ], f64)"
    other = x + 0
    x[0] = 7.0
    assert (float(x[0]), float(other[0])) == (7.0, 0.0)
    assert x.at[1:3].add(1.0).tolist() == [7.0, 1.25, 1.5, 0.75, 1.0]


def test_another_handle_keeps_its_value() -> None:
    x = tnp.linspace(0, 1, 5)
    other = tnp.asarray(x)
    same = x
    x[0] = 7.0
    assert float(same[0]) == 7.0
    assert other is x or float(other[0]) == 0.0


def test_numpy_functions_are_ours_under_jit_and_grad() -> None:
    x = np.arange(3.0)
    slope = jit(grad(lambda x: np.sum(np.sin(x) ** 2)))(x)
    assert isinstance(slope, tracer.Array)
    assert np.allclose(slope, np.sin(2 * x), rtol=1e-15, atol=0)


def test_loops_compile_and_differentiate_in_reverse() -> None:
    @jit
    def sqrt_newton(a: Any) -> Any:
        def cond(s: Any) -> Any:
            return tnp.abs(s * s - a) > 1e-12 * a

        def body(s: Any) -> Any:
            return 0.5 * (s + a / s)

        return lax.while_loop(cond, body, a)

    assert np.isclose(grad(sqrt_newton)(2.0), 0.5 / np.sqrt(2.0), rtol=1e-8)
    numbers = np.arange(1.0, 5.0)
    assert np.allclose(vmap(sqrt_newton)(tnp.arange(1.0, 5.0)), np.sqrt(numbers), rtol=1e-12)
    slopes = vmap(grad(sqrt_newton))(tnp.arange(1.0, 5.0))
    assert np.allclose(slopes[1:], 0.5 / np.sqrt(numbers[1:]), rtol=1e-12)
    assert float(slopes[0]) == 1.0  # the first guess, a itself, is the root of 1: no round runs
    out, tangent = jvp(sqrt_newton, (2.0,), (1.0,))
    assert np.allclose((out, tangent), (np.sqrt(2.0), 0.5 / np.sqrt(2.0)), rtol=1e-8)


def test_branches_and_scans() -> None:
    x = tnp.linspace(0, 1, 5)
    assert lax.cond(x.sum() > 3, lambda v: v, lambda v: -v, x).tolist() == (-x).tolist()
    total, products = lax.scan(lambda c, v: (c + v, c * v), 0.0, tnp.arange(10.0))
    assert float(total) == 45.0
    assert products.tolist() == [i * sum(range(i)) for i in range(10)]


def test_a_branch_on_a_traced_value_teaches() -> None:
    source = "def g(x):\n    y = x\n\n    if x > 0:\n        return x\n    return -x\n"
    linecache.cache["demo.py"] = (len(source), None, source.splitlines(keepends=True), "demo.py")
    scope: dict[str, Any] = {}
    exec(compile(source, "demo.py", "exec"), scope)
    with pytest.raises(tracer.errors.TracerBoolError) as caught:
        jit(scope["g"])(1.0)
    assert str(caught.value) == (
        "`if` on a traced value at demo.py:4\n"
        "  x > 0 is bool[], made at demo.py:4: its value is known only when the compiled program runs\n"
        "  help: lax.cond(x > 0, lambda: x, lambda: -x), or tnp.where(x > 0, x, -x)"
    )


def test_every_stage_can_be_seen() -> None:
    low = jit(loss).lower(WEIGHTS, INPUTS, TARGETS)
    assert "dot_general" in str(low.program())
    assert low.optimized().output_types == low.program().output_types
    assert "main(" in str(low.loops())
    assert "define" in str(low.llvm())
    assert "ret" in str(low.asm())
    assert low.cost().flops == 251  # by hand: 2·5·3·4 + 20 + 2·5·4·2 + 3·10 + 1
    memory = low.memory()
    assert memory.arguments == 8 * (3 * 4 + 4 + 4 * 2 + 5 * 3 + 5 * 2)
    assert "__global__" in str(jit(lambda x: tnp.sin(x) + 1).lower(X).cuda(arch="sm_90"))
    assert "transpose" in str(tracer.make_program(grad(loss))(WEIGHTS, INPUTS, TARGETS))


X = np.arange(6.0)


def test_explain_says_why_a_call_compiled_again() -> None:
    compiled = jit(loss)
    compiled(WEIGHTS, INPUTS, TARGETS)
    compiled(WEIGHTS, INPUTS[:3], TARGETS[:3])
    text = str(compiled.explain())
    assert "loss compiled 2 times" in text
    assert "argument 1 'x': f64[5,3] -> f64[3,3]" in text


def test_out_of_bounds_is_an_error_in_compiled_code_too() -> None:
    with pytest.raises(IndexError, match=r"index 10 is out of bounds for axis 0 with size 3, at test_use\.py:\d+"):
        jit(lambda x, i: x[i])(tnp.arange(3.0), 10)


def test_scipy_minimises_compiled_functions() -> None:
    def f(x: Any) -> Any:
        return tnp.sum((x - 1.0) ** 2 * tnp.arange(1.0, 4.0))

    found = minimize(jit(f), np.zeros(3), jac=jit(grad(f)), hess=jit(hessian(f)), method="trust-ncg")
    assert np.allclose(found.x, 1.0, atol=1e-8)


def test_memory_goes_to_other_libraries_and_back_without_a_copy() -> None:
    x = tnp.asarray(X)
    theirs = np.from_dlpack(x)
    assert theirs.tolist() == X.tolist()
    assert np.shares_memory(np.from_dlpack(tnp.from_dlpack(theirs), copy=False), theirs)


def test_devices() -> None:
    assert str(tracer.devices()[0]) == "cpu"
    x = tnp.arange(3.0)
    assert tracer.device_put(x, "cpu:0").tolist() == [0.0, 1.0, 2.0]


def test_keys_in_place_of_hidden_state() -> None:
    k1, k2 = random.split(random.key(0))
    eager = random.normal(k1, (3,), dtype="float32")
    compiled = jit(lambda k: random.normal(k, (3,), dtype="float32"))
    batched = vmap(lambda k: random.normal(k, (3,), dtype="float32"))(tnp.stack([k1, k2]))
    assert eager.tolist() == compiled(k1).tolist() == batched[0].tolist()
    # JAX's numbers for JAX's keys (jax 0.10)
    assert np.allclose(eager, [1.0040143728256226, -0.9063372611999512, -0.7481722235679626], rtol=1e-6)


def test_custom_rules() -> None:
    @tracer.custom_vjp
    def clipped(x: Any) -> Any:
        return x

    clipped.defvjp(lambda x: (x, None), lambda _, g: (tnp.clip(g, -1, 1),))
    assert float(grad(lambda x: 5 * clipped(x))(2.0)) == 1.0
    assert jit(grad(lambda x: tnp.sum(tnp.asarray([5.0, 0.5]) * clipped(x))))(X[:2]).tolist() == [1.0, 0.5]


def test_control_over_memory() -> None:
    def block(x: Any) -> Any:
        return tnp.tanh(tnp.tanh(x @ WEIGHTS["hidden"]) @ WEIGHTS["out"]).sum()

    remade = tracer.checkpoint(block, policy=tracer.checkpoint_policies.dots_saveable)
    assert grad(remade)(INPUTS).tolist() == grad(block)(INPUTS).tolist()
    assert np.allclose(jit(grad(remade))(INPUTS), grad(block)(INPUTS), rtol=1e-14)


def test_jax_code_after_changing_its_imports() -> None:
    def f(p: Any, v: Any) -> Any:
        return jnp.sin(p * v)

    jacobians = jax.vmap(jax.jacfwd(f), in_axes=(None, 0))(jnp.ones(3), jnp.ones((4, 3)))
    assert jacobians.shape == (4, 3, 3)
    assert np.allclose(jacobians, np.cos(1.0) * np.eye(3), rtol=1e-15)


def test_value_and_grad_and_vjp() -> None:
    value, slope = value_and_grad(lambda x: tnp.sum(x**3))(X)
    assert float(value) == float(np.sum(X**3))
    assert slope.tolist() == (3 * X**2).tolist()
    out, pull = vjp(lambda a, b: a @ b, INPUTS, WEIGHTS["hidden"])
    left, right = pull(tnp.ones(out.shape))
    assert np.allclose(left, np.ones((5, 4)) @ WEIGHTS["hidden"].T)
    assert np.allclose(right, INPUTS.T @ np.ones((5, 4)))
