"""Functions with rules of their own: custom_jvp, custom_vjp, custom_gradient, custom_vmap."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import custom_jvp, custom_vjp, grad, jacfwd, jacrev, jit, jvp, lax, vmap
from tracer.custom_batching import custom_vmap
from tracer.custom_derivatives import SymbolicZero, zero_from_primal
from tracer.errors import ArgumentError, TracerBoolError
from tracer.ir.read import read_program
from tracer.primitives.catalogue import BY_NAME

WAYS = [lambda f: f, jit]


@custom_jvp
def tripled(x: Any) -> Any:
    return tnp.sin(x)


@tripled.defjvp
def _(primals: Any, tangents: Any) -> Any:
    return tripled(primals[0]), 3.0 * tnp.cos(primals[0]) * tangents[0]


@custom_vjp
def fivefold(x: Any, y: Any) -> Any:
    return tnp.sin(x) * y


fivefold.defvjp(lambda x, y: (fivefold(x, y), (x, y)), lambda r, g: (5.0 * g * tnp.cos(r[0]) * r[1], None))

X = tnp.asarray([0.1, 0.5, 1.2])


@pytest.mark.parametrize("way", WAYS)
def test_custom_rules_hold_under_every_transform(way: Any) -> None:
    cos, sin = np.cos(X), np.sin(X)
    f = lambda x: tripled(x).sum()  # noqa: E731
    np.testing.assert_allclose(way(grad(f))(X), 3 * cos)
    np.testing.assert_allclose(way(jacfwd(tripled))(X), np.diag(3 * cos))
    np.testing.assert_allclose(way(vmap(grad(tripled)))(X), 3 * cos)
    np.testing.assert_allclose(way(grad(lambda x: vmap(tripled)(x).sum()))(X), 3 * cos)
    np.testing.assert_allclose(way(vmap(grad(grad(tripled))))(X), -3 * sin)
    summed = lambda x: lax.scan(lambda c, v: (c + tripled(v), None), 0.0, x)[0]  # noqa: E731
    np.testing.assert_allclose(way(grad(summed))(X), 3 * cos)
    branch = lambda x: lax.cond(x > 0.3, tripled, tnp.sin, x)  # noqa: E731
    np.testing.assert_allclose(way(vmap(grad(branch)))(X), np.where(X > 0.3, 3, 1) * cos)


@pytest.mark.parametrize("way", WAYS)
def test_custom_reverse_rules_hold_under_every_transform(way: Any) -> None:
    cos = np.cos(X)
    f = lambda x: fivefold(x, 2.0)  # noqa: E731
    np.testing.assert_allclose(way(vmap(grad(f)))(X), 10 * cos)
    np.testing.assert_allclose(way(jacrev(f))(X), np.diag(10 * cos))
    np.testing.assert_allclose(way(grad(lambda x: vmap(f)(x).sum()))(X), 10 * cos)
    np.testing.assert_allclose(way(grad(lambda x: lax.scan(lambda c, v: (c + f(v), None), 0.0, x)[0]))(X), 10 * cos)
    chained = grad(lambda x: f(tracer.checkpoint(tnp.sin)(x)).sum())
    np.testing.assert_allclose(way(chained)(X), 10 * np.cos(np.sin(X)) * cos)
    assert float(way(grad(fivefold, argnums=1))(1.0, 2.0)) == 0.0


@pytest.mark.parametrize("way", WAYS)
def test_reverse_rules_sum_what_lanes_owe_to_an_argument_that_they_share(way: Any) -> None:
    @tracer.custom_vjp
    def product(x: Any, y: Any) -> Any:
        return x * y

    product.defvjp(lambda x, y: (x * y, (x, y)), lambda kept, g: (2.0 * g * kept[1], 3.0 * g * kept[0]))
    f = lambda x, y: (tnp.asarray([1.0, 10.0, 100.0]) * vmap(product, in_axes=(0, None))(x, y)).sum()  # noqa: E731
    dx, dy = way(grad(f, argnums=(0, 1)))(tnp.asarray([1.0, 2.0, 3.0]), 0.5)
    np.testing.assert_allclose(dx, [1.0, 10.0, 100.0])
    assert float(dy) == 3.0 * 321.0


@pytest.mark.parametrize("way", WAYS)
def test_a_linear_reverse_rule_is_a_forward_one(way: Any) -> None:
    _, found = way(lambda x: jvp(lambda x: fivefold(x, 2.0), (x,), (1.0,)))(0.5)
    assert float(found) == pytest.approx(10.0 * np.cos(0.5), rel=1e-14)


def test_rules_for_each_argument_are_summed() -> None:
    @custom_jvp
    def product(x: Any, y: Any, z: Any) -> Any:
        return x * y * z

    product.defjvps(lambda dx, out, x, y, z: dx * 10.0, None, lambda dz, out, x, y, z: dz * out)
    assert [float(g) for g in grad(product, (0, 1, 2))(2.0, 3.0, 4.0)] == [10.0, 0.0, 24.0]


@pytest.mark.parametrize("way", WAYS)
def test_rules_of_constant_arguments_are_not_called(way: Any) -> None:
    @custom_jvp
    def root(x: Any, y: Any) -> Any:
        return x["a"] * tnp.sqrt(y)

    root.defjvps(lambda dx, out, x, y: dx["a"] * tnp.sqrt(y), lambda dy, out, x, y: dy * x["a"] / tnp.sqrt(y))
    assert float(way(grad(lambda a: root({"a": a, "b": 1.0}, 0.0)))(2.0)) == 0.0  # not 0 * inf
    assert float(way(grad(lambda y: root({"a": 2.0, "b": 1.0}, y)))(4.0)) == 1.0


@pytest.mark.parametrize("way", WAYS)
def test_nondiff_arguments_come_first_in_the_rules(way: Any) -> None:
    @lambda f: custom_jvp(f, nondiff_argnums=(0, 2))
    def applied(function: Any, x: Any, scale: float) -> Any:
        return scale * function(x)

    def rule(function: Any, scale: float, primals: Any, tangents: Any) -> Any:
        return applied(function, primals[0], scale), scale * tangents[0]

    applied.defjvp(rule)
    assert float(way(grad(lambda x: applied(tnp.sin, x, 7.0)))(1.0)) == 7.0

    @lambda f: custom_vjp(f, nondiff_argnums=(0,))
    def pulled(function: Any, x: Any) -> Any:
        return function(x)

    pulled.defvjp(lambda function, x: (function(x), None), lambda function, _, g: (g * function(2.0),))
    assert float(way(grad(lambda x: pulled(tnp.square, x)))(1.0)) == 4.0


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("mapped", [False, True])
def test_reverse_rules_may_ask_for_symbolic_zeros(way: Any, mapped: bool) -> None:
    seen: list[Any] = []

    @custom_vjp
    def f(x: Any, y: Any) -> Any:
        return x * y, x + y

    def forward(x: Any, y: Any) -> Any:
        seen.append((x.perturbed, y.perturbed))
        return f(x.value, y.value), (x.value, y.value)

    def backward(residuals: Any, cotangents: Any) -> Any:
        _, y = residuals
        seen.append(tuple(type(c) is SymbolicZero for c in cotangents))
        return cotangents[0] * y, zero_from_primal(y, symbolic_zeros=True)

    f.defvjp(forward, backward, symbolic_zeros=True)
    g = grad(lambda x: f(x, 4.0)[0])
    assert float((vmap(way(g))(tnp.asarray([3.0, 3.0]))[0]) if mapped else way(g)(3.0)) == 4.0
    assert seen[0] == (True, False)
    assert seen[-1] == (False, True)


def test_forward_rules_may_ask_for_symbolic_zeros() -> None:
    @custom_jvp
    def f(x: Any, y: Any) -> Any:
        return x * y

    def rule(primals: Any, tangents: Any) -> Any:
        assert type(tangents[1]) is SymbolicZero
        assert (tangents[1].shape, tangents[1].dtype) == ((3,), np.float64)
        return f(*primals), tangents[0] * primals[1]

    f.defjvp(rule, symbolic_zeros=True)
    np.testing.assert_array_equal(grad(lambda x: f(x, X).sum())(X), X)


def test_integer_arguments_and_results_have_float0() -> None:
    @custom_vjp
    def f(x: Any, n: Any) -> Any:
        return x * n, n + 1

    def backward(n: Any, cotangents: Any) -> Any:
        assert cotangents[1].dtype == tracer.dtypes.float0
        return cotangents[0] * n, None

    f.defvjp(lambda x, n: (f(x, n), n), backward)
    assert float(grad(lambda x: f(x, 3)[0])(2.0)) == 3.0
    assert float(jit(grad(lambda x: f(x, 3)[0]))(2.0)) == 3.0


@pytest.mark.parametrize("way", WAYS)
def test_custom_gradient_returns_the_pullback_beside_the_value(way: Any) -> None:
    @tracer.custom_gradient
    def f(x: Any, y: Any) -> Any:
        s = tnp.sin(x)
        return s * y, lambda g: (g * 10.0 * s, g * y)

    for mapped in (False, True):
        g = grad(f, (0, 1))
        x, y = (tnp.ones(2), tnp.ones(2)) if mapped else (1.0, 1.0)
        dx, dy = way(vmap(g) if mapped else g)(x, y)
        np.testing.assert_allclose(dx, np.full(np.shape(x), 10 * np.sin(1.0)))
        np.testing.assert_allclose(dy, np.ones(np.shape(x)))

    @tracer.custom_gradient
    def tree(p: Any) -> Any:
        return p["a"] + p["b"], lambda g: {"a": 2.0 * g, "b": 3.0 * g}

    assert {k: float(v) for k, v in way(grad(tree))({"a": 1.0, "b": 2.0}).items()} == {"a": 2.0, "b": 3.0}


def test_a_custom_rule_in_a_branch_that_faults_keeps_its_rule_when_lanes_part() -> None:
    table = tnp.asarray([1.0, 2.0, 4.0])

    @custom_jvp
    def looked_up(x: Any, i: Any) -> Any:
        return x * table[i]

    looked_up.defjvp(lambda p, t: (looked_up(*p), 10.0 * t[0] * table[p[1]]))

    def f(x: Any, i: Any) -> Any:
        return lax.cond(i < 3, lambda: looked_up(x, i), lambda: 0.0 * x)

    xs, places = tnp.ones(4), tnp.asarray([0, 7, 2, 9])
    for way in WAYS:
        np.testing.assert_array_equal(vmap(way(grad(f)))(xs, places), [10.0, 0.0, 40.0, 0.0])
        np.testing.assert_array_equal(way(grad(lambda v: vmap(f)(v, places).sum()))(xs), [10.0, 0.0, 40.0, 0.0])


# custom_vmap


@custom_vmap
def counted(x: Any, y: Any) -> Any:
    return tnp.sin(x) * y, y


@counted.def_vmap
def _(axis_size: int, in_batched: Any, x: Any, y: Any) -> Any:
    x_batched, y_batched = in_batched
    column = y[:, None] if y_batched and y.ndim < x.ndim else y
    return (axis_size * tnp.sin(x) * column, y), (x_batched or y_batched, y_batched)


@pytest.mark.parametrize("way", WAYS)
def test_custom_vmap_batches_by_the_users_rule(way: Any) -> None:
    ys = tnp.asarray([1.0, 2.0, 3.0])
    np.testing.assert_allclose(way(vmap(counted))(X, ys)[0], 3 * np.sin(X) * ys)
    np.testing.assert_allclose(way(vmap(counted, (0, None)))(X, 2.0)[0], 3 * np.sin(X) * 2)
    assert vmap(counted, (0, None), out_axes=(0, None))(X, 2.0)[1].shape == ()
    np.testing.assert_allclose(way(vmap(lambda x: counted(x, 2.0)[0]))(X), 3 * np.sin(X) * 2)
    assert float(way(lambda x: counted(x, 2.0)[0])(1.0)) == pytest.approx(2 * np.sin(1.0))


@pytest.mark.parametrize("way", WAYS)
def test_derivatives_of_custom_vmap(way: Any) -> None:
    f = lambda x: counted(x, 2.0)[0]  # noqa: E731
    assert float(way(grad(f))(1.0)) == pytest.approx(2 * np.cos(1.0))
    pushed = way(vmap(lambda x, dx: jvp(f, (x,), (dx,))[1]))
    np.testing.assert_allclose(pushed(X, tnp.ones(3)), 3 * 2 * np.cos(X))  # the rule's own derivative
    np.testing.assert_allclose(way(grad(lambda x: vmap(f)(x).sum()))(X), 3 * 2 * np.cos(X))


MISTAKES = [
    (
        lambda: vmap(custom_vmap(tnp.sin))(X),
        "custom_vmap sin at @ has no rule yet\n  help: define it with sin.def_vmap(...)",
    ),
    (
        lambda: grad(custom_vjp(tnp.sin))(1.0),
        "custom_vjp sin at @ has no rule yet\n  help: define it with sin.defvjp(...)",
    ),
    (
        lambda: grad(tracer.custom_gradient(lambda x: x))(1.0),
        (
            "custom_gradient lambda at @: the function must return (outputs, pullback)\n  got Array\n"
            "  help: pullback takes the outputs' cotangents and returns the arguments' cotangents"
        ),
    ),
]


@pytest.mark.parametrize(("call", "text"), MISTAKES)
def test_mistakes_say_what_is_missing(call: Any, text: str) -> None:
    with pytest.raises(ArgumentError) as caught:
        call()
    first, *rest = str(caught.value).splitlines()
    place = first.split(" at ")[1].split(" ")[0].rstrip(":")
    assert place.startswith("test_custom_functions.py:")
    assert "\n".join([first.replace(place, "@"), *rest]) == text


def test_closure_convert_hoists_traced_floats() -> None:
    table = tnp.ones(3)

    def f(a: Any) -> Any:
        converted, captured = tracer.closure_convert(lambda x: a * x + table.sum(), 1.0)
        assert len(captured) == 1
        return converted(2.0, *captured)

    assert float(grad(f)(5.0)) == 2.0
    assert float(jit(f)(5.0)) == 13.0


def test_named_calls_take_and_return_any_objects() -> None:
    class Thing:
        pass

    thing = Thing()

    def scaled(x: Any, how: str, by: Any, what: Any) -> Any:
        assert type(by) is int
        return {"y": by * x if how == "up" else x, "what": what, "how": how}

    f = tracer.named_call(scaled)
    found = jit(lambda x: [f(x, "up", 3, thing)["y"], f(x, "down", 3, None)["y"]])(2.0)
    assert [*map(float, found)] == [6.0, 2.0]
    assert f(2.0, "up", 3, thing)["what"] is thing
    assert float(grad(lambda x: f(x, "up", 3, thing)["y"] if x > 0 else x)(2.0)) == 3.0


def test_named_calls_run_and_differentiate() -> None:
    f = tracer.named_call(lambda x, *, n: x**n, name="power")
    assert float(f(3.0, n=2)) == 9.0
    assert float(jit(grad(lambda x: f(x, n=2)))(3.0)) == 6.0


def test_a_reverse_rule_that_faults_is_subject_to_its_lanes() -> None:
    table = tnp.asarray([1.0, 2.0, 4.0])

    @custom_vjp
    def looked_up(x: Any, i: Any) -> Any:
        return x * table[i]

    looked_up.defvjp(lambda x, i: (looked_up(x, i), (table[i], i)), lambda r, g: (10.0 * g * r[0] * table[r[1]], None))

    def f(x: Any, i: Any) -> Any:
        return lax.cond(i < 3, lambda: looked_up(x, i), lambda: 0.0 * x)

    xs, places = tnp.ones(4), tnp.asarray([0, 7, 2, 9])
    for way in WAYS:
        np.testing.assert_array_equal(vmap(way(grad(f)))(xs, places), [10.0, 0.0, 160.0, 0.0])
        np.testing.assert_array_equal(way(grad(lambda v: vmap(f)(v, places).sum()))(xs), [10.0, 0.0, 160.0, 0.0])


def test_arguments_may_be_fixed_by_name_and_by_default() -> None:
    @partial(custom_vjp, nondiff_argnames=("n",))
    def f(x: Any, n: int = 2) -> Any:
        return x**n

    f.defvjp(lambda x, n: (f(x, n), x), lambda n, x, g: (g * n * 100.0 * x ** (n - 1),))
    assert float(grad(f)(3.0)) == float(jit(grad(f))(3.0)) == 600.0
    assert float(grad(lambda x: f(x, n=3))(1.0)) == 300.0
    assert float(grad(lambda x: f(n=3, x=x))(1.0)) == 300.0

    @partial(custom_jvp, nondiff_argnames="n")
    def g(x: Any, n: int) -> Any:
        return x**n

    g.defjvp(lambda n, primals, tangents: (g(*primals, n), 7.0 * n * tangents[0]))
    assert float(grad(g)(3.0, 2)) == 14.0
    with pytest.raises(ArgumentError, match="nondiff_argnames names no positional parameter\n  got 'm', of x, n"):
        custom_jvp(lambda x, n: x, nondiff_argnames="m")


def test_arguments_by_keyword_only_are_refused() -> None:
    @custom_vjp
    def f(x: Any, *, n: int = 2) -> Any:
        return x * n

    f.defvjp(lambda x: (f(x), None), lambda _, g: (g,))
    assert float(f(3.0)) == 6.0
    with pytest.raises(
        ArgumentError, match="'n' can be given by keyword only\n  help: rules take arguments by position"
    ):
        f(3.0, n=5)


def test_zeros_of_a_primal_are_dense_or_symbolic() -> None:
    zeros = zero_from_primal({"x": X, "n": 3})
    assert zeros["x"].tolist() == [0.0] * X.size
    assert zeros["n"].dtype == tracer.float0
    symbolic = zero_from_primal({"x": X, "n": 3}, symbolic_zeros=True)
    assert (type(symbolic["x"]), symbolic["n"].dtype) == (SymbolicZero, tracer.float0)


@pytest.mark.parametrize("way", [lambda f: f, jit])
def test_sequential_vmap_runs_lane_after_lane(way: Any, capsys: pytest.CaptureFixture[str]) -> None:
    @tracer.custom_batching.sequential_vmap
    def f(p: Any, s: Any) -> Any:
        tracer.debug.print("{}", p["v"])
        return {"y": p["v"] * s, "n": p["w"]}

    result = way(vmap(f, in_axes=({"v": 0, "w": None}, None)))({"v": tnp.arange(3.0), "w": tnp.ones(2)}, 2.0)
    assert capsys.readouterr().out.split() == ["0.0", "1.0", "2.0"]
    assert result["y"].tolist() == [0.0, 2.0, 4.0]
    assert result["n"].tolist() == [[1.0, 1.0]] * 3


@pytest.mark.parametrize("way", WAYS)
def test_none_stands_for_the_gradient_of_any_part_of_an_argument(way: Any) -> None:
    @custom_vjp
    def f(p: Any, n: Any) -> Any:
        return (p["w"][0] * p["w"][1]["v"]).sum() * p["b"] * n

    f.defvjp(lambda p, n: (f(p, n), p), lambda p, g: ({"w": [g * X, None], "b": 5.0 * g}, None))
    found = way(grad(f))({"w": [X, {"v": X}], "b": 2.0}, 3)
    assert found["w"][0].tolist() == X.tolist()
    assert found["w"][1]["v"].tolist() == [0.0] * 3
    assert float(found["b"]) == 5.0


def test_scopes_name_operations_and_what_transforms_make_of_them() -> None:
    @tracer.named_scope("model")
    def f(x: Any) -> Any:
        with tracer.named_scope("two words"):
            return tnp.sin(x)

    program = tracer.make_program(lambda x: tracer.grad(f)(x) + 1.0)(1.0)
    scopes = {e.primitive.name: e.source.scope for e in program.equations if e.source is not None}
    assert {scopes[name] for name in ("sin", "cos")} == {"model/two words"}
    assert scopes["add"] == ""
    read = read_program(str(program), BY_NAME)
    assert str(read) == str(program)
    assert " in model/two words" in str(read)
    with pytest.raises(ArgumentError, match=r"named_scope at .* takes a string\n  got int"):
        tracer.named_scope(3)  # type: ignore[arg-type]


@pytest.mark.parametrize("way", [lambda f: f, tracer.jit, tracer.grad, lambda f: tracer.jit(tracer.grad(f))])
def test_what_is_known_is_computed_at_once_where_that_is_asked(way: Any) -> None:
    known = tnp.arange(4.0)

    def f(x: Any) -> Any:
        with tracer.ensure_compile_time_eval():
            total = tnp.sin(known).sum() + tracer.lax.fori_loop(0, 3, lambda _, c: c + 1.0, 0.0)
            steps = int(known.max()) if total > 1.0 else 0
            return x * steps + 0.0 * total

    assert float(way(f)(2.0)) in (6.0, 3.0)
    assert tracer.lax.scan(lambda c, x: (c, f(x)), 0, tnp.ones(2))[1].tolist() == [3.0, 3.0]
    with pytest.raises(TracerBoolError):
        tracer.jit(lambda x: x if tnp.sin(known).sum() > 0 else 2 * x)(1.0)
