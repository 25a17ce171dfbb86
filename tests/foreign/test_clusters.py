"""Dask's workers in other processes: a sweep that loses a worker, and blocks of Dask's arrays."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import tracer.numpy as tnp
from tracer import grad, jit, vmap
from tracer.examples import sweep

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    cluster = distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0")
    with cluster, distributed.Client(cluster) as client:
        yield client


def test_a_sweep_loses_nothing_where_a_worker_dies(client: Any) -> None:
    starts = np.linspace(2.0, 20.0, 24)
    before = set(client.run(os.getpid).values())
    fits = sweep.sweep(client, starts, kill_one=True)
    assert before - set(client.run(os.getpid).values()), "no worker was killed"
    measured = np.asarray(sweep.motion(sweep.TRUE_STIFFNESS))
    assert [fit[:2] for fit in fits] == [sweep.task(start, measured)[:2] for start in starts]
    assert min(abs(stiffness - sweep.TRUE_STIFFNESS) for stiffness, *_ in fits) < 0.1


def test_blocks_of_dask_arrays_run_functions(client: Any) -> None:
    import dask.array

    values = np.random.default_rng(0).standard_normal((8, 6))
    x = dask.array.from_array(values, chunks=(2, 6))
    slope = vmap(grad(lambda row: tnp.sum(tnp.sin(row) ** 2)))
    for f in (jit(lambda block: tnp.tanh(block) * 2), jit(slope), slope):
        blocks = x.map_blocks(f, dtype=x.dtype, meta=values[:0])
        np.testing.assert_array_equal(np.asarray(blocks.compute()), np.asarray(f(values)))


def test_local_functions_and_arrays_go_to_workers_and_back(client: Any) -> None:
    scale = tnp.asarray([1.0, 2.0])
    f = jit(lambda x: x * scale)
    futures = client.map(f, [tnp.ones(2), np.zeros(2), tnp.arange(2.0)])
    np.testing.assert_array_equal(np.stack(client.gather(futures)), [[1, 2], [0, 0], [0, 2]])
