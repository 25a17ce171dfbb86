"""Cases of a program: each prints its name and its numbers as one line of JSON, or its error."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable
from typing import Any

import jax
import numpy as np

LIMIT = 90  # seconds


def _too_long(*_: object) -> None:
    raise TimeoutError(f"no result in {LIMIT} s")


def case(name: str, compute: Callable[[], Any]) -> None:
    """Print the numbers of one case."""
    signal.signal(signal.SIGALRM, _too_long)
    signal.alarm(LIMIT)
    try:
        leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(compute())]
        line: dict[str, Any] = {"name": name, "value": [float(x) for leaf in leaves for x in leaf.ravel()]}
    except Exception as error:  # what the page tells
        line = {
            "name": name,
            "error": f"{type(error).__name__}: {str(error).splitlines()[0][:160] if str(error) else ''}",
        }
    finally:
        signal.alarm(0)
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
