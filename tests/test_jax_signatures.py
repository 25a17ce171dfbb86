"""The names of JAX's transforms, trees and callbacks: each is where JAX has it, and takes what JAX's takes.

The table is written by tools/jax_signatures.py. What is left out stands here with its reason; docs/lax.md has lax.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import tracer

TABLE = json.loads((Path(__file__).parent / "jax_signatures.json").read_text(encoding="utf-8"))["modules"]

DEVICES = "speaks of many devices or processes"
SETTINGS = "a setting of XLA's or of JAX's own checks; tracer.config has ours"
INSIDE = "the inside of JAX"
LATER = "not yet"

ABSENT = {
    "jax": {
        **dict.fromkeys(
            ("Device", "NamedSharding", "P", "Shard", "copy_to_host_async", "default_backend", "device_count",
             "host_count", "host_id", "host_ids", "local_device_count", "local_devices", "make_array_from_callback",
             "make_array_from_process_local_data", "make_array_from_single_device_arrays", "make_mesh", "pmap",
             "process_count", "process_index", "process_indices", "reshard", "set_mesh", "shard_map", "smap", "memory",
             "remove_size_one_mesh_axis_from_type", "live_arrays", "auto_pcast"), DEVICES,
        ),
        **dict.fromkeys(
            ("allow_f16_reductions", "array_garbage_collection_guard", "check_tracer_leaks", "checking_leaks",
             "debug_infs", "debug_key_reuse", "debug_nans", "default_matmul_precision", "default_prng_impl",
             "enable_checks", "enable_custom_prng", "enable_x64", "explain_cache_misses",
             "jax2tf_associative_scan_reductions", "legacy_prng_key", "log_compiles", "no_execution", "no_tracing",
             "numpy_dtype_promotion", "numpy_rank_promotion", "softmax_custom_jvp", "thread_guard",
             "threefry_partitionable", "transfer_guard", "transfer_guard_device_to_device",
             "transfer_guard_device_to_host", "transfer_guard_host_to_device"), SETTINGS,
        ),
        **dict.fromkeys(("ad", "make_user_context", "print_environment_info"), INSIDE),
        **dict.fromkeys(("Ref", "empty_ref", "free_ref", "freeze", "new_ref"), "arrays are values here"),
        "clear_caches": "f.clear_cache() forgets what jit of f compiled",
        "ds": "a slice of Pallas kernels",
        "fwd_and_bwd": "vjp gives both halves",
    },
    "jax.ad_checkpoint": dict.fromkeys(("Offloadable", "Recompute", "Saveable"), INSIDE),
    "jax.checkpoint_policies": dict.fromkeys(
        ("offload_dot_with_no_batch_dims", "save_and_offload_only_these_names"), DEVICES
    ),
    "jax.custom_derivatives": {
        "custom_vjp_primal_tree_values": INSIDE,
        "linear_call": LATER + ": custom_vjp of a linear function says the same",
    },
    "jax.debug": {
        **dict.fromkeys(("DebugEffect", "OrderedDebugEffect"), INSIDE),
        **dict.fromkeys(("inspect_array_sharding", "visualize_array_sharding", "visualize_sharding"), DEVICES),
        "log": "debug.callback(logging.info, ...) logs",
    },
    "jax.experimental": dict.fromkeys(("EArray", "cur_qdd", "primal_tangent_dtype"), INSIDE),
    "jax.tree_util": {
        **dict.fromkeys(("KeyEntry", "default_registry", "flatten_one_level", "flatten_one_level_with_keys"), INSIDE),
        "is_tree_node": INSIDE,
    },
}  # fmt: skip

# Classes that users do not call, and policies, which checkpoint calls
NOT_CALLED = {"Array", "PyTreeDef", "SymbolicZero", "Partial", "CustomVJPPrimal"}
POLICIES = {name for name in TABLE["jax.checkpoint_policies"] if not name.startswith("save")}

NOT_TAKEN = {
    "jax.device_put": {"src", "donate", "may_alias"},  # of arrays that move between devices
    "jax.devices": {"backend"},  # there is one list of them, by platform
    "jax.default_device": {"new_val"},  # the same place, by a name of its own
    "jax.jit": {"in_shardings", "out_shardings", "backend", "compiler_options"},  # one device, no XLA
    "jax.ShapeDtypeStruct": {"manual_axis_type", "is_ref"},  # of meshes, and of references
    "jax.vmap": {"sum_match"},  # undocumented
}


# Left out they give a function of the rest, which functools.partial gives too
REQUIRED = {"jax.debug.callback.callback", "jax.debug.print.fmt"}

WHOLE = [(module, name) for module, names in TABLE.items() for name in names if name not in ABSENT.get(module, {})]


def ours(module: str) -> Any:
    if module == "jax.checkpoint_policies":
        return tracer.checkpoint_policies
    return import_module("tracer" + module.removeprefix("jax"))


@pytest.mark.parametrize("module", TABLE)
def test_every_name_is_here_or_excused(module: str) -> None:
    missing = {name for name in TABLE[module] if not hasattr(ours(module), name)}
    assert missing == set(ABSENT.get(module, {}))


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
        elif default not in (None, "...") and own.kind is not own.VAR_KEYWORD and repr(own.default) != default:
            yield f"{name} is {own.default!r} by default, not {default}"


@pytest.mark.parametrize(("module", "name"), WHOLE, ids=[f"{m}.{n}" for m, n in WHOLE])
def test_calls_written_for_jax_fit(module: str, name: str) -> None:
    theirs, path = TABLE[module][name], f"{module}.{name}"
    if theirs is None or name in NOT_CALLED | POLICIES:
        return
    left_out = NOT_TAKEN.get(path, set())
    assert left_out <= {p[0] for p in theirs}
    mine = list(inspect.signature(getattr(ours(module), name)).parameters.values())
    wanted = [p for p in theirs if p[0] not in left_out]
    assert list(accepted(path, wanted, mine)) == []
    extra = [p.name for p in mine if p.default is p.empty and p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    assert set(extra) <= {p[0] for p in wanted} | ({"device"} if "new_val" in left_out else set())


def test_the_test_can_fail() -> None:
    def less(fun: Any, out_axes: Any = 0, *, has_aux: bool = True) -> None: ...

    theirs = [["fun", "POSITIONAL_OR_KEYWORD", None], ["in_axes", "POSITIONAL_OR_KEYWORD", "0"],
              ["has_aux", "KEYWORD_ONLY", "False"], ["other", "KEYWORD_ONLY", "..."]]  # fmt: skip
    problems = list(accepted("", theirs, list(inspect.signature(less).parameters.values())))
    assert problems == [
        "place 1 is in_axes, not out_axes", "has_aux is True by default, not False", "other is not taken"
    ]  # fmt: skip
