"""Object code in files: a second process compiles nothing, and nothing stale, broken or foreign is ever run."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import pytest

from tracer.runtime.native.disk_cache import Folder
from tracer.runtime.native.object_cache import ObjectCache
from tracer.settings import config

PROGRAM = """
import numpy as np, tracer, tracer.numpy as tnp
from tracer.runtime.native.object_cache import objects
{setup}
print(repr(np.asarray({call}).tolist()), objects.compiled)
"""
SETUP = """
scale = tnp.asarray([1.0, 2.0])
power = 2
def inner(x): return x ** power
f = tracer.jit(lambda x: inner(tnp.sin(x)) * scale + 3.0)
"""
CALL = "f(tnp.asarray([0.0, 0.0]))"


class Made(NamedTuple):
    """A folder that a process filled; its result, and how often it compiled."""

    folder: Path
    result: str
    compiled: int


def printed(program: str, environment: Mapping[str, str]) -> list[tuple[str, int]]:
    """What a fresh process prints, in each line a result, and how often it compiled."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], check=False,
        env=dict(environment), capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    lines = [line.rpartition(" ") for line in done.stdout.strip().splitlines()]
    return [(result, int(compiled)) for result, _, compiled in lines]


def with_programs(folder: Path) -> dict[str, str]:
    """An environment whose programs are kept in a folder, kernels among them, not in the folder of the run."""
    return {**os.environ, "TRACER_CACHE_DIR": str(folder), "TRACER_KERNEL_DIR": ""}


def run(folder: Path, setup: str = SETUP, call: str = CALL) -> tuple[str, int]:
    """What a fresh process prints of a program."""
    (line,) = printed(PROGRAM.format(setup=setup, call=call), with_programs(folder))
    return line


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in files(folder)}


EACH = """
import numpy as np, tracer, tracer.numpy as tnp
from tracer.runtime.native.object_cache import objects
for setup in {setups!r}:
    names, before = dict(np=np, tracer=tracer, tnp=tnp), objects.compiled
    exec(setup, names)
    print(repr(np.asarray(eval({call!r}, names)).tolist()), objects.compiled - before)
"""


def run_each(folder: Path, setups: Sequence[str]) -> list[tuple[str, int]]:
    """The same of several programs in one fresh process."""
    return printed(EACH.format(setups=list(setups), call=CALL), with_programs(folder))


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Made:
    """The files that a fresh process left, and what it printed."""
    folder = tmp_path_factory.mktemp("made") / "cache"
    return Made(folder, *run(folder))


def test_a_second_process_compiles_nothing(made: Made) -> None:
    assert made.result == "[3.0, 3.0]"
    assert made.compiled > 0
    assert run(made.folder) == (made.result, 0)
    assert oct(made.folder.stat().st_mode & 0o777) == "0o700"


CHANGES = [
    ("[1.0, 2.0]", "[5.0, 7.0]", "[3.0, 3.0]"),  # a captured array is an operand: no new code
    ("+ 3.0", "+ 4.0", "[4.0, 4.0]"),
    ("power = 2", "power = 3", "[3.0, 3.0]"),
    ("tnp.sin(x)", "tnp.cos(x)", "[4.0, 5.0]"),
    ("return x ** power", "return x ** power + 1.0", "[4.0, 5.0]"),
    ("\nscale", "\ntracer.config.default_float = 'float32'\nscale", "[3.0, 3.0]"),
]


def test_what_changes_is_never_stale(made: Made, tmp_path: Path) -> None:
    folder = shutil.copytree(made.folder, tmp_path / "cache")
    changed = [SETUP.replace(old, new) for old, new, _ in CHANGES]
    assert len({SETUP, *changed}) == 1 + len(CHANGES)
    results = [result for _, _, result in CHANGES]
    assert [result for result, _ in run_each(folder, changed)] == results
    assert run_each(folder, [SETUP, *changed]) == [(result, 0) for result in ("[3.0, 3.0]", *results)]


DAMAGES = ("truncate", "flip", "empty", "foreign")


@pytest.mark.parametrize("first", [0, 2])
def test_damaged_files_are_compiled_again(made: Made, tmp_path: Path, first: int) -> None:
    """Neighbours are damaged in different ways, so that two processes meet all of them."""
    folder = shutil.copytree(made.folder, tmp_path / "cache")
    whole = contents(folder)
    assert len(whole) == made.compiled >= len(DAMAGES) // 2
    for number, path in enumerate(sorted(files(folder)), first):
        data = bytearray(path.read_bytes())
        match DAMAGES[number % len(DAMAGES)]:
            case "truncate":
                del data[len(data) // 2 :]
            case "flip":
                data[-7] ^= 1
            case "empty":
                data.clear()
            case _:
                data[:4] = b"\x7fELF"
        path.write_bytes(data)
    assert run(folder) == (made.result, made.compiled)
    assert contents(folder) == whole


def test_processes_may_write_at_once(tmp_path: Path) -> None:
    program = PROGRAM.format(setup=SETUP, call=CALL)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program], env=with_programs(tmp_path),
            stdout=subprocess.PIPE, text=True,
        )
        for _ in range(3)
    ]  # fmt: skip
    assert all(process.communicate(timeout=120)[0].startswith("[3.0, 3.0]") for process in running)
    assert all(path.suffix == ".object" for path in files(tmp_path))
    assert run(tmp_path)[1] == 0


needs_users = pytest.mark.skipif(not hasattr(os, "geteuid"), reason="folders have no owners here")


@needs_users
def test_a_folder_that_others_may_write_to_is_not_used(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="other users may write"):
        folder = Folder(tmp_path)
    folder.write("key", b"code")
    assert not files(tmp_path)
    assert folder.read("key") is None


@needs_users
def test_a_folder_that_is_made_again_for_others_is_not_used(tmp_path: Path) -> None:
    path = tmp_path / "cache"
    folder = Folder(path)
    folder.write("key", b"code")
    assert folder.read("key") == b"code"
    shutil.rmtree(path)
    folder.write("key", b"code")
    path.mkdir()
    path.chmod(0o777)
    with pytest.warns(RuntimeWarning, match="cache_dir is not used: other users may write") as warned:
        folder.write("key", b"code")
    assert folder.read("key") is None
    assert not files(path)
    assert len(warned) == 1
    path.chmod(0o700)
    folder.write("key", b"code")
    assert not files(path)


@needs_users
def test_the_folder_of_kernels_is_left_alone_in_silence_once_others_may_write(tmp_path: Path) -> None:
    folder = Folder(tmp_path, None)
    tmp_path.chmod(0o770)
    folder.write("key", b"code")
    assert not files(tmp_path)


def test_a_file_in_the_place_of_another_is_not_read(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("one", b"code of one")
    folder.write("two", b"code of two")
    shutil.copy(tmp_path / "one.object", tmp_path / "two.object")
    assert folder.read("two") is None
    assert {path.stem for path in files(tmp_path)} == {"one"}
    assert folder.read("one") == b"code of one"


@needs_users
def test_files_of_others_and_links_are_not_read(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    folder.write("key", b"code")
    (path,) = files(tmp_path)
    assert folder.read("key") == b"code"
    path.chmod(0o666)
    assert folder.read("key") is None
    path.chmod(0o600)
    path.rename(tmp_path / "elsewhere")
    path.symlink_to(tmp_path / "elsewhere")
    assert folder.read("key") is None


@pytest.mark.parametrize("thing", ["a folder", "a pipe", "a link to nothing"])
def test_what_is_no_file_is_left_alone(tmp_path: Path, thing: str) -> None:
    folder, path = Folder(tmp_path), tmp_path / "key.object"
    match thing:
        case "a folder":
            path.mkdir()
        case "a pipe":
            if not hasattr(os, "mkfifo"):
                pytest.skip("no pipes have names here")
            os.mkfifo(path, 0o600)
        case _:
            path.symlink_to(tmp_path / "nothing")
    assert folder.read("key") is None
    folder.write("key", b"code")
    assert folder.read("key") == (None if thing == "a folder" else b"code")
    assert not [left for left in files(tmp_path) if left.suffix == ".new"]


KILLED = """
import sys, tracer
from pathlib import Path
from tracer.runtime.native.disk_cache import Folder
folder = Folder(Path(sys.argv[1]))
print("ready", flush=True)
while True:
    for key in "abc":
        folder.write(key, key.encode() * 3_000_000)
"""


@pytest.mark.skipif(not hasattr(os, "kill") or sys.platform == "win32", reason="processes are not killed so here")
def test_a_process_that_is_killed_leaves_whole_files(tmp_path: Path) -> None:
    for milliseconds in (2, 7, 13, 29):
        writing = subprocess.Popen([sys.executable, "-c", KILLED, str(tmp_path)], stdout=subprocess.PIPE, text=True)
        assert writing.stdout is not None
        writing.stdout.readline()
        time.sleep(milliseconds / 1000)
        writing.kill()
        writing.communicate()
        for key in "abc":
            found = Folder(tmp_path).read(key)
            assert found is None or found == key.encode() * 3_000_000
            assert found is not None or not (tmp_path / f"{key}.object").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="files are not limited so here")
def test_a_full_disk_is_no_reason_to_fail(tmp_path: Path) -> None:
    setup = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
    setup += "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    assert run(tmp_path, setup + SETUP)[0] == "[3.0, 3.0]"
    assert not files(tmp_path)


def test_a_folder_that_is_removed_is_no_reason_to_fail(tmp_path: Path) -> None:
    setup = f"import shutil; tracer.jit(lambda x: x)(1.0); shutil.rmtree({str(tmp_path)!r})\n"
    assert run(tmp_path, setup + SETUP)[0] == "[3.0, 3.0]"


def test_a_folder_that_cannot_be_made_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match=r"cache_dir is not used"):
        Folder(tmp_path / "file" / "cache").write("key", b"code")


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    folder = Folder(tmp_path)
    for n in range(20):
        folder.write(f"key{n}", bytes(1000))
        os.utime(tmp_path / f"key{n}.object", (n, n))
    folder.read("key0")  # used again
    with config.using(cache_size=10_000):
        Folder(tmp_path).write("last", bytes(1000))
    names = {path.stem for path in files(tmp_path)}
    assert {"key0", "last", "key19"} <= names
    assert "key1" not in names
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 10_000


def test_the_limit_holds_after_every_file(tmp_path: Path) -> None:
    with config.using(cache_size=10_000):
        folder = Folder(tmp_path)
        for n in range(20):
            folder.write(f"key{n}", bytes(3000))
            assert sum(path.stat().st_size for path in files(tmp_path)) <= 10_000
        assert folder.read("key19") == bytes(3000)


def test_without_a_setting_there_are_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with config.using(cache_dir=None):
        ObjectCache().get("define i32 @tracer_main(ptr %a, ptr %b) {\n  ret i32 0\n}\n")
    assert not files(tmp_path)


PRODUCT = "import numpy as np\nf = tracer.jit(lambda x: x @ x)\n"
SQUARE = "f(np.eye(64) * 2)[:1, :2]"


def with_kernels(cache: Path, **environment: str) -> tuple[str, int]:
    """What a fresh process prints that multiplies matrices, where `cache` is for the user's caches."""
    known = {name: value for name, value in os.environ.items() if name != "TRACER_KERNEL_DIR"}
    program = PROGRAM.format(setup=PRODUCT, call=SQUARE)
    (line,) = printed(program, {**known, "XDG_CACHE_HOME": str(cache), **environment})
    return line


def test_kernels_are_compiled_once_on_a_machine_and_programs_in_each_process(tmp_path: Path) -> None:
    result, compiled = with_kernels(tmp_path)
    assert result == "[[4.0, 0.0]]"
    kept = contents(tmp_path / "tracer" / "kernels")
    assert len(kept) == compiled - 1
    assert with_kernels(tmp_path) == (result, 1)
    for path in files(tmp_path / "tracer" / "kernels"):
        path.write_bytes(path.read_bytes()[:-9])
    assert with_kernels(tmp_path) == (result, compiled)
    assert contents(tmp_path / "tracer" / "kernels") == kept


def test_kernels_are_kept_where_settings_say_or_with_the_programs_or_nowhere(tmp_path: Path) -> None:
    result, compiled = with_kernels(tmp_path / "a", TRACER_KERNEL_DIR=str(tmp_path / "b"))
    assert len(files(tmp_path / "b")) == compiled - 1
    assert with_kernels(tmp_path / "a", TRACER_KERNEL_DIR="") == (result, compiled)
    assert not (tmp_path / "a").exists()
    both = {"TRACER_KERNEL_DIR": "", "TRACER_CACHE_DIR": str(tmp_path / "c")}
    assert with_kernels(tmp_path / "a", **both) == (result, compiled)
    assert with_kernels(tmp_path / "a", **both) == (result, 0)


def test_a_user_without_a_place_for_caches_hears_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert with_kernels(tmp_path / "file")[0] == "[[4.0, 0.0]]"
    with config.using(kernel_dir=tmp_path / "file" / "kernels"), pytest.warns(RuntimeWarning, match="kernel_dir"):
        ObjectCache().kernel("define i32 @tracer_main(ptr %a, ptr %b) {\n  ret i32 0\n}\n")
