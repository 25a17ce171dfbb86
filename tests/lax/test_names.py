"""tracer.lax beside JAX's lax: every name is there or excused, every parameter too, and docs/lax.md says so."""

from __future__ import annotations

import inspect

from tools.lax_table import ABSENT, JAX, NOT_TAKEN, TARGET, text
from tracer import lax


def test_every_name_of_jax_is_here_or_excused() -> None:
    missing = set(JAX.names) - set(lax.__all__)
    assert missing == set(ABSENT), "add it to tracer.lax, or say in tools/lax_table.py why not"


def test_every_parameter_of_jax_is_taken_or_excused() -> None:
    assert set(JAX.not_taken()) == set(NOT_TAKEN)


def test_parameters_stand_in_jax_s_order() -> None:
    for name, theirs in JAX.names.items():
        value = getattr(lax, name, None)
        if name in lax.__all__ and inspect.isfunction(value) and theirs:
            ours = list(inspect.signature(value).parameters)
            shared = [p for p in ours if p in theirs]
            assert shared == [p for p in theirs if p in ours], name


def test_the_page_is_current() -> None:
    assert TARGET.read_text(encoding="utf-8") == text(), "run python tools/lax_table.py"
