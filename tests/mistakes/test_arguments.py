"""Mistakes with the arguments and results of `jit`."""

from __future__ import annotations

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
