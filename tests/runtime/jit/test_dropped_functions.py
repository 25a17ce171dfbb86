"""Jitted functions that are dropped leave nothing behind."""

from __future__ import annotations

import gc
import subprocess
import sys
import weakref
from pathlib import Path

import numpy as np
import pytest

import tracer
from tracer import grad, jit, vmap
from tracer.codegen.llvm.toolchain.object_code import compile_object, load_object

X = np.ones(3)


def test_a_dropped_function_goes_without_the_collector() -> None:
    gc.disable()
    try:
        for transform in (lambda f: f, grad, vmap):
            f = jit(transform(lambda x: x * 2.0))
            f(X if transform is not grad else 1.0)
            alive = [weakref.ref(f), weakref.ref(f._calls), weakref.ref(next(iter(f._calls.cache.values())).compiled())]
            del f
            assert [r() is None for r in alive] == [True] * len(alive)
    finally:
        gc.enable()


def test_the_entry_outlives_its_function() -> None:
    f = jit(lambda x: x + 1.0)
    f(X)
    call = f.__call__
    del f
    np.testing.assert_array_equal(call(X), X + 1.0)
    np.testing.assert_array_equal(call(X[:2]), X[:2] + 1.0)


LINKS = """
import gc, sys
from tracer.codegen.llvm.toolchain.object_code import compile_object, load_object
def pages():
    return int(open("/proc/self/statm").read().split()[1])
code = compile_object("define i32 @tracer_main(ptr %a, ptr %b) { ret i32 0 }")
for _ in range(200):
    load_object(code, {})
before = pages()
for _ in range(1000):
    load_object(code, {})
print((pages() - before) * 4096)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory is read from /proc")
def test_linked_code_leaves_no_memory() -> None:
    root = str(Path(tracer.__file__).parents[1])
    done = subprocess.run(
        [sys.executable, "-c", LINKS], capture_output=True, text=True, check=True, env={"PYTHONPATH": root, "PATH": ""}
    )
    assert int(done.stdout) < 3_000_000  # 9 MB where all libraries lie in one LLJIT


def test_a_module_outlives_the_linker_that_follows() -> None:
    code = compile_object("define i32 @tracer_main(ptr %a, ptr %b) { ret i32 0 }")
    first = load_object(code, {})
    others = [load_object(code, {}) for _ in range(130)]
    assert len({id(module._jit) for module in (first, *others)}) > 1
    del others
    assert first.address() == first.address()
