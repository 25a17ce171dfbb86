"""A sweep of parameters with gradients over several processes, by Dask: a damped spring, fitted to its measured motion.

Every task starts at another guess of the stiffness and takes some gradient steps. Dask sends the jitted step to its
workers, and gives the tasks of a worker that dies to another one. `python -m tracer.examples.sweep` runs it.
"""

from __future__ import annotations

import os
import signal
from typing import Any

import numpy as np

import tracer
import tracer.numpy as tnp
from tracer import jit, lax, value_and_grad

STEPS = 400  # of the motion
DT = 0.02  # seconds
TRUE_STIFFNESS, DAMPING = 9.0, 0.4


def motion(stiffness: Any) -> tracer.Array:
    """Return the positions of a spring of mass 1 from rest at 1: float64 [STEPS], by semi-implicit Euler."""

    def step(state: tuple[Any, Any], _: None) -> tuple[tuple[Any, Any], Any]:
        x, v = state
        v = v - DT * (stiffness * x + DAMPING * v)
        x = x + DT * v
        return (x, v), x

    positions: tracer.Array = lax.scan(step, (1.0 + 0.0 * stiffness, 0.0 * stiffness), None, length=STEPS)[1]
    return positions


def misfit(stiffness: Any, measured: Any) -> tracer.Array:
    """Return the mean squared distance of the motion from `measured`, float64 [STEPS]."""
    return tnp.mean((motion(stiffness) - measured) ** 2)


@jit
def fitted(start: Any, measured: Any) -> tuple[tracer.Array, tracer.Array]:
    """Return (stiffness, misfit) after 200 normalised gradient steps from `start`, both float64 []."""

    def step(i: Any, stiffness: Any) -> Any:
        _, slope = value_and_grad(misfit)(stiffness, measured)
        return stiffness - 0.1 * 0.98**i * tnp.tanh(20.0 * slope)

    stiffness = lax.fori_loop(0, 200, step, start)
    return stiffness, misfit(stiffness, measured)


def task(start: float, measured: np.ndarray[Any, Any]) -> tuple[float, float, int]:
    """Return (stiffness, misfit, process) of one fit, the result that a worker sends back."""
    stiffness, error = fitted(np.float64(start), measured)
    return float(stiffness), float(error), os.getpid()


def sweep(client: Any, starts: np.ndarray[Any, Any], *, kill_one: bool = False) -> list[tuple[float, float, int]]:
    """Return the fits from all starts, in order, computed by the workers of a `distributed.Client`.

    kill_one: end a worker's process once it has returned a fit, to see that other workers do its tasks.
    """
    from distributed import as_completed  # noqa: PLC0415  # an optional package

    measured = np.asarray(motion(TRUE_STIFFNESS))
    tasks = [client.submit(task, float(start), measured, pure=False) for start in starts]
    if kill_one:
        *_, process = next(iter(as_completed(tasks))).result()
        os.kill(process, signal.SIGKILL)
    fits: list[tuple[float, float, int]] = client.gather(tasks)
    return fits


def main() -> None:
    """Fit the spring from 40 starts on two worker processes, one of which is killed, and print the best fit."""
    from distributed import Client, LocalCluster  # noqa: PLC0415  # an optional package

    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster, Client(cluster) as client:
        fits = sweep(client, np.linspace(2.0, 20.0, 40), kill_one=True)
    stiffness, error, _ = min(fits, key=lambda fit: fit[1])
    print(f"{len(fits)} fits; stiffness {stiffness:.3f}, misfit {error:.1e}")


if __name__ == "__main__":
    main()
