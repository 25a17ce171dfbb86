"""Tables of measurements that scikit-learn ships, and their division into folds for cross-validation."""

from __future__ import annotations

from importlib import import_module
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

import tracer
from tracer import random


class Table(NamedTuple):
    """Measurements and the targets to predict from them.

    features: float32 [n, d]; targets: [n], classes as int64, or numbers as float64.
    """

    features: NDArray[np.float32]
    targets: NDArray[Any]


def load(name: str) -> Table:
    """Return a table by scikit-learn's name.

    Classes: breast_cancer [569, 30], wine [178, 13], iris [150, 4]. Numbers: diabetes [442, 10]. Raises ImportError
    without scikit-learn.

    >>> load("wine").features.shape
    (178, 13)
    """
    try:
        datasets = import_module("sklearn.datasets")
    except ImportError as error:
        raise ImportError(f"the table {name} is scikit-learn's, which is absent: pip install scikit-learn") from error
    found = getattr(datasets, f"load_{name}")()
    return Table(found.data.astype("float32"), found.target)


def folds(key: tracer.Array, labels: NDArray[np.int64], count: int = 10) -> NDArray[np.bool_]:
    """Return which rows each fold holds out, bool [count, n].

    Each row is held out once, and every fold has as many of each label.

    "As many" is up to one row. Equal labels make folds at random.

    >>> found = folds(tracer.random.key(0), np.array([0, 0, 0, 0, 1, 1]), count=2)
    >>> found.sum(axis=0).tolist(), found[:, 4:].sum(axis=1).tolist()
    ([1, 1, 1, 1, 1, 1], [1, 1])
    """
    order = np.asarray(random.permutation(key, len(labels)))
    order = order[np.argsort(labels[order], kind="stable")]  # label by label, each in random order
    fold = np.empty(len(labels), int)
    fold[order] = np.arange(len(labels)) % count
    held_out: NDArray[np.bool_] = fold == np.arange(count)[:, None]
    return held_out
