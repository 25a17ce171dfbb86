"""Object code in files: a second process compiles nothing, and nothing stale, broken or foreign is ever run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tracer.runtime.disk import Folder
from tracer.runtime.objects import ObjectCache
from tracer.settings import config

PROGRAM = """
import numpy as np, tracer, tracer.numpy as tnp
from tracer.runtime.objects import objects
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


def run(folder: Path, setup: str = SETUP, call: str = CALL) -> tuple[str, int]:
    """What a fresh process prints: the result, and how often it compiled."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM.format(setup=setup, call=call)], check=False,
        env={**os.environ, "TRACER_CACHE_DIR": str(folder)}, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    result, _, compiled = done.stdout.strip().rpartition(" ")
    return result, int(compiled)


def files(folder: Path) -> list[Path]:
    return sorted(folder.iterdir())


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    first = run(tmp_path / "cache")
    assert first[0] == "[3.0, 3.0]"
    assert first[1] > 0
    assert run(tmp_path / "cache") == (first[0], 0)
    assert oct((tmp_path / "cache").stat().st_mode & 0o777) == "0o700"


@pytest.mark.parametrize(
    ("old", "new", "result"),
    [
        ("[1.0, 2.0]", "[5.0, 7.0]", "[3.0, 3.0]"),  # a captured array is an operand: no new code
        ("+ 3.0", "+ 4.0", "[4.0, 4.0]"),
        ("power = 2", "power = 3", "[3.0, 3.0]"),
        ("tnp.sin(x)", "tnp.cos(x)", "[4.0, 5.0]"),
        ("return x ** power", "return x ** power + 1.0", "[4.0, 5.0]"),
        ("\nscale", "\ntracer.config.default_float = 'float32'\nscale", "[3.0, 3.0]"),
    ],
)
def test_what_changes_is_never_stale(tmp_path: Path, old: str, new: str, result: str) -> None:
    run(tmp_path)
    changed = SETUP.replace(old, new)
    assert changed != SETUP
    assert run(tmp_path, changed)[0] == result
    assert run(tmp_path, changed) == (result, 0)
    assert run(tmp_path) == ("[3.0, 3.0]", 0)


@pytest.mark.parametrize("damage", ["truncate", "flip", "empty", "foreign"])
def test_damaged_files_are_compiled_again(tmp_path: Path, damage: str) -> None:
    expected, compiled = run(tmp_path)
    for path in files(tmp_path):
        data = bytearray(path.read_bytes())
        match damage:
            case "truncate":
                del data[len(data) // 2 :]
            case "flip":
                data[-7] ^= 1
            case "empty":
                data.clear()
            case _:
                data[:4] = b"\x7fELF"
        path.write_bytes(data)
    assert run(tmp_path) == (expected, compiled)
    assert run(tmp_path) == (expected, 0)


def test_processes_may_write_at_once(tmp_path: Path) -> None:
    program = PROGRAM.format(setup=SETUP, call=CALL)
    running = [
        subprocess.Popen(
            [sys.executable, "-c", program], env={**os.environ, "TRACER_CACHE_DIR": str(tmp_path)},
            stdout=subprocess.PIPE, text=True,
        )
        for _ in range(4)
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


def test_a_folder_that_cannot_be_made_is_a_warning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.warns(RuntimeWarning, match=r"cache_dir is not used"):
        Folder(tmp_path / "file" / "cache").write("key", b"code")


def test_what_was_used_longest_ago_goes_first(tmp_path: Path) -> None:
    with config.using(cache_size=10_000):
        folder = Folder(tmp_path)
        for n in range(20):
            folder.write(f"key{n}", bytes(1000))
            os.utime(tmp_path / f"key{n}.object", (n, n))
        folder.read("key0")  # used again
        Folder(tmp_path).write("last", bytes(1000))
    names = {path.stem for path in files(tmp_path)}
    assert {"key0", "last", "key19"} <= names
    assert "key1" not in names
    assert sum(path.stat().st_size for path in files(tmp_path)) <= 10_000


def test_without_a_setting_there_are_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with config.using(cache_dir=None):
        ObjectCache().get("define i32 @tracer_main(ptr %a, ptr %b) {\n  ret i32 0\n}\n")
    assert not files(tmp_path)
