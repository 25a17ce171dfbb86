"""checkpoint: the same derivatives, from fewer kept values."""

from __future__ import annotations

from functools import cache, partial
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import covering
from tracer import checkpoint, grad, hessian, jit, jvp, lax, vmap
from tracer import checkpoint_policies as policies
from tracer.ad_checkpoint import checkpoint_name, saved_residuals
from tracer.ir.program import Program
from tracer.ir.visit import equations

W = tnp.asarray(np.random.default_rng(0).normal(size=(3, 3)))
X = tnp.asarray([0.3, -0.2, 0.9])

POLICIES = {
    "none": None,
    "everything": policies.everything_saveable,
    "nothing": policies.nothing_saveable,
    "dots": policies.dots_saveable,
    "dots without batch": policies.checkpoint_dots_with_no_batch_dims,
    "these names": policies.save_only_these_names("product"),
    "any names but these": policies.save_any_names_but_these("product"),
    "anything except": policies.save_anything_except_these_names("product"),
    "both": policies.save_from_both_policies(policies.dots_saveable, policies.save_only_these_names("product")),
    "a function": lambda primitive, *_, **params: str(primitive) == "sin",
}


def layer(w: Any, x: Any) -> Any:
    return tnp.sin(checkpoint_name(w @ x, "product")) + 0.1 * x


def three_layers(w: Any, layer: Any = layer) -> Any:
    x = X
    for _ in range(3):
        x = layer(w, x)
    return (x * x).sum()


def scanned(w: Any, layer: Any = layer) -> Any:
    return lax.scan(lambda x, _: (layer(w, x), x.sum()), X, None, length=4)[0].sum()


def looped(w: Any, layer: Any = layer) -> Any:
    return lax.while_loop(lambda s: s[0] < 3, lambda s: (s[0] + 1, layer(w, s[1])), (0, X))[1].sum()


def counted(w: Any, layer: Any = layer) -> Any:
    steps = (2.0 + tnp.abs(w).sum() * 0.0).astype(int)
    return lax.fori_loop(0, steps, lambda i, x: layer(w, x), X).sum()


def branched(w: Any, layer: Any = layer) -> Any:
    return lax.cond(w.sum() > -100.0, lambda x: layer(w, x), lambda x: x + w[0], X).sum()


def branches_in_scan(w: Any, layer: Any = layer) -> Any:
    def step(x: Any, u: Any) -> Any:
        return lax.cond(u > 1.0, lambda x: layer(w, x), lambda x: u * x, x), layer(w, X * u)

    last, rows = lax.scan(step, X, tnp.arange(4.0))
    return last.sum() + rows.sum()


def scan_in_loop(w: Any, layer: Any = layer) -> Any:
    inner = lambda x: lax.scan(lambda x, _: (layer(w, x), x[0]), x, None, length=2)[0]  # noqa: E731
    return lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, inner(s[1])), (0, X))[1].sum()


def loop_in_scan(w: Any, layer: Any = layer) -> Any:
    def inner(x: Any) -> Any:
        return lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, layer(w, s[1])), (0, x))[1]

    return lax.scan(lambda x, _: (inner(x), None), X, None, length=2)[0].sum()


def squares(w: Any, layer: Any = layer) -> Any:
    """What the policy names is what the derivative reads: rows of a scan, results of a branch."""

    def square(x: Any) -> Any:
        y = checkpoint_name(w @ x, "product")
        return y * y

    x = lax.scan(lambda x, _: (square(x), None), X, None, length=3)[0]
    return lax.cond(x[0] < 100.0, square, lambda x: x, x).sum()


BASIC = [three_layers, scanned, looped]
NESTED = [counted, branched, squares, branches_in_scan, scan_in_loop, loop_in_scan]
FUNCTIONS = [*BASIC, *NESTED]


@cache
def gradient_without(function: Any) -> Any:
    """Without checkpoints."""
    return grad(function)(W)


BY_NAME = {f.__name__: f for f in BASIC}


@pytest.mark.parametrize(("named", "name", "inside"), covering(POLICIES, BY_NAME, [True, False], least=15))
def test_derivatives_do_not_change(named: str, name: str, inside: bool) -> None:
    function, policy = BY_NAME[name], POLICIES[named]
    kept = checkpoint(layer, policy=policy)
    f = (lambda w: function(w, kept)) if inside else checkpoint(function, policy=policy)
    expected = gradient_without(function)
    np.testing.assert_allclose(grad(f)(W), expected, rtol=1e-12)
    np.testing.assert_allclose(jit(grad(f))(W), expected, rtol=1e-12)
    direction = tnp.ones_like(W)
    np.testing.assert_allclose(jvp(f, (W,), (direction,))[1], expected.sum(), rtol=1e-12)


@pytest.mark.parametrize("policy", [policies.dots_saveable, policies.everything_saveable], ids=str)
@pytest.mark.parametrize("function", NESTED, ids=lambda f: f.__name__)
def test_derivatives_of_loops_and_branches_within_each_other_do_not_change(policy: Any, function: Any) -> None:
    f, expected = checkpoint(function, policy=policy), gradient_without(function)
    np.testing.assert_allclose(grad(f)(W), expected, rtol=1e-12)
    np.testing.assert_allclose(jit(grad(f))(W), expected, rtol=1e-12)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_second_derivatives_and_batches_do_not_change(function: Any) -> None:
    f = checkpoint(function, policy=policies.dots_saveable)
    second = hessian if function in BASIC else lambda f: lambda w: jvp(grad(f), (w,), (X * W,))[1]
    np.testing.assert_allclose(second(f)(W), second(function)(W), rtol=1e-10, atol=1e-12)
    many = tnp.stack([W, 2.0 * W])
    expected = tnp.stack([grad(function)(w) for w in many])
    np.testing.assert_allclose(jit(vmap(grad(f)))(many), expected, rtol=1e-12)
    np.testing.assert_allclose(grad(lambda m: vmap(f)(m).sum())(many), expected, rtol=1e-12)


def kept_types(f: Any, *args: Any) -> list[str]:
    return sorted(str(type) for type, _ in saved_residuals(f, *args))


def test_policies_decide_what_is_kept() -> None:
    def f(w: Any, x: Any) -> Any:
        return tnp.exp(tnp.sin(checkpoint_name(w @ x, "product"))).sum()

    w, x = tnp.ones((5, 3)), tnp.ones(3)
    inputs = ["f64[3]", "f64[5,3]"]
    assert kept_types(checkpoint(f), w, x) == inputs
    for policy in (policies.dots_saveable, policies.save_only_these_names("product")):
        assert kept_types(checkpoint(f, policy=policy), w, x) == sorted([*inputs, "f64[5]"])
    assert kept_types(checkpoint(f, policy=policies.save_any_names_but_these("product")), w, x) == inputs
    assert kept_types(checkpoint(f, policy=policies.everything_saveable), w, x) == sorted([*inputs, "f64[5]", "f64[5]"])
    batched = vmap(checkpoint(f, policy=policies.dots_with_no_batch_dims_saveable))
    assert "f64[2,5]" not in kept_types(batched, tnp.ones((2, 5, 3)), tnp.ones((2, 3)))


def test_convolutions_are_dots() -> None:
    def f(x: Any, kernel: Any) -> Any:
        return tnp.sin(tnp.sin(lax.conv(x, kernel, (1, 1), "SAME"))).sum()

    x, kernel = tnp.ones((1, 2, 6, 6)), tnp.ones((3, 2, 3, 3))
    inputs = ["f64[1,2,6,6]", "f64[3,2,3,3]"]
    assert kept_types(checkpoint(f), x, kernel) == inputs
    assert kept_types(checkpoint(f, policy=policies.dots_saveable), x, kernel) == [
        *inputs[:1],
        "f64[1,3,6,6]",
        inputs[1],
    ]
    assert kept_types(checkpoint(f, policy=policies.dots_with_no_batch_dims_saveable), x, kernel) == inputs


def count(program: Program, name: str) -> int:
    return sum(equation.primitive.name == name for equation in equations(program))


@pytest.mark.parametrize("function", FUNCTIONS[1:-1], ids=lambda f: f.__name__)
def test_policies_decide_what_runs_again_in_loops_and_branches(function: Any) -> None:
    """Without a checkpoint no product is computed twice."""
    layers = 2 if function in (branches_in_scan, squares) else 1

    def products(policy: Any) -> int:
        f = function if policy is None else checkpoint(function, policy=policy)
        return count(tracer.make_program(grad(f))(W), "dot_general")

    once = products(None)
    assert products(policies.nothing_saveable) == once + layers
    assert products(policies.save_any_names_but_these("product")) == once + layers
    for policy in (policies.dots_saveable, policies.save_only_these_names("product"), policies.everything_saveable):
        assert products(policy) == once


@pytest.mark.parametrize(("function", "loop"), [(scanned, "scan"), (looped, "for_loop"), (branched, "cond")])
def test_no_loop_runs_again_of_which_everything_is_kept(function: Any, loop: str) -> None:
    def loops(policy: Any) -> int:
        program = tracer.make_program(grad(checkpoint(function, policy=policy)))(W)
        return sum(count(program, name) for name in {"while_loop", loop})

    assert loops(policies.everything_saveable) == 2
    assert loops(policies.nothing_saveable) == 3


def test_steps_keep_what_the_policy_says() -> None:
    f = checkpoint(scanned, policy=policies.dots_saveable)
    assert kept_types(f, W) == ["f64[3,3]", "f64[3]", "f64[4,3]"]
    assert kept_types(checkpoint(scanned), W) == ["f64[3,3]", "f64[3]"]
    counts = kept_types(checkpoint(looped), W)
    assert "Stack" not in " ".join(counts)


def test_the_computation_runs_again_and_is_not_shared_with_the_first() -> None:
    f = checkpoint(lambda x: tnp.sin(tnp.sin(tnp.sin(x))).sum())
    optimized = jit(tracer.value_and_grad(f)).lower(X).optimized()
    assert count(optimized, "sin") == 3 + 2  # the outermost is not needed again
    shared = checkpoint(lambda x: tnp.sin(tnp.sin(tnp.sin(x))).sum(), prevent_cse=False)
    assert count(jit(tracer.value_and_grad(shared)).lower(X).optimized(), "sin") == 3


@pytest.mark.parametrize("transform", [grad, lambda f: jit(grad(f)), lambda f: grad(grad(f))])
def test_what_it_prints_it_prints_once(transform: Any, capsys: pytest.CaptureFixture[str]) -> None:
    @checkpoint
    def f(x: Any) -> Any:
        y = tnp.sin(x)
        tracer.debug.print("y = {}", y)
        return lax.scan(lambda c, _: (printed(tnp.sin(c)), None), y, None, length=2)[0]

    def printed(x: Any) -> Any:
        tracer.debug.print("in the loop")
        return x

    transform(f)(0.0)
    assert capsys.readouterr().out == "y = 0.0\nin the loop\nin the loop\n"


def test_values_from_the_host_are_asked_for_once() -> None:
    calls: list[float] = []

    def host(x: Any) -> Any:
        calls.append(float(x))
        return 2.0 * x

    @checkpoint
    def f(x: Any) -> Any:
        y = tracer.io_callback(host, tracer.ShapeDtypeStruct((), "float64"), lax.stop_gradient(x))
        return tnp.sin(x) * y

    assert float(jit(grad(f))(0.0)) == 0.0
    assert float(grad(f)(1.0)) == pytest.approx(2.0 * np.cos(1.0))
    assert calls == [0.0, 1.0]


def test_static_arguments_and_keywords_are_python_values() -> None:
    @lambda f: checkpoint(f, static_argnums=(1,))
    def f(x: Any, power: int, *, scale: Any) -> Any:
        return scale * x**power if power > 1 else x

    assert float(grad(f)(3.0, 2, scale=2.0)) == 12.0
    assert float(jit(lambda x: grad(f)(x, 1, scale=2.0))(3.0)) == 1.0


def test_captured_arrays_are_differentiated() -> None:
    assert float(grad(lambda a: checkpoint(lambda x: tnp.sin(a * x))(2.0))(0.0)) == 2.0


def test_a_chain_of_checkpoints_keeps_one_value_a_link() -> None:
    def chain(x: Any) -> Any:
        for _ in range(10):
            x = checkpoint(lambda v: tnp.sin(tnp.cos(tnp.exp(-v))))(x)
        return x

    assert len(saved_residuals(chain, X)) == 10


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit])
def test_arguments_may_be_static_by_name(way: Any) -> None:
    @partial(tracer.checkpoint, static_argnames=("power", "negate"))
    def f(x: Any, power: int, *, negate: bool = False) -> Any:
        y = tnp.sin(x) ** power if power > 1 else x
        return -y if negate else y

    assert float(way(tracer.grad(lambda x: f(x, 2)))(1.0)) == pytest.approx(np.sin(2.0))
    assert float(way(tracer.grad(lambda x: f(x, power=2, negate=True)))(1.0)) == pytest.approx(-np.sin(2.0))


@pytest.mark.parametrize(
    ("outer", "inner", "products"),
    [
        ("nothing", "nothing", 14), ("nothing", "dots", 12), ("nothing", "everything", 12),
        ("dots", "nothing", 9), ("everything", "dots", 9),
    ],
)  # fmt: skip
def test_a_checkpoint_within_keeps_what_its_own_policy_says(outer: str, inner: str, products: int) -> None:
    """The products of a gradient, as many as JAX 0.10.2 has: what the outer one computes again, the inner one keeps."""
    within = checkpoint(lambda x: tnp.sin(tnp.sin(x @ x) @ x), policy=POLICIES[inner])
    around = checkpoint(lambda x: tnp.sin(within(tnp.cos(x)) @ x), policy=POLICIES[outer])
    program = tracer.make_program(grad(lambda x: around(x).sum()))(W)
    assert sum(e.primitive.name == "dot_general" for e in equations(program)) == products
