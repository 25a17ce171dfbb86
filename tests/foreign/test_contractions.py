"""einops and opt_einsum, which find their functions by the type of an array."""

from __future__ import annotations

from typing import Any

import numpy as np
import opt_einsum
import pytest

import tracer.numpy as tnp
from tests.foreign.outcomes import MODES, NUMPY, PLAIN, REFUSED, Case, check
from tests.foreign.requirements import installed

X = np.random.default_rng(3).normal(size=(4, 6))
Y = np.random.default_rng(4).normal(size=(4, 6))


def _einops(name: str, *patterns: Any, operands: tuple[Any, ...] = (X,), **lengths: Any) -> Case:
    def call(*xs: Any) -> Any:
        import einops

        return getattr(einops, name)(*xs, *patterns, **lengths)

    return Case(name, call, operands)


def _listed(x: Any, y: Any) -> Any:
    import einops

    return einops.rearrange([x, y], "k a b -> a (k b)")


def _packed(x: Any, y: Any) -> Any:
    import einops

    packed, shapes = einops.pack([x, y[:, 0]], "a *")
    return packed, *einops.unpack(packed, shapes, "a *")


def _standard(x: Any) -> Any:
    from einops import array_api

    return array_api.rearrange(x, "a (b c) -> c a b", b=2)


def _asnumpy(x: Any) -> Any:
    import einops

    return einops.asnumpy(x)


EINOPS = [
    _einops("rearrange", "a (b c) -> c a b", b=2),
    *[_einops("reduce", "a (b c) -> a b", operation, b=2) for operation in ("mean", "sum", "max", "min", "prod")],
    _einops("repeat", "a b -> a c b", c=3),
    _einops("einsum", "a b, c b -> a c", operands=(X, Y)),
    _einops("repeat", "... b -> ... b c", c=3),
    _einops("reduce", "a b -> a", lambda x, axes: x.sum(axes)),
    Case("rearrange of a list", _listed, (X, Y)),
    Case("pack and unpack", _packed, (X, Y)),
    Case("array_api.rearrange", _standard, (X,)),
    Case("asnumpy", _asnumpy, (X,), NUMPY, REFUSED, REFUSED),
]
E_RUNS = [(case, mode) for case in EINOPS for mode in MODES]


@installed("einops")
@pytest.mark.parametrize(
    ("case", "mode"), E_RUNS, ids=[f"{case.function} {n} {mode}" for n, (case, mode) in enumerate(E_RUNS)]
)
def test_einops(case: Case, mode: str) -> None:
    check("einops", case, mode)


@installed("einops")
def test_einops_names_a_pattern_that_does_not_fit() -> None:
    import einops

    with pytest.raises(einops.EinopsError, match="Shape mismatch"):
        einops.rearrange(tnp.asarray(X), "(a b) c -> a b c", a=3)


def _chain(x: Any, y: Any) -> Any:
    return opt_einsum.contract("ij,kj,kl->il", x, y, x)


def _diagonal(x: Any) -> Any:
    return opt_einsum.contract("ii->i", x[:, :4])


def _expression(x: Any, y: Any) -> Any:
    return opt_einsum.contract_expression("ij,kj->ik", x.shape, y.shape)(x, y)


def _with_constants(y: Any) -> Any:
    return opt_einsum.contract_expression("ij,kj->ik", X, y.shape, constants=[0])(y)


def _shared(x: Any, y: Any) -> Any:
    with opt_einsum.shared_intermediates():
        return opt_einsum.contract("ij,kj->ik", x, y)


OPT_EINSUM = [
    Case("contract", _chain, (X, Y)),
    Case("contract of one operand", _diagonal, (X,)),
    Case("contract to a number", lambda x, y: opt_einsum.contract("ij,ij->", x, y), (X, Y)),
    Case("contract with a path", lambda x, y: opt_einsum.contract("ij,kj,kl->il", x, y, x, optimize="optimal"), (X, Y)),
    Case("contract_expression", _expression, (X, Y)),
    Case("contract by indices", lambda x, y: opt_einsum.contract(x, [0, 1], y, [0, 1], [0]), (X, Y)),
    Case("contract with an ellipsis", lambda x, y: opt_einsum.contract("...j,...j->...", x, y), (X, Y)),
    Case("contract_expression with constants", _with_constants, (Y,)),
    Case("shared_intermediates", _shared, (X, Y)),
    Case("contract_path", lambda x, y: opt_einsum.contract_path("ij,kj->ik", x, y)[0], (X, Y), PLAIN, PLAIN, None),
]
O_RUNS = [(case, mode) for case in OPT_EINSUM for mode in MODES if case.expected(mode) is not None]


@pytest.mark.parametrize(("case", "mode"), O_RUNS, ids=[f"{case.function} {mode}" for case, mode in O_RUNS])
def test_opt_einsum(case: Case, mode: str) -> None:
    check("opt_einsum", case, mode)


def test_opt_einsum_finds_our_functions_in_the_root_module() -> None:
    import tracer

    assert opt_einsum.backends.dispatch.get_func("einsum", "tracer") is tracer.einsum is tnp.einsum
    assert opt_einsum.backends.dispatch.get_func("tensordot", "tracer") is tracer.tensordot is tnp.tensordot
