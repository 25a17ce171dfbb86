"""`profile`: calls, compilations, transfers and nests with their lines; files for Perfetto; nothing outside a block."""

from __future__ import annotations

import json
import re
import threading
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import tracer
import tracer.numpy as tnp
from tracer import config, grad, jit, lax, profile
from tracer.errors import ArgumentError
from tracer.ir.loop import Invoke, Library, index_constant
from tracer.passes.pipeline import optimize
from tracer.runtime.jit.specialization import Specialization
from tracer.runtime.profile import roofline
from tracer.runtime.system import spans
from tracer.schedule.cpu.clocks import with_clocks
from tracer.schedule.pipeline import schedule
from tracer.settings import gate

X = tnp.ones((40, 30))


def steps(x: Any) -> Any:
    y = tnp.tanh(x @ x.T)
    z = lax.fori_loop(0, 3, lambda i, c: tnp.sin(c).sum(0) + c, y)
    return lax.while_loop(lambda t: t.sum() > 1.0, lambda t: t * 0.5, z)


def test_calls_compilations_and_transfers_are_counted() -> None:
    f = jit(steps)
    with profile() as p:
        for _ in range(3):
            y = f(X)
        tracer.device_get(y)
        lax.scan(lambda c, x: (c + x, c), 0.0, X[0])
    assert [call.span.name for call in p.calls if call.span.name == "steps"] == ["steps"] * 3
    found = {(entry.kind, entry.name): entry for entry in p.entries()}
    assert (found["call", "steps"].count, found["compile", "steps"].count, found["trace", "steps"].count) == (3, 1, 1)
    assert found["transfer", "device_get"].count == 1
    assert ("call", "scan") in found
    assert 0 < found["call", "steps"].seconds < p.seconds
    assert str(found["call", "steps"].sources[0]).startswith("test_profile.py:")
    phases = [span.name for span in p.spans if span.kind == "phase" and span.detail == "steps"]
    assert phases == ["program passes", "loops", "LLVM text", "machine code"]


def test_nests_have_lines_and_runs() -> None:
    f = jit(steps)
    expected = f(X)
    with profile(nests=True) as p:
        found = [f(X), f(X)]
    np.testing.assert_array_equal(found[0], expected)
    np.testing.assert_array_equal(found[1], expected)
    nests = p.calls[1].nests
    first = steps.__code__.co_firstlineno
    lines = {source.line - first for nest in nests for source in nest.sources}
    assert {1, 2, 3} <= lines
    assert all(nest.sources and nest.runs for nest in nests)
    assert 3 in [nest.runs for nest in nests]
    total = sum(nest.seconds for nest in nests)
    assert 0 <= total <= p.calls[1].span.seconds * 1.5
    assert any(entry.kind == "nest" and entry.name.startswith("steps: ") for entry in p.entries())


def test_the_parts_of_a_shared_nest_have_a_clock_on_every_thread() -> None:
    f = jit(lambda x: (tnp.sin(x) * tnp.tanh(x), tnp.cumsum(x, 1)))
    x = tnp.ones((600, 1000))
    module, found = with_clocks(schedule(optimize(f.lower(x).program())).module, iter(range(0, 9, 2)).__next__)
    shared = {clocked.statement.function: clocked.parts for clocked in found if isinstance(clocked.statement, Invoke)}
    assert len(shared) == 2
    for function in (function for function in module.functions if function.name in shared):
        first, *_, last = function.body.statements
        at = (index_constant(shared[function.name] or 0),)
        assert (first, last) == (Library("tick", at), Library("tock", at))
    with config.using(threads=1), profile(nests=True) as p:
        f(x)
    assert all(nest.threads <= 1.0 for nest in p.calls[0].nests)
    assert str(p).splitlines()[1].endswith("threads")


def test_a_library_call_has_a_clock_of_the_time_on_all_processors() -> None:
    f = jit(lambda a, b: (a @ b, tnp.linalg.eigvalsh(a)))
    a = tnp.ones((200, 200))  # milliseconds: the clock of all processors need not tick within a few microseconds
    with profile(nests=True) as p:
        f(a, a)
    calls = [nest for nest in p.calls[0].nests if "_f64" in nest.name]
    assert {nest.name for nest in calls} == {"gemm_f64", "syevd_f64"}
    assert all(nest.threads > 0.0 for nest in calls)


def test_calls_from_several_threads_do_not_share_clocks() -> None:
    f = jit(lambda x: lax.fori_loop(0, 2000, lambda i, c: tnp.sin(c).sum(0) + c, x))
    f(X)
    started = threading.Barrier(2)

    def calls() -> None:
        started.wait()
        for _ in range(3):
            f(X)

    with profile(nests=True) as p:
        threads = [threading.Thread(target=calls) for _ in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    runs = [[nest.runs for nest in call.nests] for call in p.calls]
    assert len(runs) == 6
    assert all(each == runs[0] for each in runs)


def test_nests_of_gradients_and_of_donated_arguments() -> None:
    g = jit(grad(lambda x: (tnp.sin(x) ** 2).sum()), donate_argnums=0)
    expected = g(X + 0.0)
    with profile(nests=True) as p:
        found = g(X + 0.0)
    np.testing.assert_allclose(found, expected)
    assert p.calls[-1].nests


def test_outside_a_block_calls_are_as_they_were() -> None:
    f, method = jit(steps), Specialization.execute
    f(X)
    f(X)
    entry, closed = f.__call__, gate.words[0]
    with profile() as p:
        f(X)
    assert len(p.calls) == 1
    assert Specialization.execute is method
    assert gate.words[0] == closed
    assert spans.listeners == []
    assert f.__call__ is entry
    f(X)
    assert len(p.calls) == 1


def test_an_error_ends_the_record() -> None:
    with pytest.raises(ZeroDivisionError), profile():
        1 / 0  # noqa: B018
    assert spans.listeners == []


def test_the_inner_of_nested_blocks_records_the_calls() -> None:
    f = jit(lambda x: x + 1.0)
    with profile() as outer:
        f(X)
        with profile() as inner:
            f(X)
        f(X)
    assert (len(outer.calls), len(inner.calls)) == (2, 1)


def test_the_table_and_its_html() -> None:
    with profile() as p:
        jit(steps)(X)
    head, columns, *rows = str(p).splitlines()
    assert re.match(r"profile of [\d.]+ (s|ms|µs): \d+% call, \d+% compile", head)
    assert columns.split() == ["kind", "name", "line", "count", "total", "mean", "share"]
    assert any(row.startswith("compile") and "steps" in row and "test_profile.py:" in row for row in rows)
    html = p._repr_html_()
    assert "<svg" in html
    assert "<script" not in html
    assert html.count("<tr") == len(rows) + 1


def test_the_flame_picture_is_well_formed_and_within_its_bounds() -> None:
    f = jit(lambda x: steps(x) + (x @ x.T < 3.0))
    with profile(nests=True) as p:
        for _ in range(50):
            f(X)
    root = ElementTree.fromstring(p.flame())
    boxes = [(float(r.get("x", "")), float(r.get("width", ""))) for r in root.iter("{http://www.w3.org/2000/svg}rect")]
    assert len(boxes) > 4
    assert all(x >= 0 and x + width <= 1000.5 for x, width in boxes)


def test_the_file_has_the_structure_of_chromes_trace_events(tmp_path: Path) -> None:
    with profile(nests=True) as p:
        jit(steps)(X)
    path = tmp_path / "trace.json"
    p.save(path)
    found = json.loads(path.read_text(encoding="utf-8"))
    assert set(found) == {"traceEvents", "displayTimeUnit"}
    process, thread, *events = found["traceEvents"]
    assert (process["name"], thread["name"]) == ("process_name", "thread_name")
    assert process["ph"] == thread["ph"] == "M"
    assert {event["tid"] for event in events} == {thread["tid"]} == {1}  # identifiers of 64 bits are cut by viewers
    for event in events:
        assert event["ph"] == "X"
        assert {"name", "cat", "ts", "dur", "pid", "tid", "args"} <= set(event)
        assert event["ts"] >= 0
        assert event["dur"] >= 0
    assert {"call", "compile", "phase", "trace", "nest"} <= {event["cat"] for event in events}
    call = next(e for e in events if e["cat"] == "call")
    nests = [e for e in events if e["cat"] == "nest"]
    assert all(e["ts"] >= call["ts"] for e in nests)
    assert call["args"]["line"].startswith("test_profile.py:")


def test_a_file_that_cannot_be_written_says_so(tmp_path: Path) -> None:
    with profile() as p:
        pass
    with pytest.raises(
        ArgumentError, match=r"^profile.save: '.*' cannot be written\n  Is a directory\n  help: give the"
    ):
        p.save(tmp_path)
    with pytest.raises(ArgumentError, match=r"^profile.save: '3' cannot be written\n  expected str"):
        p.save(3)  # type: ignore[arg-type]


def test_the_roofline_has_a_point_for_each_program(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(roofline, "machine", lambda: roofline.Machine(1e10, 1e11))
    product = jit(lambda a: a @ a)
    a = tnp.ones((64, 64))
    with profile() as p:
        product(a)
        product(a)
    (point,) = roofline.points([(call.program, call.span.seconds) for call in p.calls])
    assert point.intensity == pytest.approx(2 * 64**3 / (2 * 8 * 64**2), rel=0.02)
    axes = p.roofline()
    assert axes.get_title() == "10 GB/s, 100 GFLOP/s"
    assert len(axes.lines) == 2
    assert p.roofline(axes) is axes
