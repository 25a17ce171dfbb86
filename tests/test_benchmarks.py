"""The comparison with other libraries: its rows, its statistics and its report."""

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture(autouse=True)
def _benchmarks_on_the_path(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARKS))


def test_there_are_many_rows_with_names_of_their_own():
    from peers.catalogue import ROWS

    names = [row.name for row in ROWS]
    assert len(names) >= 60
    assert len(set(names)) == len(names)


def test_every_peer_has_rows_and_makes_what_rows_say():
    from peers import in_numba, in_torch
    from peers.catalogue import ROWS

    for peer, makers in (("numba", in_numba.BY_BEGINNING), ("torch", in_torch.BY_BEGINNING)):
        used = {maker for row in ROWS if (maker := row.maker(peer)) is not None}
        assert used == set(makers.values()), peer
        assert sum(row.maker(peer) is not None for row in ROWS) >= 40
    by_name = {row.name: row for row in ROWS}
    assert by_name["softmax gradient f4 1024x1024"].maker("torch") is not None
    assert by_name["softmax gradient f4 1024x1024"].maker("numba") is None
    assert by_name["log1p f8 1e6"].maker("numba") is not by_name["log f8 1e6"].maker("numba")


def test_peers_that_are_not_there_are_left_out():
    program = (
        "import sys, compare; sys.argv = ['compare.py', '--peers', 'nobody', '--rows', 'sum f4 1e3', '--rounds', '1',"
        " '--seconds', '0.001']; raise SystemExit(compare.main())"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    assert "nobody is left out" in done.stdout
    assert "sum f4 1e3" in done.stdout


def test_the_interval_of_a_median_holds_it():
    from peers.statistic import interval

    low, high = interval([1.0, 2.0, 3.0, 4.0, 100.0])
    assert 1.0 <= low <= 3.0 <= high <= 100.0


def test_a_row_is_measured_and_reported(tmp_path):
    program = (
        "import compare, json; from peers.catalogue import ROWS; from peers.report import page\n"
        "workers = {p: compare.Worker(p) for p in ('tracer', 'numpy')}\n"
        "row = next(r for r in ROWS if r.name == 'sum f4 1e3')\n"
        "result = compare.measure(row, workers, 2, 0.001)\n"
        "[w.stop() for w in workers.values()]\n"
        "log = dict(date='D', machine=compare.machine(), versions={}, peers=['numpy'], rounds=2, rows=[result])\n"
        "print(json.dumps([result, page(log)]))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    result, page = json.loads(done.stdout)
    assert "error" not in result["peers"]["numpy"]
    assert result["peers"]["numpy"]["difference"] < 1e-5
    assert "| sum f4 1e3 |" in page


def test_memory_counts_results_that_blocks_of_earlier_ones_would_serve(tmp_path):
    program = (
        "from peers import worker; import sys; w = worker.world('tracer'); worker.wake(w)\n"
        "row = next(r for r in worker.ROWS if r.name == 'copy f4 1e7')\n"
        "print([worker.prepare(w, row, sys.argv[1])[1]['peak'] for _ in range(2)][1])"
    )
    given = [sys.executable, "-c", program, str(tmp_path / "answer.npz")]
    done = subprocess.run(given, cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    assert 4e7 < int(done.stdout) < 6e7


MEMORY = """
import mmap, sys, time
from concurrent.futures import ThreadPoolExecutor
import numpy as np
from peers import memory, worker
from peers.row import Row, World

def copy_and_free():
    held = []
    for _ in range(20):
        held.append(np.ones(1 << 18))
        time.sleep(0.01)

with ThreadPoolExecutor(1) as other:
    ended = other.submit(copy_and_free)
    begin = memory.count_from_now(lambda: None)
    print("late arguments", ended.done())
block = np.ones(1 << 22)
print("a block", memory.peak() - begin >= block.nbytes - (1 << 20))

with open(sys.argv[1], "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as mapped:
    begin = memory.count_from_now(lambda: None)
    print("pages", sum(mapped[:: mmap.PAGESIZE]) == 0 and memory.peak() - begin < 1 << 22)

there = np.ones(1 << 21)  # a result that takes no new memory, as one in a hole of the heap does not
row = Row("r", "f", lambda: (), lambda w: lambda: (there, 1.0), same=("numpy",))
_, told = worker.prepare(World("numpy", np), row, sys.argv[2])
print("results", told["peak"] >= there.nbytes)
"""


def test_memory_counts_late_arguments_and_results_but_no_pages_of_files(tmp_path):
    """In a process of its own: the heap of all tests before takes seconds to give back."""
    library = tmp_path / "library"
    library.write_bytes(bytes(1 << 24))
    given = [sys.executable, "-c", MEMORY, str(library), str(tmp_path / "answer.npz")]
    done = subprocess.run(given, cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["late arguments True", "a block True", "pages True", "results True"]


def test_arguments_of_jax_are_ready_before_its_first_call():
    from types import SimpleNamespace

    from peers import worker
    from peers.row import Row, World

    waited = []
    root = SimpleNamespace(jit=lambda f: f, block_until_ready=lambda x: waited.append(x) or x)
    w = World("jax", SimpleNamespace(asarray=lambda x: x), root=root)
    call = worker.make_call(w, Row("r", "f", lambda: (1, 2), lambda w: lambda x, y: x + y), (1, 2))
    assert waited == [[1, 2]]
    assert call() == 3


def test_a_worker_answers_when_its_threads_are_at_rest(monkeypatch):
    from peers import worker

    spinning = iter([0.0, 0.005, 0.005, 0.009, 0.009, 0.0091])  # seconds of processors, in front of a pause and behind
    pauses = []
    monkeypatch.setattr(worker.time, "process_time", lambda: next(spinning))
    monkeypatch.setattr(worker.time, "sleep", pauses.append)
    worker.come_to_rest()
    assert len(pauses) == 3


def test_first_calls_and_peaks_above_jaxs_are_measured_anew(monkeypatch):
    import compare

    asked, firsts = [], {"tracer": [0.3, 0.1, 0.2], "jax": [0.5, 0.4, 0.6]}

    class Fake:
        def __init__(self, peer):
            self.peer = peer

        def stop(self):
            asked.append(self.peer)

    def prepare(worker, row, folder):
        return compare.Prepared(worker, firsts[worker.peer].pop(0), 1 << 30, Path(folder))

    monkeypatch.setattr(compare, "Worker", Fake)
    monkeypatch.setattr(compare, "prepare", prepare)
    late = {"row": "sum f4 1e3", "peers": {"tracer": {"first": 2.0, "peak": 0}, "jax": {"first": 1.0, "peak": 0}}}
    soon = {"row": "sum f4 1e6", "peers": {"tracer": {"first": 1.0, "peak": 0}, "jax": {"first": 2.0, "peak": 0}}}
    compare.measure_again([late, soon])
    assert asked == ["tracer", "jax"] * 3
    assert late["peers"]["tracer"] == {"first": 0.2, "first_among_rows": 2.0, "peak": 0}
    assert late["peers"]["jax"] == {"first": 0.5, "first_among_rows": 1.0, "peak": 0}
    assert soon["peers"]["tracer"] == {"first": 1.0, "peak": 0}


def test_rows_behind_are_listed_with_the_reason():
    from peers.report import page

    figures = {"seconds": 1e-3, "first": 1e-2, "peak": 0, "ratio": 0.5, "low": 0.4, "high": 0.6}
    unsure = figures | {"high": 1.1}
    rows = [
        {"row": name, "family": "f", "peers": {"tracer": figures, "numpy": made}}
        for name, made in (("argmax f4 1e6", figures), ("dot f4", figures), ("sum f4", unsure))
    ]
    machine = {"cpu": "C", "cores": 2, "system": "S", "python": "3", "load": 0.0}
    text = page({"date": "D", "machine": machine, "versions": {}, "peers": ["numpy"], "rounds": 2, "rows": rows})
    listed = [line for line in text.split("## Rows behind")[1].split("## F")[0].splitlines() if line.startswith("| ")]
    assert listed[1:] == [
        "| argmax f4 1e6 | numpy | 0.50 | two passes over a row, the second one in cache |",
        "| dot f4 | numpy | 0.50 | not profiled yet |",
    ]


def test_rows_that_miss_a_bar_are_listed_with_the_reason():
    from peers.reasons import FIRST_CALLS, PEAKS
    from peers.report import page

    ours = {"seconds": 1e-3, "first": 1e-2, "peak": 4 << 20}
    jax = {"seconds": 1e-3, "first": 5e-3, "peak": 0, "ratio": 4.0, "low": 3.9, "high": 4.1}
    names = ("where f4 1e6", "sum f4 1e7", "dot f4")
    rows = [{"row": name, "family": "f", "peers": {"tracer": ours, "jax": jax}} for name in names]
    machine = {"cpu": "C", "cores": 2, "system": "S", "python": "3", "load": 0.0}
    text = page({"date": "D", "machine": machine, "versions": {}, "peers": ["jax"], "rounds": 2, "rows": rows})
    section = text.split("## Rows that miss a bar")[1].split("## Rows behind")[0]
    first, peak = "first calls sooner than jax's", "peaks of memory at most jax's, to 1 MiB"
    assert [line for line in section.splitlines() if line.startswith("| ")][1:] == [
        f"| where f4 1e6 | {first} | not profiled yet |",
        f"| sum f4 1e7 | {first} | {FIRST_CALLS['sum f4']} |",
        f"| dot f4 | {first} | not profiled yet |",
        f"| where f4 1e6 | {peak} | {PEAKS['where']} |",
        f"| sum f4 1e7 | {peak} | not profiled yet |",
        f"| dot f4 | {peak} | not profiled yet |",
    ]


def test_bars_name_the_rows_that_miss_them():
    from peers.bars import bars

    ours = {"seconds": 1e-3, "first": 1e-2, "peak": 0}
    good = {"first": 2e-2, "peak": 0, "ratio": 4.0, "low": 3.9, "high": 4.1}
    slow = {"first": 5e-3, "peak": -(2 << 20), "ratio": 0.5, "low": 0.4, "high": 0.6}
    made = [("a", {"jax": good, "numpy": good}), ("b", {"jax": slow}), ("c", {"jax": good, "numpy": slow}), ("d", {})]
    rows = [{"row": name, "peers": {"tracer": ours, **figures}} for name, figures in made]
    found = [(bar.found, bar.missed) for bar in bars(rows, ["numpy", "jax"])]
    assert found == [
        ("2.00", []), ("missed by 1", ["b"]), ("missed by 1", ["b"]), ("missed by 1", ["b"]), ("33% of 3", []),
        ("missed by 2", ["b", "c"]),
    ]  # fmt: skip
    assert bars(rows[3:], ["jax"]) == []
    by_library = [{**row, "family": "decompositions"} for row in rows]
    assert bars(by_library, ["numpy", "jax"])[-1].missed == ["b", "c"]


def test_rows_with_settings_of_their_own_count_for_no_bar_and_no_mean():
    from peers.bars import bars
    from peers.report import page

    ours, jaxs = {"seconds": 1e-3, "first": 1e-2, "peak": 0}, {"seconds": 2e-3, "first": 2e-2, "peak": 0}
    plain = {
        "row": "a",
        "family": "f",
        "peers": {"tracer": ours, "jax": {**jaxs, "ratio": 2.0, "low": 2.0, "high": 2.0}},
    }
    much = {"tracer": ours, "jax": {**jaxs, "ratio": 8.0, "low": 8.0, "high": 8.0}}
    rows = [plain, {"row": "b", "family": "f", "settings": {"fp_contract": True}, "peers": much}]
    assert bars(rows, ["jax"]) == bars([plain], ["jax"])
    machine = {"cpu": "A", "cores": 2, "system": "S", "python": "3", "load": 0.0}
    text = page({"date": "D", "machine": machine, "versions": {}, "peers": ["jax"], "rounds": 2, "rows": rows})
    assert "| jax | 1 | 2.00 | 2.00 | 0 |" in text
    assert "| b | 1 ms | 10 ms | 0.0 MiB | 8.00 [8.00, 8.00] |" in text


def test_bars_of_bandwidth_and_products_are_told_from_their_rows():
    from peers.bars import bars

    took = lambda seconds, **more: {"seconds": seconds, "first": 0.0, "peak": 0, **more}  # noqa: E731
    rows = [
        {"row": "copy f4 1e7", "peers": {"tracer": took(2.5e-3), "numpy": {"seconds": 2e-3}}},
        {"row": "axpy f4 1e7", "peers": {"tracer": took(3e-3)}},
        {"row": "sum f4 1e7", "peers": {"tracer": took(1.25e-3)}},
        {"row": "axpy f8 1e7", "peers": {"tracer": took(9.0)}},
        {"row": "axpy f4 1e6", "peers": {"tracer": took(9.0)}},
        {"row": "matmul f4 1024", "peers": {"tracer": took(1e-3), "torch": {"ratio": 1.25}}},
        {"row": "matmul f4 2048", "peers": {"tracer": took(1e-3), "torch": {"ratio": 0.95}}},
    ]
    found = {bar.wanted: (bar.found, bar.missed) for bar in bars(rows, ["torch"])}
    assert found["f32 products of 1024 and 2048 as fast as the best peer"] == ("1.25, 0.95", ["matmul f4 2048"])
    wanted = "rows of 1e7 that memory limits at 90% of the bandwidth of a copy"
    assert found[wanted] == ("80% at least", ["sum f4 1e7"])


def test_bars_of_calls_are_told_from_their_rows():
    from peers.bars import bars
    from peers.catalogue import ROWS

    names = [row.name for row in ROWS if row.family == "calls"]
    rows = [
        {"row": name, "peers": {"tracer": {"seconds": seconds}}}
        for name, seconds in zip(names, (6e-7, 6e-7, 2e-6, *[9e-6] * 3), strict=True)
    ]
    (found,) = bars(rows, ["jax"])
    assert (found.found, found.missed) == ("0.60, 0.60, 2.00", ["call with one array f8 16"])


def test_a_log_is_drawn_alike_each_time(tmp_path):
    pytest.importorskip("matplotlib", reason="scripts/foreign installs it, by the extra foreign")
    from peers.plot import draw

    figures = {"ratio": 2.0, "low": 1.5, "high": 3.0}
    log = {"peers": ["jax"], "rows": [{"row": "sum f4", "peers": {"tracer": {}, "jax": figures}}]}
    for name in ("a.svg", "b.svg"):
        draw(log, tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    assert b"<svg" in (tmp_path / "a.svg").read_bytes()


def test_a_wrong_answer_is_no_ratio_to_be_proud_of(tmp_path):
    import compare
    import numpy as np

    np.savez(tmp_path / "a.npz", np.array([1.0, 2.0]))
    np.savez(tmp_path / "b.npz", np.array([1.0, 4.0]))
    assert compare.difference(tmp_path / "a.npz", tmp_path / "b.npz") == 0.5


def test_records_of_other_processors_are_summed_up():
    from peers.report import page, record_name

    assert (
        record_name({"date": "D", "machine": {"cpu": "Intel(R) Xeon(R) Processor @ 2.10GHz"}}) == "D-intel-xeon-2-10ghz"
    )
    ours, numpys = {"seconds": 1e-3, "first": 1e-2, "peak": 0}, {"seconds": 5e-4, "first": 1e-2, "peak": 0}
    rows = [{
        "row": "sum f4", "family": "f",
        "peers": {"tracer": ours, "numpy": {**numpys, "ratio": 0.5, "low": 0.4, "high": 0.6}},
    }]  # fmt: skip
    log = {
        "date": "D", "machine": {"cpu": "A", "cores": 2, "system": "S", "python": "3", "load": 0.0}, "versions": {},
        "peers": ["numpy"], "rounds": 2, "rows": [],
    }  # fmt: skip
    other = {**log, "machine": {**log["machine"], "cpu": "B CPU"}, "rows": rows}
    section = page(log, [other]).split("## On another processor: B CPU")[1]
    assert "`benchmarks/results/D-b.json`" in section
    assert "| numpy | 1 | 0.50 | 0.50 | 1 |" in section
    assert "| never 1.5 times as slow as the best peer | missed by 1 | sum f4 |" in section


def test_eager_operations_are_measured_beside_peers_that_are_there():
    program = (
        "import sys, eager; sys.argv = ['eager.py', '--peers', 'numpy', 'nobody', '--rows', 'x + y', 'x.at[2].set(',"
        " '--rounds', '1']; raise SystemExit(eager.main() > 1)"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=BENCHMARKS, capture_output=True, text=True, check=True)
    lines = {line.split("  ")[0]: line.split() for line in done.stdout.splitlines()}
    assert all(float(figure) > 0 for figure in lines["x + y"][3:5])
    assert lines["x + y"][5] == "-"
    assert lines["x.at[2].set(1.0)"][2] == "-"  # NumPy's arrays have no `at`


def test_rows_of_eager_operations_have_names_of_their_own():
    from eager import IN_TORCH, ROWS

    assert len(set(ROWS)) == len(ROWS)
    assert set(IN_TORCH) <= set(ROWS)


def test_the_page_shows_the_log_of_the_examples_beside_pytorch():
    """All of them, with losses that stay together but for the row that the page explains."""
    page = (BENCHMARKS.parent / "docs" / "from_pytorch.md").read_text(encoding="utf-8")
    (log,) = re.findall(r"`(benchmarks/results/\S+beside-torch.txt)`", page)
    text = (BENCHMARKS.parent / log).read_text(encoding="utf-8")
    logged = re.findall(r"^(.{28}) +(\S+) → +(\S+) +(\S+) +(\S+) +(\S+) +\S+ +(\d+) +(\d+)$", text, re.MULTILINE)
    rows = [f"| {name.strip()} | {first} to {last} | {' | '.join(others)} |" for name, first, last, *others in logged]
    assert [row for row in rows if row not in page] == []
    assert [row[0].strip() for row in logged if float(row[3]) > 1e-4] == ["writers, CNN"]
    assert len(rows) == 16
