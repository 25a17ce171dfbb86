"""Elementwise kernels in files: a second process imports no compiler, and nothing stale or damaged is run."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer.errors import ShapeError
from tracer.ir.dtypes import BF16, C128, F32, F64
from tracer.ir.types import array_type
from tracer.primitives.catalogue import BY_NAME
from tracer.primitives.elementwise import exponential, powers, trigonometric
from tracer.runtime.eager import execute, kept_kernels
from tracer.runtime.native import compiler_files
from tracer.settings import config

PROGRAM = """
import sys, numpy as np, tracer, tracer.numpy as tnp
x = tnp.asarray(np.linspace(-1e6, 1e6, 101))
results = [tnp.sin(x), tnp.power(x, 2.5), tnp.exp(tnp.asarray([0.5, 700.0], "bfloat16")), (x + 1j) * (x - 2j)]
results.append(tracer.grad(lambda v: tnp.sum(tnp.sin(v) ** 2))(x))
compiler = ("tracer.schedule", "tracer.passes", "tracer.codegen.llvm.emit", "tracer.codegen.llvm.kernels")
print(b"".join(np.asarray(y).tobytes() for y in results).hex(), [str(y.dtype) for y in results], sep="\\n")
print([name for name in sys.modules if name.startswith(compiler)])
"""


@pytest.fixture(autouse=True)
def no_kernels() -> Iterator[None]:
    execute.clear_caches()
    yield
    execute.clear_caches()


def run(folder: str) -> list[str]:
    """Lines that a fresh process prints: the results' bits, their dtypes, the compiler's modules."""
    environment = {**os.environ, "TRACER_KERNEL_DIR": folder}
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM], env=environment, capture_output=True, text=True, timeout=120,
        check=True,
    )  # fmt: skip
    return done.stdout.splitlines()


def test_a_second_process_imports_no_compiler_and_has_the_bits_of_the_first(tmp_path: Path) -> None:
    *first, imported = run(str(tmp_path))
    assert "'tracer.schedule.pipeline'" in imported
    assert run(str(tmp_path)) == [*first, "[]"]
    assert run("") == [*first, imported]


def test_kernels_without_outside_symbols_are_kept_for_every_dtype_and_shape(tmp_path: Path) -> None:
    samples = {dtype: np.linspace(0.1, 3.0, 37).astype(dtype) for dtype in (F32, F64, BF16, C128)}
    functions = (trigonometric.sin, exponential.exp, exponential.log, lambda x: powers.pow(x, x), exponential.expm1)
    calls = [lambda f=f, x=x: np.asarray(f(tnp.asarray(x))) for f in functions for x in samples.values()]
    plain = [call() for call in calls]
    with config.using(kernel_dir=tmp_path):
        for _ in "compiled", "read":
            execute.clear_caches()
            assert [call().tobytes() for call in calls] == [y.tobytes() for y in plain]
        assert len(list(tmp_path.iterdir())) == len(calls)
        x = tnp.asarray(np.linspace(0.1, 3.0, 12).reshape(3, 4))
        np.testing.assert_array_equal(trigonometric.sin(x), trigonometric.sin(x.reshape(12)).reshape(3, 4))
        with pytest.raises(ShapeError):
            powers.pow(x, x.reshape(12))


def place(name: str = "sin", dtype: np.dtype[Any] = F64, scalar: bool = False) -> str:
    primitive = BY_NAME[name]
    found = kept_kernels.place(primitive, {}, [array_type(dtype, ())], [scalar])
    assert found is not None
    return found.key


def test_everything_that_decides_the_code_is_in_the_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with config.using(kernel_dir=tmp_path):
        keys = [place(), place("cos"), place(dtype=F32), place(scalar=True)]
        for setting in ({"vector_bits": 128}, {"fp_contract": True}, {"default_float": "float32"}):
            with config.using(**setting):
                keys.append(place())
        for name, value in (("machine_key", lambda: "another"), ("VERSION", "another"), ("sources", lambda: "")):
            with monkeypatch.context() as patch:
                patch.setattr(kept_kernels, name, value)
                keys.append(place())
        assert len(set(keys)) == len(keys) == 10
        assert place() == keys[0]


def test_a_changed_source_changes_the_fingerprint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for room in compiler_files._ROOMS:
        (tmp_path / room).mkdir(parents=True)
    source = tmp_path / "schedule" / "pipeline.py"
    source.write_text("a = 1\n")
    os.utime(source, ns=(0, 1))
    monkeypatch.setattr(compiler_files, "PACKAGE", str(tmp_path))
    before = compiler_files.sources_now()
    assert before is not None
    assert before == compiler_files.sources_now()
    os.utime(source, ns=(0, 2))
    assert compiler_files.sources_now() not in (None, before)
    source.write_text("a = 2\n")  # after this process imported it
    assert compiler_files.sources_now() is None


def test_processes_that_run_older_sources_keep_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    x = tnp.asarray([0.5, 1.5])
    with config.using(kernel_dir=tmp_path):
        monkeypatch.setattr(kept_kernels, "sources_now", lambda: "changed since")
        before = np.asarray(trigonometric.sin(x))
        assert list(tmp_path.iterdir()) == []
        monkeypatch.setattr(kept_kernels, "sources", lambda: None)
        execute.clear_caches()
        assert np.asarray(trigonometric.sin(x)).tobytes() == before.tobytes()


def test_a_damaged_file_compiles_anew(tmp_path: Path) -> None:
    x = tnp.asarray([0.5, 1.5])
    with config.using(kernel_dir=tmp_path):
        before = np.asarray(trigonometric.sin(x))
        (path,) = tmp_path.iterdir()
        whole = path.read_bytes()
        for damaged in (whole[:-1], whole[:60], b"", whole[:-9] + bytes(9)):
            path.write_bytes(damaged)
            execute.clear_caches()
            assert np.asarray(trigonometric.sin(x)).tobytes() == before.tobytes()
            assert path.read_bytes() == whole
