"""Mistakes with the arguments and results of `jit`."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tracer
from tests.grids import each
from tests.mistakes.told import X, fails
from tracer import errors, jit


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
        lambda: jit(lambda x, name: x)(X, "layer"),  # here
        "jit of lambda at @here: argument 1 'name' is not an array\n  got str: 'layer'\n"
        "  help: leave it out of the traced arguments: mark it static (static_argnums, static_argnames)",
    )


def test_a_string_result() -> None:
    fails(
        errors.ArgumentError,
        lambda: jit(lambda x: (x, "done"))(X),  # here
        "jit of lambda at @here returned a value that is not an array\n  got str for the result at [1]\n"
        "  help: return arrays and numbers, or trees of them",
    )


CAPTURE = "let f capture it"
STATIC = "mark it static (static_argnums)"


@each(
    ("name", "use", "remedy"),
    [
        ("checkpoint", lambda f, p: jit(lambda x: tracer.checkpoint(f)({**p, "x": x}))(1.0), STATIC),
        ("grad", lambda f, p: tracer.grad(f)(p), CAPTURE),
        ("value_and_grad", lambda f, p: tracer.value_and_grad(f)(p), CAPTURE),
        ("jvp", lambda f, p: tracer.jvp(f, (p,), (p,)), CAPTURE),
        ("vjp", tracer.vjp, CAPTURE),
        ("linearize", tracer.linearize, CAPTURE),
        ("linear_transpose", tracer.linear_transpose, CAPTURE),
        ("jacfwd", lambda f, p: tracer.jacfwd(f)(p), CAPTURE),
        ("jacrev", lambda f, p: tracer.jacrev(f)(p), CAPTURE),
        ("hessian", lambda f, p: tracer.hessian(f)(p), CAPTURE),
        ("hvp", lambda f, p: tracer.hvp(f, (p,), (p,)), CAPTURE),
    ],
)
def test_every_transform_names_itself_and_the_leaf(name: str, use: Any, remedy: str) -> None:
    def f(params: Any) -> Any:
        return params["w"][0]

    with pytest.raises(errors.ArgumentError) as caught:
        use(f, {"w": [X, "three"]})
    first, *rest = str(caught.value).splitlines()
    assert re.fullmatch(rf"{name} of f at test_arguments.py:\d+: argument 0, params\['w'\]\[1\] is not an array", first)
    assert rest == ["  got str: 'three'", f"  help: leave it out of the traced arguments: {remedy}"]


@pytest.mark.parametrize(
    ("name", "use"),
    [
        ("jit", lambda f, p: jit(f)(p)),
        ("eval_shape", tracer.eval_shape),
        ("make_program", lambda f, p: tracer.make_program(f)(p)),
        ("vmap", lambda f, p: tracer.vmap(f)(p)),
    ],
)
def test_transforms_that_take_text_in_trees_name_other_leaves(name: str, use: Any) -> None:
    def f(params: Any) -> Any:
        return params["w"][0]

    use(f, {"w": [X, "three", len, None]})
    with pytest.raises(errors.ArgumentError) as caught:
        use(f, {"w": [X, {4}]})
    first, got, remedy = str(caught.value).splitlines()
    assert re.fullmatch(rf"{name} of f at test_arguments.py:\d+: argument 0, params\['w'\]\[1\] is not an array", first)
    assert got == "  got set: {4}"
    assert remedy.startswith("  help: pass arrays and numbers, or trees of them")


@each(
    ("name", "use"),
    [
        ("jit", lambda f: jit(f)(X)),
        ("eval_shape", lambda f: tracer.eval_shape(f, X)),
        ("make_program", lambda f: tracer.make_program(f)(X)),
        ("grad", lambda f: tracer.grad(f)(X)),
        ("vmap", lambda f: tracer.vmap(f)(X)),
        ("jvp", lambda f: tracer.jvp(f, (X,), (X,))),
        ("vjp", lambda f: tracer.vjp(f, X)),
        ("linear_transpose", lambda f: tracer.linear_transpose(f, X)),
        ("jacfwd", lambda f: tracer.jacfwd(f)(X)),
        ("the body of scan", lambda f: tracer.lax.scan(lambda c, x: (c, f(x)), 0.0, X)),
        ("false_fun of cond", lambda f: tracer.lax.cond(True, f, f, X)),
    ],
)
def test_every_transform_names_a_result_that_is_no_array(name: str, use: Any) -> None:
    def f(x: Any) -> Any:
        return {"y": (x, "done")}

    with pytest.raises(errors.ArgumentError) as caught:
        use(f)
    first, got, remedy = str(caught.value).splitlines()
    assert first.startswith(f"{name} of f at test_arguments.py:" if " " not in name else f"{name} at ")
    assert first.endswith(" returned a value that is not an array")
    where = "[1]['y'][1]" if "scan" in name else "['y'][1]"
    assert (got, remedy) == (
        f"  got str for the result at {where}",
        "  help: return arrays and numbers, or trees of them",
    )


@pytest.mark.parametrize(
    ("where", "option", "use"),
    [
        ("jit", "static_argnums", lambda f: jit(f, static_argnums=4)),
        ("checkpoint", "static_argnums", lambda f: tracer.checkpoint(f, static_argnums=(0, 4))),
        ("custom_jvp", "nondiff_argnums", lambda f: tracer.custom_jvp(f, nondiff_argnums=(4,))),
        ("custom_vjp", "nondiff_argnums", lambda f: tracer.custom_vjp(f, nondiff_argnums=(4,))),
    ],
)
def test_arguments_that_a_function_has_not_are_told_where_they_are_named(where: str, option: str, use: Any) -> None:
    def f(x: Any, y: Any = 1.0) -> Any:
        return x * y

    with pytest.raises(errors.ArgumentError) as caught:
        use(f)
    first, had, _ = str(caught.value).splitlines()
    assert re.fullmatch(rf"{where}( of)? f at test_arguments\.py:\d+: {option} names argument 4", first)
    assert had == "  the function has 2 positional parameters"
