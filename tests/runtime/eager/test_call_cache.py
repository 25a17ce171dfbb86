"""Prepared calls of the library's own functions, and what they depend on."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.ndimage

import tracer.numpy as tnp
from tracer import config, grad, jit, nn, vmap
from tracer.errors import InternalError
from tracer.primitives.elementwise.trigonometric import sin_p
from tracer.runtime.eager import call_cache, execute
from tracer.scipy import ndimage


def test_a_library_function_that_cannot_be_staged_by_mistake_raises() -> None:
    def broken(x: Any) -> Any:
        if x._trace is not None:
            raise TypeError("a mistake of ours")
        return x

    with pytest.raises(InternalError, match="broken runs with these arguments, but staging it raises TypeError"):
        call_cache.cached(broken)(tnp.ones(3))


def test_kernels_belong_to_the_settings_that_choose_vectors() -> None:
    x = tnp.asarray([0.5])
    tnp.sin(x)
    with config.using(vector_bits=0):
        narrow = execute.prepared(sin_p, [x], {})
    wide = execute.prepared(sin_p, [x], {})
    assert narrow is not wide
    assert np.asarray(narrow.call(x)[0]) == np.asarray(wide.call(x)[0])


def test_many_operations_on_large_arrays_are_compiled_into_one(rng: np.random.Generator) -> None:
    def steps(x: Any) -> int:
        plan = call_cache.plan_of(lambda x: ndimage.maximum_filter(x, 9), (tnp.asarray(x),), {})
        assert plan is not None
        np.testing.assert_array_equal(plan.run([tnp.asarray(x)]), scipy.ndimage.maximum_filter(x, 9))
        return len(plan._program.steps)

    assert steps(rng.normal(size=(8, 8))) > 16
    assert steps(rng.normal(size=(512, 512))) == 1


@pytest.mark.parametrize("function", [nn.softmax, nn.relu])
def test_rules_of_library_functions_are_staged_once_outside_jit(
    function: Any, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    staged = []
    split = call_cache._split
    monkeypatch.setattr(call_cache, "_split", lambda *args: [staged.append(args), split(*args)][1])
    x = rng.normal(size=(3, 7, 2))  # a shape of this test alone
    gradient = grad(lambda x: tnp.sum(function(x) * tnp.sin(x)))
    expected = jit(gradient)(x)
    for _ in range(3):
        np.testing.assert_allclose(gradient(x), expected, rtol=1e-14, atol=1e-15)
    assert len(staged) == 1
    of_slopes = grad(lambda x: tnp.sum(gradient(x) ** 2))
    np.testing.assert_allclose(of_slopes(x), jit(of_slopes)(x), rtol=1e-13, atol=1e-14)
    lanes = vmap(grad(lambda x: tnp.sum(function(x) ** 2)))
    np.testing.assert_allclose(lanes(x), jit(lanes)(x), rtol=1e-14, atol=1e-15)
