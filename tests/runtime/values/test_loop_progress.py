"""`progress=` of loops: a bar drawn from the count that compiled code leaves in a word."""

from __future__ import annotations

import sys
import time
import warnings
from io import StringIO
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import check, debug, grad, jit, lax, vmap
from tracer.errors import ArgumentError, CheckError
from tracer.primitives.control.shared_words import Word, count_in
from tracer.runtime.system import run_time_errors
from tracer.runtime.system import screen as screen_module
from tracer.runtime.values import loop_progress


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    found = Terminal()  # standard error is pytest's again once the test begins
    monkeypatch.setattr(screen_module, "_write", found.write)
    monkeypatch.setattr(loop_progress, "screen", lambda: screen_module.Screen(kernel=False))
    monkeypatch.setattr(loop_progress, "_tqdm", lambda text, total: None)
    return found


def scanned(x: Any, text: str | None = "steps") -> Any:
    return lax.scan(lambda c, a: (tnp.sin(c) + a, c), x, tnp.arange(50.0), progress=text)[0]


def counted(x: Any, text: str | None = "counts") -> Any:
    return lax.fori_loop(0, 40, lambda i, c: tnp.sin(c) + i, x, progress=text)


def dynamic(x: Any, text: str | None = "dynamic") -> Any:
    return lax.fori_loop(0, tnp.asarray(x).astype(int), lambda i, c: tnp.sin(c) + i, x, progress=text)


def endless(x: Any, text: str | None = "halves") -> Any:
    return lax.while_loop(lambda c: c > 1e-3, lambda c: 0.5 * c, x, progress=text)


def mapped(x: Any, text: str | None = "slices") -> Any:
    return lax.map(lambda a: tnp.sin(a) * x, tnp.arange(30.0), batch_size=10, progress=text).sum()


CASES = [(scanned, "50/50"), (counted, "40/40"), (dynamic, "3/3"), (endless, "halves: 12"), (mapped, "3/3")]


@pytest.mark.parametrize(
    "how", [lambda f: f, jit, grad, lambda f: jit(grad(f))], ids=["plain", "jit", "grad", "jit grad"]
)
@pytest.mark.parametrize(("f", "last"), CASES, ids=[f.__name__ for f, _ in CASES])
def test_the_bar_ends_at_the_last_iteration_and_results_are_the_same(
    f: Any, last: str, how: Any, terminal: Terminal
) -> None:
    result = how(f)(3.0)
    assert result == how(lambda x: f(x, None))(3.0)
    lines = [line for line in terminal.getvalue().split("\n") if line]
    assert len(lines) == 1
    assert last in lines[0].split("\r")[-1]
    assert run_time_errors.on_failure == {}


def test_lanes_share_a_bar(terminal: Terminal) -> None:
    found = jit(vmap(dynamic))(tnp.asarray([3.0, 7.0, 5.0]))
    np.testing.assert_allclose(found, vmap(lambda x: dynamic(x, None))(tnp.asarray([3.0, 7.0, 5.0])))
    assert "7/7" in terminal.getvalue()
    assert terminal.getvalue().count("\n") == 1


def test_nobody_is_shown_a_bar_where_nobody_watches(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = StringIO()
    monkeypatch.setattr(sys, "stderr", plain)
    jit(scanned)(3.0)
    assert plain.getvalue() == ""


def test_the_bar_moves_while_the_compiled_loop_runs(terminal: Terminal) -> None:
    @jit
    def f(x: Any) -> Any:
        return lax.while_loop(
            lambda c: c[0] < 60_000_000, lambda c: (c[0] + 1, c[1] * 0.9999999), (0, x), progress="long"
        )

    start = time.perf_counter()
    f(1.0)
    seconds = time.perf_counter() - start
    counts = [int(part.split("long: ")[1].split()[0]) for part in terminal.getvalue().split("\r") if "long: " in part]
    assert counts[-1] == 60_000_000
    assert counts == sorted(counts)
    if seconds > 1.0:  # else the loop may be over before it is drawn
        assert len(counts) > 3
    assert len(counts) <= 12 * seconds + 3


def test_a_loop_that_fails_ends_its_bar(terminal: Terminal) -> None:
    @jit
    def f(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            check(c < 5.0, "too large")
            return c + 1.0

        return lax.fori_loop(0, 100, body, x, progress="fails")

    with pytest.raises(CheckError):
        f(0.0)
    assert run_time_errors.on_failure == {}
    assert terminal.getvalue().endswith("\n")


def test_a_callback_that_fails_ends_the_bar(terminal: Terminal) -> None:
    def fail(i: Any) -> None:
        raise KeyError("no")

    @jit
    def f(x: Any) -> Any:
        def body(i: Any, c: Any) -> Any:
            debug.callback(fail, i)
            return c + 1.0

        return lax.fori_loop(0, 100, body, x, progress="fails")

    with pytest.raises(KeyError):
        f(0.0)
    assert run_time_errors.on_failure == {}


def test_tqdm_is_used_where_it_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Any] = []

    class Fake:
        def __init__(self, **options: Any) -> None:
            self.options, self.n, self.closed = options, 0, False
            made.append(self)

        def update(self, count: int) -> None:
            self.n += count

        def close(self) -> None:
            self.closed = True

    module, auto = ModuleType("tqdm"), ModuleType("tqdm.auto")
    auto.tqdm = Fake  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "tqdm", module)
    monkeypatch.setitem(sys.modules, "tqdm.auto", auto)
    monkeypatch.setattr(sys, "stderr", Terminal())
    jit(scanned)(3.0)
    (bar,) = made
    assert (bar.options["total"], bar.options["desc"], bar.n, bar.closed) == (50, "steps", 50, True)


def test_warnings_of_tqdm_itself_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    def imported(name: str) -> ModuleType:
        warnings.warn("IProgress not found", stacklevel=1)
        auto = ModuleType(name)
        auto.tqdm = lambda **options: options  # type: ignore[attr-defined]
        return auto

    monkeypatch.setattr(loop_progress, "import_module", imported)
    monkeypatch.setitem(sys.modules, "tqdm", ModuleType("tqdm"))
    assert loop_progress._tqdm("steps", 5)["total"] == 5


def test_a_loop_outside_jit_is_compiled_once() -> None:
    from tracer.runtime.eager import execute

    for _ in range(2):
        scanned(3.0)
        before = len(execute._compiled)
    scanned(3.0)
    assert len(execute._compiled) == before


def test_progress_must_be_a_text() -> None:
    with pytest.raises(ArgumentError, match=r"^scan at .*: progress is the text beside the bar\n  got 1\n"):
        scanned(3.0, 1)  # type: ignore[arg-type]


def test_words_are_used_again() -> None:
    number = Word().number
    assert Word().number == number
    word = Word()
    f = jit(lambda x: lax.scan(lambda c, _: (count_in(word), (c, None))[1], x, None, length=9)[0])
    f(1.0)
    f(1.0)
    assert word.value == 18
