"""The table of tracer.numpy's names: every chapter has what it promises, and users see the names alone."""

from __future__ import annotations

import inspect
import pickle
import subprocess
import sys

import pytest

import tracer.numpy as tnp
from tracer.numpy import _REPLAYED, __all__


def test_every_name_is_there_and_dir_lists_them() -> None:
    assert len(set(__all__)) == len(__all__)
    assert dir(tnp) == sorted(__all__)
    assert not [name for name in __all__ if not hasattr(tnp, name)]
    assert set(__all__) >= _REPLAYED


@pytest.mark.parametrize("name", [name for name in __all__ if inspect.isfunction(getattr(tnp, name))])
def test_functions_are_those_of_the_namespace(name: str) -> None:
    function = getattr(tnp, name)
    assert function.__module__ == "tracer.numpy"
    assert pickle.loads(pickle.dumps(function)) is function


def test_other_names_of_a_function_are_that_function() -> None:
    assert tnp.abs is tnp.absolute
    assert tnp.concat is tnp.concatenate
    assert tnp.acos is tnp.arccos


def test_unknown_names_are_errors() -> None:
    with pytest.raises(AttributeError, match=r"module 'tracer\.numpy' has no attribute 'no_such_name'"):
        tnp.no_such_name  # noqa: B018


def test_first_uses_in_several_threads_give_one_function() -> None:
    program = """if True:
        import sys, threading
        import tracer.numpy as tnp
        sys.setswitchinterval(1e-6)
        found, gate = [], threading.Barrier(8)
        def read():
            gate.wait()
            found.append(tnp.polyval)
        threads = [threading.Thread(target=read) for _ in range(8)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        assert len(found) == 8 and len(set(found)) == 1, found
    """
    subprocess.run([sys.executable, "-c", program], check=True)
