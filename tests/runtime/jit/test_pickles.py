"""Functions and arrays in other processes: pickles by reference, by program, and what they refuse."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
import re
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tests.grids import each
from tests.runtime.jit import pickled_functions
from tests.runtime.jit.pickled_functions import apply, decorated, gradient, jitted, loss, smooth
from tracer import custom_batching, grad, hessian, jit, lax, random, tree_util, vmap
from tracer.errors import ArgumentError, ProgramTextError

X = np.linspace(0.0, 1.0, 12).reshape(3, 4)


def again(value: Any) -> Any:
    return pickle.loads(pickle.dumps(value))


def local(scale: float = 3.0) -> Any:
    """Return a function that no other process can find."""
    table = np.arange(4.0)
    return lambda x, n=1: {"sum": tnp.sum(table * x) * scale * n, "parts": (x, [n])}


def test_functions_at_the_top_of_a_module_are_pickled_by_name() -> None:
    for value in (decorated, gradient, jitted, smooth):
        named = again(value)
        assert named is value or np.array_equal(named(X)[0], value(X)[0])
    assert again(decorated) is decorated
    assert again(smooth) is smooth


@each("transform", [grad, hessian, tracer.jacfwd, tracer.jacrev, tracer.checkpoint, tracer.remat])
def test_transforms_of_named_functions_are_made_again(transform: Any) -> None:
    np.testing.assert_array_equal(again(transform(loss))(X), transform(loss)(X))


def test_options_and_nesting_of_transforms_are_kept() -> None:
    f = jit(vmap(tracer.value_and_grad(loss, argnums=(0,)), in_axes=(0, None)), donate_argnums=0)
    for got, expected in zip(*(tree_util.tree_leaves(g(tnp.asarray(X), 2.0)) for g in (f, again(f))), strict=True):
        np.testing.assert_array_equal(got, expected)
    assert again(f)._calls.signature == f._calls.signature


def test_a_transform_of_a_local_function_says_which() -> None:
    with pytest.raises(ArgumentError) as error:
        pickle.dumps(grad(lambda x: x * x))
    assert re.fullmatch(
        r"pickle at test_pickles.py:\d+: <grad of <lambda>> cannot be found by name where it is loaded\n"
        r"  it is made of \S+<lambda> at test_pickles.py:\d+\n"
        r"  help: define the function at the top of a module, or call jit of this once and pickle the jitted function, "
        r"which carries its program",
        str(error.value),
    )


def test_a_local_function_travels_as_its_programs() -> None:
    f = jit(local(), static_argnames="n")
    expected = [f(X), f(X[:1].astype("float32"), n=2)]
    g = again(f)
    for got, want in zip([g(X), g(X[:1].astype("float32"), n=2)], expected, strict=True):
        assert tree_util.tree_structure(got) == tree_util.tree_structure(want)
        for one, other in zip(tree_util.tree_leaves(got), tree_util.tree_leaves(want), strict=True):
            assert tnp.asarray(one).type == tnp.asarray(other).type
            np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(again(g)(X)["sum"], expected[0]["sum"])


def test_programs_that_came_are_differentiated_and_batched() -> None:
    f = jit(lambda x: lax.while_loop(lambda y: y < 100.0, lambda y: y * 2.0, x))
    f(np.float64(1.5))
    g = again(f)
    assert float(tracer.jvp(g, (np.float64(1.5),), (np.float64(1.0),))[1]) == 128.0
    np.testing.assert_array_equal(vmap(g)(X[0] + 1.0), vmap(f)(X[0] + 1.0))
    np.testing.assert_array_equal(jit(lambda x: g(x) + 1.0)(np.float64(1.5)), 193.0)


def test_a_program_that_came_alone_names_the_call_that_it_lacks() -> None:
    f = jit(lambda x: x + 1)
    f(X)
    with pytest.raises(ArgumentError) as error:
        again(f)(X[0])
    assert re.fullmatch(
        r"lambda at test_pickles.py:\d+ came from a pickle without its function, and has no program for this call\n"
        r"  got \(f64\[4\]\), expected one of \(f64\[3,4\]\)\n"
        r"  help: call it with such arguments before it is pickled, or define it at the top of a module",
        str(error.value),
    )


def test_what_cannot_be_pickled_says_why() -> None:
    fresh, printing = jit(lambda x: x), jit(lambda x: tracer.debug.print("{}", x))
    printing(1.0)
    for f, why in ((fresh, "it was not called yet, so there is no program"), (printing, "holds Python functions")):
        with pytest.raises(ArgumentError, match=why):
            pickle.dumps(f)


def test_loading_runs_no_code_of_the_file() -> None:
    """Only names of this package and NumPy's array are called; the program is text, which is parsed."""
    f = jit(lambda x: x * 2.0 + np.arange(4.0))
    f(X)
    data = pickle.dumps(f)
    names = set()

    class Reader(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> Any:
            names.add(module.partition(".")[0])
            return super().find_class(module, name)

    np.testing.assert_array_equal(Reader(io.BytesIO(data)).load()(X), f(X))
    assert names <= {"tracer", "numpy", "optree", "builtins"}
    with pytest.raises(ProgramTextError):
        pickle.loads(data.replace(b"mul(", b"xxx("))


@tree_util.register_pytree_node_class
class Pair:
    def __init__(self, a: Any, b: Any) -> None:
        self.a, self.b = a, b

    def tree_flatten(self) -> Any:
        return (self.a, self.b), None

    @classmethod
    def tree_unflatten(cls, _: None, children: Any) -> Any:
        return cls(*children)


def test_classes_in_trees_are_found_by_name() -> None:
    f = jit(lambda p: Pair(p.b, p.a + 1))
    f(Pair(X, 2.0))
    got = again(f)(Pair(X, 2.0))
    assert type(got) is Pair
    np.testing.assert_array_equal(got.b, X + 1)


def test_arrays_and_keys_are_pickled() -> None:
    values = [tnp.asarray(X), tnp.asarray(1.0), random.key(7), random.split(random.key(7)), tnp.zeros(3, "bfloat16")]
    for value in values:
        other = again(value)
        assert other.type == value.type
        assert str(other) == str(value)


def test_arrays_do_not_live_in_the_memory_of_a_pickle() -> None:
    """Buffers may lie anywhere, and belong to who read the file."""
    x, buffers = tnp.asarray(X), list[Any]()
    data = pickle.dumps(x, protocol=5, buffer_callback=buffers.append)
    memory = np.zeros(X.nbytes + 1, np.uint8)
    memory[1:] = np.frombuffer(buffers[0].raw(), np.uint8)
    y = pickle.loads(data, buffers=[memory[1:]])
    memory[:] = 0
    np.testing.assert_array_equal(y, X)
    np.testing.assert_array_equal(jit(lambda: y * 2)(), X * 2)


def test_copies_of_functions_are_the_functions() -> None:
    for f in (decorated, gradient, jit(local())):
        assert copy.copy(f) is f
        assert copy.deepcopy([f])[0] is f


def test_cloudpickle_takes_the_functions_themselves() -> None:
    """It writes what no other process finds by name, so programs for all arguments are made there."""
    cloudpickle = pytest.importorskip("cloudpickle")
    for f in (jit(local()), grad(lambda x: tnp.sum(x * x)), vmap(jit(lambda x: x + 1))):
        np.testing.assert_array_equal(
            tree_util.tree_leaves(cloudpickle.loads(cloudpickle.dumps(f))(X))[0], tree_util.tree_leaves(f(X))[0]
        )


def test_rules_of_batches_are_found_by_name() -> None:
    @custom_batching.custom_vmap
    def f(x: Any) -> Any:
        return x

    f.def_vmap(lambda size, batched, x: (x, batched[0]))
    with pytest.raises(AttributeError):
        pickle.dumps(f)


def test_spawned_processes_run_functions() -> None:
    f = jit(lambda x: tnp.sum(x * 2.0))
    f(X[0])
    calls = [(decorated, X[0]), (gradient, X), (jitted, X[0]), (f, X[0]), (grad(loss), tnp.asarray(X[1]))]
    expected = [tree_util.tree_leaves(f(x))[0] for f, x in calls]
    context = multiprocessing.get_context("spawn")
    with context.Pool(1) as pool:
        results = pool.map(apply, calls)
    with ProcessPoolExecutor(1, mp_context=context) as executor:
        results += executor.map(apply, calls)
    for got, want in zip(results, expected * 2, strict=True):
        np.testing.assert_array_equal(tree_util.tree_leaves(got)[0], want)


SCRIPT = """\
import joblib, numpy as np, tracer, tracer.numpy as tnp
from tracer import grad, jit

@jit
def decorated(x):
    return tnp.sum(tnp.sin(x) ** 2)

if __name__ == "__main__":
    xs = list(np.linspace(0.0, 1.0, 6).reshape(3, 2))
    slope = jit(grad(lambda x: decorated(x) * 2.0))
    for f in (decorated, slope, grad(decorated)):
        results = joblib.Parallel(n_jobs=2)(joblib.delayed(f)(x) for x in xs)
        np.testing.assert_array_equal(results, [f(x) for x in xs])
    print("equal")
"""


def test_joblib_runs_functions_of_a_script(tmp_path: Path) -> None:
    pytest.importorskip("joblib")
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    root = str(Path(pickled_functions.__file__).parents[3])
    done = subprocess.run(
        [sys.executable, str(script)], capture_output=True, text=True, check=False, env={"PYTHONPATH": root, "PATH": ""}
    )
    assert done.stdout == "equal\n", done.stderr


def test_an_unpickled_array_serves_compiled_kernels() -> None:
    x = tnp.asarray(np.linspace(0.1, 1.0, 5))
    found = pickle.loads(pickle.dumps(x))
    assert np.array_equal(np.asarray(tnp.sin(found)), np.asarray(tnp.sin(x)))
    assert np.array_equal(np.asarray(tracer.grad(lambda v: tnp.sum(tnp.exp(v)))(found)), np.asarray(tnp.exp(x)))
