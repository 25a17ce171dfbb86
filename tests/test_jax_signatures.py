"""The names of JAX's transforms, trees and callbacks: each is where JAX has it, and takes what JAX's takes.

The table is written by tools/jax_signatures.py. What is left out stands in tracer/absent.py with its reason, which
docs/jax.md shows; docs/lax.md has lax.
"""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tracer
from tests.grids import each
from tools.jax_table import TARGET, text
from tracer import absent

TABLE = json.loads((Path(__file__).parent / "jax_signatures.json").read_text(encoding="utf-8"))["modules"]

ABSENT = {module.replace("tracer", "jax", 1): names for module, names in absent.ABSENT.items()}
# Names that users of JAX look for, and that this release of it has not, or has as modules
OLDER = {
    "jax": {
        "api_util", "cloud_tpu_init", "collect_profile", "core", "distributed", "dlpack", "example_libraries", "export",
        "extend", "ffi", "image", "interpreters", "lib", "monitoring", "profiler", "ref", "stages", "tools",
        "tree_leaves", "tree_map", "tree_multimap", "xla",
    },
    "jax.experimental": {
        "checkify", "jet", "maps", "mesh_utils", "multihost_utils", "ode", "pallas", "pjit", "shard_map",
    },
    "jax.experimental.sparse": {"linalg"},
    "jax.scipy": {"spatial"},
    "jax.sharding": {"PositionalSharding"},
}  # fmt: skip

# Classes that users do not call, and policies, which checkpoint calls
NOT_CALLED = {
    "Array",
    "ArrayLike",
    "DTypeLike",
    "Shape",
    "PyTreeDef",
    "SymbolicZero",
    "Partial",
    "CustomVJPPrimal",
    "JAXSparse",
}
POLICIES = {name for name in TABLE["jax.checkpoint_policies"] if not name.startswith("save")}

NOT_TAKEN = {
    "jax.default_device": {"new_val"},  # the same place, by a name of its own
    "jax.jit": {"backend", "compiler_options"},  # one device, no XLA
    "jax.ShapeDtypeStruct": {"manual_axis_type", "is_ref"},  # of meshes, and of references
    "jax.dtypes.iinfo": {"int_type"},  # it is `dtype`, as in tracer.numpy
    "jax.dtypes.issubdtype": {"a", "b"},  # as NumPy's: arg1, arg2
    "jax.dtypes.result_type": {"return_weak_type_flag"},  # an array says so itself
    "jax.vmap": {"sum_match"},  # undocumented
    "jax.experimental.sparse.bcoo_reshape": {"sharding"},  # arrays lie on one device
    "jax.experimental.sparse.empty": {"kwds"},  # they have names: n_batch, n_dense, nse
    "jax.experimental.sparse.eye": {"kwds"},  # of a matrix without batches
}


RENAMED = {"jax.default_device": {"device"}, "jax.dtypes.iinfo": {"dtype"}, "jax.dtypes.issubdtype": {"arg1", "arg2"}}
SHARDED = {"out_sharding"}  # arrays lie on one device

# Left out they give a function of the rest, which functools.partial gives too
REQUIRED = {"jax.debug.callback.callback", "jax.debug.print.fmt"}

# SciPy's default, which means the same
OTHER_DEFAULTS = {"jax.scipy.linalg.solve.assume_a"}


def ours(module: str) -> Any:
    if module == "jax.checkpoint_policies":
        return tracer.checkpoint_policies
    return import_module("tracer" + module.removeprefix("jax"))


@each("module", TABLE)
def test_every_name_is_here_or_excused(module: str) -> None:
    missing = {name for name in TABLE[module] if not hasattr(ours(module), name)}
    assert missing == set(ABSENT.get(module, {})) - OLDER.get(module, set())
    assert not OLDER.get(module, set()) & set(TABLE[module])


@each("module", [module for module in ABSENT if module != "jax.checkpoint_policies"])
def test_absent_names_say_why(module: str) -> None:
    for name, why in ABSENT[module].items():
        with pytest.raises(
            AttributeError, match="^" + re.escape(f"module '{ours(module).__name__}' has no attribute ")
        ):
            getattr(ours(module), name)
        with pytest.raises(AttributeError, match=re.escape(f"({why})")):
            getattr(ours(module), name)
        assert name not in dir(ours(module))


def accepted(path: str, theirs: list[list[Any]], mine: list[inspect.Parameter]) -> Iterator[str]:
    """What is wrong with our parameters for calls written for theirs."""
    by_name = {p.name: p for p in mine}
    positional = [p for p in mine if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    anything = {p.kind for p in mine}
    place = 0
    for name, kind, default in theirs:
        own = by_name.get(name)
        if kind in ("VAR_POSITIONAL", "VAR_KEYWORD"):
            # JAX's debugger takes keywords of its own
            if getattr(inspect.Parameter, kind) not in anything and name != "kwargs":
                yield f"*{name} is not taken"
            continue
        if kind != "KEYWORD_ONLY":
            if place >= len(positional):
                yield f"{name} is not taken at place {place}"
                continue
            if kind == "POSITIONAL_OR_KEYWORD" and positional[place].name != name:
                yield f"place {place} is {name}, not {positional[place].name}"
            own = positional[place]
            place += 1
        elif own is None:
            if inspect.Parameter.VAR_KEYWORD not in anything:
                yield f"{name} is not taken"
            continue
        if f"{path}.{name}" in REQUIRED:
            continue
        if default is not None and own.default is own.empty:
            yield f"{name} has no default"
        elif (
            default not in (None, "...")
            and f"{path}.{name}" not in OTHER_DEFAULTS
            and own.kind is not own.VAR_KEYWORD
            and repr(own.default) != default
        ):
            yield f"{name} is {own.default!r} by default, not {default}"


@each("module", TABLE)
def test_calls_written_for_jax_fit(module: str) -> None:
    for name, theirs in TABLE[module].items():
        if name in ABSENT.get(module, {}) or theirs is None or name in NOT_CALLED | POLICIES:
            continue
        path = f"{module}.{name}"
        assert NOT_TAKEN.get(path, set()) <= {p[0] for p in theirs}, path
        left_out = NOT_TAKEN.get(path, set()) | SHARDED
        mine = list(inspect.signature(getattr(ours(module), name)).parameters.values())
        wanted = [p for p in theirs if p[0] not in left_out]
        assert list(accepted(path, wanted, mine)) == [], path
        extra = [p.name for p in mine if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
        assert set(extra) <= {p[0] for p in wanted} | RENAMED.get(path, set()), path


def test_the_test_can_fail() -> None:
    def less(fun: Any, out_axes: Any = 0, *, has_aux: bool = True) -> None: ...

    theirs = [["fun", "POSITIONAL_OR_KEYWORD", None], ["in_axes", "POSITIONAL_OR_KEYWORD", "0"],
              ["has_aux", "KEYWORD_ONLY", "False"], ["other", "KEYWORD_ONLY", "..."]]  # fmt: skip
    problems = list(accepted("", theirs, list(inspect.signature(less).parameters.values())))
    assert problems == [
        "place 1 is in_axes, not out_axes", "has_aux is True by default, not False", "other is not taken"
    ]  # fmt: skip


def test_the_page_is_current() -> None:
    assert TARGET.read_text(encoding="utf-8") == text(), "run python -m tools.jax_table"
