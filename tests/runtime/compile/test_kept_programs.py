"""Compiled programs in files: found again by any equal program, with equal bits, and never by another one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import lax
from tracer.errors import OutOfBoundsError
from tracer.runtime.compile import compile as compiling
from tracer.runtime.compile import kept_programs
from tracer.settings import config

X = np.linspace(0.5, 2.0, 37)
S = np.eye(6) * 3.0 + np.linspace(0.0, 1.0, 36).reshape(6, 6)
LONG = np.linspace(-1.0, 1.0, 1 << 16)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path) -> Iterator[Path]:
    with config.using(cache_dir=tmp_path):
        yield tmp_path


@pytest.fixture
def compiled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of the programs that were compiled."""
    names: list[str] = []

    def noted(program: Any, *args: Any, **kwargs: Any) -> Any:
        names.append(program.name)
        return compile_program(program, *args, **kwargs)

    compile_program = compiling.compile_program
    monkeypatch.setattr("tracer.runtime.jit.specialization.compiling.compile_program", noted)
    return names


def _newton(x: Any) -> Any:
    return lax.while_loop(lambda s: tnp.any(tnp.abs(s * s - x) > 1e-9), lambda s: 0.5 * (s + x / s), x)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "elementwise": (lambda x: tnp.sin(x) * 2 + 1, (X,)),
    "loop and gradient": (tracer.grad(lambda x: lax.fori_loop(0, 5, lambda i, y: tnp.tanh(y) + x, x).sum()), (X,)),
    "while": (_newton, (X,)),
    "library": (tnp.linalg.solve, (S, S[0])),
    "product and sort": (lambda a: tnp.sort(a @ a, axis=1), (S,)),
    "Fourier": (lambda x: tnp.fft.fft(x).real, (X[:32],)),
    "threads": (lambda x: tnp.exp(x) * x, (LONG,)),
    "gather": (lambda x: x[tnp.argsort(-x)[:3]], (X,)),
    "custom rule": (tracer.grad(lambda x: tnp.sinc(x).sum()), (X,)),
    "constant": (lambda: tnp.arange(5.0) / 3, ()),
}


@pytest.mark.parametrize("name", CASES)
def test_a_kept_program_gives_equal_bits(name: str, compiled: list[str]) -> None:
    function, operands = CASES[name]
    with config.using(cache_dir=None):
        plain = np.asarray(tracer.jit(function)(*operands)).tobytes()
    compiled.clear()
    assert np.asarray(tracer.jit(function)(*operands)).tobytes() == plain
    assert len(compiled) == 1
    again = tracer.jit(function)
    assert [np.asarray(again(*operands)).tobytes() for _ in range(2)] == [plain] * 2
    assert len(compiled) == 1
    assert "fuse_rows" in str(again.lower(*operands).stages())


def test_donated_memory_is_taken_over_by_a_kept_program(compiled: list[str]) -> None:
    def double(x: Any) -> Any:
        return 2 * x

    for _ in "compiled", "kept":
        x = tnp.asarray(LONG) + 0.0
        address = np.asarray(x).ctypes.data
        y = tracer.jit(double, donate_argnums=0)(x)
        assert np.asarray(y).ctypes.data == address
    tracer.jit(double)(LONG)
    assert compiled == ["double"] * 2  # the program that donates nothing is another one


def first_reader(x: Any, i: Any) -> Any:
    return x[i]


def second_reader(x: Any, i: Any) -> Any:
    return x[i]


def two_lines(x: Any, i: Any) -> Any:
    y = x[i]
    return y + x[i + 1]


def one_line(x: Any, i: Any) -> Any:
    return x[i] + x[i + 1]


def test_faults_of_a_kept_program_name_the_lines_of_the_program_that_runs(compiled: list[str]) -> None:
    for reader in first_reader, second_reader:
        where = f"test_kept_programs.py:{reader.__code__.co_firstlineno + 1}"
        with pytest.raises(OutOfBoundsError, match=where):
            tracer.jit(reader)(X, np.array(40))
    assert compiled == ["first_reader"]
    for reader in two_lines, one_line:
        with pytest.raises(OutOfBoundsError, match=f"py:{reader.__code__.co_firstlineno + 1 + (reader is two_lines)}"):
            tracer.jit(reader)(X, np.array(36))
    assert compiled == ["first_reader", "two_lines", "one_line"]


def test_programs_with_python_functions_are_not_kept(compiled: list[str]) -> None:
    for add in 1.0, 2.0:
        call = tracer.jit(
            lambda x, add=add: tracer.pure_callback(lambda y: y + add, tracer.ShapeDtypeStruct((), x.dtype), x)
        )
        assert float(call(np.float64(1.0))) == 1.0 + add
    assert len(compiled) == 2


def test_everything_that_decides_the_code_is_in_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def key(text: str = "sin", donated: tuple[int, ...] = ()) -> str:
        place = kept_programs.place(tracer.make_program(getattr(tnp, text))(X), donated)
        assert place is not None
        return place.key

    keys = [key(), key("cos"), key(donated=(0,))]
    for setting in ({"vector_bits": 128}, {"fp_contract": True}, {"deterministic": True}):
        with config.using(**setting):
            keys.append(key())
    for name, value in (("machine_key", "another"), ("this_cpu", "another"), ("sources", "another")):
        with monkeypatch.context() as patch:
            patch.setattr(kept_programs, name, lambda value=value: value)
            keys.append(key())
    assert len(set(keys)) == len(keys) == 9
    assert key() == keys[0]


def test_a_damaged_file_compiles_anew(folder: Path, compiled: list[str]) -> None:
    function, operands = CASES["library"]
    plain = np.asarray(tracer.jit(function)(*operands)).tobytes()
    for path in folder.iterdir():
        path.write_bytes(path.read_bytes()[:-9])
    assert np.asarray(tracer.jit(function)(*operands)).tobytes() == plain
    assert len(compiled) == 2


def test_a_kept_loop_is_as_patient_as_a_compiled_one(monkeypatch: pytest.MonkeyPatch) -> None:
    points: list[Any] = []
    read = kept_programs.Place.read
    monkeypatch.setattr(kept_programs.Place, "read", lambda place: points.append(read(place)) or points[-1])
    for function in (_newton, _newton, tnp.sin, tnp.sin):
        tracer.jit(function)(np.float64(2.0))
    assert [None if point is None else point.is_patient for point in points] == [None, True, None, False]
