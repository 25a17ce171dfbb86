"""Libraries that must be told of our arrays, whichever is imported first."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

BACKENDS = """
class AbstractBackend:
    pass

def names():
    return [found.framework_name for found in AbstractBackend.__subclasses__()]
"""
PROGRAM = """
import sys
sys.path.insert(0, {folder!r})
import {first}
before = list(sys.meta_path)
import {second}
from einops import _backends
assert _backends.names() == ["tracer"], _backends.names()
(ours,) = _backends.AbstractBackend.__subclasses__()
x = tracer.numpy.arange(3.0)
assert ours().is_appropriate_type(x) and not ours().is_appropriate_type([1.0])
assert ours().is_float_type(x) and ours().einsum("i,i", x, x).tolist() == 5.0
assert all(type(finder).__module__ != "tracer.interop.einops" for finder in sys.meta_path)
"""


@pytest.mark.parametrize("order", [("einops", "tracer"), ("tracer", "einops")])
def test_einops_knows_our_arrays_whichever_is_imported_first(tmp_path: Path, order: tuple[str, str]) -> None:
    package = tmp_path / "einops"
    package.mkdir()
    package.joinpath("__init__.py").write_text("from einops import _backends\n", encoding="utf-8")
    package.joinpath("_backends.py").write_text(BACKENDS, encoding="utf-8")
    program = PROGRAM.format(folder=str(tmp_path), first=order[0], second=order[1])
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
