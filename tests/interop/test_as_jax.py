"""`as_jax`: libraries that import JAX get tracer's functions, in a process of their own."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

LIBRARY = """
    import jax
    import jax.numpy as jnp
    import jax.tree_util as jtu
    import jax.scipy.stats.norm as normal
    from jax import Array, lax, nn, random, tree
    from jax import numpy as also_jnp
    from jax.experimental import ode
    from jax.flatten_util import ravel_pytree
    from jax.nn import initializers
    from jax.scipy.special import logsumexp
    from jax.sharding import NamedSharding, PartitionSpec
    from jax.typing import ArrayLike

    @jax.jit
    def step(params: dict[str, Array], x: ArrayLike | None) -> Array:
        return jax.grad(lambda p: jnp.sum(jnp.tanh(x @ p["w"]) ** 2))(params)
"""


def run(folder: Path, program: str) -> None:
    (folder / "library.py").write_text(textwrap.dedent(LIBRARY), encoding="utf-8")
    start = f"import sys\nsys.path.insert(0, {str(folder)!r})\nimport tracer\nfrom tracer.interop import as_jax\n"
    done = subprocess.run(
        [sys.executable, "-c", start + textwrap.dedent(program)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_a_library_written_for_jax_runs(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        jax = as_jax()
        assert as_jax() is jax is sys.modules["jax"]
        import library
        import numpy as np

        w = np.ones((3, 2))
        x = np.arange(6.0).reshape(2, 3)
        import tracer.numpy as tnp
        own = tracer.grad(lambda w: tnp.sum(tnp.tanh(x @ w) ** 2))(w)
        np.testing.assert_allclose(library.step({"w": w}, x)["w"], own)
        assert isinstance(library.step({"w": w}, x)["w"], jax.Array) and jax.Array is tracer.Array
        assert jax.numpy.sum is tracer.numpy.sum and library.also_jnp is jax.numpy
        assert library.normal.logpdf is tracer.scipy.stats.norm.logpdf
        assert library.ode.odeint is tracer.experimental.ode.odeint
        assert jax.__version_info__ == tuple(map(int, jax.__version__.split(".")))
        assert "sum" in dir(jax.numpy) and "numpy" in dir(jax)
        """,
    )


def test_what_jax_has_beyond_tracer_is_there(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        jax = as_jax()
        import jax.core, jax.extend.core
        import jax.interpreters.batching as batching
        import numpy as np
        jnp = jax.numpy

        seen = []
        jax.jit(lambda x: seen.append(isinstance(x, jax.core.Tracer)))(1.0)
        assert seen == [True] and not isinstance(jnp.ones(2), jax.core.Tracer)
        try:
            jax.jit(lambda x: 1 if x > 0 else 2)(1.0)
        except jax.errors.TracerBoolConversionError:
            pass
        else:
            raise AssertionError("no error")
        assert jnp.zeros((2,), out_sharding=jax.P()).shape == (2,)
        assert jax.random.normal(jax.random.key(0), (2,), out_sharding=None).shape == (2,)
        assert jax.typeof(jnp.ones((2, 3))).sharding.mesh.empty
        closed = jax.make_jaxpr(lambda x: x * jnp.arange(3.0))(jnp.ones(3))
        (y,) = jax.core.eval_jaxpr(closed.jaxpr, closed.consts, jnp.ones(3))
        assert y.tolist() == [0.0, 1.0, 2.0]
        assert [a.shape for a in closed.in_avals] == [a.shape for a in closed.out_avals] == [(3,)]
        assert jax.eval_shape(lambda: jax.ShapeDtypeStruct((2,), "float32")).shape == (2,)
        assert jax.pmap(lambda x: jax.lax.psum(x, "i"), axis_name="i")(jnp.arange(3.0)).tolist() == [3.0] * 3

        whole = jax.extend.core.Primitive("whole_sum")
        whole.def_impl(lambda x, *, scale: scale * jnp.sum(x))
        batching.primitive_batchers[whole] = lambda xs, axes, *, scale: (whole.bind(xs[0], scale=scale), None)
        mapped = jax.vmap(lambda x: whole.bind(x, scale=2.0), out_axes=None)
        assert float(mapped(jnp.arange(4.0))) == float(jax.jit(mapped)(jnp.arange(4.0))) == 12.0
        """,
    )


def test_traced_arrays_are_told_by_their_trace(tmp_path: Path) -> None:
    """As Equinox's filter_jvp does it."""
    run(
        tmp_path,
        """
        jax = as_jax()
        import jax.extend.core
        from jax.interpreters import ad

        def f(x):
            main = jax.extend.core.find_top_trace([x]).main
            values = x, 2 * x, 2.0, jax.numpy.ones(2)[0]
            told = [isinstance(v, ad.JVPTracer) and v._trace.main is main for v in values]
            inner = jax.vmap(lambda v: found.append(v._trace.main is main) or v)(jax.numpy.stack([x, x]))
            assert told == [True, True, False, False], told
            return x * inner[0]

        found = []
        assert [float(y) for y in jax.jvp(f, (3.0,), (1.0,))] == [9.0, 6.0]
        assert found == [False]
        """,
    )


def test_an_operand_that_a_transposition_rule_serves_has_a_cotangent(tmp_path: Path) -> None:
    """Equinox's loops ask whether cotangents are symbolic zeros, and Diffrax's checkpointed gradient runs them."""
    run(
        tmp_path,
        """
        jax = as_jax()
        import jax.extend.core
        from jax.custom_derivatives import SymbolicZero
        from jax.interpreters import ad

        def cotangents(primitive):
            found = []

            @jax.custom_vjp
            def told(pair):
                return pair

            def backward(_, pair):
                found.extend(isinstance(ct, SymbolicZero) for ct in pair)
                return (pair,)

            told.defvjp(lambda pair: (tuple(x.value for x in pair), None), backward, symbolic_zeros=True)
            y, pull = jax.vjp(lambda pair: primitive.bind(True, *told(pair)), (2.0, 3.0))
            assert float(y) == 2.0 and [float(ct) for ct in pull(1.0)[0]] == [1.0, 0.0]
            return found

        first = jax.extend.core.Primitive("first")
        first.def_impl(lambda p, x, y: x)
        assert cotangents(first) == [False, True]
        ad.primitive_transposes[first] = lambda ct, p, x, y: [None, ct, 0 * ct]
        assert cotangents(first) == [False, False]
        """,
    )


def test_settings_and_indices_mean_what_they_mean_in_jax(tmp_path: Path) -> None:
    run(
        tmp_path,
        """
        jax = as_jax()
        jnp = jax.numpy
        assert jax.config.jax_enable_x64 and jnp.arange(2).dtype == "int64"
        with jax.enable_x64(False):
            assert not jax.config.jax_enable_x64
            assert (jnp.zeros(2).dtype, jnp.arange(2).dtype) == ("float32", "int32")
        jax.config.update("jax_enable_x64", False)
        assert jnp.ones(2).dtype == "float32"
        jax.config.update("jax_enable_x64", True)
        with jax.numpy_dtype_promotion("standard"), jax.numpy_rank_promotion("allow"), jax.debug_nans(False):
            pass
        try:
            jax.numpy_dtype_promotion("strict")
        except tracer.errors.SettingError:
            pass
        else:
            raise AssertionError("no error")
        for way in (lambda f: f, jax.jit):
            assert float(way(lambda x, i: x[i])(jnp.arange(3.0), jnp.asarray(7))) == 2.0
            assert way(lambda x, i: x.at[i].set(9.0))(jnp.arange(3.0), jnp.asarray([1, 7])).tolist() == [0.0, 9.0, 2.0]
            assert way(lambda x, i: x[0, i])(jnp.ones((2, 3)), jnp.asarray(-9)).tolist() == 1.0
        """,
    )


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("import types; sys.modules['jax'] = types.ModuleType('jax')\nas_jax()", "the real jax is imported already"),
        ("as_jax()\nimport jax.nothing", "ModuleNotFoundError: No module named 'jax.nothing'"),
        ("as_jax()\nimport jax\njax.numpy.nothing", "module 'tracer.numpy' has no attribute 'nothing'"),
        ("as_jax()\nimport jax.core\njax.core.nothing", "module 'jax.core' has no attribute 'nothing'"),
    ],
)
def test_errors_say_what_is_missing(tmp_path: Path, program: str, error: str) -> None:
    with pytest.raises(AssertionError) as caught:
        run(tmp_path, program)
    assert error in str(caught.value)
