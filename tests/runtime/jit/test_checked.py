"""`checked`, `config.debug_nans` and `config.debug_infs`: the operation that makes a NaN or infinity raises."""

from __future__ import annotations

import re
import traceback
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import checked, config, grad, jit, lax, vmap
from tracer.errors import NonFiniteError


def root(x: Any) -> Any:
    return tnp.sqrt(x).sum()


def masked(x: Any) -> Any:
    return tnp.where(x > 1, tnp.log(x - 1) * 3.0, 0.0).sum()


def stepped(x: Any) -> Any:
    def body(c: Any, _: Any) -> Any:
        return tnp.sqrt(c) - 3.0, c

    return lax.scan(body, x, None, length=5)[0]


def nested(x: Any) -> Any:
    def outer(i: Any, c: Any) -> Any:
        return lax.while_loop(lambda t: t.sum() < 10 * i, lambda t: t + tnp.log(t - i), c)

    return lax.fori_loop(0, 4, outer, x)


def line(f: Any, offset: int) -> str:
    return f"test_checked.py:{f.__code__.co_firstlineno + offset}"


X = tnp.asarray([1.0, 2.0])


def test_the_whole_message() -> None:
    with pytest.raises(NonFiniteError) as info:
        checked(root)(tnp.asarray([-4.0, 2.0, np.inf]))
    assert str(info.value) == (
        f"sqrt at {line(root, 1)}: 1 of 3 elements are NaN, from operands without NaN\n"
        "  operand f64[3] in [-4, inf]\n"
        "  help: tracer.debug.watch(f)(...) shows the range of every line's values"
    )


def fails(call: Any, first: str, *lines: str) -> None:
    with pytest.raises(NonFiniteError, match=re.escape(first)) as info:
        call()
    for text in lines:
        assert text in str(info.value)


def test_a_loop_names_its_iteration() -> None:
    fails(
        lambda: checked(stepped)(X),
        f"sqrt at {line(stepped, 2)}: 2 of",
        f"in iteration 1 of the loop at {line(stepped, 4)}",
    )
    fails(
        lambda: checked(nested)(X),
        f"log at {line(nested, 2)}: 1 of",
        "iteration 0 of the loop",
        "iteration 1 of the loop",
    )


def test_a_derivative_names_the_line_that_it_differentiates() -> None:
    fails(lambda: checked(grad(root))(0.0 * X), f"div in the gradient of {line(root, 1)}: 2 of 2 elements are infinite")
    fails(lambda: checked(vmap(grad(root)))(0.0 * X), f"div in the gradient of {line(root, 1)}")


def test_a_derivative_of_a_loop_names_the_iteration_of_the_loop() -> None:
    def f(x: Any) -> Any:
        return lax.scan(lambda c, a: (c * tnp.sqrt(a), None), 1.0, x)[0]

    at = line(f, 1)
    fails(
        lambda: checked(grad(f))(tnp.asarray([1.0, 4.0, 0.0])),
        f"div in the gradient of {at}",
        "iteration 2 of the loop",
    )


def test_elements_that_where_drops_pass() -> None:
    assert checked(masked)(X) == 0.0
    with config.using(debug_nans=True, debug_infs=True):
        assert jit(masked)(X) == 0.0


def test_elements_that_where_takes_are_traced_to_the_operation_that_made_them() -> None:
    def f(x: Any) -> Any:
        return tnp.where(x > 0, tnp.log(x - 1) * 3.0, 0.0).sum()

    fails(lambda: checked(f)(X), f"log at {line(f, 1)}: 1 of 2 elements are infinite", "chosen by select")


def test_a_masked_function_whose_gradient_is_nan_raises() -> None:
    fails(lambda: checked(grad(masked))(X), "in the gradient of", "NaN")


@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda x: tracer.nn.softmax(tnp.where(x > 1, x, -tnp.inf)), X),
        (lambda x: tnp.max(x, initial=-tnp.inf), X),
        (tracer.scipy.special.logsumexp, X),
        (tnp.nan_to_num, tnp.asarray([tnp.nan, tnp.inf])),
        (lambda x: x * 2.0, tnp.asarray([tnp.nan, tnp.inf])),
        (lambda x: tracer.random.normal(tracer.random.key(0), (100,)) + x[0], X),
    ],
)
def test_programs_without_faults_pass(f: Any, x: Any) -> None:
    np.testing.assert_array_equal(checked(f)(x), jit(f)(x))


def test_nans_and_infinities_are_told_apart() -> None:
    def f(x: Any) -> Any:
        return 1.0 / x

    zero = tnp.asarray([0.0])
    assert np.isinf(checked(f, infs=False)(zero)).all()
    fails(lambda: checked(f, nans=False)(zero), "1 of 1 elements are infinite, from finite operands")
    fails(lambda: checked(lambda x: x - x, infs=False)(tnp.asarray([np.inf])), "NaN, from operands without NaN")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "complex64"])
def test_every_inexact_dtype_is_checked(dtype: str) -> None:
    fails(lambda: checked(lambda x: x / (x - x))(tnp.ones(3, dtype)), "div at")


def test_checked_composes_with_transforms() -> None:
    at = f"sqrt at {line(root, 1)}"
    fails(lambda: grad(checked(root))(X - 5.0), at)
    fails(lambda: vmap(checked(root))(X[None] - 5.0), at)
    fails(lambda: jit(checked(root))(X - 5.0), at)
    np.testing.assert_allclose(grad(checked(root))(X), grad(root)(X))
    fails(lambda: checked(jit(lambda x: jit(root)(x) + jit(root)(x - 5.0)))(X), at)


def test_a_jitted_step_inside_a_loop_has_the_iteration() -> None:
    step = jit(lambda c, _: (tnp.sqrt(c) - 3.0, None))
    fails(lambda: checked(lambda x: lax.scan(step, x, None, length=3)[0])(X), "sqrt at", "in iteration 1 of the loop")
    assert np.isnan(step(X - 9.0, 0)[0]).all()


def test_a_custom_rule_is_kept_by_a_checked_function_that_is_differentiated() -> None:
    @tracer.custom_jvp
    def f(x: Any) -> Any:
        return x * 2.0

    f.defjvp(lambda xs, dxs: (f(xs[0]), 7.0 * dxs[0]))
    assert grad(checked(lambda x: f(x) + 0.0))(1.0) == 7.0


def test_the_setting_holds_for_jit_and_outside() -> None:
    for call in (root, jit(root)):
        with config.using(debug_nans=True):
            fails(lambda call=call: call(X - 5.0), f"sqrt at {line(root, 1)}")
        assert np.isnan(call(X - 5.0))
    with config.using(debug_nans=True, debug_infs=True):
        fails(lambda: grad(root)(0.0 * X), f"div in the gradient of {line(root, 1)}")
        fails(lambda: stepped(X), f"sqrt at {line(stepped, 2)}", "in iteration 1 of the loop")
    assert np.isinf(grad(root)(0.0 * X)).all()


def test_the_settings_have_jaxs_names() -> None:
    f = jit(root)
    f(X)
    try:
        config.update("jax_debug_nans", True)
        assert config.debug_nans
        assert config.jax_debug_nans
        fails(lambda: f(X - 5.0), "sqrt at")
        fails(lambda: root(X - 5.0), "sqrt at")
    finally:
        config.update("jax_debug_nans", False)
    assert np.isnan(f(X - 5.0))


def test_disable_jit_as_a_setting_runs_python() -> None:
    calls = []
    f = jit(lambda x: calls.append(1) or x + 1.0)
    f(1.0)
    f(1.0)
    with config.using(disable_jit=True):
        f(1.0)
        f(1.0)
    f(1.0)
    assert len(calls) == 3


def test_checks_are_part_of_the_printed_program() -> None:
    with config.using(debug_nans=True):
        assert "callback" in str(jit(root).lower(X).program())
    assert "callback" not in str(jit(root).lower(X).program())


def test_the_traceback_ends_in_the_users_file() -> None:
    with pytest.raises(NonFiniteError) as caught:
        tracer.checked(tnp.log)(-1.0)
    files = [frame.filename for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert files == [__file__]


def test_a_callback_that_makes_nan_is_found() -> None:
    def f(x: Any) -> Any:
        return tracer.pure_callback(lambda v: np.asarray(v) * np.nan, tracer.ShapeDtypeStruct((), "float64"), x)

    for call in (checked(f), checked(jit(f)), checked(lambda x: lax.fori_loop(0, 2, lambda _, c: f(c), x))):
        with pytest.raises(NonFiniteError, match=r"^callback at test_checked.py:\d+: 1 of 1 elements are NaN"):
            call(1.0)
